"""Graphs of laminar written with the ops of TensorFlow.

An operation becomes a node of its name, so that feeds, collections, signatures and savers find it;
what needs several nodes has the others in a scope of that name. Random numbers are TensorFlow's own
then, of the same distributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import UnimplementedError
from ...graph import DType, Graph, Operation, TensorShape
from . import exporting_arrays, exporting_nn  # noqa: F401  # register rules
from .exporting_control import STRUCTURED, Outcome, give_names, without_bodies
from .exporting_scalars import is_elementwise, write_elementwise
from .graph_def import TensorFlowGraph
from .one_to_one import ONE_TO_ONE
from .writing import INT32, RULES, Writer, rule

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
_SAME |= {name: name for name in ("AddN", "Relu", "ReluGrad", "ZerosLike")}


def tensorflow_graph_of(graph: Graph, message: Any) -> TensorFlowGraph:
    """The operations of a graph as a GraphDef of TensorFlow.

    Conditions and loops are written out; their outputs have the names that they have here.

    Args:
        graph: what is written.
        message: an empty GraphDef of TensorFlow.

    Raises:
        UnimplementedError: there is an operation that has no form in TensorFlow here; it says
            which ops.
    """
    outcomes: list[Outcome] = []
    if any(op.type in STRUCTURED for op in graph.operations):
        graph, outcomes = without_bodies(graph)
    missing = {
        op.type for op in graph.operations if op.type not in RULES and not is_elementwise(op)
    }
    if missing:
        raise UnimplementedError(
            f"the graph has operations with no form for TensorFlow: {', '.join(sorted(missing))}",
            remedy="export it in laminar's own form; ONNX has more of a model's operations",
        )
    writer = Writer(message)
    for op in graph.operations:
        writer.begin(op)
        RULES.get(op.type, write_elementwise)(writer, op)
    writer.end()
    give_names(writer, outcomes)
    return TensorFlowGraph(message, VERSION)


@rule(*_SAME)
def _same(w: Writer, op: Operation) -> None:
    kind = _SAME[op.type]
    attrs: dict[str, Any] = {}
    if op.inputs and kind not in _UNTYPED:
        # The first input of a choice is the condition.
        attrs["T"] = op.inputs[-1].dtype if kind == "SelectV2" else op.inputs[0].dtype
    if kind == "AddN":
        attrs["N"] = len(op.inputs)
    name = w.node(op.name, kind, w.names(op.inputs), **attrs)
    w.give(op, [name] if len(op.outputs) == 1 else [f"{name}:{i}" for i in range(len(op.outputs))])


@rule("Const")
def _const(w: Writer, op: Operation) -> None:
    w.give(op, [w.constant(op.name, op.attrs["value"])])


@rule("Placeholder")
def _placeholder(w: Writer, op: Operation) -> None:
    y = op.outputs[0]
    w.give(op, [w.node(op.name, "Placeholder", dtype=y.dtype, shape=y.shape)])


@rule("Cast")
def _cast(w: Writer, op: Operation) -> None:
    kinds = {"SrcT": op.inputs[0].dtype, "DstT": op.outputs[0].dtype}
    w.give(op, [w.node(op.name, "Cast", w.names(op.inputs), **kinds)])


@rule("MatMul")
def _matmul(w: Writer, op: Operation) -> None:
    a, b = op.inputs
    turned = bool(op.attrs["transpose_a"]), bool(op.attrs["transpose_b"])
    if a.shape.rank == b.shape.rank == 2:
        flags: dict[str, Any] = dict(zip(("transpose_a", "transpose_b"), turned, strict=True))
        name = w.node(op.name, "MatMul", w.names(op.inputs), T=a.dtype, **flags)
    else:
        flags = dict(zip(("adj_x", "adj_y"), turned, strict=True))
        name = w.node(op.name, "BatchMatMulV2", w.names(op.inputs), T=a.dtype, **flags)
    w.give(op, [name])


# Shapes


@rule("BroadcastTo", "Reshape")
def _to_shape(w: Writer, op: Operation) -> None:
    x, *dims = op.inputs
    shape = w.shape(op, op.attrs["shape"], dims)
    kind = "Tidx" if op.type == "BroadcastTo" else "Tshape"
    attrs = {"T": x.dtype, kind: INT32}
    w.give(op, [w.node(op.name, op.type, [*w.names([x]), shape], **attrs)])


@rule("Shape")
def _shape(w: Writer, op: Operation) -> None:
    kinds = {"T": op.inputs[0].dtype, "out_type": op.outputs[0].dtype}
    w.give(op, [w.node(op.name, "Shape", w.names(op.inputs), **kinds)])


@rule("Dim")
def _dim(w: Writer, op: Operation) -> None:
    (x,) = op.inputs
    axis = int(op.attrs["axis"])
    if axis < 0 and x.shape.rank is not None:
        axis += x.shape.rank
    sizes = w.node(f"{op.name}/sizes", "Shape", w.names([x]), T=x.dtype, out_type=INT32)
    place = w.constant(f"{op.name}/place", np.array(axis, np.int32))
    along = w.constant(f"{op.name}/along", np.array(0, np.int32))
    kinds = {"Tparams": INT32, "Tindices": INT32, "Taxis": INT32}
    w.give(op, [w.node(op.name, "GatherV2", [sizes, place, along], batch_dims=0, **kinds)])


@rule("Transpose")
def _transpose(w: Writer, op: Operation) -> None:
    (x,) = op.inputs
    order = w.constant(f"{op.name}/order", np.array(op.attrs["axes"], np.int32))
    w.give(op, [w.node(op.name, "Transpose", [*w.names([x]), order], T=x.dtype, Tperm=INT32)])


def _reduced(
    w: Writer, op: Operation, name: str, kind: str, axes: Sequence[int], keepdims: bool
) -> str:
    along = w.constant(f"{op.name}/axes", np.array(axes, np.int32))
    x = op.inputs[0]
    attrs: dict[str, Any] = {"T": x.dtype, "Tidx": INT32, "keep_dims": keepdims}
    return w.node(name, kind, [*w.names([x]), along], **attrs)


@rule("EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum")
def _reduce(w: Writer, op: Operation) -> None:
    rank, axes = op.inputs[0].shape.rank, op.attrs["axis"]
    if axes is None and rank is None:
        raise UnimplementedError(f"{op.name!r} goes over all axes of a tensor of unknown rank")
    along = range(rank or 0) if axes is None else (axes,) if isinstance(axes, int) else axes
    keepdims = bool(op.attrs["keepdims"])
    w.give(op, [_reduced(w, op, op.name, op.type, [*along], keepdims)])


@rule("SumTo")
def _sum_to(w: Writer, op: Operation) -> None:
    """The sum over the axes that broadcasting adds or makes longer."""
    (x, *dims), shape = op.inputs, tuple(op.attrs["shape"])
    if x.shape.rank is None:
        raise UnimplementedError(f"{op.name!r} sums a tensor of unknown rank")
    more = x.shape.rank - len(shape)
    axes = [*range(more), *(i + more for i, size in enumerate(shape) if size == 1)]
    total = _reduced(w, op, f"{op.name}/sum", "Sum", axes, False)
    target = w.shape(op, shape, dims)
    w.give(op, [w.node(op.name, "Reshape", [total, target], T=x.dtype, Tshape=INT32)])


# Losses


@rule("SparseSoftmaxCrossEntropy")
def _sparse_loss(w: Writer, op: Operation) -> None:
    labels, logits = op.inputs
    kinds = {"T": logits.dtype, "Tlabels": labels.dtype}
    name = w.node(
        op.name, "SparseSoftmaxCrossEntropyWithLogits", w.names([logits, labels]), **kinds
    )
    p = w.node(f"{op.name}/p", "Softmax", w.names([logits]), T=logits.dtype)
    w.give(op, [name, p])


@rule("SparseSoftmaxCrossEntropyGrad")
def _sparse_loss_grad(w: Writer, op: Operation) -> None:
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
    rows = w.node(f"{op.name}/rows", "ExpandDims", [*w.names([dloss]), last], T=p.dtype, Tdim=INT32)
    w.give(op, [w.node(op.name, "Mul", [error, rows], T=p.dtype)])


# Variables


@rule("VarHandle")
def _variable(w: Writer, op: Operation) -> None:
    attrs: dict[str, Any] = {
        "dtype": DType(op.attrs["dtype"]),
        "shape": TensorShape(op.attrs["shape"]),
        "container": str(op.attrs["container"]),
        "shared_name": str(op.attrs["shared_name"]),
    }
    w.give(op, [w.node(op.name, "VarHandleOp", **attrs)])


@rule("ReadVariable")
def _read(w: Writer, op: Operation) -> None:
    name = w.node(op.name, "ReadVariableOp", w.names(op.inputs), dtype=op.outputs[0].dtype)
    w.give(op, [name])


@rule("Assign", "AssignAdd", "AssignSub")
def _assign(w: Writer, op: Operation) -> None:
    """TensorFlow's gives nothing: the new value is read after it."""
    dtype = op.inputs[1].dtype
    name = w.node(op.name, f"{op.type}VariableOp", w.names(op.inputs), dtype=dtype)
    value = w.node(
        f"{op.name}/value", "ReadVariableOp", w.names(op.inputs[:1]), [name], dtype=dtype
    )
    w.give(op, [value])


@rule("IsInitialized")
def _is_initialized(w: Writer, op: Operation) -> None:
    w.give(op, [w.node(op.name, "VarIsInitializedOp", w.names(op.inputs))])


# Random numbers


_DRAWS = {
    "RandomUniform": "RandomUniform",
    "RandomNormal": "RandomStandardNormal",
    "RandomTruncatedNormal": "TruncatedNormal",
}


@rule(*_DRAWS)
def _draw(w: Writer, op: Operation) -> None:
    _, *dims = op.inputs
    shape = w.shape(op, op.attrs["shape"], dims)
    kinds = {"T": INT32, "dtype": op.outputs[0].dtype}
    w.give(op, [w.node(op.name, _DRAWS[op.type], [shape], **kinds)])


# Checkpoints


@rule("SaveV2")
def _save(w: Writer, op: Operation) -> None:
    w.node(op.name, "SaveV2", w.names(op.inputs), dtypes=[x.dtype for x in op.inputs[3:]])


@rule("RestoreV2")
def _restore(w: Writer, op: Operation) -> None:
    name = w.node(op.name, "RestoreV2", w.names(op.inputs), dtypes=[y.dtype for y in op.outputs])
    w.give(op, [f"{name}:{i}" for i in range(len(op.outputs))])
