"""Values written as text, and the strings of a segment as one. On the host alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import INTEGER, STRING, Array, TensorSpec, string
from ..core.registry import define, no_gradient
from .string import collect


@define("StringFormat", dtypes={})
def string_format(*xs: TensorSpec, template: tuple[str, ...], summarize: int = 3) -> TensorSpec:
    """The values as one string, each between two texts of `template`.

    Of an axis, the first and the last `summarize` entries are written, all if it is -1.
    """
    if len(template) != len(xs) + 1:
        raise InvalidArgumentError(
            f"StringFormat: the template has {len(template) - 1} places for {len(xs)} tensors"
        )
    return TensorSpec((), string)


def _written(x: Any) -> str:
    if isinstance(x, bytes):
        return f'"{x.decode("utf-8", "backslashreplace")}"'
    if isinstance(x, bool | np.bool_):
        return str(int(x))
    return f"{x:g}" if isinstance(x, float | np.floating) else str(x)


def _array_text(x: Array, summarize: int, depth: int) -> str:
    if not x.ndim:
        return _written(x.item())
    parts = [_array_text(row, summarize, depth + 1) for row in _shown(x, summarize)]
    if 0 <= summarize < len(x) / 2:
        parts.insert(summarize, "...")
    between = " " if x.ndim == 1 else "\n" * (x.ndim - 1) + " " * (depth + 1)
    return "[" + between.join(parts) + "]"


def _shown(x: Array, summarize: int) -> list[Array]:
    if not 0 <= summarize < len(x) / 2:
        return [x[i, ...] for i in range(len(x))]
    places = [*range(summarize), *range(len(x) - summarize, len(x))]
    return [x[i, ...] for i in places]


@string_format.kernel("cpu")
def _format_kernel(*xs: Array, template: tuple[str, ...], summarize: int) -> Array:
    first, *others = template
    values = (_array_text(np.asarray(x), summarize, 0) for x in xs)
    text = first + "".join(v + t for v, t in zip(values, others, strict=True))
    return np.array(text.encode(), object)


string_format.grad(no_gradient)


@define(
    "UnsortedSegmentJoin", dtypes={"x": STRING, "segment_ids": INTEGER, "num_segments": INTEGER},
    same_dtype=False,
)  # fmt: skip
def unsorted_segment_join(
    x: TensorSpec, segment_ids: TensorSpec, num_segments: TensorSpec, *, separator: str = ""
) -> TensorSpec:
    """The strings that share a number as one, in their order, with `separator` between them.

    The numbers stand for the first axes of `x`.
    """
    if not num_segments.shape.is_compatible_with(()):
        raise ShapeError(f"UnsortedSegmentJoin: num_segments is a scalar, got {num_segments}")
    if x.shape.rank is None or segment_ids.shape.rank is None:
        return TensorSpec(None, string)
    rank = len(segment_ids.shape)
    if len(x.shape) < rank or not x.shape[:rank] or not _agree(x.shape, segment_ids.shape):
        raise ShapeError(
            f"UnsortedSegmentJoin: the shape of x, {x.shape}, must begin with that of segment_ids, "
            f"{segment_ids.shape}"
        )
    return TensorSpec([None, *x.shape[rank:]], string)


def _agree(whole: Any, front: Any) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(whole, front, strict=False))


@unsorted_segment_join.kernel("cpu")
def _join_kernel(x: Array, segment_ids: Array, num_segments: Array, *, separator: str) -> Array:
    count = int(num_segments)
    if count < 0:
        raise InvalidArgumentError(f"UnsortedSegmentJoin: num_segments is {count}, below 0")
    if x.shape[: segment_ids.ndim] != segment_ids.shape:
        raise ShapeError(
            f"UnsortedSegmentJoin: segment_ids {list(segment_ids.shape)} do not fit to x, "
            f"{list(x.shape)}"
        )
    rest = x.shape[segment_ids.ndim :]
    rows = x.reshape((segment_ids.size, int(np.prod(rest))))
    parts: list[list[list[bytes]]] = [[[] for _ in range(rows.shape[1])] for _ in range(count)]
    for segment, row in zip(segment_ids.ravel().tolist(), rows.tolist(), strict=True):
        if not 0 <= segment < count:
            raise InvalidArgumentError(
                f"UnsortedSegmentJoin: the number {segment} does not exist among {count}"
            )
        for pieces, item in zip(parts[segment], row, strict=True):
            pieces.append(item)
    mark = separator.encode()
    joined = [mark.join(pieces) for segment in parts for pieces in segment]
    return collect(joined, (count, *rest))


unsorted_segment_join.grad(no_gradient)
