"""What objects may take while they are made from a file, and what they have made."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from laminar.engine.errors import DataLossError, LaminarError
from laminar.engine.graph import Tensor, as_dtype, value_of
from laminar.engine.ops.core.convert import convert_to_tensor


class FileReading:
    """The reading of a file: what objects made from it may take, and what they have made.

    Weights made meanwhile are zeros, whatever their initializers: their values are in the file.

    Args:
        most_elements: of all weights together.
        substitute: gives something in the place of an object that cannot be made, from its config
            and the error; None raises the error.

    Attributes:
        made: the weights, with the initializers for those whose values are not in the file.
    """

    def __init__(
        self,
        most_elements: int,
        substitute: Callable[[dict[str, Any], LaminarError], Any] | None = None,
    ) -> None:
        self.made: list[tuple[Any, Any]] = []
        self.substitute = substitute
        self._most = self._left = most_elements
        self._blanks: dict[int, Tensor] = {}  # by the identity of their arrays

    def blank(self, shape: Any, dtype: Any) -> Tensor:
        """The value of a new weight.

        Raises:
            DataLossError: the weights have more elements than the file can fill.
        """
        self._left -= math.prod(shape)
        if self._left < 0:
            raise DataLossError(
                f"the config asks for weights of more than {self._most} elements, "
                f"one of them of shape {tuple(shape)}",
                remedy="do not load the file if it is not yours",
            )
        array = np.broadcast_to(np.zeros((), as_dtype(dtype).numpy), tuple(shape))  # takes no room
        blank = convert_to_tensor(array, copy=False)
        self._blanks[id(value_of(blank))] = blank
        return blank

    def fill(self) -> None:
        """Initialize the weights that have got no value meanwhile."""
        for variable, initializer in self.made:
            if id(value_of(variable.read_value())) in self._blanks:
                variable.assign(initializer(variable.shape, variable.dtype))


class _Local(threading.local):
    def __init__(self) -> None:
        self.reading: FileReading | None = None


_local = _Local()


def file_reading() -> FileReading | None:
    """The reading of a file that this thread is in."""
    return _local.reading


@contextmanager
def reading_file(reading: FileReading) -> Iterator[None]:
    """Make objects from a file inside the block."""
    before, _local.reading = _local.reading, reading
    try:
        yield
    finally:
        _local.reading = before
