"""Convolutions, pooling, normalization, losses and dropout, written with TensorFlow's ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import DType, GraphTensor, Operation
from .writing import INT32, Writer, refused, rule

_LAYOUTS = {2: "NHWC", 3: "NDHWC"}


class _Windows:
    """What slides over the spatial axes of an operation: TensorFlow's attributes of it.

    What has one spatial axis there gets another one of size 1 in front.
    """

    def __init__(self, w: Writer, op: Operation, x: GraphTensor) -> None:
        self._w, self._op = w, op
        if x.shape.rank not in (3, 4, 5):
            raise refused(op, f"its input {x.spec} has no form with one to three spatial axes")
        self.is_flat = x.shape.rank == 3
        self.count = 2 if self.is_flat else x.shape.rank - 2
        self.attrs: dict[str, Any] = {"data_format": _LAYOUTS[self.count], "T": x.dtype}
        for key, name in (("window", "ksize"), ("strides", "strides"), ("dilations", "dilations")):
            if key in op.attrs and not (key == "window" and "KernelGrad" in op.type):
                self.attrs[name] = [1, *self.spatial(op.attrs[key], 1), 1]
        self._pad(op.attrs["padding"])

    def spatial(self, sizes: Sequence[Any], flat: Any) -> list[Any]:
        """Sizes of the spatial axes; `flat` is that of the one in front."""
        return [flat, *sizes] if self.is_flat else [*sizes]

    def _pad(self, padding: Any) -> None:
        if padding in ("same", "valid"):
            self.attrs["padding"] = padding.upper()
            return
        if padding == "causal":
            length = (self._op.attrs.get("window") or self._op.inputs[1].shape[:1])[0]
            dilation = self._op.attrs.get("dilations", (1,))[0]
            padding = ((dilation * (length - 1), 0),) if isinstance(length, int) else "causal"
        if isinstance(padding, str) or self.count != 2 or "Pool" in self._op.type:
            raise refused(self._op, f"TensorFlow has no padding {padding!r} there")
        self.attrs["padding"] = "EXPLICIT"
        widths = [(0, 0), *self.spatial(padding, (0, 0)), (0, 0)]
        self.attrs["explicit_paddings"] = [n for pair in widths for n in pair]

    def raised(self, x: GraphTensor, axis: int = 1) -> str:
        """A tensor with the axis in front."""
        (name,) = self._w.names([x])
        if not self.is_flat:
            return name
        own = f"{self._op.name}/{name.replace(':', '_').rpartition('/')[2]}_as_image"
        along = self._w.ints(f"{own}/axis", axis)
        return self._w.node(own, "ExpandDims", [name, along], T=x.dtype, Tdim=INT32)

    def give(self, kind: str, inputs: Sequence[str], axis: int = 1, **attrs: Any) -> None:
        """Write the node; its result is the operation's."""
        op, w = self._op, self._w
        every = {**self.attrs, **attrs}
        name = w.node(f"{op.name}/image" if self.is_flat else op.name, kind, inputs, **every)
        if self.is_flat:
            dtype = op.outputs[0].dtype
            name = w.node(op.name, "Squeeze", [name], T=dtype, squeeze_dims=[axis])
        w.give(op, [name])

    def input_sizes(self, dy: GraphTensor, channels: int | str, dims: Sequence[str]) -> str:
        """The shape of the input, of which a gradient is wanted."""
        given = iter(dims)
        sizes = [next(given) if n is None else n for n in self._op.attrs["input_dims"]]
        batch = self._w.size(f"{self._op.name}/batch", dy, 0)
        return self._w.vector(f"{self._op.name}/shape", [batch, *self.spatial(sizes, 1), channels])


def _channels(op: Operation, x: GraphTensor, axis: int) -> int:
    found = x.shape[axis]
    if found is None:
        raise refused(op, "its channels are not known")
    return found


@rule("Conv")
def _conv(w: Writer, op: Operation) -> None:
    x, kernel = op.inputs
    windows = _Windows(w, op, x)
    inputs = [windows.raised(x), windows.raised(kernel, 0)]
    windows.give("Conv2D" if windows.count == 2 else "Conv3D", inputs)


@rule("ConvInputGrad")
def _conv_input_grad(w: Writer, op: Operation) -> None:
    dy, kernel, *dims = op.inputs
    windows = _Windows(w, op, dy)
    channels = _channels(op, kernel, -2) * int(op.attrs["groups"])
    sizes = windows.input_sizes(dy, channels, w.names(dims))
    inputs = [sizes, windows.raised(kernel, 0), windows.raised(dy)]
    if windows.count == 2:
        windows.give("Conv2DBackpropInput", inputs)
    else:
        windows.give("Conv3DBackpropInputV2", inputs, Tshape=INT32)


@rule("ConvTranspose")
def _conv_transpose(w: Writer, op: Operation) -> None:
    """The gradient of a convolution for its input, which has the sizes of this one's output."""
    x, kernel = op.inputs
    windows = _Windows(w, op, x)
    y = op.outputs[0].shape
    if op.attrs["output_padding"] is not None or None in y[1:]:
        raise refused(op, "its output is padded, or the size of that is not known")
    batch = w.size(f"{op.name}/batch", x, 0)
    spatial = windows.spatial([*y[1:-1]], 1)
    sizes = w.vector(f"{op.name}/shape", [batch, *spatial, _channels(op, kernel, -2)])
    inputs = [sizes, windows.raised(kernel, 0), windows.raised(x)]
    if windows.count == 2:
        windows.give("Conv2DBackpropInput", inputs)
    else:
        windows.give("Conv3DBackpropInputV2", inputs, Tshape=INT32)


@rule("ConvKernelGrad")
def _conv_kernel_grad(w: Writer, op: Operation) -> None:
    x, dy, *dims = op.inputs
    windows = _Windows(w, op, x)
    channels = _channels(op, x, -1) // int(op.attrs["groups"]), _channels(op, dy, -1)
    inputs = [windows.raised(x), _kernel_sizes(w, windows, op, channels, dims), windows.raised(dy)]
    kind = "Conv2DBackpropFilter" if windows.count == 2 else "Conv3DBackpropFilterV2"
    windows.give(kind, inputs, axis=0)


def _kernel_sizes(
    w: Writer,
    windows: _Windows,
    op: Operation,
    channels: tuple[int, int],
    dims: Sequence[GraphTensor],
) -> str:
    given = iter(w.names(dims))
    sizes = [next(given) if n is None else n for n in op.attrs["window"]]
    return w.vector(f"{op.name}/shape", [*windows.spatial(sizes, 1), *channels])


def _depthwise(w: Writer, op: Operation, x: GraphTensor) -> _Windows:
    windows = _Windows(w, op, x)
    if windows.count != 2:
        raise refused(op, "TensorFlow has it for images alone")
    # TensorFlow has one stride for both axes.
    if len(strides := {*op.attrs["strides"]}) > 1:
        raise refused(op, f"its strides differ: {op.attrs['strides']}")
    windows.attrs["strides"] = [1, *strides, *strides, 1]
    return windows


@rule("DepthwiseConv")
def _depthwise_conv(w: Writer, op: Operation) -> None:
    x, kernel = op.inputs
    windows = _depthwise(w, op, x)
    windows.give("DepthwiseConv2dNative", [windows.raised(x), windows.raised(kernel, 0)])


@rule("DepthwiseInputGrad")
def _depthwise_input_grad(w: Writer, op: Operation) -> None:
    dy, kernel, *dims = op.inputs
    windows = _depthwise(w, op, dy)
    sizes = windows.input_sizes(dy, _channels(op, kernel, -2), w.names(dims))
    inputs = [sizes, windows.raised(kernel, 0), windows.raised(dy)]
    windows.give("DepthwiseConv2dNativeBackpropInput", inputs)


@rule("DepthwiseKernelGrad")
def _depthwise_kernel_grad(w: Writer, op: Operation) -> None:
    x, dy, *dims = op.inputs
    windows = _depthwise(w, op, x)
    channels = _channels(op, x, -1)
    shape = channels, _channels(op, dy, -1) // channels
    inputs = [windows.raised(x), _kernel_sizes(w, windows, op, shape, dims), windows.raised(dy)]
    windows.give("DepthwiseConv2dNativeBackpropFilter", inputs, axis=0)


def _pool_name(op: Operation, windows: _Windows) -> str:
    """TensorFlow's name of it, with the dimensions before `Grad`."""
    return op.type if windows.count == 2 else op.type[:7] + "3D" + op.type[7:]


@rule("MaxPool", "AvgPool")
def _pool(w: Writer, op: Operation) -> None:
    windows = _Windows(w, op, op.inputs[0])
    windows.give(_pool_name(op, windows), [windows.raised(op.inputs[0])])


@rule("MaxPoolGrad")
def _max_pool_grad(w: Writer, op: Operation) -> None:
    windows = _Windows(w, op, op.inputs[0])
    if windows.count == 3:
        windows.attrs["TInput"] = op.inputs[0].dtype
    windows.give(_pool_name(op, windows), [windows.raised(x) for x in op.inputs])


@rule("AvgPoolGrad")
def _avg_pool_grad(w: Writer, op: Operation) -> None:
    dy, *dims = op.inputs
    windows = _Windows(w, op, dy)
    sizes = windows.input_sizes(dy, _channels(op, dy, -1), w.names(dims))
    windows.give(_pool_name(op, windows), [sizes, windows.raised(dy)])


# Normalization


class _Steps:
    """Nodes in the scope of an operation, for formulas of several."""

    def __init__(self, w: Writer, op: Operation, dtype: DType) -> None:
        self._w, self._op, self.dtype = w, op, dtype

    def node(self, name: str, kind: str, *inputs: str) -> str:
        """A node of operands of one type; one of no name is the operation's own."""
        own = f"{self._op.name}/{name}" if name else self._op.name
        return self._w.node(own, kind, inputs, T=self.dtype)

    def over(self, name: str, kind: str, x: str, axes: Sequence[int]) -> str:
        """A sum or a mean, which keeps the axes."""
        own = f"{self._op.name}/{name}"
        along = self._w.ints(f"{own}/axes", [*axes])
        return self._w.node(own, kind, [x, along], T=self.dtype, Tidx=INT32, keep_dims=True)

    def number(self, name: str, value: float) -> str:
        """A constant."""
        return self._w.constant(f"{self._op.name}/{name}", np.array(value, self.dtype.numpy))


@rule("Normalize")
def _normalize(w: Writer, op: Operation) -> None:
    x, scale, offset = w.names(op.inputs)
    s, axes = _Steps(w, op, op.inputs[0].dtype), op.attrs["axes"]
    mean = s.over("mean", "Mean", x, axes)
    spread = s.node("spread", "SquaredDifference", x, mean)
    variance = s.over("variance", "Mean", spread, axes)
    r = s.node(
        "r", "Rsqrt", s.node("sum", "AddV2", variance, s.number("epsilon", op.attrs["epsilon"]))
    )
    h = s.node("h", "Mul", s.node("centered", "Sub", x, mean), r)
    y = s.node("", "AddV2", s.node("scaled", "Mul", h, scale), offset)
    w.give(op, [y, mean, variance])


@rule("NormalizeGrad")
def _normalize_grad(w: Writer, op: Operation) -> None:
    """dx = r * (g - M(g) - h * M(g * h)) with g = dy * scale; dscale = the sum of dy * h."""
    x, scale, mean, variance, dy = w.names(op.inputs)
    s, axes = _Steps(w, op, op.inputs[0].dtype), op.attrs["axes"]
    r = s.node(
        "r", "Rsqrt", s.node("sum", "AddV2", variance, s.number("epsilon", op.attrs["epsilon"]))
    )
    h = s.node("h", "Mul", s.node("centered", "Sub", x, mean), r)
    g = s.node("g", "Mul", dy, scale)
    along = s.over("along", "Mean", s.node("gh", "Mul", g, h), axes)
    rest = s.node("rest", "Sub", g, s.over("g_mean", "Mean", g, axes))
    dx = s.node("", "Mul", s.node("free", "Sub", rest, s.node("h_part", "Mul", h, along)), r)
    w.give(op, [dx, _summed_to(w, op, s.node("dyh", "Mul", dy, h))])


def _summed_to(w: Writer, op: Operation, product: str) -> str:
    """The sum of a product over the axes along which the scale is repeated."""
    x, scale = op.inputs[:2]
    if x.shape.rank is None or scale.shape.rank is None or None in scale.shape:
        raise refused(op, "the shape of its scale is not known")
    more = x.shape.rank - scale.shape.rank
    axes = [*range(more), *(i + more for i, n in enumerate(scale.shape) if n == 1)]
    along = w.ints(f"{op.name}/repeated", axes)
    kinds: dict[str, Any] = {"T": x.dtype, "Tidx": INT32, "keep_dims": False}
    total = w.node(f"{op.name}/dscale_sum", "Sum", [product, along], **kinds)
    shape = w.ints(f"{op.name}/scale_shape", [*scale.shape])
    return w.node(f"{op.name}/dscale", "Reshape", [total, shape], T=x.dtype, Tshape=INT32)


# Losses


@rule("Softmax", "LogSoftmax")
def _softmax(w: Writer, op: Operation) -> None:
    """TensorFlow's goes along the last axis."""
    (x,), axes = op.inputs, op.attrs["axes"]
    if x.shape.rank is None or [a % x.shape.rank for a in axes] != [x.shape.rank - 1]:
        s = _Steps(w, op, x.dtype)
        (name,) = w.names([x])
        most = s.over("most", "Max", name, axes)
        less = s.node("less", "Sub", name, most)
        powers = s.node("powers", "Exp", less)
        total = s.over("total", "Sum", powers, axes)
        if op.type == "Softmax":
            w.give(op, [s.node("", "RealDiv", powers, total)])
        else:
            w.give(op, [s.node("", "Sub", less, s.node("log", "Log", total))])
        return
    w.give(op, [w.node(op.name, op.type, w.names([x]), T=x.dtype)])


@rule("SoftmaxCrossEntropy")
def _dense_loss(w: Writer, op: Operation) -> None:
    """-(sum of labels * l), l the logarithm of the softmax: a label of 0 adds 0 in any case."""
    labels, logits = op.inputs
    rank = logits.shape.rank
    if rank is None or op.attrs["axis"] % rank != rank - 1:
        raise refused(op, "its classes do not run along the last axis")
    s = _Steps(w, op, logits.dtype)
    logs = s.node("logs", "LogSoftmax", *w.names([logits]))
    products = s.node("products", "MulNoNan", logs, *w.names([labels]))
    along = w.ints(f"{op.name}/axis", [-1])
    kinds: dict[str, Any] = {"T": logits.dtype, "Tidx": INT32, "keep_dims": False}
    total = w.node(f"{op.name}/sum", "Sum", [products, along], **kinds)
    w.give(op, [s.node("", "Neg", total), logs])


# Random choices

_SEED = DType("int64")


@rule("RandomGenerator")
def _generator(w: Writer, op: Operation) -> None:
    """TensorFlow's random ops have states of their own: nobody reads this handle."""
    attrs: dict[str, Any] = {"dtype": _SEED, "shape": op.outputs[0].shape, "container": ""}
    w.give(op, [w.node(op.name, "VarHandleOp", shared_name=op.name, **attrs)])


@rule("RandomNext")
def _next_state(w: Writer, op: Operation) -> None:
    """A state is four numbers, drawn by TensorFlow; what has the same makes the same choices."""
    shape = w.ints(f"{op.name}/shape", [4])
    ends = [w.ints(f"{op.name}/least", 0), w.ints(f"{op.name}/most", np.iinfo(np.int32).max)]
    kinds = {"T": INT32, "Tout": INT32}
    drawn = w.node(f"{op.name}/numbers", "RandomUniformInt", [shape, *ends], **kinds)
    state = op.outputs[0].dtype
    w.give(op, [w.node(op.name, "Cast", [drawn], SrcT=INT32, DstT=state)])


@rule("RandomAdvance")
def _advanced(w: Writer, op: Operation) -> None:
    (state,) = op.inputs
    wide = {"SrcT": state.dtype, "DstT": _SEED}
    before = w.node(f"{op.name}/before", "Cast", w.names([state]), **wide)
    steps = w.constant(f"{op.name}/steps", np.array([op.attrs["steps"], 0, 0, 0], np.int64))
    total = w.node(f"{op.name}/total", "AddV2", [before, steps], T=_SEED)
    w.give(op, [w.node(op.name, "Cast", [total], SrcT=_SEED, DstT=state.dtype)])


@rule("Dropout")
def _dropout(w: Writer, op: Operation) -> None:
    x, state = op.inputs
    name, seed = w.names(op.inputs)
    rate, noise = float(op.attrs["rate"]), op.attrs["noise_shape"]
    wide = w.node(f"{op.name}/state", "Cast", [seed], SrcT=state.dtype, DstT=_SEED)
    two = [w.ints(f"{op.name}/first", [0]), w.ints(f"{op.name}/two", [2])]
    pair = w.node(f"{op.name}/seed", "Slice", [wide, *two], T=_SEED, Index=INT32)
    if noise is None:
        shape = w.node(f"{op.name}/shape", "Shape", [name], T=x.dtype, out_type=INT32)
    else:
        sizes = [
            w.size(f"{op.name}/dim_{i}", x, i - len(noise)) if n is None else n
            for i, n in enumerate(noise)
        ]
        shape = w.vector(f"{op.name}/shape", sizes)
    kinds = {"T": INT32, "Tseed": _SEED, "dtype": x.dtype}
    drawn = w.node(f"{op.name}/uniform", "StatelessRandomUniform", [shape, pair], **kinds)
    s = _Steps(w, op, x.dtype)
    kept = s.node("kept", "GreaterEqual", drawn, s.number("rate", rate))
    larger = s.node("larger", "Mul", name, s.number("factor", 1 / (1 - rate) if rate < 1 else 0))
    nothing = s.node("zeros", "ZerosLike", name)
    w.give(op, [s.node("", "SelectV2", kept, larger, nothing)])
