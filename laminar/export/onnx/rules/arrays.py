"""Ops that move elements, and that say how many there are."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar.engine.graph import Operation, canonical_axes, canonical_axis

from ..table import rank_of, refused, rule
from ..writer import GraphWriter


@rule("Const")
def _const(w: GraphWriter, op: Operation) -> str:
    return w.constant(op.attrs["value"], op.outputs[0].dtype)


@rule("Shape")
def _shape(w: GraphWriter, op: Operation, x: str) -> str:
    return w.cast(w.node("Shape", x), op.outputs[0].dtype)


@rule("Size")
def _size(w: GraphWriter, op: Operation, x: str) -> str:
    return w.node("Size", x)


@rule("Dim")
def _dim(w: GraphWriter, op: Operation, x: str) -> str:
    axis = canonical_axis("Dim", op.attrs["axis"], rank_of(op.inputs[0]))
    size = w.node("Shape", x, start=axis, end=axis + 1)
    return w.cast(w.node("Squeeze", size, w.ints([0])), op.outputs[0].dtype)


@rule("Reshape")
def _reshape(w: GraphWriter, op: Operation, x: str, *dims: str) -> str:
    shape = op.attrs["shape"]
    if -1 not in shape and shape.count(None) == 1 and 0 not in shape:
        return w.reshape(x, [-1 if d is None else d for d in shape])
    if None not in shape:
        return w.reshape(x, shape)
    return w.node("Reshape", x, w.shape_vector(shape, dims))


@rule("ReshapeToShape")
def _reshape_to_shape(w: GraphWriter, op: Operation, x: str, shape: str) -> str:
    return w.node("Reshape", x, w.cast(shape, "int64"))


@rule("BroadcastTo")
def _broadcast_to(w: GraphWriter, op: Operation, x: str, *dims: str) -> str:
    return w.node("Expand", x, w.shape_vector(op.attrs["shape"], dims))


@rule("BroadcastToShape")
def _broadcast_to_shape(w: GraphWriter, op: Operation, x: str, shape: str) -> str:
    return w.node("Expand", x, w.cast(shape, "int64"))


@rule("ZerosLike", "OnesLike")
def _like(w: GraphWriter, op: Operation, x: str) -> str:
    value = w.constant(int(op.type == "OnesLike"), op.outputs[0].dtype)
    return w.node("Expand", value, w.node("Shape", x))


@rule("Transpose")
def _transpose(w: GraphWriter, op: Operation, x: str) -> str:
    axes = op.attrs["axes"]
    rank = rank_of(op.inputs[0])
    order = range(rank)[::-1] if axes is None else [axis % rank for axis in axes]
    return w.transpose(x, order)


@rule("ExpandDims")
def _expand_dims(w: GraphWriter, op: Operation, x: str) -> str:
    return w.node("Unsqueeze", x, w.ints(op.attrs["axis"]))


@rule("Squeeze")
def _squeeze(w: GraphWriter, op: Operation, x: str) -> str:
    axes = op.attrs["axis"]
    return w.node("Squeeze", x, *([] if axes is None else [w.ints(axes)]))


@rule("Concat")
def _concat(w: GraphWriter, op: Operation, *xs: str) -> str:
    return w.node("Concat", *xs, axis=op.attrs["axis"])


@rule("Stack")
def _stack(w: GraphWriter, op: Operation, *xs: str) -> str:
    axis = op.attrs["axis"]
    rows = [w.node("Unsqueeze", x, w.ints([axis])) for x in xs]
    return w.node("Concat", *rows, axis=axis)


@rule("Unstack")
def _unstack(w: GraphWriter, op: Operation, x: str) -> list[str]:
    axis, count = op.attrs["axis"], len(op.outputs)
    rows = w.nodes_of("Split", [x], count, axis=axis, num_outputs=count)
    return [w.node("Squeeze", row, w.ints([axis])) for row in rows]


@rule("Split")
def _split(w: GraphWriter, op: Operation, x: str, *dims: str) -> list[str]:
    axis, count = op.attrs["axis"], len(op.outputs)
    sizes = [y.shape[axis] for y in op.outputs]
    if dims or None in sizes:
        if dims or set(op.attrs["sizes"]) != {-1}:
            raise refused(op, "the sizes of its parts are not known")
        return w.nodes_of("Split", [x], count, axis=axis, num_outputs=count)
    return w.nodes_of("Split", [x, w.ints(sizes)], count, axis=axis)


@rule("Pad")
def _pad(w: GraphWriter, op: Operation, x: str) -> str:
    mode = op.attrs["mode"]
    if mode == "symmetric":
        raise refused(op, "it has no symmetric padding")
    before, after = zip(*op.attrs["paddings"], strict=True)
    value = [w.constant(op.attrs["value"], op.inputs[0].dtype)] if mode == "constant" else []
    return w.node("Pad", x, w.ints([*before, *after]), *value, mode=mode)


@rule("Tile")
def _tile(w: GraphWriter, op: Operation, x: str) -> str:
    return w.node("Tile", x, w.ints(op.attrs["multiples"]))


@rule("Repeat")
def _repeat(w: GraphWriter, op: Operation, x: str) -> str:
    rank = rank_of(op.inputs[0])
    axis, repeats = canonical_axis("Repeat", op.attrs["axis"], rank), op.attrs["repeats"]
    copies = [repeats if i == axis + 1 else 1 for i in range(rank + 1)]
    tiled = w.node("Tile", w.node("Unsqueeze", x, w.ints([axis + 1])), w.ints(copies))
    factors = w.ints(repeats if i == axis else 1 for i in range(rank))
    return w.node("Reshape", tiled, w.node("Mul", w.node("Shape", x), factors))


@rule("Roll")
def _roll(w: GraphWriter, op: Operation, x: str) -> str:
    rank = rank_of(op.inputs[0])
    for shift, axis in zip(op.attrs["shift"], op.attrs["axis"], strict=True):
        place = w.ints([canonical_axis("Roll", axis, rank)])
        size = w.node("Shape", x, start=axis % rank, end=axis % rank + 1)
        cut = w.node("Mod", w.ints([-shift]), size)
        parts = [
            w.node("Slice", x, cut, w.ints([np.iinfo(np.int64).max]), place),
            w.node("Slice", x, w.ints([0]), cut, place),
        ]
        x = w.node("Concat", *parts, axis=axis)
    return x


@rule("Range")
def _range(w: GraphWriter, op: Operation, *bounds: str) -> str:
    given = iter(bounds)
    dtype = op.outputs[0].dtype
    ends: list[Any] = []
    for name in ("start", "stop", "step"):
        value = op.attrs[name]
        ends.append(w.cast(next(given), dtype) if value is None else w.constant(value, dtype))
    if not bounds:
        start, stop, step = (w.arrays[end].item() for end in ends)
        return w.constant(np.arange(start, stop, step), dtype)
    return w.node("Range", *ends)


@rule("Eye")
def _eye(w: GraphWriter, op: Operation, *dims: str) -> str:
    rows, columns = op.outputs[0].shape
    if rows is None or columns is None:
        raise refused(op, "its size is not known")
    return w.constant(np.eye(rows, columns, op.attrs.get("k", 0)), op.outputs[0].dtype)


@rule("BandPart")
def _band_part(w: GraphWriter, op: Operation, x: str) -> str:
    low, high = op.attrs["low"], op.attrs["high"]
    if high is not None:
        x = w.node("Trilu", x, w.constant(high, "int64"), upper=0)
    if low is not None:
        x = w.node("Trilu", x, w.constant(low, "int64"), upper=1)
    return x


@rule("DepthToSpace", "SpaceToDepth")
def _blocks(w: GraphWriter, op: Operation, x: str) -> str:
    size = op.attrs["block_size"]
    is_last = op.attrs["data_format"] == "channels_last"
    if op.type == "SpaceToDepth" or not is_last:
        if not is_last:
            raise refused(op, "the channels must come last")
        # ONNX's order of channels, from blocks to depth, is that of channels last.
        y = w.node("SpaceToDepth", w.transpose(x, (0, 3, 1, 2)), blocksize=size)
    else:
        y = w.node("DepthToSpace", w.transpose(x, (0, 3, 1, 2)), blocksize=size, mode="DCR")
    return w.transpose(y, (0, 2, 3, 1))


def over(op: Operation, axes: Any) -> tuple[int, ...]:
    """The axes that an attribute means; None stands for all."""
    rank = rank_of(op.inputs[0])
    return tuple(range(rank)) if axes is None else tuple(canonical_axes(op.type, axes, rank))
