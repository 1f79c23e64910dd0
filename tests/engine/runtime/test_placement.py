"""Placement: constraints, colocation, costs, memory, and what is said about it."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.devices import CpuDevice, Device, DeviceSet
from laminar.engine.errors import InvalidArgumentError, NotFoundError, ResourceExhaustedError
from laminar.engine.graph import FLOATING, Operation, TensorSpec
from laminar.engine.ops.core import basic
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.linalg import matmul as linalg
from laminar.engine.ops.math import arithmetic
from laminar.engine.ops.math.reduce import reduce_sum
from laminar.engine.ops.text.string import string_length
from laminar.engine.passes import needed_operations
from laminar.engine.runtime import SessionConfig
from laminar.engine.runtime.cost import CostModel, input_bytes, output_bytes
from laminar.engine.runtime.placement import Placement, place
from tests.engine.runtime.fake_gpu import fake_gpu

# In a graph they give symbols, which have an operation.
add: Any = arithmetic.add
identity: Any = basic.identity
matmul: Any = linalg.matmul


@define("TestCpuOnly", dtypes=FLOATING)
def cpu_only(x: TensorSpec) -> TensorSpec:
    """x, with a kernel for one type of device."""
    return x


cpu_only.kernel("cpu")(lambda x: x)


@define("TestSource", dtypes=FLOATING)
def source(*, cost: float = 1.0) -> TensorSpec:
    """A number, at a cost."""
    return TensorSpec((), "float32")


source.reference(lambda xp, *, cost: xp.asarray(cost, "float32"))


@define("TestFill", dtypes=FLOATING)
def fill(*, size: int) -> TensorSpec:
    """`size` float32 zeros."""
    return TensorSpec((size,), "float32")


fill.reference(lambda xp, *, size: xp.zeros(size, "float32"))


class GivenCosts:
    """Times by the type of op and of device."""

    def __init__(self, times: dict[tuple[str, str], float], transfer: float = 0.0) -> None:
        self.times = times
        self.transfer = transfer

    def compute_seconds(self, op: Operation, device: Device) -> float:
        return self.times.get((op.type, device.device_type), 0.0)

    def transfer_seconds(self, nbytes: int, source: Device, target: Device) -> float:
        return 0.0 if source is target else self.transfer


def cpus(n: int = 1, **options: Any) -> list[Device]:
    return [CpuDevice(i, **options) for i in range(n)]


def gpus(n: int = 1) -> list[Device]:
    return [fake_gpu(i) for i in range(n)]


def placed(fetches: list[Any], devices: list[Device], **options: Any) -> dict[str, str]:
    """The short device of each operation by name."""
    found = place_all(fetches, devices, **options)
    return {d.operation: d.device.rpartition("device:")[2] for d in found.decisions}


def place_all(fetches: list[Any], devices: list[Device], **options: Any) -> Placement:
    tensors = [t for t in fetches if not isinstance(t, Operation)]
    targets = [t for t in fetches if isinstance(t, Operation)]
    operations = needed_operations(tensors, targets, options.get("feeds", ()))
    return place(operations, DeviceSet(devices), fetches=tensors, **options)


# Constraints


def test_partial_specs_are_kept_and_completed() -> None:
    with eng.Graph().as_default():
        a = identity(1.0, name="a")
        with eng.device("gpu"):
            b = identity(a, name="b")
        with eng.device("/job:localhost/device:gpu"):
            c = identity(b, name="c")
        with eng.device("gpu:1"):
            d = identity(c, name="d")
        with eng.device("cpu"):
            e = identity(d, name="e")
    found = placed([e], cpus(2) + gpus(2))
    assert [found[n] for n in "bcde"] == ["gpu:0", "gpu:0", "gpu:1", "cpu:0"]


def test_an_op_goes_where_it_has_a_kernel_whatever_it_costs() -> None:
    with eng.Graph().as_default():
        y = cpu_only(identity(1.0), name="y")
    costs = GivenCosts({("TestCpuOnly", "cpu"): 1e9})
    for policy in ("priority", "simulated"):
        found = placed([y], cpus() + gpus(), costs=costs, policy=policy)
        assert found["y"] == "cpu:0"


def test_strings_are_on_the_cpu() -> None:
    with eng.Graph().as_default():
        y = string_length(eng.constant(["ab"]), name="y")
    assert placed([y], cpus() + gpus())["y"] == "cpu:0"


def test_without_a_kernel_there_the_error_lists_who_has_one() -> None:
    with eng.Graph().as_default(), eng.device("gpu:0"):
        y = cpu_only(identity(1.0), name="y")
    with pytest.raises(InvalidArgumentError) as info:
        placed([y], cpus() + gpus())
    text = str(info.value)
    assert "operation 'y' (TestCpuOnly) cannot be placed on '/device:gpu:0'" in text
    assert "has no kernel for TestCpuOnly, which runs on: cpu" in text
    assert f"{__file__}:" in text
    assert "allow_soft_placement" in text


def test_without_any_kernel() -> None:
    with eng.Graph().as_default():
        y = cpu_only(identity(1.0), name="y")
    with pytest.raises(InvalidArgumentError, match=r"'y' .*no device .* kernels: 'y'.*: cpu"):
        placed([y], gpus())


def test_a_device_that_does_not_exist_is_an_error_with_the_reason() -> None:
    with eng.Graph().as_default(), eng.device("gpu:3"):
        y = identity(1.0, name="y")
    devices = DeviceSet(cpus(), {"gpu": "cupy is not installed"})
    operations = needed_operations([y])
    with pytest.raises(InvalidArgumentError, match="no device is named.*gpu:3") as info:
        place(operations, devices)
    assert "cupy is not installed" in str(info.value)
    soft = place(operations, devices, soft=True)
    assert {d.device for d in soft.decisions} == {"/job:localhost/device:cpu:0"}
    assert any("soft placement: /device:gpu:3" in d.reason for d in soft.decisions)


# Colocation


def test_colocation_is_transitive_and_meets_the_kernels_of_all() -> None:
    with eng.Graph().as_default():
        a = cpu_only(1.0, name="a")
        with eng.colocate_with(a):
            b = identity(2.0, name="b")
        with eng.colocate_with(b):
            c = identity(3.0, name="c")
    found = placed([a, b, c], cpus(2) + gpus())
    assert found["a"] == found["b"] == found["c"] == "cpu:0"


def test_pins_that_contradict_a_colocation_are_named() -> None:
    with eng.Graph().as_default():
        one = eng.constant(1.0)
        with eng.device("gpu:0"):
            a = identity(one, name="a")
        with eng.colocate_with(a), eng.device("cpu:0"):
            b = identity(one, name="b")
    with pytest.raises(InvalidArgumentError) as info:
        placed([a, b], cpus() + gpus())
    text = str(info.value)
    for part in ("'a'", "'b'", "'/device:gpu:0'", "'/device:cpu:0'", "colocated", __file__):
        assert part in text
    assert placed([a, b], cpus() + gpus(), soft=True)["a"] == "gpu:0"


def test_what_uses_a_variable_is_where_it_is() -> None:
    with eng.Graph().as_default():
        with eng.device("cpu:1"):
            v = eng.Variable(np.zeros(3, "float32"), name="v")
        with eng.device("cpu:0"):
            step: Any = v.assign_add(np.ones(3, "float32"))
    found = placed([v.initializer, step], cpus(2))
    assert found["v"] == found["v/Assign"] == found[step.op.name] == "cpu:1"


def test_captured_state_is_in_one_place() -> None:
    v = eng.Variable(np.zeros(3, "float32"), name="v")

    @eng.function
    def f(x: Any) -> Any:
        with eng.device("cpu:1"):
            y = v.value + x
        v.assign(y)
        return v.value

    concrete = f.concrete(eng.TensorSpec([3], "float32"))
    feeds = [*concrete.inputs, *concrete.captured_inputs]
    found = place(concrete.operations, DeviceSet(cpus(2)), feeds=feeds)
    kinds = {d.type: d.device for d in found.decisions}
    assert kinds["ReadVariable"] == kinds["Assign"] == cpus(2)[1].name


def test_state_stays_where_it_was_first_put() -> None:
    settled: dict[str, str] = {}
    with eng.Graph().as_default():
        v = eng.Variable(np.zeros(3, "float32"), name="v")
        y = v.value + 1.0
    place_all([v.initializer], cpus(), settled=settled)
    assert settled == {"v": "/job:localhost/device:cpu:0"}
    found = placed([y], cpus() + gpus(), settled=settled)
    assert found["v"] == "cpu:0"


# Costs


@pytest.mark.parametrize(("transfer", "expected"), [(20.0, "gpu:0"), (200.0, "cpu:0")])
def test_an_op_moves_when_that_pays(transfer: float, expected: str) -> None:
    with eng.Graph().as_default():
        with eng.device("cpu"):
            x = identity(np.ones((2, 2), "float32"), name="x")
        y = matmul(x, x, name="y")
    costs = GivenCosts({("MatMul", "cpu"): 100.0, ("MatMul", "gpu"): 10.0}, transfer)
    found = place_all([y], cpus() + gpus(), costs=costs, policy="simulated")
    decision = next(d for d in found.decisions if d.operation == "y")
    assert decision.device.endswith(expected)
    assert "finishes first" in decision.reason


def test_independent_work_is_spread() -> None:
    with eng.Graph().as_default():
        a, b = source(name="a"), source(name="b")
    costs = GivenCosts({("TestSource", "cpu"): 10.0})
    found = placed([a, b], cpus(2), costs=costs, policy="simulated")
    assert (found["a"], found["b"]) == ("cpu:0", "cpu:1")
    assert set(placed([a, b], cpus(2), costs=costs).values()) == {"cpu:0"}  # by priority


def test_a_tensor_is_sent_once() -> None:
    """Its second user on the other device does not pay for the way again."""
    with eng.Graph().as_default():
        with eng.device("cpu:0"):
            x = source(name="x")
        with eng.device("cpu:1"):
            a = identity(x, name="a")
        b = add(x, 1.0, name="b")
    costs = GivenCosts({("Add", "cpu"): 1.0, ("TestSource", "cpu"): 1.0}, transfer=50.0)
    found = place_all([a, b], cpus(2), costs=costs, policy="simulated")
    (reason,) = [d.reason for d in found.decisions if d.operation == "b"]
    # It is there at 51 already, and would be at 101 if it had to cross once more.
    assert "on /job:localhost/device:cpu:1" in reason
    b_ends = {d: float(t) for t, d in _times(reason)}
    assert b_ends["/job:localhost/device:cpu:1"] == pytest.approx(52.0e6)


def _times(reason: str) -> list[tuple[str, str]]:
    parts = reason.removeprefix("finishes first: ").split(", ")
    return [tuple(p.split(" us on ")) for p in parts]  # type: ignore[misc]  # two parts each


def test_placement_repeats() -> None:
    with eng.Graph().as_default():
        x = identity(1.0)
        for i in range(30):
            x = add(x, identity(float(i)))
    first = place_all([x], cpus(3), policy="simulated")
    second = place_all([x], cpus(3), policy="simulated")
    assert [str(d) for d in first.decisions] == [str(d) for d in second.decisions]


def test_the_static_model_grows_with_the_sizes() -> None:
    (device,) = cpus()
    seconds = []
    with eng.Graph().as_default():
        for n in (64, 128, 256):
            a = eng.placeholder("float32", [n, 128])
            y = matmul(a, eng.placeholder("float32", [128, 256]))
            cost = CostModel().cost(y.op, device)
            assert cost.output_bytes == output_bytes(y.op) == 4 * n * 256
            assert input_bytes(y.op) == 4 * (n * 128 + 128 * 256)
            assert cost.source == "static"
            seconds.append(cost.seconds)
    assert 0 < seconds[0] < seconds[1] < seconds[2]


def test_measured_costs_replace_estimates() -> None:
    (device,) = cpus()
    with eng.Graph().as_default():
        y = identity(1.0, name="y")
    model = CostModel()
    model.record("y", "cpu", 2.0)
    model.record("y", "cpu", 4.0, nbytes=123)
    assert model.cost(y.op, device).seconds == 3.0
    assert model.cost(y.op, device).source == "measured"
    assert model.cost(y.op, device).output_bytes == 123
    assert model.cost(y.op, gpus()[0]).source == "static"
    found = place_all([y], cpus(2), costs=model, policy="simulated")
    assert found.times[y.op.id][1] == pytest.approx(3.0, rel=0.01)


@define("TestSlower", dtypes=FLOATING)
def slower(x: TensorSpec) -> TensorSpec:
    """x, after 30 ms: no estimate from shapes knows of that."""
    return x


@slower.reference
def _slower(xp: Any, x: Any) -> Any:
    time.sleep(0.03)
    return x


def test_what_a_traced_step_measures_changes_later_placements() -> None:
    """Two operations that seem cheap stay together, until they are known to be slow."""
    config = SessionConfig(device_count={"cpu": 2}, placement="simulated")
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [], name="x")
        base = identity(x, name="base")
        slow = [slower(base, name=f"slow{i}") for i in range(2)]
        y = add(*slow, name="y")
        z = identity(y, name="z")
        with eng.Session(config=config) as session:
            times: dict[str, list[float]] = {}
            for _ in range(3):
                told = eng.RunMetadata()
                assert session.run(y, {x: 1.0}, eng.RunOptions(trace=True), told) == 2.0
                for part in told.step_stats:
                    for node in part.nodes:
                        times.setdefault(node.name, []).append(node.duration_us * 1e-6)
            before = {d.operation: d.device for d in session.placement.decisions}  # type: ignore[union-attr]  # it has run
            assert session.run(z, {x: 1.0}) == 2.0
            after = {d.operation: d.device for d in session.placement.decisions}  # type: ignore[union-attr]  # it has run
            costs: CostModel = vars(session._engine)["_machine"].costs
    assert before["slow0"] == before["slow1"]
    assert after["slow0"] != after["slow1"]
    (device,) = cpus()
    for op in (*slow, y):
        cost = costs.cost(op.op, device)
        mean = sum(times[op.op.name]) / len(times[op.op.name])
        assert cost.source == "measured"
        assert mean / 2 < cost.seconds < mean * 2
    assert costs.cost(z.op, device).source == "static"


# Memory


def test_live_tensors_are_spread_over_limited_devices() -> None:
    limited = cpus(2, limit_bytes=1_000_000)
    with eng.Graph().as_default():
        a, b = fill(size=200_000, name="a"), fill(size=200_000, name="b")
        total = reduce_sum(a), reduce_sum(b)
    for policy in ("priority", "simulated"):
        found = placed(list(total), limited, policy=policy)
        assert {found["a"], found["b"]} == {"cpu:0", "cpu:1"}
    with pytest.raises(ResourceExhaustedError, match="'b' .* finds no room.*holds 800000 of"):
        placed([a, b], limited[:1])


def test_a_tensor_that_is_no_longer_needed_makes_room() -> None:
    with eng.Graph().as_default():
        x = fill(size=100_000)
        for _ in range(20):
            x = add(x, x)
        y = reduce_sum(x)
    assert set(placed([y], cpus(1, limit_bytes=1_000_000)).values()) == {"cpu:0"}


# What is said


def test_decisions_have_reasons_and_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    config = SessionConfig(device_count={"cpu": 2}, log_device_placement=True)
    with eng.Graph().as_default():
        with eng.device("cpu:1"):
            a = identity(1.0, name="a")
        y = add(a, 1.0, name="y")
        with eng.Session(config=config) as session, caplog.at_level(logging.INFO):
            assert session.run(y) == 2.0
            assert session.placement is not None
            reasons = {d.operation: d.reason for d in session.placement.decisions}
    assert reasons["a"] == "pinned to /device:cpu:1"
    assert reasons["y"] == "first of 2 by priority"
    assert "a (Identity): /job:localhost/device:cpu:1: pinned to /device:cpu:1" in caplog.messages


def test_a_policy_has_a_name() -> None:
    with eng.Graph().as_default():
        y = identity(1.0)
    with pytest.raises(InvalidArgumentError, match="must be one of priority, simulated"):
        place_all([y], cpus(), policy="random")


@pytest.mark.parametrize("soft", [False, True])
def test_a_type_of_devices_that_nobody_knows_is_an_error(soft: bool) -> None:
    """Soft placement is for devices that a machine happens not to have."""
    with eng.Graph().as_default():
        with eng.device("/device:nosuch:0"):
            y = eng.constant(2.0) * 3.0
        with eng.device("/device:gpu:77"):
            z = eng.constant(2.0) * 3.0
        config = SessionConfig(allow_soft_placement=soft)
        with eng.Session(config=config) as session:
            with pytest.raises(NotFoundError, match="there is no device type 'nosuch'"):
                session.run(y)
            if soft:
                assert session.run(z) == 6.0

    @eng.function
    def traced(x: Any) -> Any:
        with eng.device("/device:nosuch:0"):
            return x * 2.0

    with pytest.raises(NotFoundError, match="there is no device type 'nosuch'"):
        traced(eng.constant(1.0))


def device_of(session: Any, name: str) -> str:
    found: list[str] = [d.device for d in session.placement.decisions if d.operation == name]
    return found[0]


def test_colocation_with_what_the_step_does_not_run() -> None:
    """With what is pinned, with what stands by that, and with a variable, once it has a place."""
    config = SessionConfig(device_count={"cpu": 3})
    with eng.Graph().as_default() as graph:
        with eng.device("/cpu:2"):
            x = eng.constant(1.0, name="x")
        with graph.colocate_with(x):
            y = eng.constant(2.0, name="y")
        with eng.device("/cpu:1"):
            v = eng.Variable(np.float32(1.0), name="v")
        for name, other in (("by_x", x), ("by_y", y), ("by_v", v)):
            with graph.colocate_with(other):
                arithmetic.square(eng.placeholder("float32", [], name=f"{name}_in"), name=name)
        with eng.Session(config=config) as session:
            for name, place in (("by_x", "cpu:2"), ("by_y", "cpu:2"), ("by_v", "cpu:1")):
                assert session.run(f"{name}:0", {f"{name}_in:0": 3.0}) == 9.0
                assert device_of(session, name).endswith(place)


def test_a_session_tells_what_operations_cost_and_devices_hold() -> None:
    config = SessionConfig(memory_limit_bytes={"cpu": 1 << 26}, jit_compile=False)
    with eng.Graph().as_default(), eng.Session(config=config) as session:
        a, b = eng.placeholder("float32", [64, 128]), eng.placeholder("float32", [128, 256])
        product: Any = a @ b
        large: Any = eng.placeholder("float32", [640, 128]) @ b
        found = session.cost(product)
        assert (found.input_bytes, found.output_bytes) == (4 * (64 * 128 + 128 * 256), 65536)
        assert found.source == "static"
        assert 0 < found.seconds < session.cost(large.op.name, "/device:CPU:0").seconds
        feeds = {a: np.ones((64, 128)), b: np.ones((128, 256))}
        times = []
        for _ in range(3):
            metadata = eng.RunMetadata()
            options = eng.RunOptions(trace=True)
            session.run(product, feeds, options=options, run_metadata=metadata)
            times.append(next(n.seconds for n in metadata.cost_graph if n.name == product.op.name))
        found = session.cost(product.op)
        assert found.source == "measured"
        assert found.seconds == pytest.approx(float(np.mean(times)))
        with pytest.raises(NotFoundError, match="no device is named"):
            session.cost(product, "cpu:9")
        (before,) = session.memory_stats().values()
        kept = session.run(product, feeds)
        (after,) = session.memory_stats().values()
        assert before.limit_bytes == 1 << 26
        assert after.peak_bytes - before.bytes_in_use >= found.input_bytes + kept.nbytes
        assert after.bytes_in_use == before.bytes_in_use
    with eng.Graph().as_default(), eng.Session() as session:
        assert session.memory_stats() == {}  # nobody counts
