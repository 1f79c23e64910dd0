"""Eager code on devices: where ops are computed, where results and variables lie, and back.

Tests run on a second CPU, on a device of a type of its own, and on a GPU whose arrays refuse to be
mixed with NumPy's.
"""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine as eng
from laminar import ops
from laminar.engine.devices import CpuDevice
from laminar.engine.errors import InvalidArgumentError, NotFoundError
from laminar.engine.graph import FLOATING, TensorSpec
from laminar.engine.ops.core.registry import define
from tests.engine.cuda.strict_cupy import Array
from tests.engine.runtime.fake_gpu import one_gpu, registered, two_cpus

HOST = "/device:cpu:0"


def f32(values: Any) -> Any:
    return np.array(values, "float32")


ran: list[str] = []


@define("PlaceTestDouble", dtypes=FLOATING)
def double(x: TensorSpec) -> TensorSpec:
    """2 x, which says where it is computed."""
    return x


@double.kernel("cpu")
def _double_cpu(x: Any) -> Any:
    ran.append("cpu")
    return 2 * x


@double.kernel("toy")
def _double_toy(x: Any) -> Any:
    ran.append("toy")
    return 2 * x


@define("PlaceTestFails")
def fails(x: TensorSpec) -> TensorSpec:
    """Raises."""
    return x


@fails.reference
def _fails(xp: Any, x: Any) -> Any:
    raise KeyError("no")


class ToyDevice(CpuDevice):
    """A device of a type of its own."""

    device_type = "toy"


@pytest.fixture(params=["cpu:1", "toy:0", "gpu:0"])
def there(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a device that is not the first CPU."""
    found = {
        "cpu:1": two_cpus,
        "toy:0": lambda: registered("toy", lambda index, count, limit: ToyDevice(index)),
        "gpu:0": one_gpu,
    }
    with found[request.param]():
        yield f"/device:{request.param}"


def test_an_unknown_device_is_an_error_that_lists_those_there_are() -> None:
    with (
        pytest.raises(NotFoundError, match=r"/device:gpu:7.*there are /job:localhost/device:cpu:0"),
        eng.device("/device:gpu:7"),
    ):
        pytest.fail("the block is not entered")
    assert ops.ones((2, 2)).device == HOST
    with pytest.raises(NotFoundError, match="cpu:1"), eng.device("cpu:1"):
        pass
    with pytest.raises(InvalidArgumentError, match="not a device name"), eng.device("two words"):
        pass


def test_a_graph_may_name_any_device() -> None:
    with eng.Graph().as_default(), eng.device("/device:gpu:7"):
        x: Any = eng.constant(1.0) * 2.0
        v: Any = eng.Variable(1.0)
    assert x.device == v.device == "/device:gpu:7"


def test_what_is_made_in_a_scope_lies_there(there: str) -> None:
    array = np.arange(6, dtype="float32").reshape(2, 3)
    with eng.device(there):
        made = [
            ops.ones((2, 2)),
            ops.convert_to_tensor(array),
            ops.convert_to_tensor([[1.0, 2.0]]),
            ops.matmul(array, array.T),
            laminar.random.normal((3, 4), seed=1),
        ]
        spread = ops.split(ops.convert_to_tensor(array), 3, axis=1)
    assert {x.device for x in (*made, *spread)} == {there}
    np.testing.assert_array_equal(made[3].numpy(), array @ array.T)
    np.testing.assert_array_equal(made[4], laminar.random.normal((3, 4), seed=1))
    np.testing.assert_array_equal(np.concatenate([x.numpy() for x in spread], axis=1), array)
    assert ops.ones((2, 2)).device == HOST


def test_inputs_are_copied_and_results_stay(there: str) -> None:
    here: Any = ops.convert_to_tensor(f32([1, 2]))
    with eng.device(there):
        y: Any = here + 1
        with eng.device("cpu:0"):
            back: Any = y + here
            with eng.device(there):
                again: Any = back * y
        with eng.device(None):
            hidden = here * here
    assert [x.device for x in (here, y, back, again, hidden)] == [HOST, there, HOST, there, HOST]
    assert (y * here).device == there  # where its first input lies that is on a device
    assert ops.concatenate([here, y]).device == there
    np.testing.assert_array_equal(again, f32([3 * 2, 5 * 3]))
    np.testing.assert_array_equal(ops.concatenate([here, y]), f32([1, 2, 2, 3]))


def test_values_come_back(there: str) -> None:
    array = np.arange(4, dtype="float32").reshape(2, 2)
    with eng.device(there):
        x: Any = ops.convert_to_tensor(array)
        scalar: Any = ops.convert_to_tensor(2.5)
    for found in (
        x.numpy(),
        np.asarray(x),
        np.from_dlpack(x),
        x.value,
        np.stack([row.numpy() for row in x]),
        copy.deepcopy(x).numpy(),
        pickle.loads(pickle.dumps(x)).numpy(),
    ):
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, array)
    assert (x.tolist(), len(x), x.shape, x.dtype) == (array.tolist(), 2, (2, 2), "float32")
    assert (float(scalar), bool(scalar), f"{scalar:.1f}") == (2.5, True, "2.5")
    assert "2.5" in repr(scalar)
    x.numpy()[:] = 9
    np.testing.assert_array_equal(x, array)


def test_kernels_of_the_device_run() -> None:
    with registered("toy", lambda index, count, limit: ToyDevice(index)):
        ran.clear()
        with eng.device("toy:0"):
            y = double(ops.ones((2,)))
        double(y)
        double(ops.ones((2,)))
        with eng.device("cpu:0"):
            double(y)
    assert ran == ["toy", "toy", "cpu", "cpu"]


def test_what_a_device_cannot_do_the_host_does(there: str) -> None:
    with eng.device(there):
        words: Any = eng.lookup("StringUpper")(ops.convert_to_tensor(["a", "b"]))
        queue = eng.FIFOQueue(2, ["float32"], shapes=[()])
        queue.enqueue(ops.convert_to_tensor(3.0))
        taken: Any = queue.dequeue()
    assert words.tolist() == [b"A", b"B"]
    assert float(taken) == 3.0
    if there == "/device:gpu:0":
        assert words.device == HOST


def test_errors_name_the_op(there: str) -> None:
    with eng.device(there):
        x = ops.ones((2, 3))
        with pytest.raises(ValueError, match="MatMul"):
            eng.lookup("MatMul")(x, x)
        with pytest.raises(InvalidArgumentError, match=r"PlaceTestFails\(float32\[2, 3\]\): 'no'"):
            fails(x)


def test_variables_lie_where_they_are_made(there: str) -> None:
    with eng.device(there):
        v: Any = eng.Variable(f32([1, 2, 3]))
        w: Any = eng.Variable(lambda shape, dtype: ops.ones(shape, dtype), shape=(2,))
    here: Any = eng.Variable(f32([1, 2, 3]))
    assert (v.device, w.device, here.device) == (there, there, HOST)
    assert v.value.device == (v + 1.0).device == there
    updated = v.assign_add(f32([1, 1, 1]))
    v.assign_sub(here)
    assert updated.device == there
    np.testing.assert_array_equal(v.numpy(), f32([1, 1, 1]))
    v.assign(here)
    with eng.device(there):
        here.assign_add(v)  # it stays on the host
        assert here.value.device == HOST
    np.testing.assert_array_equal(here.numpy(), f32([2, 4, 6]))
    np.testing.assert_array_equal(copy.deepcopy(v).numpy(), v.numpy())
    with eng.device("cpu:0"):
        v.assign(f32([7, 8, 9]))
    assert v.value.device == there
    np.testing.assert_array_equal(v, f32([7, 8, 9]))


def test_gradients_go_across(there: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 4)).astype("float32"), rng.normal(size=(4, 2)).astype("float32")
    with eng.device(there):
        w: Any = eng.Variable(b)
    x: Any = ops.convert_to_tensor(a)
    with eng.GradientTape() as tape:
        tape.watch(x)
        h = ops.matmul(x, w)
        with eng.device("cpu:0"):
            y = ops.sum(ops.tanh(h) * 2.0)
    dx, dw = tape.gradient(y, [x, w])
    dh = 2 * (1 - np.tanh(a @ b) ** 2)
    np.testing.assert_allclose(dx, dh @ b.T, rtol=1e-5)
    np.testing.assert_allclose(dw, a.T @ dh, rtol=1e-5)


def test_each_thread_has_its_own_scope(there: str) -> None:
    found: list[str] = []
    with eng.device(there):
        thread = threading.Thread(target=lambda: found.append(ops.ones((1,)).device))
        thread.start()
        thread.join()
    assert found == [HOST]


def test_loops_and_conditions(there: str) -> None:
    with eng.device(there):
        x: Any = ops.convert_to_tensor(np.arange(4, dtype="float32"))
        last, sums = ops.scan(lambda s, e: (s + e, s * e), ops.convert_to_tensor(np.float32(1)), x)
        (grown,) = ops.while_loop(lambda v: ops.sum(v) < 100, lambda v: (v * 2,), (x,))
        chosen = ops.cond(ops.sum(x) > 0, lambda: x + 1, lambda: x)
    np.testing.assert_array_equal(last, np.float32(7))
    np.testing.assert_array_equal(sums, f32([0, 1, 4, 12]))
    np.testing.assert_array_equal(grown, f32([0, 32, 64, 96]))
    np.testing.assert_array_equal(chosen, f32([1, 2, 3, 4]))


# Functions


def test_functions_give_what_lies_in_the_scope(there: str) -> None:
    f = eng.function(lambda x: ops.tanh(x) * 2.0 + 1.0)
    array = f32([[1, 2], [3, 4]])
    expected = np.tanh(array) * 2 + 1
    with eng.device(there):
        x = ops.convert_to_tensor(array)
        for given in (array, x, x):
            found = f(given)
            assert found.device == there
            np.testing.assert_allclose(found, expected, rtol=1e-6)
        graph = f.concrete(x).graph
    assert {op.device for op in graph.operations if op.type == "Tanh"} == {there}
    # Outside of it, what a GPU computed stays there until it is read.
    assert f(x).device == f(array).device == (there if "gpu" in there else HOST)
    np.testing.assert_allclose(f(x), expected, rtol=1e-6)


def test_functions_leave_variables_where_they_are(there: str) -> None:
    with eng.device(there):
        v: Any = eng.Variable(f32([1, 2]))

    @eng.function
    def step(x: Any) -> Any:
        v.assign_add(x)
        return v * 2.0

    for i in range(3):
        np.testing.assert_array_equal(step(f32([1, 1])), 2 * (f32([2, 3]) + i))
    assert v.device == v.value.device == there
    if there == "/device:gpu:0":
        assert isinstance(v.store.value, Array)
    np.testing.assert_array_equal(v.numpy(), f32([4, 5]))


def test_variables_that_a_function_makes_lie_in_its_scope(there: str) -> None:
    made: list[Any] = []

    @eng.function
    def f(x: Any) -> Any:
        if not made:
            made.append(eng.Variable(f32([1, 2])))
            with eng.device(there):
                made.append(eng.Variable(f32([3, 4])))
        return x + made[0] + made[1]

    np.testing.assert_array_equal(f(f32([1, 1])), f32([5, 7]))
    assert [v.device for v in made] == [HOST, there]


def test_a_model_trains_in_a_scope(there: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(32, 4)).astype("float32"), rng.normal(size=(32, 1)).astype("float32")

    def trained() -> tuple[Any, Any]:
        laminar.utils.set_random_seed(3)
        model = laminar.Sequential([laminar.layers.Dense(8, "tanh"), laminar.layers.Dense(1)])
        model.compile(laminar.optimizers.Adam(0.01), "mse", metrics=["mae"])
        history = model.fit(x, y, batch_size=8, epochs=2, verbose=0).history
        loss = float(model.train_on_batch(ops.convert_to_tensor(x), y)[0])
        predicted = model.predict(x, verbose=0)
        return model, [history["loss"], history["mae"], loss, predicted, model(x)]

    _, expected = trained()
    with eng.device(there):
        model, found = trained()
    assert {v.device for v in model.weights} == {there}
    assert found[-1].device == there
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_a_model_is_loaded_in_a_scope(there: str, tmp_path: Path) -> None:
    model = laminar.Sequential(
        [laminar.layers.Input((3,)), laminar.layers.Dense(4, "tanh"), laminar.layers.Dense(2)]
    )
    model.save(tmp_path / "model.keras")
    x = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
    with eng.device(there):
        found = laminar.saving.load_model(tmp_path / "model.keras")
        y = found(x)
    assert {v.device for v in found.weights} == {y.device} == {there}
    np.testing.assert_allclose(y, model(x), rtol=1e-5)


def test_a_loop_by_hand_trains_in_a_scope(there: str) -> None:
    def trained() -> list[Any]:
        loss: Any = None
        v: Any = eng.Variable(f32([[1.0], [2.0]]))
        optimizer = laminar.optimizers.SGD(0.1, momentum=0.9)
        x, y = f32([[1, 2], [3, 4]]), f32([[1], [0]])
        for _ in range(3):
            with eng.GradientTape() as tape:
                loss = ops.mean(ops.square(ops.matmul(x, v) - y))
            optimizer.apply_gradients([(tape.gradient(loss, v), v)])
        return [v.device, v.numpy(), float(loss)]

    expected = trained()
    with eng.device(there):
        found = trained()
    assert found[0] == there
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
    assert found[2] == pytest.approx(expected[2], rel=1e-5)


def test_rows_of_a_variable_are_written_where_it_lies() -> None:
    with two_cpus():
        with eng.device("cpu:1"):
            v: Any = eng.Variable(np.zeros((3, 2), "float32"))
        eng.scatter_update(v, [1], np.ones((1, 2), "float32"))
        assert v.value.device == "/device:cpu:1"
        np.testing.assert_array_equal(v.numpy(), [[0, 0], [1, 1], [0, 0]])
