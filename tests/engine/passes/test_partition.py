"""Partition: the exact parts of small graphs; what crosses, crosses once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.engine.errors import InternalError, InvalidArgumentError
from laminar.engine.graph import GraphTensor, Operation
from laminar.engine.ops.core import basic
from laminar.engine.ops.math import arithmetic
from laminar.engine.passes import StepGraph, needed_operations
from laminar.engine.passes.order import in_order
from laminar.engine.passes.partition import Part, partition
from tests.engine import programs

from ...sampling import examples

# In a graph they give symbols, which have an operation.
add: Any = arithmetic.add
identity: Any = basic.identity
ONE, TWO, THREE = (f"/job:localhost/device:cpu:{i}" for i in range(3))


def cut(fetches: list[Any], **options: Any) -> dict[str, Part]:
    """Cut by the device that operations are pinned to; what is pinned nowhere is on ONE."""
    tensors = [t for t in fetches if isinstance(t, GraphTensor)]
    targets = [t for t in fetches if isinstance(t, Operation)]
    step = StepGraph(tensors, options.pop("feeds", ()), targets)

    def location(op: Operation) -> str:
        return f"/job:localhost{op.device}" if op.device else ONE

    location = options.pop("location", location)
    return partition(step, location, incarnation=lambda name: 7, **options)


def types(part: Part) -> Counter[str]:
    return Counter(op.type for op in part.graph.operations)


def test_one_data_and_one_control_edge() -> None:
    with eng.Graph().as_default() as graph:
        p = eng.placeholder("float32", [])
        a, c = identity(p, name="a"), identity(p, name="c")
        with eng.device("cpu:1"), eng.control_dependencies([c]):
            b = identity(a, name="b")
    before = graph.as_graph_def()
    parts = cut([b], feeds=[p])
    assert set(parts) == {ONE, TWO}
    assert types(parts[ONE]) == {"Placeholder": 1, "Identity": 2, "Const": 1, "Send": 2}
    assert types(parts[TWO]) == {"Recv": 2, "Identity": 2}
    dummy = parts[ONE].graph.get_operation_by_name("_done_c")
    assert dummy.outputs[0].shape == (0,)
    assert [op.name for op in dummy.control_inputs] == ["c"]
    copy = parts[TWO].graph.get_operation_by_name("b")
    assert [op.name for op in copy.control_inputs] == ["_after_c"]
    assert copy.inputs[0].op.type == "Recv"
    assert copy.inputs[0].op.attrs["send_device_incarnation"] == 7
    assert copy.location == b.op.location
    assert graph.as_graph_def() == before  # the whole graph is as it was
    assert [op.type for op in parts[ONE].targets] == ["Send", "Send"]
    assert [(i, t.name) for i, t in parts[ONE].feeds] == [(0, "_arg_Placeholder_0:0")]
    assert [(i, t.name) for i, t in parts[TWO].fetches] == [(0, "b:0")]


def test_a_tensor_crosses_once_to_each_device() -> None:
    with eng.Graph().as_default():
        p = eng.placeholder("float32", [])
        x = identity(p, name="x")
        with eng.device("cpu:1"):
            b, c = identity(x, name="b"), add(x, x, name="c")
        with eng.device("cpu:2"):
            d = identity(x, name="d")
    parts = cut([b, c], feeds=[p])
    assert types(parts[ONE])["Send"] == types(parts[TWO])["Recv"] == 1
    received = {
        t.op for y in (b, c) for t in parts[TWO].graph.get_operation_by_name(y.op.name).inputs
    }
    assert len(received) == 1
    parts = cut([b, c, d], feeds=[p])
    assert types(parts[ONE])["Send"] == 2
    assert types(parts[TWO])["Recv"] == types(parts[THREE])["Recv"] == 1
    names = [op.attrs["tensor_name"] for op in parts[ONE].graph.operations if op.type == "Send"]
    assert len(set(names)) == 2


def test_what_is_fed_does_not_cross() -> None:
    with eng.Graph().as_default():
        p = eng.placeholder("float32", [])
        a = identity(p)
        with eng.device("cpu:1"):
            b = add(p, a, name="b")
    parts = cut([a, b], feeds=[p, a])
    assert set(parts) == {TWO}
    assert sorted(i for i, _ in parts[TWO].feeds) == [0, 1]


def test_a_constant_is_copied_unless_it_is_pinned() -> None:
    with eng.Graph().as_default():
        free = eng.constant(1.0)
        with eng.device("cpu:0"):
            pinned = eng.constant(2.0)
        with eng.device("cpu:1"):
            y = add(free, pinned)
    parts = cut([y])
    assert types(parts[ONE]) == {"Const": 1, "Send": 1}
    assert types(parts[TWO]) == {"Const": 1, "Recv": 1, "Add": 1}


def test_targets_without_outputs_are_kept() -> None:
    with eng.Graph().as_default():
        with eng.device("cpu:1"):
            a = identity(1.0)
        with eng.control_dependencies([a]):
            done = eng.no_op("done")
    parts = cut([done])
    assert [op.name for op in parts[ONE].targets] == ["done"]
    assert types(parts[TWO]) == {"Const": 2, "Identity": 1, "Send": 1}


def test_the_policy_decides_what_a_location_is() -> None:
    """By task first, then by device: a cut in two levels."""
    with eng.Graph().as_default():
        with eng.device("/job:worker/task:0/cpu:0"):
            a = identity(1.0, name="a")
        with eng.device("/job:worker/task:0/cpu:1"):
            b = identity(a, name="b")
        with eng.device("/job:worker/task:1/cpu:0"):
            c = add(a, b, name="c")

    def task(op: Operation) -> str:
        return op.device.rpartition("/device:")[0]

    by_task = cut([c], location=task)
    assert set(by_task) == {"/job:worker/task:0", "/job:worker/task:1"}
    assert types(by_task["/job:worker/task:0"])["Send"] == 2
    by_device = cut([c], location=lambda op: op.device)
    assert len(by_device) == 3
    assert types(by_device["/job:worker/task:0/device:cpu:0"])["Send"] == 2


def test_halves_travel_where_that_is_allowed() -> None:
    with eng.Graph().as_default():
        p, q = eng.placeholder("float32", [2]), eng.placeholder("float64", [2])
        a, b = identity(p), identity(q)
        with eng.device("cpu:1"):
            y = [identity(a, name="y"), identity(b, name="z")]
    parts = cut(y, feeds=[p, q], lossy=lambda x, source, target: (source, target) == (ONE, TWO))
    assert types(parts[ONE])["UpperHalf"] == types(parts[TWO])["FromUpperHalf"] == 1
    sent = [op.inputs[0].dtype for op in parts[ONE].graph.operations if op.type == "Send"]
    assert sorted(sent) == ["float64", "uint16"]


def test_transfers_keep_one_order_where_that_is_asked_for() -> None:
    """Parts that join operations could come to wait for each other otherwise."""
    with eng.Graph().as_default():
        a = identity(1.0, name="a")
        with eng.device("cpu:1"):
            b = identity(a, name="b")
        c = identity(b, name="c")
        with eng.device("cpu:1"):
            d = identity(c, name="d")
        e = identity(d, name="e")

    def waits(part: Part) -> dict[str, list[str]]:
        return {op.name: [c.name for c in op.control_inputs] for op in part.graph.operations}

    parts = cut([e], ordered=True)
    found = waits(parts[ONE])
    assert found["_recv_b_0"] == found["_send_c_0"] == ["_send_a_0"]
    assert found["_recv_d_0"] == ["_send_c_0"]
    assert waits(parts[TWO])["_recv_a_0"] == []
    assert not any(any(waits(part).values()) for part in cut([e]).values())


def test_a_handle_never_crosses() -> None:
    with eng.Graph().as_default():
        v = eng.Variable(1.0, name="v")
        with eng.device("cpu:1"):
            y = eng.lookup("ReadVariable")(v.handle, shape=[], dtype="float32")
    with pytest.raises(InternalError, match="the handle v:0 is used on"):
        cut([y])


def test_a_circle_is_noticed() -> None:
    with eng.Graph().as_default():
        a = identity(1.0, name="a")
        b = identity(a, name="b")
        a.op.add_control_input(b.op)
    with pytest.raises(InvalidArgumentError, match="wait for each other in a cycle: 'a'"):
        in_order(needed_operations([b]))


@examples(60)
@given(programs.programs(), st.data())
def test_any_cut_is_complete_and_acyclic(program: programs.Program, data: st.DataObject) -> None:
    """Every Send has one Recv, in a part that needs it; parts and pairs together have an order."""
    with eng.Graph().as_default():
        xs: list[Any] = [eng.placeholder("float64", [2, 2]) for _ in range(2)]
        values = programs.run(program, xs)
    operations = needed_operations(values[2:], feeds=xs)
    places = {op.id: data.draw(st.sampled_from([ONE, TWO, THREE])) for op in operations}
    parts = cut(values[2:], feeds=xs, location=lambda op: places[op.id], ordered=True)
    sends, recvs = {}, {}
    for location, part in parts.items():
        for op in part.graph.operations:
            if op.type == "Send":
                assert (op.attrs["send_device"], op.device) == (location, location)
                sends[op.attrs["tensor_name"]] = op
            elif op.type == "Recv":
                assert op.attrs["recv_device"] == location
                assert op.outputs[0].consumers()
                recvs[op.attrs["tensor_name"]] = op
    assert sends.keys() == recvs.keys()
    crossing = {
        (id(x), places[op.id])
        for op in operations
        for x in op.inputs
        if x.op.id in places and x.op.type != "Const" and places[x.op.id] != places[op.id]
    }
    assert len(sends) == len(crossing)
    waits = {
        id(op): {id(x.op) for x in op.inputs} | {id(c) for c in op.control_inputs}
        for part in parts.values()
        for op in part.graph.operations
    }
    for name, came in recvs.items():
        waits[id(came)].add(id(sends[name]))
    while waits:  # an order exists
        ready = [i for i, before in waits.items() if not before & waits.keys()]
        assert ready
        for i in ready:
            del waits[i]


def test_shapes_that_were_learned_later_are_kept() -> None:
    with eng.Graph().as_default():
        p = eng.placeholder("float32", None)
        a = identity(p)
        a.set_shape([3, None])
        with eng.device("cpu:1"):
            b = identity(a, name="b")
    parts = cut([b], feeds=[p])
    (came,) = [op for op in parts[TWO].graph.operations if op.type == "Recv"]
    assert came.outputs[0].shape == (3, None)
    assert np.asarray(came.attrs["shape"]).shape == (2,)
