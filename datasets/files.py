"""Elements from files: whole files, lines of text, records."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from laminar.engine.errors import InvalidArgumentError, MissingFileError
from laminar.engine.graph import TensorSpec
from laminar.engine.io import RecordScanner

from .epochs import UNKNOWN, Epoch, State
from .stage import Cursor, Stage

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def found_files(who: str, patterns: Any) -> list[str]:
    """The files that patterns such as "data/*.txt" name, sorted.

    Raises:
        MissingFileError: a pattern names no file.
    """
    found: list[str] = []
    for pattern in [patterns] if isinstance(patterns, str | os.PathLike) else patterns:
        names = sorted(glob.glob(os.fspath(pattern), recursive=True))
        files = [name for name in names if os.path.isfile(name)]
        if not files:
            raise MissingFileError(
                f"{who}: no file matches {os.fspath(pattern)!r}",
                remedy=f"the current folder is {os.getcwd()}",
            )
        found += files
    return list(dict.fromkeys(found))


def as_paths(who: str, paths: Any) -> list[str]:
    """One path or several, as a list.

    Raises:
        InvalidArgumentError: there is none, or something else.
    """
    one = isinstance(paths, str | bytes | os.PathLike)
    try:
        found = [os.fsdecode(path) for path in ([paths] if one else paths)]
    except TypeError as cause:
        raise InvalidArgumentError(f"{who}: expected paths of files, got {paths!r}") from cause
    if not found:
        raise InvalidArgumentError(f"{who}: expected paths of files, got none")
    return found


class Items(Protocol):
    """The items of a file; `offset` is where the next one begins."""

    offset: int

    def __next__(self) -> bytes:
        """The next item."""

    def close(self) -> None:
        """Free the file."""


class _Lines:
    """Lines of text, without their ends."""

    def __init__(self, path: str, start: int) -> None:
        try:
            self._file = Path(path).open("rb")  # noqa: SIM115  # closed by `close`
        except (FileNotFoundError, NotADirectoryError):
            raise MissingFileError(f"there is no file {path!r}") from None
        self._file.seek(start)
        self.offset = start

    def __next__(self) -> bytes:
        line = self._file.readline()
        if not line:
            raise StopIteration
        self.offset += len(line)
        return line.removesuffix(b"\n").removesuffix(b"\r")

    def close(self) -> None:
        self._file.close()


class _Whole:
    """All of a file, as one item."""

    def __init__(self, path: str, start: int) -> None:
        self._path = path
        self.offset = start

    def __next__(self) -> bytes:
        if self.offset:
            raise StopIteration
        self.offset = 1
        try:
            return Path(self._path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise MissingFileError(f"there is no file {self._path!r}") from None

    def close(self) -> None:
        pass


class FileItems(Stage):
    """The items of files, one file after the other.

    Args:
        label: for errors.
        paths: of the files.
        kind: "lines", "records" or "whole".
        compression: of records.
    """

    def __init__(self, label: str, paths: list[str], kind: str, compression: str = "") -> None:
        super().__init__(label)
        self.paths = paths
        self._kind = kind
        self._compression = compression

    def cardinality(self) -> int:
        return len(self.paths) if self._kind == "whole" else UNKNOWN

    def spec(self) -> Any:
        return TensorSpec((), "string")

    def items(self, number: int, start: int) -> Items:
        """The items of a file from `start` on."""
        path = self.paths[number]
        if self._kind == "records":
            return RecordScanner(path, self._compression, start)
        return _Lines(path, start) if self._kind == "lines" else _Whole(path, start)

    def open(self, walk: Epoch) -> Cursor:
        return _Reading(self)


class _Reading(Cursor):
    def __init__(self, stage: FileItems) -> None:
        self._stage = stage
        self._number = 0
        self._offset = 0
        self._items: Items | None = None

    def __next__(self) -> bytes:
        while self._number < len(self._stage.paths):
            try:
                if self._items is None:
                    self._items = self._stage.items(self._number, self._offset)
                item = next(self._items)
            except StopIteration:
                self.close()
                self._number, self._offset = self._number + 1, 0
            except Exception as error:
                self._stage.blame(error)
                raise
            else:
                self._offset = self._items.offset
                return item
        raise StopIteration

    def state(self) -> State:
        return {"file": self._number, "offset": self._offset}

    def restore(self, state: State) -> None:
        self.close()
        self._number, self._offset = int(state["file"]), int(state["offset"])

    def close(self) -> None:
        if self._items is not None:
            self._items.close()
            self._items = None
