"""Cuts: along which axes of a mesh the axes of a tensor are cut into equal pieces.

A cut has an entry for each axis of a tensor: the name of an axis of the mesh, each at most once, or
None. All processes at one place of these axes have the same piece.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import ANY, GraphTensor, Tensor, TensorShape, TensorSpec
from laminar.engine.ops.array.index import get_item
from laminar.engine.ops.core.registry import define, no_gradient
from laminar.engine.state import Variable

from ..collectives.group import Group
from .mesh import ProcessMesh

Cut: TypeAlias = tuple[str | None, ...]


def whole(x: GraphTensor) -> Cut:
    """The cut of a tensor that all processes have whole."""
    return () if x.shape.rank is None else (None,) * x.shape.rank


def piece_shape(shape: TensorShape, cut: Cut, mesh: ProcessMesh) -> TensorShape:
    """The shape of each piece."""
    if not any(cut):
        return shape
    dims = zip(shape, cut, strict=True)
    return TensorShape([n if c is None or n is None else n // mesh.sizes[c] for n, c in dims])


def checked_cut(variable: Variable, axes: Any, mesh: ProcessMesh) -> Cut:
    """The cut that a layout says of a variable.

    Raises:
        InvalidArgumentError: the layout does not fit.
    """
    cut, shape = tuple(axes), variable.shape
    who = f"ModelParallel: the layout {cut} of variable {variable.path!r} {variable.spec}"
    if shape.rank is None or len(cut) != shape.rank:
        raise InvalidArgumentError(
            f"{who} has {len(cut)} axes", remedy="give an entry for each axis, None for one whole"
        )
    names = [name for name in cut if name is not None]
    if len(set(names)) < len(names):
        raise InvalidArgumentError(f"{who} names an axis of the mesh twice")
    for n, name in zip(shape, cut, strict=True):
        if name is not None and (n is None or n % mesh.sizes[name]):
            raise InvalidArgumentError(
                f"{who} cuts an axis of size {n} into {mesh.sizes[name]} pieces",
                remedy="choose sizes that the mesh divides, or leave the axis whole: None",
            )
    return cut


def _bounds(n: int, name: str, mesh: ProcessMesh) -> slice:
    size = n // mesh.sizes[name]
    return slice(mesh.place[name] * size, (mesh.place[name] + 1) * size)


def piece_of(array: Any, cut: Cut, mesh: ProcessMesh) -> Any:
    """This process's piece of an array, as one of its own."""
    where = (
        slice(None) if c is None else _bounds(n, c, mesh)
        for n, c in zip(array.shape, cut, strict=True)
    )
    return np.array(array[tuple(where)], order="C")


def gathered_array(array: Any, axis: int, group: Group) -> Any:
    """The pieces of all processes of a group, joined along an axis."""
    rows = np.moveaxis(array, axis, 0)
    every = group.gather_rows(rows, [len(rows)] * group.size)
    return np.ascontiguousarray(np.moveaxis(every, 0, axis))


@define("GatherPieces", dtypes={"x": ANY}, stateful=True)
def _gather_pieces(x: TensorSpec, *, group: Group, axis: int) -> TensorSpec:
    """The pieces of all processes, joined along `axis`, in their order."""
    dims = list(x.shape)
    n = dims[axis]
    dims[axis] = None if n is None else n * group.size
    return TensorSpec(dims, x.dtype)


@_gather_pieces.effect
def _gather_pieces_kernel(context: Any, x: Any, *, group: Group, axis: int) -> Any:
    return gathered_array(x, axis, group)


# It is written where gradients have been computed already.
_gather_pieces.grad(no_gradient)


def recut(x: Tensor, have: Cut, wanted: Cut, mesh: ProcessMesh) -> Tensor:
    """A tensor of which this process has one piece, cut otherwise.

    Axes that are to be whole are gathered first; a piece of what is whole costs nothing to send.
    """
    for axis, (before, after) in enumerate(zip(have, wanted, strict=True)):
        if before is not None and before != after:
            x = _gather_pieces(x, group=mesh.along(before), axis=axis)
    for axis, (before, after) in enumerate(zip(have, wanted, strict=True)):
        if after is not None and before != after:
            n = x.shape[axis]
            assert n is not None, "only axes of known sizes are cut"
            x = get_item(x, (*[slice(None)] * axis, _bounds(n, after, mesh)))
    return x
