"""Elements joined into a batch along a new first axis, and a batch taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ..errors import ShapeError

Array: TypeAlias = Any
Element: TypeAlias = tuple[Array, ...]
Shape: TypeAlias = tuple[int | None, ...]


def show_shape(shape: Sequence[int | None]) -> str:
    """A shape as errors show it."""
    return f"[{', '.join('?' if n is None else str(n) for n in shape)}]"


def split_batch(batch: Element) -> list[Element]:
    """The elements of a batch, without a copy.

    Raises:
        ShapeError: a component has no first axis, or two have first axes of different lengths.
    """
    lengths = {array.shape[0] if array.ndim else -1 for array in batch}
    if len(lengths) != 1 or -1 in lengths:
        shapes = ", ".join(show_shape(array.shape) for array in batch)
        raise ShapeError(
            f"enqueue_many: the components must have one length along the first axis, got {shapes}"
        )
    (length,) = lengths
    return [tuple(array[i, ...] for array in batch) for i in range(length)]


def stack_batch(name: str, elements: Sequence[Element], pad: bool = False) -> Element:
    """Elements as a batch, one array per component; needs at least one element.

    Args:
        name: of the queue, for errors.
        elements: what to join.
        pad: whether shorter arrays are filled up at their ends, with zeros or empty strings.

    Raises:
        ShapeError: the shapes of a component differ.
    """
    return tuple(_stack(name, list(arrays), pad) for arrays in zip(*elements, strict=True))


def _stack(name: str, arrays: list[Array], pad: bool) -> Array:
    shapes = {array.shape for array in arrays}
    if len(shapes) == 1:
        first = arrays[0]
        out = np.empty((len(arrays), *first.shape), first.dtype)
        if first.ndim:
            return np.stack(arrays, out=out)
        out[:] = [array[()] for array in arrays]
        return out
    if not pad or len({len(shape) for shape in shapes}) > 1:
        raise ShapeError(
            f"queue {name!r}: elements of different shapes cannot be joined into a batch: "
            + ", ".join(sorted(map(show_shape, shapes))),
            remedy="use a padding queue, or dequeue one by one",
        )
    whole = tuple(max(lengths) for lengths in zip(*shapes, strict=True))
    dtype = arrays[0].dtype
    out = np.full((len(arrays), *whole), b"" if dtype.kind == "O" else 0, dtype)
    for row, array in zip(out, arrays, strict=True):
        row[tuple(slice(n) for n in array.shape)] = array
    return out
