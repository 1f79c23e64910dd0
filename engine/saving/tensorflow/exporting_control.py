"""Conditions and loops, written out with the ops that TensorFlow 1 steers by.

What is kept of iterations for gradients is a list of TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...graph import DType, Graph, GraphTensor, Operation, TensorShape
from ...late import later
from .writing import INT32, VARIANT, Writer, refused, rule

STRUCTURED = frozenset({"Case", "While", "Scan"})
_ON = frozenset({"Enter", "Exit", "Identity", "Merge", "NextIteration", "Switch"})

_lower = later("laminar.engine.passes.lower_control_flow", "lower_control_flow")
_step_graph = later("laminar.engine.passes.step_graph", "StepGraph")


class Outcome(NamedTuple):
    """What stands for a condition or a loop where that is written out.

    Attributes:
        name: of the condition or the loop.
        outputs: what it gives.
        done: what has run when all of it has.
    """

    name: str
    outputs: list[GraphTensor]
    done: Operation


def without_bodies(graph: Graph) -> tuple[Graph, list[Outcome]]:
    """A copy of a graph in which conditions and loops are written out.

    All other operations have their names in it.
    """
    operations = graph.operations
    structured = [op for op in operations if op.type in STRUCTURED]
    step = _lower(_step_graph([y for op in structured for y in op.outputs], [], operations))
    found = iter(step.fetches)
    twins = dict(zip((op.name for op in operations), step.targets, strict=True))
    outcomes = [
        Outcome(op.name, [next(found) for _ in op.outputs], twins[op.name]) for op in structured
    ]
    names = {id(twins[op.name]): op.name for op in operations if op.type not in STRUCTURED}
    taken = {op.name for op in (*operations, *step.graph.operations)}
    # What a loop is written out with may have got a name that belongs to another operation.
    for op in step.graph.operations:
        own = names.get(id(op))
        if own is None and op.name in twins:
            count = 1
            while (own := f"{op.name}/part_{count}") in taken:
                count += 1
            taken.add(own)
        op.name = own or op.name
    return step.graph, outcomes


def give_names(w: Writer, outcomes: Sequence[Outcome]) -> None:
    """The outputs of conditions and loops under the names of these."""
    for name, outputs, done in outcomes:
        kinds = [w.dtype(x) for x in outputs]
        if len(outputs) == 1:
            w.node(name, "Identity", w.names(outputs), [done.name], T=kinds[0])
        elif outputs:
            w.node(name, "IdentityN", w.names(outputs), [done.name], T=kinds)
        else:
            w.node(name, "NoOp", (), [done.name])


@rule("Enter")
def _enter(w: Writer, op: Operation) -> None:
    attrs: dict[str, Any] = {
        "frame_name": str(op.attrs["frame_name"]),
        "is_constant": bool(op.attrs["is_constant"]),
        "parallel_iterations": int(op.attrs["parallel_iterations"]),
    }
    _steer(w, op, **attrs)


@rule("Exit", "Identity", "Merge", "NextIteration", "Switch")
def _steering(w: Writer, op: Operation) -> None:
    _steer(w, op, **({"N": len(op.inputs)} if op.type == "Merge" else {}))


def _steer(w: Writer, op: Operation, **attrs: Any) -> None:
    name = op.name
    # What comes round a loop is written later, under its own name.
    inputs = [w.outputs.get(id(x), x.op.name) for x in op.inputs]
    w.node(name, op.type, inputs, T=w.dtype(op.inputs[0]), **attrs)
    w.give(op, [name if i == 0 else f"{name}:{i}" for i in range(len(op.outputs))])


@rule("LoopCond")
def _loop_cond(w: Writer, op: Operation) -> None:
    w.give(op, [w.node(op.name, "LoopCond", w.names(op.inputs))])


# Lists


def _way_of(x: GraphTensor) -> tuple[list[GraphTensor], list[Operation]]:
    """All that a list becomes on its way through loops and branches, and what takes it there."""
    way, takers = [x], []
    seen = {id(x)}
    for found in way:  # which grows
        for consumer in found.consumers():
            if consumer.type not in _ON:
                takers.append(consumer)
            if consumer.type in _ON or consumer.type == "StackPush":
                # The other output of a Merge is a number.
                further = consumer.outputs[:1] if consumer.type == "Merge" else consumer.outputs
                way.extend(y for y in further if id(y) not in seen)
                seen.update(map(id, further))
    return way, takers


def _element_shape(w: Writer, name: str, shape: TensorShape) -> str:
    """A shape as TensorFlow's lists take it: -1 for what is not known."""
    if shape.rank is None:
        return w.ints(name, -1)
    return w.ints(name, [-1 if n is None else n for n in shape])


@rule("StackNew")
def _stack_new(w: Writer, op: Operation) -> None:
    way, takers = _way_of(op.outputs[0])
    w.variants.update(map(id, way))
    pushed = [taker.inputs[1].dtype for taker in takers if taker.type == "StackPush"]
    if not pushed:
        raise refused(op, "nothing is pushed on it")
    shape = _element_shape(w, f"{op.name}/shape", TensorShape(None))
    most = w.ints(f"{op.name}/most", -1)
    kinds = {"element_dtype": pushed[0], "shape_type": INT32}
    w.give(op, [w.node(op.name, "EmptyTensorList", [shape, most], **kinds)])


@rule("StackPush")
def _stack_push(w: Writer, op: Operation) -> None:
    kind = op.inputs[1].dtype
    w.give(op, [w.node(op.name, "TensorListPushBack", w.names(op.inputs), element_dtype=kind)])


@rule("StackValues")
def _stack_values(w: Writer, op: Operation) -> None:
    """What is only read one by one stays a list: its elements may be of several shapes."""
    dtype = DType(op.attrs["dtype"])
    turned = bool(op.attrs["reverse"])
    way, takers = _way_of(op.outputs[0])
    if takers and not turned and all(taker.type == "StackItem" for taker in takers):
        w.variants.update(map(id, way))
        w.give(op, [w.node(op.name, "Identity", w.names(op.inputs), T=VARIANT)])
        return
    shape = _element_shape(w, f"{op.name}/shape", TensorShape(op.attrs["shape"]))
    attrs: dict[str, Any] = {"element_dtype": dtype, "num_elements": -1}
    own = f"{op.name}/stacked" if turned else op.name
    name = w.node(own, "TensorListStack", [*w.names(op.inputs), shape], **attrs)
    if turned:
        axis = w.ints(f"{op.name}/axis", [0])
        name = w.node(op.name, "ReverseV2", [name, axis], T=dtype, Tidx=INT32)
    w.give(op, [name])


@rule("StackItem")
def _stack_item(w: Writer, op: Operation) -> None:
    values, index = op.inputs
    if id(values) in w.variants:
        shape = _element_shape(w, f"{op.name}/shape", op.outputs[0].shape)
        kind = {"element_dtype": op.outputs[0].dtype}
        name = w.node(op.name, "TensorListGetItem", [*w.names(op.inputs), shape], **kind)
    else:
        axis = w.ints(f"{op.name}/axis", 0)
        kinds = {"Tparams": values.dtype, "Tindices": index.dtype, "Taxis": INT32}
        name = w.node(op.name, "GatherV2", [*w.names(op.inputs), axis], batch_dims=0, **kinds)
    w.give(op, [name])
