"""Arrays of tensors: a row of cells, each written once, and read.

State of a `TensorArray`, guarded by `_lock`:
    _cells: what each index holds; their number is the size;
    _shape: of an element, as far as it is known;
    _gradients[source]: the arrays that hold the gradients of the elements, one for each pass;
    _closed: nothing is held any more.

Source: Yu et al., "Dynamic Control Flow in Large-Scale Machine Learning", 2018, arXiv:1805.01772,
    sections 2.1 and 5.2.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from .batches import Array, Shape, show_shape


class _Cell:
    """What one index holds: `array`, until it is read and not kept; `shape` stays known."""

    __slots__ = ("array", "shape", "was_read", "was_written")

    def __init__(self, shape: tuple[int, ...] | None = None) -> None:
        self.array: Array | None = None
        self.shape = shape
        self.was_written = False
        self.was_read = False


class TensorArray:
    """Tensors by index.

    Args:
        name: for errors.
        size: the number of elements.
        dtype: of the elements, NumPy's.
        shape: of an element, None for unknown dimensions; None where nothing is known.
        grows: whether a write behind the end makes it longer.
        clears: whether an element is dropped when it is read.
        same_shapes: whether all elements have one shape.
        adds: whether what is written to an index is added up, as gradients are.
        overwrites: whether an index can be written again.
    """

    def __init__(
        self,
        name: str,
        size: int,
        dtype: np.dtype[Any],
        shape: Shape | None = None,
        *,
        grows: bool = False,
        clears: bool = True,
        same_shapes: bool = False,
        adds: bool = False,
        overwrites: bool = False,
    ) -> None:
        if size < 0:
            raise InvalidArgumentError(f"TensorArray {name!r}: the size cannot be {size}")
        self.name = name
        self.dtype = dtype
        self._grows, self._clears, self._adds = grows, clears, adds
        self._overwrites = overwrites
        self._same_shapes = same_shapes
        self._shape = shape
        self._cells = [_Cell() for _ in range(size)]
        self._gradients: dict[str, TensorArray] = {}
        self._closed = False
        self._lock = threading.RLock()

    @property
    def size(self) -> int:
        """The number of elements."""
        with self._lock:
            self._check_open()
            return len(self._cells)

    def close(self) -> None:
        """Drop all elements; nothing can be done with it any more."""
        with self._lock:
            self._closed = True
            self._cells.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise FailedPreconditionError(f"TensorArray {self.name!r} has been closed")

    def _fits(self, shape: tuple[int, ...]) -> bool:
        known = self._shape
        return known is None or (
            len(known) == len(shape)
            and all(n is None or n == m for n, m in zip(known, shape, strict=True))
        )

    def write(self, index: int, value: Array) -> None:
        """Store an element.

        Raises:
            InvalidArgumentError: the index is not there, or has been written or read already.
            ShapeError: the element does not have the shape of elements.
        """
        with self._lock:
            self._check_open()
            cell = self._cell_to_write(index)
            if not self._fits(value.shape):
                raise ShapeError(
                    f"TensorArray {self.name!r}: element {index} must have shape "
                    f"{show_shape(self._shape or ())}, got {show_shape(value.shape)}",
                    remedy="declare infer_shape=False where the shapes of elements differ",
                )
            if self._same_shapes:
                self._shape = value.shape
            if cell.was_written and self._adds:
                if cell.shape != value.shape:
                    raise ShapeError(
                        f"TensorArray {self.name!r}: {show_shape(value.shape)} cannot be added to "
                        f"element {index} of shape {show_shape(cell.shape or ())}"
                    )
                value = cell.array + value
            elif cell.was_written and not self._overwrites:
                raise InvalidArgumentError(
                    f"TensorArray {self.name!r}: index {index} has been written already",
                    remedy="write each index once",
                )
            cell.array, cell.shape, cell.was_written = value, value.shape, True

    def _cell_to_write(self, index: int) -> _Cell:
        if index < 0 or (index >= len(self._cells) and not self._grows):
            raise InvalidArgumentError(
                f"TensorArray {self.name!r}: cannot write to index {index}, "
                f"the size is {len(self._cells)}",
                remedy="make it larger, or with dynamic_size=True",
            )
        while index >= len(self._cells):
            self._cells.append(_Cell())
        cell = self._cells[index]
        if cell.was_read and not (self._adds or self._overwrites):
            raise InvalidArgumentError(
                f"TensorArray {self.name!r}: index {index} has been read already, "
                f"and cannot be written"
            )
        return cell

    def read(self, index: int) -> Array:
        """An element; zeros of the shape of elements, where none was written.

        Raises:
            InvalidArgumentError: the index is not there; it has been read, and what is read is not
                kept; or nothing was written, and the shape is not known.
        """
        with self._lock:
            self._check_open()
            if not 0 <= index < len(self._cells):
                raise InvalidArgumentError(
                    f"TensorArray {self.name!r}: cannot read index {index}, "
                    f"the size is {len(self._cells)}"
                )
            cell = self._cells[index]
            if cell.was_read and cell.array is None:
                raise InvalidArgumentError(
                    f"TensorArray {self.name!r}: index {index} was cleared when it was read",
                    remedy="make the array with clear_after_read=False to read it again",
                )
            if not cell.was_written:
                self._write_zeros(index, cell)
            value = cell.array
            cell.was_read = True
            if self._clears:
                cell.array = None
                if self._adds:  # what was written there before had another gradient
                    cell.was_written = cell.was_read = False
            return value

    def _write_zeros(self, index: int, cell: _Cell) -> None:
        shape = cell.shape or self._shape
        if shape is None or None in shape:
            raise InvalidArgumentError(
                f"TensorArray {self.name!r}: index {index} was not written, "
                f"and the shape of its element is not known",
                remedy="write it first, or declare the whole element_shape",
            )
        fill: Any = b"" if self.dtype == object else 0
        cell.array = np.full(tuple(n or 0 for n in shape), fill, self.dtype)
        cell.shape = cell.array.shape

    def gather(self, indices: Sequence[int], shape: Shape | None = None) -> Array:
        """Some elements, stacked along a new first axis.

        Args:
            indices: which.
            shape: what else is known of the shape of elements, for when there are none.

        Raises:
            ShapeError: their shapes differ, or there are none and the shape is not known.
        """
        with self._lock:
            if not indices:
                return np.empty((0, *self._whole_shape(shape)), self.dtype)
            arrays = [self.read(i) for i in indices]
        if len({a.shape for a in arrays}) > 1:
            raise ShapeError(
                f"TensorArray {self.name!r}: elements of different shapes cannot be stacked: "
                + ", ".join(sorted({show_shape(a.shape) for a in arrays})),
                remedy="use concat, which joins them along their first axis",
            )
        out = np.empty((len(arrays), *arrays[0].shape), self.dtype)
        for row, array in enumerate(arrays):
            out[row] = array
        return out

    def _whole_shape(self, declared: Shape | None) -> tuple[int, ...]:
        shape = declared if self._shape is None or None in self._shape else self._shape
        if shape is None or None in shape:
            raise ShapeError(
                f"TensorArray {self.name!r}: there are no elements, and their shape is not known",
                remedy="declare the whole element_shape",
            )
        return tuple(n or 0 for n in shape)

    def concat(
        self, rest: Shape | None = None, count: int | None = None
    ) -> tuple[Array, list[int]]:
        """The elements joined along their first axis, and the length of each.

        Args:
            rest: what is known of the shape behind that axis, for when there are none.
            count: how many elements; by default all.

        Raises:
            ShapeError: they have no axis, or differ in another.
        """
        with self._lock:
            arrays = [self.read(i) for i in range(self.size if count is None else count)]
            if not arrays:
                known = self._shape[1:] if self._shape else rest or ()
                return np.empty((0, *(n or 0 for n in known)), self.dtype), []
        if any(not a.ndim for a in arrays) or len({a.shape[1:] for a in arrays}) > 1:
            raise ShapeError(
                f"TensorArray {self.name!r}: elements are joined along their first axis, "
                f"and agree in the others, got "
                + ", ".join(sorted({show_shape(a.shape) for a in arrays}))
            )
        return np.concatenate(arrays), [len(a) for a in arrays]

    def scatter(self, indices: Sequence[int], values: Sequence[Array]) -> None:
        """Store elements at some indices."""
        with self._lock:
            for index, value in zip(indices, values, strict=True):
                self.write(index, value)

    def split(self, value: Array, lengths: Sequence[int]) -> None:
        """Store the pieces of `value` along its first axis, which have these lengths, from index 0.

        Raises:
            InvalidArgumentError: the lengths are not as many as the elements, or do not add up.
        """
        with self._lock:
            self._check_open()
            size = len(self._cells)
            if len(lengths) != size and not (self._grows and len(lengths) > size):
                raise InvalidArgumentError(
                    f"TensorArray {self.name!r}: the size is {size}, got {len(lengths)} lengths"
                )
            if not value.ndim or sum(lengths) != len(value) or min(lengths, default=0) < 0:
                raise InvalidArgumentError(
                    f"TensorArray {self.name!r}: the lengths {list(lengths)} do not make up the "
                    f"first axis of a value of shape {show_shape(value.shape)}"
                )
            start = 0
            for index, length in enumerate(lengths):
                self.write(index, value[start : start + length])
                start += length

    def gradient(self, source: str) -> TensorArray:
        """The array of the gradients of the elements, for one pass of differentiation.

        Elements that get none are zeros there. From now on the array does not grow. Where elements
        are written again, the gradient of one is that of its last value until it is read, and then
        that of the one before.
        """
        with self._lock:
            self._check_open()
            found = self._gradients.get(source)
            if found is None:
                self._grows = False
                found = TensorArray(
                    f"{self.name}_gradient",
                    len(self._cells),
                    self.dtype,
                    self._shape,
                    clears=self._overwrites,
                    adds=True,
                )
                for cell, own in zip(found._cells, self._cells, strict=True):
                    cell.shape = own.shape
                self._gradients[source] = found
            return found

    def __repr__(self) -> str:
        return f"TensorArray {self.name!r}"
