"""Graphs of laminar written with the ops of TensorFlow.

An operation becomes a node of its name, so that feeds, collections, signatures and savers find it;
what needs several nodes has the others in a scope of that name. Random numbers are TensorFlow's own
then, of the same distributions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import UnimplementedError
from ...graph import DType, Graph, GraphTensor, Operation, TensorShape
from .graph_def import NUMBERS, TensorFlowGraph
from .one_to_one import ONE_TO_ONE

VERSION = "2.0.0"  # from which on TensorFlow has all of these ops

_UNTYPED = frozenset({"LogicalAnd", "LogicalNot", "LogicalOr"})
_LATER = {
    "Add": "AddV2",
    "Div": "RealDiv",
    "Where": "SelectV2",
    "TruncMod": "Mod",
    "Round": "Round",
}
_SAME = {op.type: _LATER.get(op.type, name) for name, op in ONE_TO_ONE.items()}
_SAME |= {"Relu": "Relu", "Softmax": "Softmax", "LogSoftmax": "LogSoftmax", "ReluGrad": "ReluGrad"}


def tensorflow_graph_of(graph: Graph, message: Any) -> TensorFlowGraph:
    """The operations of a graph as a GraphDef of TensorFlow.

    Args:
        graph: what is written.
        message: an empty GraphDef of TensorFlow.

    Raises:
        UnimplementedError: there is an operation that has no form in TensorFlow here; it says
            which ops.
    """
    missing = {op.type for op in graph.operations if op.type not in _RULES}
    if missing:
        raise UnimplementedError(
            f"the graph has operations with no form for TensorFlow: {', '.join(sorted(missing))}",
            remedy="export it in laminar's own form; ONNX has more of a model's operations",
        )
    writer = _Writer(message)
    for op in graph.operations:
        writer.begin(op)
        _RULES[op.type](writer, op)
    return TensorFlowGraph(message, VERSION)


class _Writer:
    """Adds nodes; `outputs` are the names of those that give the graph's tensors, by id()."""

    def __init__(self, message: Any) -> None:
        self._message = message
        self._device = ""
        self._controls: list[str] = []
        self.outputs: dict[int, str] = {}

    def begin(self, op: Operation) -> None:
        """What is added now belongs to an operation."""
        self._device = op.device.replace(":cpu:", ":CPU:").replace(":gpu:", ":GPU:")
        self._controls = [c.name for c in op.control_inputs]

    def names(self, tensors: Iterable[GraphTensor]) -> list[str]:
        """What gives each of these."""
        return [self.outputs[id(x)] for x in tensors]

    def node(
        self,
        name: str,
        op: str,
        inputs: Sequence[str] = (),
        after: Sequence[str] = (),
        **attrs: Any,
    ) -> str:
        """Add a node; gives its name."""
        made = self._message.node.add(name=name, op=op, device=self._device)
        made.input.extend([*inputs, *(f"^{c}" for c in (*self._controls, *after))])
        for key, value in attrs.items():
            _write(made.attr[key], value)
        return name

    def constant(self, name: str, value: Any) -> str:
        """Add a constant."""
        array = np.asarray(value)
        dtype = DType("string" if array.dtype == object else str(array.dtype))
        return self.node(name, "Const", dtype=dtype, value=array)

    def give(self, op: Operation, names: Sequence[str]) -> None:
        """Say what gives the outputs of an operation."""
        self.outputs.update({id(y): name for y, name in zip(op.outputs, names, strict=True)})

    def shape(self, op: Operation, sizes: Sequence[int | None], dims: Sequence[GraphTensor]) -> str:
        """A vector of sizes, of which those that are None come from scalars."""
        if None not in sizes:
            return self.constant(f"{op.name}/shape", np.array(sizes, np.int32))
        given = iter(self.names(dims))
        parts = [
            next(given)
            if size is None
            else self.constant(f"{op.name}/size_{i}", np.array(size, np.int32))
            for i, size in enumerate(sizes)
        ]
        return self.node(f"{op.name}/shape", "Pack", parts, T=_INT32, N=len(parts), axis=0)


_INT32 = DType("int32")


def _write(attr: Any, value: Any) -> None:
    """An attribute."""
    if isinstance(value, DType):
        attr.type = NUMBERS[str(value)]
    elif isinstance(value, bool):
        attr.b = value
    elif isinstance(value, int):
        attr.i = value
    elif isinstance(value, str):
        attr.s = value.encode()
    elif isinstance(value, TensorShape):
        attr.shape.SetInParent()  # a scalar's has nothing in it
        _write_shape(attr.shape, value)
    elif isinstance(value, np.ndarray):
        _write_array(attr.tensor, value)
    else:
        attr.list.SetInParent()
        attr.list.type.extend(NUMBERS[str(dtype)] for dtype in value)


def _write_shape(message: Any, shape: TensorShape) -> None:
    if shape.rank is None:
        message.unknown_rank = True
        return
    for size in shape:
        message.dim.add(size=-1 if size is None else size)


def _write_array(message: Any, array: np.ndarray[Any, Any]) -> None:
    is_text = array.dtype == object
    message.tensor_shape.SetInParent()
    message.dtype = NUMBERS["string" if is_text else str(array.dtype)]
    _write_shape(message.tensor_shape, TensorShape(array.shape))
    if is_text:
        message.string_val.extend(
            x if isinstance(x, bytes) else str(x).encode() for x in array.flat
        )
    else:
        message.tensor_content = np.ascontiguousarray(array).tobytes()


_Rule = Callable[[_Writer, Operation], None]
_RULES: dict[str, _Rule] = {}


def _rule(*types: str) -> Callable[[_Rule], _Rule]:
    def register(fn: _Rule) -> _Rule:
        _RULES.update(dict.fromkeys(types, fn))
        return fn

    return register


def _attr(op: Operation, name: str) -> Any:
    return op.attrs[name]


@_rule(*_SAME)
def _same(w: _Writer, op: Operation) -> None:
    kind = _SAME[op.type]
    attrs: dict[str, Any] = {}
    if op.inputs and kind not in _UNTYPED:
        # The first input of a choice is the condition.
        attrs["T"] = op.inputs[-1].dtype if kind == "SelectV2" else op.inputs[0].dtype
    if kind == "AddN":
        attrs["N"] = len(op.inputs)
    name = w.node(op.name, kind, w.names(op.inputs), **attrs)
    w.give(op, [name] if len(op.outputs) == 1 else [f"{name}:{i}" for i in range(len(op.outputs))])


@_rule("Const")
def _const(w: _Writer, op: Operation) -> None:
    w.give(op, [w.constant(op.name, _attr(op, "value"))])


@_rule("Placeholder")
def _placeholder(w: _Writer, op: Operation) -> None:
    y = op.outputs[0]
    w.give(op, [w.node(op.name, "Placeholder", dtype=y.dtype, shape=y.shape)])


@_rule("Identity")
def _identity(w: _Writer, op: Operation) -> None:
    w.give(op, [w.node(op.name, "Identity", w.names(op.inputs), T=op.inputs[0].dtype)])


@_rule("Cast")
def _cast(w: _Writer, op: Operation) -> None:
    kinds = {"SrcT": op.inputs[0].dtype, "DstT": op.outputs[0].dtype}
    w.give(op, [w.node(op.name, "Cast", w.names(op.inputs), **kinds)])


@_rule("MatMul")
def _matmul(w: _Writer, op: Operation) -> None:
    a, b = op.inputs
    turned = bool(_attr(op, "transpose_a")), bool(_attr(op, "transpose_b"))
    if a.shape.rank == b.shape.rank == 2:
        flags: dict[str, Any] = dict(zip(("transpose_a", "transpose_b"), turned, strict=True))
        name = w.node(op.name, "MatMul", w.names(op.inputs), T=a.dtype, **flags)
    else:
        flags = dict(zip(("adj_x", "adj_y"), turned, strict=True))
        name = w.node(op.name, "BatchMatMulV2", w.names(op.inputs), T=a.dtype, **flags)
    w.give(op, [name])


# Shapes


@_rule("BroadcastTo", "Reshape")
def _to_shape(w: _Writer, op: Operation) -> None:
    x, *dims = op.inputs
    shape = w.shape(op, _attr(op, "shape"), dims)
    kind = "Tidx" if op.type == "BroadcastTo" else "Tshape"
    attrs = {"T": x.dtype, kind: _INT32}
    w.give(op, [w.node(op.name, op.type, [*w.names([x]), shape], **attrs)])


@_rule("Shape")
def _shape(w: _Writer, op: Operation) -> None:
    kinds = {"T": op.inputs[0].dtype, "out_type": op.outputs[0].dtype}
    w.give(op, [w.node(op.name, "Shape", w.names(op.inputs), **kinds)])


@_rule("Dim")
def _dim(w: _Writer, op: Operation) -> None:
    (x,) = op.inputs
    axis = int(_attr(op, "axis"))
    if axis < 0 and x.shape.rank is not None:
        axis += x.shape.rank
    sizes = w.node(f"{op.name}/sizes", "Shape", w.names([x]), T=x.dtype, out_type=_INT32)
    place = w.constant(f"{op.name}/place", np.array(axis, np.int32))
    along = w.constant(f"{op.name}/along", np.array(0, np.int32))
    kinds = {"Tparams": _INT32, "Tindices": _INT32, "Taxis": _INT32}
    w.give(op, [w.node(op.name, "GatherV2", [sizes, place, along], batch_dims=0, **kinds)])


@_rule("Transpose")
def _transpose(w: _Writer, op: Operation) -> None:
    (x,) = op.inputs
    order = w.constant(f"{op.name}/order", np.array(_attr(op, "axes"), np.int32))
    w.give(op, [w.node(op.name, "Transpose", [*w.names([x]), order], T=x.dtype, Tperm=_INT32)])


def _reduced(
    w: _Writer, op: Operation, name: str, kind: str, axes: Sequence[int], keepdims: bool
) -> str:
    along = w.constant(f"{op.name}/axes", np.array(axes, np.int32))
    x = op.inputs[0]
    attrs: dict[str, Any] = {"T": x.dtype, "Tidx": _INT32, "keep_dims": keepdims}
    return w.node(name, kind, [*w.names([x]), along], **attrs)


@_rule("Sum", "Mean", "Max", "Min", "Prod")
def _reduce(w: _Writer, op: Operation) -> None:
    rank, axes = op.inputs[0].shape.rank, _attr(op, "axis")
    if axes is None and rank is None:
        raise UnimplementedError(f"{op.name!r} goes over all axes of a tensor of unknown rank")
    along = range(rank or 0) if axes is None else (axes,) if isinstance(axes, int) else axes
    keepdims = bool(_attr(op, "keepdims"))
    w.give(op, [_reduced(w, op, op.name, op.type, [*along], keepdims)])


@_rule("SumTo")
def _sum_to(w: _Writer, op: Operation) -> None:
    """The sum over the axes that broadcasting adds or makes longer."""
    (x, *dims), shape = op.inputs, tuple(_attr(op, "shape"))
    if x.shape.rank is None:
        raise UnimplementedError(f"{op.name!r} sums a tensor of unknown rank")
    more = x.shape.rank - len(shape)
    axes = [*range(more), *(i + more for i, size in enumerate(shape) if size == 1)]
    total = _reduced(w, op, f"{op.name}/sum", "Sum", axes, False)
    target = w.shape(op, shape, dims)
    w.give(op, [w.node(op.name, "Reshape", [total, target], T=x.dtype, Tshape=_INT32)])


# Losses


@_rule("SparseSoftmaxCrossEntropy")
def _sparse_loss(w: _Writer, op: Operation) -> None:
    labels, logits = op.inputs
    kinds = {"T": logits.dtype, "Tlabels": labels.dtype}
    name = w.node(
        op.name, "SparseSoftmaxCrossEntropyWithLogits", w.names([logits, labels]), **kinds
    )
    p = w.node(f"{op.name}/p", "Softmax", w.names([logits]), T=logits.dtype)
    w.give(op, [name, p])


@_rule("SparseSoftmaxCrossEntropyGrad")
def _sparse_loss_grad(w: _Writer, op: Operation) -> None:
    """(p - one_hot(labels)) * dloss."""
    labels, p, dloss = op.inputs
    if p.shape.rank is None or p.shape[-1] is None:
        raise UnimplementedError(f"{op.name!r} is about an unknown number of classes")
    kind = p.dtype.numpy
    ends = [
        w.constant(f"{op.name}/classes", np.array(p.shape[-1], np.int32)),
        w.constant(f"{op.name}/on", np.array(1, kind)),
        w.constant(f"{op.name}/off", np.array(0, kind)),
    ]
    target = w.node(
        f"{op.name}/target",
        "OneHot",
        [*w.names([labels]), *ends],
        T=p.dtype,
        TI=labels.dtype,
        axis=-1,
    )
    error = w.node(f"{op.name}/error", "Sub", [*w.names([p]), target], T=p.dtype)
    last = w.constant(f"{op.name}/last", np.array(-1, np.int32))
    rows = w.node(
        f"{op.name}/rows", "ExpandDims", [*w.names([dloss]), last], T=p.dtype, Tdim=_INT32
    )
    w.give(op, [w.node(op.name, "Mul", [error, rows], T=p.dtype)])


# Variables


@_rule("VarHandle")
def _variable(w: _Writer, op: Operation) -> None:
    attrs: dict[str, Any] = {
        "dtype": DType(_attr(op, "dtype")),
        "shape": TensorShape(_attr(op, "shape")),
        "container": str(_attr(op, "container")),
        "shared_name": str(_attr(op, "shared_name")),
    }
    w.give(op, [w.node(op.name, "VarHandleOp", **attrs)])


@_rule("ReadVariable")
def _read(w: _Writer, op: Operation) -> None:
    name = w.node(op.name, "ReadVariableOp", w.names(op.inputs), dtype=op.outputs[0].dtype)
    w.give(op, [name])


@_rule("Assign", "AssignAdd", "AssignSub")
def _assign(w: _Writer, op: Operation) -> None:
    """TensorFlow's gives nothing: the new value is read after it."""
    dtype = op.inputs[1].dtype
    name = w.node(op.name, f"{op.type}VariableOp", w.names(op.inputs), dtype=dtype)
    value = w.node(
        f"{op.name}/value", "ReadVariableOp", w.names(op.inputs[:1]), [name], dtype=dtype
    )
    w.give(op, [value])


@_rule("IsInitialized")
def _is_initialized(w: _Writer, op: Operation) -> None:
    w.give(op, [w.node(op.name, "VarIsInitializedOp", w.names(op.inputs))])


# Random numbers


@_rule("RandomGenerator", "RandomNext")
def _random_state(w: _Writer, op: Operation) -> None:
    """TensorFlow's random ops have a state of their own."""
    w.give(op, [w.node(op.name, "NoOp")])


_DRAWS = {
    "RandomUniform": "RandomUniform",
    "RandomNormal": "RandomStandardNormal",
    "RandomTruncatedNormal": "TruncatedNormal",
}


@_rule(*_DRAWS)
def _draw(w: _Writer, op: Operation) -> None:
    _, *dims = op.inputs
    shape = w.shape(op, _attr(op, "shape"), dims)
    kinds = {"T": _INT32, "dtype": op.outputs[0].dtype}
    w.give(op, [w.node(op.name, _DRAWS[op.type], [shape], **kinds)])


# Checkpoints


@_rule("SaveV2")
def _save(w: _Writer, op: Operation) -> None:
    w.node(op.name, "SaveV2", w.names(op.inputs), dtypes=[x.dtype for x in op.inputs[3:]])


@_rule("RestoreV2")
def _restore(w: _Writer, op: Operation) -> None:
    name = w.node(op.name, "RestoreV2", w.names(op.inputs), dtypes=[y.dtype for y in op.outputs])
    w.give(op, [f"{name}:{i}" for i in range(len(op.outputs))])
