"""Ops with windows: convolutions and pooling. ONNX has the channels first, so axes are turned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from laminar.engine.graph import Operation, canonical_axis
from laminar.engine.ops.nn.conv_transpose import all_pads
from laminar.engine.ops.nn.resample import resampling
from laminar.engine.ops.nn.windows import covered, pad_pair

from ..table import rank_of, refused, rule
from ..writer import GraphWriter


def _channels_first(w: GraphWriter, op: Operation, x: str, write: Callable[[str], str]) -> str:
    rank = rank_of(op.inputs[0])
    y = write(w.transpose(x, [0, rank - 1, *range(1, rank - 1)]))
    return w.transpose(y, [0, *range(2, rank), 1])


def _pads(op: Operation, window: Sequence[int], dilations: Sequence[int]) -> dict[str, Any]:
    """How ONNX says the padding: by numbers, or "same" where sizes are not known."""
    padding, strides = op.attrs["padding"], op.attrs["strides"]
    dims = op.inputs[0].shape[1:-1]
    if padding == "same" and None in dims:
        return {"auto_pad": "SAME_UPPER"}
    pairs = [
        pad_pair(padding, i, dim or 0, covered(size, dilation), stride)
        for i, (dim, size, stride, dilation) in enumerate(
            zip(dims, window, strides, dilations, strict=True)
        )
    ]
    return {"pads": [pair[0] for pair in pairs] + [pair[1] for pair in pairs]}


def _window(op: Operation) -> tuple[tuple[int, ...], int, int]:
    """The taps along each axis of a kernel, and its last two sizes."""
    shape = op.inputs[1].shape
    known = [] if shape.rank is None else [d for d in shape if d is not None]
    if len(known) != shape.rank:
        raise refused(op, "the shape of its kernel is not known")
    return tuple(known[:-2]), known[-2], known[-1]


@rule("Conv", "DepthwiseConv")
def _conv(w: GraphWriter, op: Operation, x: str, kernel: str) -> str:
    (window, inner, outer), rank = _window(op), rank_of(op.inputs[0])
    if op.type == "Conv":
        groups = op.attrs["groups"]
        weights = w.transpose(kernel, [rank - 1, rank - 2, *range(rank - 2)])
    else:
        groups = inner
        turned = w.transpose(kernel, [rank - 2, rank - 1, *range(rank - 2)])
        weights = w.reshape(turned, (inner * outer, 1, *window))
    attributes = {
        "kernel_shape": list(window),
        "strides": list(op.attrs["strides"]),
        "dilations": list(op.attrs["dilations"]),
        "group": groups,
        **_pads(op, window, op.attrs["dilations"]),
    }
    return _channels_first(w, op, x, lambda y: w.node("Conv", y, weights, **attributes))


@rule("ConvTranspose")
def _conv_transpose(w: GraphWriter, op: Operation, x: str, kernel: str) -> str:
    (window, _, _), rank = _window(op), rank_of(op.inputs[0])
    strides, dilations = op.attrs["strides"], op.attrs["dilations"]
    pads = all_pads(window, strides, op.attrs["padding"], op.attrs["output_padding"], dilations)
    weights = w.transpose(kernel, [rank - 1, rank - 2, *range(rank - 2)])
    attributes: dict[str, Any] = {
        "kernel_shape": list(window),
        "strides": list(strides),
        "dilations": list(dilations),
        # What is to be added behind, rather than cut off, has an attribute of its own.
        "pads": [before for before, _ in pads] + [max(after, 0) for _, after in pads],
        "output_padding": [max(-after, 0) for _, after in pads],
    }
    return _channels_first(w, op, x, lambda y: w.node("ConvTranspose", y, weights, **attributes))


@rule("MaxPool", "AvgPool")
def _pool(w: GraphWriter, op: Operation, x: str) -> str:
    window = op.attrs["window"]
    kind = "MaxPool" if op.type == "MaxPool" else "AveragePool"
    attributes: dict[str, Any] = {
        "kernel_shape": list(window),
        "strides": list(op.attrs["strides"]),
        **_pads(op, window, [1] * len(window)),
    }
    if kind == "AveragePool":
        attributes["count_include_pad"] = 0
    return _channels_first(w, op, x, lambda y: w.node(kind, y, **attributes))


def _known_side(op: Operation) -> tuple[int, int, int]:
    """The axis, its size before and after."""
    axis = canonical_axis(op.type, op.attrs["axis"], rank_of(op.inputs[0]))
    dim, size = op.inputs[0].shape[axis], op.attrs["size"]
    if dim is None or size is None:
        raise refused(op, "the sizes before and after are not known")
    return axis, dim, size


@rule("AdaptiveMaxPool")
def _adaptive_max_pool(w: GraphWriter, op: Operation, x: str) -> str:
    axis, dim, size = _known_side(op)
    cells = []
    for i in range(size):
        first, last = i * dim // size, -(-(i + 1) * dim // size)
        part = w.node("Slice", x, w.ints([first]), w.ints([last]), w.ints([axis]))
        cells.append(w.node("ReduceMax", part, w.ints([axis]), keepdims=1))
    return w.node("Concat", *cells, axis=axis)


@rule("Resample")
def _resample(w: GraphWriter, op: Operation, x: str, *dims: str) -> str:
    """A product with the matrix of the weights; of single cells, a choice."""
    axis, dim, size = _known_side(op)
    weights = resampling(op.attrs["method"], dim, size, op.attrs["antialias"])
    if op.attrs["method"] == "nearest":
        return w.node("Gather", x, w.ints(int(i) for i in np.argmax(weights, 1)), axis=axis)
    rank = rank_of(op.inputs[0])
    order = [i for i in range(rank) if i != axis] + [axis]
    matrix = w.constant(weights.T, op.inputs[0].dtype)
    y = w.node("MatMul", w.transpose(x, order), matrix)
    return w.transpose(y, [order.index(i) for i in range(rank)])
