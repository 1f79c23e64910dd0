"""Loops over sequences, and choices: bodies are graphs of their own."""

from __future__ import annotations

from typing import Any

from laminar.engine.graph import Operation
from laminar.engine.ops.control.structured import Body

from ..library import library
from ..table import refused, rule
from ..writer import GraphWriter


def _outputs(inner: GraphWriter, body: Body) -> list[Any]:
    """What a body gives, each under a name of its own, as ONNX wants it."""
    found = []
    for y in body.outputs:
        if y is not None:
            name = inner.node("Identity", inner.names[y], name="output")
            found.append(inner.described(name, y.spec))
    return found


def _written(inner: GraphWriter, body: Body) -> list[Any]:
    inner.write(body.operations_for([y for y in body.outputs if y is not None]))
    return _outputs(inner, body)


@rule("Scan")
def _scan(w: GraphWriter, op: Operation, length: str, *values: str) -> list[str]:
    body: Body = op.attrs["body"]
    carries, slices = op.attrs["carries"], op.attrs["slices"]
    inner = GraphWriter(w)
    inputs = list(body.inputs)
    given = []
    for x in inputs[: carries + slices]:
        inner.names[x] = inner.unique("input")
        given.append(inner.described(inner.names[x], x.spec))
    # The rest is the same in each turn: bodies see the values around them.
    inner.names.update(zip(inputs[carries + slices :], values[carries + slices :], strict=True))
    scanned = list(values[carries : carries + slices])
    if not scanned:  # ONNX counts turns by what it goes through
        turns = [w.cast(name, "int64") for name in (w.constant(0, "int64"), length)]
        scanned = [w.node("Range", *turns, w.constant(1, "int64"))]
        given.append(library().helper.make_tensor_value_info(inner.unique("turn"), 7, []))
    outputs = _written(inner, body)
    graph = library().helper.make_graph(inner.nodes, w.unique("scan"), given, outputs)
    direction = int(op.attrs["reverse"])
    return w.nodes_of(
        "Scan",
        [*values[:carries], *scanned],
        len(outputs),
        body=graph,
        num_scan_inputs=len(scanned),
        scan_input_directions=[direction] * len(scanned),
        scan_output_directions=[direction] * (len(outputs) - carries) or None,
    )


@rule("Case")
def _case(w: GraphWriter, op: Operation, index: str, *values: str) -> list[str]:
    branches = op.attrs["branches"]
    if len(branches) != 2:
        raise refused(op, "it has more than two branches")
    graphs = []
    for branch in branches:
        inner = GraphWriter(w)
        inner.names.update(zip(branch.inputs, values, strict=True))
        outputs = _written(inner, branch)
        graphs.append(library().helper.make_graph(inner.nodes, w.unique("branch"), [], outputs))
    is_first = w.node("Equal", w.cast(index, "int64"), w.constant(0, "int64"))
    then, otherwise = graphs
    return w.nodes_of("If", [is_first], len(op.outputs), then_branch=then, else_branch=otherwise)
