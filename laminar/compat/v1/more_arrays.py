"""Shapes that broadcast, and distances of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar.engine import control_dependencies
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, TensorSpec, float32
from laminar.engine.ops.array.join import concat
from laminar.engine.ops.core.basic import constant
from laminar.engine.ops.core.checks import check
from laminar.engine.ops.core.host import host_function
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.sparse.sparse_values import as_sparse

from .adapting import v1
from .values import operands


@v1()
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape of what two shapes, given as vectors, broadcast to."""
    x, y = operands(shape_x, shape_y)
    sizes = [v.shape[0] if v.shape.rank == 1 else None for v in (x, y)]
    if None in sizes:
        raise ShapeError(
            f"broadcast_dynamic_shape: the numbers of axes must be known, got {x.spec} and {y.spec}"
        )
    axes = max(int(n or 0) for n in sizes)
    x, y = (
        concat([constant(np.ones(axes - int(n or 0), v.dtype.numpy), v.dtype), v], 0)
        for v, n in zip((x, y), sizes, strict=True)
    )
    one = constant(1, x.dtype)
    fits = lookup("LogicalOr")(
        lookup("Equal")(x, y), lookup("LogicalOr")(lookup("Equal")(x, one), lookup("Equal")(y, one))
    )
    with control_dependencies([check(fits, "two shapes that broadcast", [x, y])]):
        return lookup("Where")(lookup("Equal")(x, one), y, x)


@v1()
def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True) -> Tensor:
    """The Levenshtein distances of sequences: the last axes of two sparse tensors.

    Args:
        hypothesis: a sparse tensor; its indices are in order.
        truth: a sparse tensor of the same number of axes.
        normalize: whether to divide by the length of the true sequence; what differs from an empty
            one is infinitely far then.

    Returns:
        float32, the shape of the two without the last axis.

    Source: Levenshtein, "Binary codes capable of correcting deletions, insertions and reversals",
        1966.
    """
    ours, theirs = as_sparse("edit_distance", hypothesis), as_sparse("edit_distance", truth)
    axes = ours.shape.rank
    spec = TensorSpec([None] * (axes - 1) if axes else None, float32)

    def distances(*parts: Any) -> Any:
        return [_distances(parts[:3], parts[3:], normalize)]

    (found,) = host_function(distances, [*ours, *theirs], [spec])
    return found


def _sequences(indices: Any, values: Any) -> dict[tuple[int, ...], list[Any]]:
    found: dict[tuple[int, ...], list[Any]] = {}
    for place, value in zip(indices, values, strict=True):
        found.setdefault(tuple(int(i) for i in place[:-1]), []).append(value)
    return found


def _distances(ours: Any, theirs: Any, normalize: bool) -> Any:
    shapes = [np.asarray(parts[2]) for parts in (ours, theirs)]
    if shapes[0].shape != shapes[1].shape:
        raise InvalidArgumentError(
            f"edit_distance: the shapes {list(shapes[0])} and {list(shapes[1])} differ in axes"
        )
    found = np.zeros(tuple(np.maximum(*shapes)[:-1]), np.float32)
    mine, true = _sequences(*ours[:2]), _sequences(*theirs[:2])
    for place in mine.keys() | true.keys():
        a, b = mine.get(place, []), true.get(place, [])
        distance = float(_levenshtein(a, b))
        if normalize:
            distance = distance / len(b) if b else (np.inf if a else 0.0)
        found[place] = distance
    return found


def _levenshtein(a: list[Any], b: list[Any]) -> int:
    """How many items are to be inserted, left out or replaced to make `b` of `a`."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(before + (x != y), row[j] + 1, row[j - 1] + 1)
    return row[-1]
