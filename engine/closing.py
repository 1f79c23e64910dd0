"""What ends with the `with` block that it is made for: objects, and files to read from."""

from __future__ import annotations

import errno
import os
import stat
from abc import ABC, abstractmethod
from io import DEFAULT_BUFFER_SIZE, BufferedReader, FileIO
from types import TracebackType
from typing import Self

from .errors import DataLossError


class Closing(ABC):
    """Closes itself at the end of a `with` block."""

    @abstractmethod
    def close(self) -> None:
        """Free what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self.close()


def open_regular(
    path: str | os.PathLike[str], buffering: int = DEFAULT_BUFFER_SIZE
) -> BufferedReader:
    """A file open for reading. Nobody waits for a pipe: it is refused, and so is a device.

    Raises:
        OSError: as by `open`.
        DataLossError: it is a pipe or a device.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        raise DataLossError(
            f"{os.fspath(path)}: expected a regular file, it is a pipe or a device",
            remedy="copy what it gives into a file, and load that",
        )
    return BufferedReader(FileIO(descriptor), buffering)
