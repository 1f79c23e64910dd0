"""Rules for making, joining, cutting and moving arrays."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ...errors import UnimplementedError
from ...ops.array import (
    axes,
    creation,
    gather,
    index,
    join,
    padding,
    rearrange,
    scatter,
    slicing,
)
from ...ops.array import shape as shapes
from ...ops.array.broadcast import broadcast_to_op, broadcast_to_shape
from ...ops.array.partition import dynamic_partition, dynamic_stitch
from ...ops.array.search import nonzero
from ...ops.array.segment import segment_sum
from ...ops.array.sort import argsort
from ...ops.array.unique import unique_with_counts
from ...ops.core.basic import constant
from ...ops.core.checks import check_numerics, ensure_shape
from ...ops.core.entries import known_value
from ...ops.math.cast import cast
from ...ops.math.compare import where
from .rules import Call, rule


def is_vector(shape: Any) -> bool:
    """Whether it is known how many sizes a tensor holds."""
    return shape.shape.rank == 1 and shape.shape[0] is not None


@rule("Shape")
def _shape(call: Call) -> Any:
    return shapes.shape_of(call[0], dtype=call.node.attr("out_type", "int32"))


@rule("ShapeN")
def _shape_n(call: Call) -> Any:
    kind = call.node.attr("out_type", "int32")
    return tuple(shapes.shape_of(x, dtype=kind) for x in call.values)


@rule("Size")
def _size(call: Call) -> Any:
    return cast(shapes.size_of(call[0]), call.node.attr("out_type", "int32"))


@rule("Rank")
def _rank(call: Call) -> Any:
    return shapes.rank_of(call[0])


@rule("Reshape")
def _reshape(call: Call) -> Any:
    x, shape = call.values
    return shapes.reshape(x, shape) if is_vector(shape) else shapes.reshape_to_shape(x, shape)


@rule("Fill")
def _fill(call: Call) -> Any:
    shape, value = call.values
    if is_vector(shape):
        return creation.full(shape, value, value.dtype)
    return broadcast_to_shape(value, shape)


@rule("BroadcastTo")
def _broadcast_to(call: Call) -> Any:
    x, shape = call.values
    if not is_vector(shape):
        return broadcast_to_shape(x, shape)
    sizes, dims = shapes.split_shape(shape)
    return broadcast_to_op(x, *dims, shape=sizes)


@rule("Pack")
def _pack(call: Call) -> Any:
    return join.stack(call.values, call.node.attr("axis", 0))


@rule("Unpack")
def _unpack(call: Call) -> Any:
    return join.unstack(call[0], call.node.attr("num"), call.node.attr("axis", 0))


@rule("ConcatV2")
def _concat(call: Call) -> Any:
    return join.concat(call.values[:-1], call.known(-1))


@rule("Concat")
def _old_concat(call: Call) -> Any:
    return join.concat(call.values[1:], call.known(0))


@rule("Split")
def _split(call: Call) -> Any:
    return join.split(call[1], call.node.attr("num_split"), call.known(0))


@rule("SplitV")
def _split_sizes(call: Call) -> Any:
    return join.split(call[0], call.known_list(1), call.known(2))


@rule("ConcatOffset")
def _concat_offset(call: Call) -> Any:
    """Where each of the tensors of these shapes begins once they are joined along an axis."""
    axis, first = call.known(0), call[1]
    rank = first.shape[0]
    if rank is None:
        raise UnimplementedError("the number of axes is not known")
    axis %= rank
    zero = constant(np.array(0, first.dtype))
    begin, offsets = zero, []
    for shape in call.values[1:]:
        offsets.append(join.stack([begin if i == axis else zero for i in range(rank)]))
        begin = begin + shape[axis]
    return tuple(offsets)


@rule("Slice")
def _slice(call: Call) -> Any:
    return slicing.slice_at(*call.values)


@rule("Tile")
def _tile(call: Call) -> Any:
    return rearrange.tile(*call.values)


@rule("ExpandDims")
def _expand_dims(call: Call) -> Any:
    return axes.expand_dims(call[0], tuple(call.known_list(1)))


@rule("Squeeze")
def _squeeze(call: Call) -> Any:
    return axes.squeeze(call[0], tuple(call.node.attr("squeeze_dims", [])) or None)


@rule("Transpose")
def _transpose(call: Call) -> Any:
    return axes.transpose(call[0], call.known_list(1))


@rule("InvertPermutation")
def _invert_permutation(call: Call) -> Any:
    return cast(argsort(call[0]), call[0].dtype)


@rule("Range")
def _range(call: Call) -> Any:
    start, stop, step = call.values
    known = [known_value(x) for x in (start, stop, step)]
    if all(isinstance(n, int) for n in known):
        return constant(np.arange(*known, dtype=start.dtype))
    return creation.arange(start, stop, step, start.dtype)


@rule("LinSpace")
def _linspace(call: Call) -> Any:
    return creation.linspace(call[0], call[1], call.known(2))


@rule("OneHot")
def _one_hot(call: Call) -> Any:
    indices, _, on, off = call.values
    hot = creation.one_hot(indices, call.known(1), call.node.attr("axis", -1), "float32")
    return where(cast(hot, "bool"), on, off)


@rule("GatherV2", "ResourceGather", "Gather")
def _gather(call: Call) -> Any:
    axis = call.known(2) if len(call) > 2 else 0
    return gather.gather(call[0], call[1], axis, call.node.attr("batch_dims", 0))


@rule("GatherNd", "ResourceGatherNd")
def _gather_nd(call: Call) -> Any:
    return gather.gather_nd(call[0], call[1])


@rule("ScatterNd")
def _scatter_nd(call: Call) -> Any:
    return gather.scatter_nd(*call.values)


@rule("TensorScatterUpdate")
def _tensor_scatter(call: Call) -> Any:
    return scatter.scatter_update(*call.values)


@rule("TensorScatterAdd")
def _tensor_scatter_add(call: Call) -> Any:
    return scatter.scatter_add(*call.values)


@rule("Pad", "PadV2", "MirrorPad")
def _pad(call: Call) -> Any:
    mode = call.node.text("mode", "constant").lower()
    value = call.known(2) if len(call) > 2 else 0
    return padding.pad(call[0], call.known(1), mode, value)


@rule("TensorStridedSliceUpdate")
def _slice_update(call: Call) -> Any:
    """Of whole blocks alone."""
    x, begin, _, _, value = call.values
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    if set(call.known_list(3)) != {1} or any(call.node.attr(mask, 0) for mask in masks):
        raise UnimplementedError("it is only known for blocks with all their elements")
    return slicing.slice_update(x, begin, value)


@rule("Roll")
def _roll(call: Call) -> Any:
    return rearrange.roll(call[0], call.known_list(1), call.known_list(2))


@rule("EnsureShape")
def _ensure_shape(call: Call) -> Any:
    return ensure_shape(call[0], call.node.attr("shape"))


@rule("CheckNumerics")
def _check_numerics(call: Call) -> Any:
    return check_numerics(call[0], call.node.text("message"))


@rule("UnsortedSegmentSum", "SegmentSum")
def _segment_sum(call: Call) -> Any:
    """The ids of the first may have several axes."""
    data, ids = call[0], call[1]
    if ids.shape.rank is None:
        raise UnimplementedError("the rank of the ids is not known")
    if ids.shape.rank != 1:
        known, dims = shapes.dims_of(data)
        given = iter(dims)
        rest = [next(given) if n is None else n for n in known][ids.shape.rank :]
        data, ids = shapes.reshape(data, [-1, *rest]), shapes.reshape(ids, [-1])
    number = call[2] if len(call) > 2 else None
    return segment_sum(data, ids, number)


@rule("ReverseV2")
def _reverse(call: Call) -> Any:
    return rearrange.flip(call[0], tuple(call.known_list(1)))


@rule("Select")
def _select(call: Call) -> Any:
    """As Where, but a condition with one axis chooses rows."""
    condition, x, y = call.values
    rank = x.shape.rank
    if condition.shape.rank == 1 and rank is not None and rank > 1:
        condition = shapes.reshape(condition, [-1] + [1] * (rank - 1))
    return where(condition, x, y)


@rule("Where")
def _places(call: Call) -> Any:
    return cast(join.stack(list(nonzero(call[0])), 1), "int64")


@rule("DynamicStitch", "ParallelDynamicStitch")
def _dynamic_stitch(call: Call) -> Any:
    half = len(call) // 2
    return dynamic_stitch(call.values[:half], call.values[half:])


@rule("DynamicPartition")
def _dynamic_partition(call: Call) -> Any:
    return dynamic_partition(call[0], call[1], call.node.attr("num_partitions"))


@rule("Unique")
def _unique(call: Call) -> Any:
    values, numbers, _ = unique_with_counts(call[0], call.node.attr("out_idx", "int32"))
    return values, numbers


@rule("StridedSlice")
def _strided_slice(call: Call) -> Any:
    return index.get_item(call[0], strided_index(call, 1))


def strided_index(call: Call, first: int) -> tuple[Any, ...]:
    """What stands between the brackets: begins, ends and steps are inputs from `first` on."""
    begins, ends = call[first], call[first + 1]
    steps = call.known_list(first + 2)
    masks = {
        name: call.node.attr(f"{name}_mask", 0)
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    starts, stops = (_entries(x, len(steps)) for x in (begins, ends))
    entries: list[Any] = []
    for i, (start, stop, step) in enumerate(zip(starts, stops, steps, strict=True)):
        bit = 1 << i
        if masks["ellipsis"] & bit:
            entries.append(Ellipsis)
        elif masks["new_axis"] & bit:
            entries.append(None)
        elif masks["shrink_axis"] & bit:
            entries.append(start)
        else:
            begin = None if masks["begin"] & bit else start
            entries.append(builtins.slice(begin, None if masks["end"] & bit else stop, step))
    return tuple(entries)


def _entries(x: Any, count: int) -> list[Any]:
    """The numbers that a vector holds; scalar tensors for those that a run knows."""
    known, dims = shapes.split_shape(x)
    given = iter(dims)
    if len(known) != count:
        raise UnimplementedError(f"{len(known)} bounds for {count} steps")
    return [next(given) if n is None else n for n in known]
