"""Indexing with brackets: strided slices in one op, and arrays of integers through gather.

The attribute `index` of the slicing ops is a tuple with an entry per item between the brackets:
an int; a slice (begin, end, step); "new" for None; "..." for an Ellipsis. An int or a bound that is
only known at run time is written "?", and comes as a scalar input, in order.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import (
    ANY,
    DENSE,
    INTEGER,
    Array,
    Dim,
    EagerTensor,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    bool_,
    canonical_axis,
    int64,
    stack,
)
from ..core.basic import constant
from ..core.convert import convert_to_tensor
from ..core.entries import known_value
from ..core.kernels import HOST_TYPE
from ..core.op_def import Grads
from ..core.recording import notify, recorders
from ..core.registry import define
from ..core.traits import Entries, Traits, Work
from .axes import moveaxis, transpose
from .gather import gather, gather_along
from .join import concat
from .search import nonzero
from .shape import reshape, runtime_shape, shape_of, sizes_of

# (begin, end, step), each an int, None, or "?" for the first two; or an int, "?", "new", "..."
Entry = int | str | tuple[Any, Any, int | None]

_WHOLE: Entry = (None, None, None)
_FAR = 2**62  # bounds of slices are integers of 64 bits


def _expand(who: str, index: Sequence[Entry], rank: int) -> Iterator[tuple[Entry, int | None]]:
    """The entries with the axis of `x` that each takes, the Ellipsis written out."""
    taken = sum(entry not in ("new", "...") for entry in index)
    if taken > rank:
        raise ShapeError(
            f"{who}: {taken} indices for a tensor with {rank} axes",
            remedy="index no more axes than there are",
        )
    full = [*index] if "..." in index else [*index, "..."]
    axis = 0
    for entry in full:
        if entry == "...":
            for _ in range(rank - taken):
                yield _WHOLE, axis
                axis += 1
        elif entry == "new":
            yield entry, None
        else:
            yield entry, axis
            axis += 1


def _slice_size(entry: tuple[Any, Any, int | None], size: Dim) -> Dim:
    if size is None or "?" in entry:
        return size if entry in (_WHOLE, (None, None, 1), (None, None, -1)) else None
    return len(range(*slice(*entry).indices(size)))


def _known(attrs: Mapping[str, Any], inputs: Sequence[Entries]) -> Entries:
    """What is known of the entries of a slice of a vector."""
    x, *values = [None if found is None else np.asarray(found, object) for found in inputs]
    if x is None or any(v is None or v.tolist() == [None] for v in values):
        return None
    index, _ = _python_index(attrs["index"], [v.item() for v in values if v is not None])
    found: list[int | None] = np.asarray(x[index]).reshape(-1).tolist()
    return found


@define(
    "StridedSlice",
    dtypes={"x": ANY},
    traits=Traits(work=Work.COPY, size_inputs=True, entries=_known),
)
def strided_slice(x: TensorSpec, *values: TensorSpec, index: tuple[Entry, ...]) -> TensorSpec:
    """x[index], with ints, slices, new axes and an Ellipsis, as NumPy reads them.

    `values` are the scalar integers for the entries and bounds "?" (see the head of this file).
    """
    if x.shape.rank is None:
        return TensorSpec(None, x.dtype)
    dims: list[Dim] = []
    for entry, axis in _expand("StridedSlice", index, len(x.shape)):
        if axis is None:
            dims.append(1)
            continue
        size = x.shape[axis]
        if isinstance(entry, tuple):
            dims.append(_slice_size(entry, size))
        elif isinstance(entry, int) and size is not None and not -size <= entry < size:
            raise InvalidArgumentError(
                f"StridedSlice: index {entry} is out of range for axis {axis} of {x}",
                remedy=f"choose an index from {-size} to {size - 1}" if size else None,
            )
    return TensorSpec(dims, x.dtype)


def _python_index(index: Sequence[Entry], values: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
    """The index as Python writes it, and how many of `values` it took."""
    given = iter(values)
    taken = 0

    def value(item: Any) -> Any:
        nonlocal taken
        if item != "?":
            return item
        taken += 1
        return int(next(given))

    out: list[Any] = []
    for entry in index:
        if isinstance(entry, tuple):
            out.append(slice(*map(value, entry)))
        elif entry == "new":
            out.append(None)
        elif entry == "...":
            out.append(...)
        else:
            out.append(value(entry))
    if ... not in out:
        out.append(...)  # keeps a result without axes an array
    return tuple(out), taken


@strided_slice.reference
def _strided_slice_kernel(xp: Any, x: Array, *values: Array, index: tuple[Entry, ...]) -> Array:
    return x[_python_index(index, values)[0]]


@strided_slice.grad
def _strided_slice_grad(op: OpView, dy: Tensor) -> Grads:
    x, *values = op.inputs
    shape, dims = sizes_of(x)
    dx = _strided_slice_grad_op(dy, *values, *dims, index=op.attrs["index"], shape=shape)
    return (dx, *(None for _ in values))


@define("StridedSliceGrad", dtypes={"dy": DENSE}, traits=Traits(linear=True, size_inputs=True))
def _strided_slice_grad_op(
    dy: TensorSpec, *values: TensorSpec, index: tuple[Entry, ...], shape: tuple[Dim, ...] | None
) -> TensorSpec:
    """dx of `shape`, zero but for dx[index] = dy.

    `values` are those of StridedSlice, then one for each None in `shape`; a vector of all sizes, if
    it is None.
    """
    return TensorSpec(shape, dy.dtype)


@_strided_slice_grad_op.reference
def _strided_slice_grad_kernel(
    xp: Any, dy: Array, *values: Array, index: tuple[Entry, ...], shape: tuple[Dim, ...] | None
) -> Array:
    where_, taken = _python_index(index, values)
    dx = xp.zeros(runtime_shape(shape, values[taken:]), dy.dtype)
    dx[where_] = dy
    return dx


@_strided_slice_grad_op.grad
def _strided_slice_grad_grad(op: OpView, ddx: Tensor) -> Grads:
    _, *rest = op.inputs
    index = op.attrs["index"]
    taken = sum(e.count("?") if isinstance(e, tuple) else e == "?" for e in index)
    return (strided_slice(ddx, *rest[:taken], index=index), *(None for _ in rest))


def get_item(x: Any, index: Any) -> Tensor:
    """x[index] as NumPy reads it.

    Args:
        x: any tensor.
        index: one item, or a tuple of: ints, slices, Ellipsis, None (a new axis), scalar integer
            tensors, integer arrays (they broadcast; where other items stand between them their
            axes come first), and boolean masks (they keep the places where they are true).

    Raises:
        InvalidArgumentError: an index is out of range.
        DTypeError: an item is of a kind that is not listed.
        ShapeError: more indices than axes, or a mask of another shape.
    """
    is_at_hand = type(x) is EagerTensor and not stack.items and stack.place is None
    if is_at_hand and _has_own_kernel():
        part = _view(x, index)
        if part is not None:
            return part
    tensor = convert_to_tensor(x)
    if tensor.shape.rank is None and isinstance(index, Tensor) and index.dtype in INTEGER:
        return gather(tensor, index)
    items = _Items(tensor)
    for item in index if isinstance(index, tuple) else (index,):
        items.add(item)
    entries = items.entries
    if entries.count("...") > 1:
        raise InvalidArgumentError(
            "get_item: an index holds more than one Ellipsis", remedy="write ':' for one axis"
        )
    plain = tuple(_WHOLE if entry == "array" else entry for entry in entries)
    y = tensor
    if y.shape.rank is None or any(entry not in (_WHOLE, "...") for entry in plain):
        y = strided_slice(y, *items.values, index=plain)
    else:
        _check_count("get_item", plain, len(y.shape))
    if not items.arrays:
        return y
    items.check_masks()
    return _pick(y, entries, items.arrays)


def _has_own_kernel() -> bool:
    """Whether nobody has registered another one."""
    own = strided_slice.reference_kernel is _strided_slice_kernel
    return own and HOST_TYPE not in strided_slice.kernels


def _view(x: EagerTensor, index: Any) -> EagerTensor | None:
    """x[index] of ints, slices, new axes and an Ellipsis, which NumPy reads as it is written.

    None for any other index, for one that takes all of `x`, and for what NumPy refuses: what is
    wrong is said elsewhere.
    """
    items = index if type(index) is tuple else (index,)
    is_open, is_whole = True, True
    entries: list[Entry] = []
    for item in items:
        kind = type(item)
        if kind is slice:
            start, stop, step = item.start, item.stop, item.step
            entries.append((start, stop, step))
            if start is None and stop is None and step is None:
                continue
            if not (_is_bound(start) and _is_bound(stop) and _is_bound(step)):
                return None
        elif item is Ellipsis:
            is_open = False
            entries.append("...")
            continue
        elif item is None:
            entries.append("new")
        elif kind is int:
            entries.append(item)
        else:
            return None
        is_whole = False
    if is_whole:
        return None
    try:
        # The Ellipsis keeps a result without axes an array.
        part = EagerTensor(x._value[(*items, ...) if is_open else items], x._dtype)
    except (IndexError, TypeError, ValueError):
        return None
    if recorders.active:
        notify(strided_slice, (x,), {"index": tuple(entries)}, (part,))
    return part


def _is_bound(value: Any) -> bool:
    return value is None or (type(value) is int and -_FAR < value < _FAR)


class _Items:
    """What stands between the brackets.

    Attributes:
        entries: as in the attribute `index`, and "array" for each index array.
        values: the scalars for the "?".
        arrays: the tensors for the "array".
        masks: those that have become several arrays, by the number of the first.
    """

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.entries: list[Entry] = []
        self.values: list[Tensor] = []
        self.arrays: list[Tensor] = []
        self.masks: dict[int, Tensor] = {}

    def add(self, item: Any) -> None:
        """Read one item."""
        if item is None:
            self.entries.append("new")
        elif item is Ellipsis:
            self.entries.append("...")
        elif isinstance(item, slice):
            self.entries.append(self._slice(item))
        elif type(item) is int:
            self.entries.append(item)
        else:
            self._add_array(item)

    def _slice(self, item: slice) -> Entry:
        begin, end = (None if v is None else self._scalar(v) for v in (item.start, item.stop))
        step = None if item.step is None else self._scalar(item.step)
        if step in (0, "?"):
            raise InvalidArgumentError(
                f"get_item: the step of a slice must be a known number other than 0, "
                f"got {item.step!r}"
            )
        assert step is None or isinstance(step, int)
        return begin, end, step

    def _scalar(self, item: Any) -> int | str:
        if type(item) is int and -_FAR < item < _FAR:
            return item
        value = convert_to_tensor(item)
        if value.dtype not in INTEGER or value.shape.rank not in (0, None):
            raise DTypeError(
                f"get_item: an index or a bound of a slice is a scalar integer, got {item!r}",
                remedy="cast it to an integer",
            )
        known = operator.index(value) if isinstance(value, EagerTensor) else known_value(value)
        if isinstance(known, int):
            return known
        self.values.append(value)
        return "?"

    def _add_array(self, item: Any) -> None:
        if isinstance(item, list | tuple) and not len(item):
            item = np.zeros(0, np.int32)
        array = convert_to_tensor(item)
        if array.dtype in INTEGER and array.shape.rank == 0:
            self.entries.append(self._scalar(array))
        elif array.dtype in INTEGER:
            self.entries.append("array")
            self.arrays.append(array)
        elif array.dtype == bool_ and array.shape.rank != 0:
            self.masks[len(self.arrays)] = array
            self.entries += ["array"] * array.ndim
            self.arrays += nonzero(array)
        else:
            raise DTypeError(
                f"get_item: expected an integer, a slice, None, Ellipsis, an array of integers or "
                f"a boolean mask, got {item!r}",
                remedy="cast it to an integer",
            )

    def check_masks(self) -> None:
        """Raise ShapeError when a mask does not have the shape of the axes it stands for."""
        if not self.masks or self.x.shape.rank is None:
            return
        places = _expand("get_item", self.entries, len(self.x.shape))
        axes = [axis for entry, axis in places if entry == "array" and axis is not None]
        for first, mask in self.masks.items():
            covered = TensorShape(self.x.shape[axes[first] : axes[first] + mask.ndim])
            if not covered.is_compatible_with(mask.shape):
                raise ShapeError(
                    f"get_item: a mask of shape {mask.shape} stands for axes of shape {covered} "
                    f"of {self.x.spec}",
                    remedy="give the mask the shape of the axes it selects from",
                )


def _check_count(who: str, index: Sequence[Entry], rank: int) -> None:
    for _ in _expand(who, index, rank):
        pass


def _pick(y: Tensor, entries: Sequence[Entry], arrays: Sequence[Tensor]) -> Tensor:
    """Apply the index arrays to `y`, to which all other items have been applied."""
    axes = []
    axis = 0
    for i, entry in enumerate(entries):
        if entry == "array":
            axes.append(axis)
        if entry == "...":
            later = entries[i + 1 :]
            axis = y.ndim - sum(isinstance(e, tuple) or e in ("array", "new") for e in later)
        elif isinstance(entry, tuple) or entry in ("array", "new"):
            axis += 1
    rank = max(a.ndim for a in arrays)
    first = axes[0] if _is_together(entries) else 0
    if len(arrays) == 1:
        out = gather(y, arrays[0], axis=axes[0])
        return (
            out if first == axes[0] else moveaxis(out, range(axes[0], axes[0] + rank), range(rank))
        )
    rest = [a for a in range(y.ndim) if a not in axes]
    out = gather_along(transpose(y, [*axes, *rest]), arrays)
    return moveaxis(out, range(rank), range(first, first + rank))


def _is_together(entries: Sequence[Entry]) -> bool:
    """Whether nothing stands between index arrays and ints, which NumPy counts as arrays here."""
    taking = [isinstance(e, int) or e in ("array", "?") for e in entries]
    last = len(taking) - taking[::-1].index(True)
    return all(taking[taking.index(True) : last])


def boolean_mask(x: Tensor, mask: Tensor, axis: int = 0) -> Tensor:
    """The slices of `x` for which `mask` is true; their number is known at run time only.

    Args:
        x: (p..., m..., q...), any dtype.
        mask: (m...), bool, at least one axis.
        axis: the place of the first of m... in `x`.

    Returns:
        (p..., count, q...).

    Raises:
        ShapeError: `mask` does not have the shape of the axes it stands for.
    """
    if x.shape.rank is None:
        return _mask_of_unknown(x, mask, axis)
    return get_item(x, (slice(None),) * canonical_axis("boolean_mask", axis, x.ndim) + (mask,))


def _mask_of_unknown(x: Tensor, mask: Tensor, axis: int) -> Tensor:
    """As `boolean_mask`, of a tensor whose number of axes a run knows: they are made one first."""
    if axis < 0 or mask.shape.rank is None:
        raise ShapeError(
            f"boolean_mask: the number of axes of the mask must be known, and the axis be counted "
            f"from the front, where that of x is not: x is {x.spec}, mask is {mask.spec}"
        )
    sizes = shape_of(x, dtype=int64)
    whole = constant([-1], int64)
    before, after = (
        strided_slice(sizes, index=((None, axis, None),)),
        strided_slice(sizes, index=((axis + len(mask.shape), None, None),)),
    )
    flat = reshape(x, concat([before, whole, after]))
    (places,) = nonzero(reshape(mask, [-1]))
    return gather(flat, places, axis=axis)
