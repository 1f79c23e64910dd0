"""What a function computes on a GPU stays there, and is waited for when somebody reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine, ops
from laminar.engine.cuda.interface import GpuFaultError
from laminar.engine.devices import GpuDevice
from laminar.engine.errors import InvalidArgumentError
from tests.engine.runtime.fake_gpu import one_gpu

from .fake_gpu import FakeGpu, _Item

X = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.fixture
def device() -> Iterator[GpuDevice]:
    with one_gpu() as found:
        yield found


@pytest.fixture
def gpu(device: GpuDevice) -> FakeGpu:
    assert isinstance(device.gpu, FakeGpu)
    return device.gpu


def test_steps_do_not_wait(device: GpuDevice, gpu: FakeGpu) -> None:
    w: Any = laminar.Variable(np.ones((2, 1), np.float32))

    @laminar.function
    def step(x: Any) -> Any:
        with laminar.GradientTape() as tape:
            loss = ops.mean(ops.square(ops.matmul(x, w)))
        (dw,) = tape.gradient(loss, [w])
        w.assign_sub(0.01 * dw)
        return loss

    step(X)
    value = np.ones((2, 1)) - 0.01 * 2 * X.T @ (X @ np.ones((2, 1))) / 3
    gpu.log.clear()
    device.xp.waits.clear()
    losses, expected = [], []
    for _ in range(10):
        losses.append(step(X))
        expected.append(np.mean((X @ value) ** 2))
        value = value - 0.01 * 2 * X.T @ (X @ value) / 3
    assert not gpu.log.count("synchronize")
    assert not device.xp.waits
    assert {y.device for y in losses} == {"/device:gpu:0"}
    np.testing.assert_allclose([float(y) for y in losses], expected, rtol=1e-5)
    assert gpu.log.count("synchronize") == 10
    np.testing.assert_allclose(w, value, rtol=1e-5)


READS: list[Any] = [
    pytest.param(lambda y: y.numpy(), id="numpy"),
    pytest.param(np.asarray, id="asarray"),
    pytest.param(lambda y: y.tolist(), id="tolist"),
    pytest.param(lambda y: y.value, id="value"),
]


@pytest.mark.parametrize("read", READS)
def test_reading_waits(read: Callable[[Any], Any], gpu: FakeGpu) -> None:
    y = laminar.function(lambda x: x * 2)(X)
    gpu.log.clear()
    assert (y.shape, y.dtype) == ((3, 2), "float32")
    assert not gpu.log.count("synchronize")
    np.testing.assert_array_equal(read(y), 2 * X)
    assert gpu.log.count("synchronize") == 1
    assert "10." in repr(y)


def test_a_result_goes_on_without_being_read(gpu: FakeGpu) -> None:
    double = laminar.function(lambda x: (x, x * 2))
    y = double(X)[1]
    gpu.log.clear()
    same, z = double(y)
    total: Any = ops.sum(z + y)  # computed where they are
    assert not gpu.log.count("synchronize")
    np.testing.assert_array_equal(same, 2 * X)
    assert float(total) == 6 * X.sum()


def test_what_is_passed_on_is_as_it_was_given(gpu: FakeGpu) -> None:
    same, double = laminar.function(lambda x: (x, x * 2))(X)
    assert same.device == "/device:cpu:0"
    np.testing.assert_array_equal(same, X)
    np.testing.assert_array_equal(double, 2 * X)


def test_a_function_for_the_host_takes_results(gpu: FakeGpu) -> None:
    y = laminar.function(lambda x: x * 2)(X)

    @laminar.function
    def on_host(x: Any) -> Any:
        with laminar.device("cpu:0"):
            return x + 1

    for _ in range(3):
        found = on_host(y)
        assert found.device == "/device:cpu:0"
        np.testing.assert_array_equal(found, 2 * X + 1)


def test_sessions_give_arrays(gpu: FakeGpu) -> None:
    graph = engine.Graph()
    with graph.as_default():
        y = ops.sqrt(engine.constant(X))
    with engine.Session(graph=graph) as session:
        assert type(session.run(y)) is np.ndarray


def test_a_check_that_fails_undoes_the_step_and_names_the_operation(gpu: FakeGpu) -> None:
    w: Any = laminar.Variable(np.zeros((1, 2), np.float32))

    @laminar.function
    def step(indices: Any) -> Any:
        w.assign_add(ops.ones((1, 2)))
        return ops.take(w + X, indices, axis=0)

    np.testing.assert_array_equal(step(np.array([2])), [[5, 6]])
    with pytest.raises(InvalidArgumentError, match=r"index 5.*\[operation 'Gather'") as caught:
        step(np.array([5]))
    assert caught.value.operation is not None
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__
    np.testing.assert_array_equal(w, [[1, 1]])


def test_a_fault_is_told_by_the_result_that_is_read(gpu: FakeGpu) -> None:
    y: Any = laminar.function(lambda x: ops.mean(x * 2))(X)

    def fail() -> None:
        raise ValueError("an illegal memory access")

    gpu._ask(gpu.stream, _Item(fail, (), "a kernel"))
    with pytest.raises(GpuFaultError, match=r"illegal memory.*operation '.*[Mm]ean.*was read") as e:
        float(y)
    assert e.value.operation is not None
    assert e.value.location is not None
    assert e.value.location.filename == __file__
