"""`vmap`: a function of single examples becomes one of batches."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from ..errors import InvalidArgumentError, ShapeError
from ..graph import Tensor
from ..ops.array.axes import moveaxis
from ..ops.core.convert import convert_to_tensor
from ..tree import children, flatten, is_nested, pack_sequence_as
from .function import function
from .scans import map_slices

# The axis along which an argument is mapped, None for one that each example sees whole, or a
# structure of these.
MappedAxes: TypeAlias = Any


def vmap(
    fn: Callable[..., Any], in_axes: MappedAxes = 0, out_axes: MappedAxes = 0
) -> Callable[..., Any]:
    """A function that applies `fn` to each example of a batch: y[i] = fn(x[i]).

    `fn` is traced once, for one example, and its graph runs as a loop over the examples (native
    code where there is some). It may use gradients (`vmap(grad(f))` gives one gradient for each
    example), variables, and `vmap` itself; what it gives can be differentiated.

    Args:
        fn: takes and returns structures of tensors, of one example each.
        in_axes: the axis of the examples in each positional argument: a number for all, or a tuple
            or list with an entry for each argument. An entry is a number, None for an argument
            that all examples share, or a structure of these that fits the argument. Arguments by
            name are mapped along axis 0.
        out_axes: where the axis of the examples stands in the results: a number, or a structure
            that fits what `fn` returns.

    Returns:
        A function of the same arguments, with an axis more in each that is mapped, and in results.

    Raises:
        InvalidArgumentError: the axes do not fit the arguments, or nothing is mapped.
        ShapeError: an argument does not have its axis, or they differ in the number of examples.

    Source: after `jax.vmap` (Bradbury et al., "JAX: composable transformations of Python+NumPy
        programs", 2018).

    Examples:
        >>> laminar.vmap(lambda row, w: ops.sum(row * w), in_axes=(0, None))(
        ...     np.array([[1.0, 2.0], [3.0, 4.0]], "float32"), np.array([1.0, 10.0], "float32")
        ... )
        Tensor([21., 43.], shape=(2,), dtype=float32)
    """
    name = getattr(fn, "__name__", type(fn).__name__)
    who = f"vmap({name})"
    if out_axes is None or None in flatten(out_axes):
        raise InvalidArgumentError(
            f"{who}: each result has an axis of the examples, got out_axes={out_axes!r}",
            remedy="say by a number where it stands",
        )

    @function
    def mapped(args: list[Any], kwargs: dict[str, Any], axes: list[int | None]) -> Any:
        given = [args, kwargs]
        leaves = flatten(given)
        places = {i: axis for i, axis in enumerate(axes) if axis is not None}

        def one(slices: list[Tensor]) -> Any:
            for place, value in zip(places, slices, strict=True):
                leaves[place] = value
            own_args, own_kwargs = pack_sequence_as(given, leaves)
            return fn(*own_args, **own_kwargs)

        batches = [moveaxis(leaves[i], axis, 0) for i, axis in places.items()]
        found = map_slices(one, batches)
        results = flatten(found)
        moved = [
            y if y is None else moveaxis(y, 0, axis)
            for y, axis in zip(results, _spread(who, out_axes, found, "out_axes"), strict=True)
        ]
        return pack_sequence_as(found, moved)

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        axes = _argument_axes(who, in_axes, list(args))
        axes += [0] * len(flatten(kwargs))
        leaves = flatten([list(args), kwargs])
        leaves = [
            leaf if axis is None else convert_to_tensor(leaf)
            for leaf, axis in zip(leaves, axes, strict=True)
        ]
        _check_sizes(who, leaves, axes)
        own_args, own_kwargs = pack_sequence_as([list(args), kwargs], leaves)
        return mapped(own_args, own_kwargs, axes)

    return wrapped


def _argument_axes(who: str, in_axes: MappedAxes, args: list[Any]) -> list[int | None]:
    """The axis of each leaf of the positional arguments."""
    if in_axes is None or isinstance(in_axes, int):
        return [in_axes] * len(flatten(args))
    if not isinstance(in_axes, tuple | list):
        raise InvalidArgumentError(
            f"{who}: in_axes must be a number, None, or a tuple with an entry for each argument; "
            f"got {in_axes!r}"
        )
    if len(in_axes) != len(args):
        raise InvalidArgumentError(
            f"{who}: in_axes has {len(in_axes)} entries, the call {len(args)} arguments"
        )
    return [
        axis
        for number, (axes, arg) in enumerate(zip(in_axes, args, strict=True))
        for axis in _spread(who, axes, arg, f"in_axes[{number}]")
    ]


def _spread(who: str, axes: MappedAxes, structure: Any, what: str) -> list[Any]:
    """An axis for each leaf: an entry of `axes` holds for all that stands in its place."""
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        return [axes] * len(flatten(structure))
    if not is_nested(axes):
        raise InvalidArgumentError(f"{who}: {what} must be a number or None, got {axes!r}")
    given = children(structure) if is_nested(structure) else []
    entries = children(axes)
    if [key for key, _ in entries] != [key for key, _ in given]:
        raise InvalidArgumentError(f"{who}: {what} is {axes!r}, and the value {structure!r}")
    return [
        axis
        for (key, entry), (_, value) in zip(entries, given, strict=True)
        for axis in _spread(who, entry, value, f"{what}[{key!r}]")
    ]


def _check_sizes(who: str, leaves: list[Any], axes: list[int | None]) -> None:
    """Refuse mapped arguments without their axis, of several sizes, or none."""
    sizes: dict[int, Tensor] = {}
    is_mapped = False
    for leaf, axis in zip(leaves, axes, strict=True):
        if axis is None:
            continue
        is_mapped = True
        rank = leaf.shape.rank
        if rank is None:
            continue
        if not -rank <= axis < rank:
            raise ShapeError(
                f"{who}: an argument is to be mapped along axis {axis}, and is {leaf.spec}",
                remedy="give None as its in_axes if all examples share it",
            )
        if leaf.shape[axis] is not None:
            sizes[leaf.shape[axis]] = leaf
    if not is_mapped:
        raise InvalidArgumentError(
            f"{who}: no argument is mapped", remedy="give a number for one of them in in_axes"
        )
    if len(sizes) > 1:
        told = ", ".join(f"{size} in {leaf.spec}" for size, leaf in sizes.items())
        raise ShapeError(f"{who}: the arguments differ in their number of examples: {told}")
