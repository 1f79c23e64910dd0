"""Calls of functions with RunOptions, and on devices of their own."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.elementary import tanh


def test_a_trace_has_one_entry_for_each_operation() -> None:
    w = eng.Variable(np.ones((2, 2), np.float32))

    @eng.function
    def f(x: Any) -> Any:
        w.assign_add(x)
        return tanh(matmul(x, w.value))

    x = np.ones((2, 2), np.float32)
    expected = np.tanh(np.full((2, 2), 4.0))
    metadata = eng.RunMetadata()
    found = f.with_options(eng.RunOptions(trace=True), metadata)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    (device,) = metadata.step_stats
    assert device.device.endswith("cpu:0")
    types = sorted(node.type for node in device.nodes)
    assert types.count("MatMul") == types.count("Tanh") == types.count("AssignAdd") == 1
    assert all(node.duration_us >= 0 for node in device.nodes)
    assert metadata.cost_graph
    plain = eng.RunMetadata()
    f.with_options(eng.RunOptions(), plain)(x)
    assert not plain.step_stats
    graphs = eng.RunMetadata()
    f.with_options(eng.RunOptions(output_partition_graphs=True), graphs)(x)
    assert len(graphs.partition_graphs) == 1
    assert f.trace_count == 1
    assert w.numpy()[0, 0] == 4.0


def test_a_limit_of_time() -> None:
    queue = eng.FIFOQueue(3, ["float32"], shapes=[[]])
    f = eng.function(lambda x: queue.dequeue() + x)
    begin = time.perf_counter()
    with pytest.raises(DeadlineExceededError, match="longer than 100 ms"):
        f.with_options(eng.RunOptions(timeout_in_ms=100))(np.float32(1))
    assert time.perf_counter() - begin < 1.0
    queue.enqueue(np.float32(2))
    assert f(np.float32(1)) == 3.0
    queue.enqueue(np.float32(5))
    assert f.with_options(eng.RunOptions(timeout_in_ms=10_000))(np.float32(1)) == 6.0


def test_calls_with_options_are_no_part_of_others() -> None:
    f = eng.function(lambda x: x * 2.0)
    call = f.with_options(eng.RunOptions(trace=True))
    x = eng.constant(1.0)
    with pytest.raises(FailedPreconditionError, match="runs by itself"):
        eng.function(lambda x: call(x))(x)
    with eng.GradientTape(), pytest.raises(FailedPreconditionError, match="runs by itself"):
        call(x)
    with pytest.raises(InvalidArgumentError, match="inter_op_pool"):
        f.with_options(eng.RunOptions(inter_op_pool=1))(x)


def test_devices_of_its_own() -> None:
    machine = eng.Machine(eng.SessionConfig(device_count={"cpu": 2}))

    @eng.function(machine=machine)
    def f(x: Any) -> Any:
        with eng.device("/device:cpu:1"):
            y = tanh(x)
        return y + 1.0

    x = np.ones(3, np.float32)
    np.testing.assert_allclose(f(x), np.tanh(x) + 1, rtol=1e-6)
    metadata = eng.RunMetadata()
    f.with_options(eng.RunOptions(trace=True), metadata)(x)
    ran = {node.type: d.device for d in metadata.step_stats for node in d.nodes}
    assert ran["Tanh"].endswith("cpu:1")
    assert ran["Add"].endswith("cpu:0")
