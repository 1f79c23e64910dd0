"""Delayed receives: which edges are added, and that no circle can arise from them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.engine.graph import Operation
from laminar.engine.ops.core.basic import identity
from laminar.engine.ops.math.arithmetic import add
from laminar.engine.passes import StepGraph, needed_operations
from laminar.engine.passes.cluster import _runs
from laminar.engine.passes.partition import Part, partition
from laminar.engine.passes.partition_receives import LEAST_BYTES, delay_receives
from laminar.engine.runtime.cost import tensor_bytes
from tests.engine import programs

from ...sampling import examples

ONE, TWO = "/job:localhost/device:cpu:0", "/job:localhost/device:cpu:1"
LARGE = LEAST_BYTES // 4


def cut(fetches: list[Any], feeds: list[Any], *, ordered: bool = False) -> dict[str, Part]:
    return partition(
        StepGraph(fetches, feeds),
        lambda op: TWO if op.device.endswith("cpu:1") else ONE,
        incarnation=lambda name: 1,
        ordered=ordered,
    )


def chain(size: int) -> tuple[list[Operation], dict[str, Part], dict[int, tuple[float, float]]]:
    """x0, x1, x2 from one device are added on the other, one after the other, from 10 on."""
    with eng.Graph().as_default():
        p = eng.placeholder("float32", [size])
        with eng.device("cpu:0"):
            xs = [identity(p, name=f"x{i}") for i in range(3)]
        with eng.device("cpu:1"):
            y: Any = p
            for i, x in enumerate(xs):
                y = add(y, x, name=f"y{i}")
    operations = needed_operations([y], feeds=[p])
    starts = {"x0": 0.0, "x1": 1.0, "x2": 2.0, "y0": 10.0, "y1": 20.0, "y2": 30.0}
    times = {op.id: (starts[op.name], starts[op.name] + 1.0) for op in operations}
    return operations, cut([y], [p]), times


def test_a_receive_waits_for_the_last_operation_that_leaves_time_for_the_transfer() -> None:
    for transfer, expected in ((5.0, {"x1": "y0", "x2": "y1"}), (12.0, {"x2": "y0"}), (25.0, {})):
        _, parts, times = chain(LARGE)

        def seconds(x: Any, to: str, transfer: float = transfer) -> float:
            return transfer

        edges = delay_receives(parts.values(), times, seconds, tensor_bytes)
        found = {parts[TWO].receives[came.id].op.name: op.name for op, came in edges}
        assert found == expected
        for op, came in edges:
            assert came.type == "Recv"
            assert op in came.control_inputs


def test_small_tensors_are_left_alone() -> None:
    _, parts, times = chain(LARGE - 1)
    assert not delay_receives(parts.values(), times, lambda x, to: 0.0, tensor_bytes)


@pytest.mark.slow
@examples(120)
@given(programs.programs(most=20), st.data())
def test_no_circle_arises(program: programs.Program, data: st.DataObject) -> None:
    """Whatever the placement, the times of operations (0 among them) and of transfers.

    Where transfers keep an order, that holds though operations are joined: those between the same
    two transfers are one here.
    """

    def pick(op: Any) -> str:
        return f"cpu:{data.draw(st.integers(0, 1))}"

    with eng.Graph().as_default(), eng.device(pick):
        xs: list[Any] = [eng.placeholder("float64", [2, 2]) for _ in range(2)]
        values = programs.run(program, xs)
    operations = needed_operations(values[2:], feeds=xs)
    transfer = data.draw(st.sampled_from([0.0, 1.0, 5.0]))
    times: dict[int, tuple[float, float]] = {}
    for op in operations:
        arrivals = [0.0]
        for x in op.inputs:
            if x.op.id in times:
                far = x.op.device != op.device
                arrivals.append(times[x.op.id][1] + transfer * far)
        start = max(arrivals) + data.draw(st.sampled_from([0.0, 0.0, 2.0]))
        times[op.id] = start, start + data.draw(st.sampled_from([0.0, 1.0, 4.0]))
    ordered = data.draw(st.booleans())
    parts = cut(values[2:], xs, ordered=ordered)
    delay_receives(
        parts.values(), times, lambda x, to: transfer, lambda x: LEAST_BYTES, ordered=ordered
    )
    sends = {
        op.attrs["tensor_name"]: op
        for part in parts.values()
        for op in part.graph.operations
        if op.type == "Send"
    }
    waits: dict[int, set[int]] = {}
    for part in parts.values():
        inside = [op.type not in ("Send", "Recv") for op in part.graph.operations]
        runs = _runs(part.graph.operations, inside, set(), {}, has_loops=False) if ordered else []
        joined = {op.id: id(run[0]) for run, is_joined in runs if is_joined for op in run}
        numbers = {op.id: joined.get(op.id, id(op)) for op in part.graph.operations}
        for op in part.graph.operations:
            own = numbers[op.id]
            found = {numbers[x.op.id] for x in op.inputs}
            found |= {numbers[c.id] for c in op.control_inputs}
            if op.type == "Recv":
                found.add(id(sends[op.attrs["tensor_name"]]))
            waits[own] = waits.get(own, set()) | found - {own}
    while waits:
        ready = [i for i, before in waits.items() if not before & waits.keys()]
        assert ready, "a circle"
        for i in ready:
            del waits[i]
