"""Data parallelism: what several devices train is what one device trains."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, optimizers
from laminar.distribute import DataParallel
from laminar.distribute.asynchronous import AsyncStep
from laminar.engine.errors import InvalidArgumentError, LaminarError, NotFoundError
from laminar.engine.runtime import PartitionedPlan, Plan

WAIT = 60.0
rng = np.random.default_rng(0)
X = rng.normal(size=(103, 20)).astype("float32")
Y = rng.integers(0, 3, 103)
W = rng.uniform(size=103).astype("float32")


def dense(dtype: str = "float32", **options: Any) -> laminar.Sequential:
    laminar.set_random_seed(3)
    return laminar.Sequential(
        [
            layers.Input((20,), dtype=dtype),
            layers.Dense(16, activation="tanh", dtype=dtype, **options),
            layers.Dense(3, activation="softmax", dtype=dtype),
        ]
    )


def compiled(model: Any, strategy: Any = None, optimizer: Any = "sgd", **options: Any) -> Any:
    model.compile(
        optimizer,
        options.pop("loss", "sparse_categorical_crossentropy"),
        metrics=["accuracy"],
        weighted_metrics=options.pop("weighted_metrics", None),
        strategy=strategy,
        **options,
    )
    return model


def trained(model: Any, **options: Any) -> dict[str, list[float]]:
    given = {"batch_size": 25, "epochs": 2, "shuffle": False, "verbose": 0, **options}
    history: dict[str, list[float]] = model.fit(X, Y, **given).history
    return history


def check_same(one: Any, several: Any) -> None:
    for a, b in zip(one.get_weights(), several.get_weights(), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6)


# Synchronous


CASES = {
    "plain": lambda: dense(),
    "regularized": lambda: dense(kernel_regularizer="l2"),
    "activity": lambda: dense(activity_regularizer="l2"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("devices", [["cpu:0", "cpu:1"], 3])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_it_is_training_on_one_device(case: str, devices: Any, optimizer: str) -> None:
    """With sample weights, and a last batch of 3."""
    one = compiled(CASES[case](), None, optimizer, weighted_metrics=["accuracy"])
    several = compiled(
        CASES[case](), DataParallel(devices), optimizer, weighted_metrics=["accuracy"]
    )
    logs = [trained(m, sample_weight=W, validation_split=0.2) for m in (one, several)]
    assert logs[0].keys() == logs[1].keys()
    for name, values in logs[0].items():
        np.testing.assert_allclose(logs[1][name], values, rtol=1e-5, err_msg=name)
    check_same(one, several)
    np.testing.assert_allclose(
        several.predict(X, verbose=0), one.predict(X, verbose=0), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("reduction", ["sum", "mean_with_sample_weight"])
def test_losses_that_are_no_mean_over_examples(reduction: Any) -> None:
    """Each example counts by its class; a penalty counts once."""
    loss = laminar.losses.SparseCategoricalCrossentropy(reduction=reduction)
    models = [
        compiled(dense(kernel_regularizer="l2"), strategy, optimizers.SGD(0.001), loss=loss)
        for strategy in (None, DataParallel(3))
    ]
    logs = [trained(m, class_weight={0: 1.0, 1: 3.0, 2: 0.5}) for m in models]
    np.testing.assert_allclose(logs[1]["loss"], logs[0]["loss"], rtol=1e-5)
    check_same(*models)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_batch_of_fewer_examples_than_devices(size: int) -> None:
    one, several = compiled(dense()), compiled(dense(), DataParallel(4))
    logs = [m.fit(X[:size], Y[:size], epochs=2, verbose=0).history for m in (one, several)]
    np.testing.assert_allclose(logs[1]["loss"], logs[0]["loss"], rtol=1e-5)
    check_same(one, several)


def test_ten_times_a_hundred_is_a_thousand() -> None:
    """20 steps in float64: 10 replicas of 100 are one of 1000; the client makes 20 calls."""
    x = rng.normal(size=(1000, 20))
    y = rng.integers(0, 3, 1000)
    one = compiled(dense("float64"), jit_compile=False)
    several = compiled(dense("float64"), DataParallel(10), jit_compile=False)
    calls: list[str] = []
    for model in (one, several):
        model._laminar_prepare(
            (laminar.ops.convert_to_tensor(x[:1]), laminar.ops.convert_to_tensor(y[:1])),
            training=True,
        )
        make = model.make_train_function

        def counted(make: Callable[[], Any] = make) -> Any:
            step = make()

            def call(batch: Any) -> Any:
                calls.append(threading.current_thread().name)
                return step(batch)

            return call

        calls.clear()
        model.make_train_function = counted
        model.fit(x, y, batch_size=1000, epochs=20, shuffle=False, verbose=0)
        assert calls == [threading.current_thread().name] * 20
    for a, b in zip(one.get_weights(), several.get_weights(), strict=True):
        assert a.dtype == np.float64
        np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-10)


def test_each_device_computes_forward_and_backward_of_its_slice() -> None:
    strategy = DataParallel(["cpu:0", "cpu:1"])
    model = compiled(dense(), strategy, jit_compile=False)
    trained(model, epochs=1)
    (concrete,) = model._laminar_compiled.steps["train"]._concrete.values()
    (plan,) = concrete._plans.values()
    assert isinstance(plan, PartitionedPlan)
    assert [p.device.name for p in plan.parts] == strategy.devices
    products = [sum(op.type == "MatMul" for op in p.plan.operations) for p in plan.parts]
    # Two layers: forward 2, backward 2 for the weights and 1 for the hidden values.
    assert products == [5, 5]
    updates = [sum(op.type.startswith("Assign") for op in p.plan.operations) for p in plan.parts]
    assert updates[0] > 0
    assert updates[1] == 0  # the weights are in one place


def test_native_code_of_replicas_on_cpus_is_one_plan() -> None:
    """All threads work on each kernel, and nothing waits; also for a batch of another size."""
    model = compiled(dense(), DataParallel(3))
    trained(model, epochs=1)
    (concrete,) = model._laminar_compiled.steps["train"]._concrete.values()
    (plan,) = concrete._plans.values()
    assert isinstance(plan, Plan)
    assert {op.type for op in plan.operations} <= {"Cluster", "Placeholder", "Const"}
    shares = [op for op in concrete.operations if op.type == "Share"]
    assert {op.attrs["index"] for op in shares} == {0, 1, 2}


def test_fit_takes_a_number_of_devices() -> None:
    one, several = compiled(dense()), compiled(dense())
    trained(one)
    trained(several, devices=2)
    assert several._laminar_compiled.strategy.num_replicas == 2
    check_same(one, several)
    trained(several, devices=["cpu:0"])
    assert several._laminar_compiled.strategy.num_replicas == 1


def test_state_that_layers_update_is_the_mean_of_the_replicas() -> None:
    """Moving statistics: those of a step are the mean over the slices, each with its share."""

    def build() -> Any:
        laminar.set_random_seed(3)
        return laminar.Sequential([layers.Input((20,)), layers.BatchNormalization(momentum=0.9)])

    x = X[:5]
    several = build()
    several.compile("sgd", "mse", strategy=DataParallel(2))
    several.fit(x, np.zeros_like(x), batch_size=5, shuffle=False, verbose=0)
    slices = [x[:2], x[2:]]
    share = np.array([0.4, 0.6])
    mean = sum(s * (0.1 * part.mean(0)) for s, part in zip(share, slices, strict=True))
    variance = sum(s * (0.9 + 0.1 * part.var(0)) for s, part in zip(share, slices, strict=True))
    layer = several.layers[-1]
    np.testing.assert_allclose(layer.moving_mean.numpy(), mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(layer.moving_variance.numpy(), variance, rtol=1e-4)


def test_replicas_draw_different_numbers() -> None:
    laminar.set_random_seed(3)
    model = laminar.Sequential([layers.Input((50,)), layers.Dropout(0.5)])
    model.compile("sgd", "mse", strategy=DataParallel(2))
    seen: list[Any] = []

    class Keeping(laminar.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dropout = layers.Dropout(0.5)

        def call(self, x: Any, training: bool = False) -> Any:
            return self.dropout(x, training=training)

    keeping = Keeping()
    keeping.compile("sgd", "mse", strategy=DataParallel(2), run_eagerly=False)
    strategy = DataParallel(2)
    step = laminar.function(strategy.shared(lambda x: keeping(x, training=True)))
    seen.append(step(laminar.ops.ones((2, 50))).numpy())
    assert (seen[0][0] != seen[0][1]).any()
    seen.append(step(laminar.ops.ones((2, 50))).numpy())
    assert (seen[0] != seen[1]).any()


def test_several_inputs_outputs_and_masks() -> None:
    def build() -> Any:
        laminar.set_random_seed(3)
        words = layers.Input((6,), dtype="int32", name="words")
        more = layers.Input((20,), name="more")
        e = layers.Embedding(10, 4, mask_zero=True)(words)
        y = layers.TimeDistributed(layers.Dense(3))(e)
        z = layers.Dense(2, name="z")(more)
        return laminar.Model([words, more], {"y": y, "z": z})

    words = rng.integers(0, 10, (33, 6))
    targets = {"y": rng.normal(size=(33, 6, 3)), "z": rng.normal(size=(33, 2))}
    models = []
    for strategy in (None, DataParallel(2)):
        model = build()
        model.compile("sgd", {"y": "mse", "z": "mae"}, strategy=strategy)
        logs = model.fit([words, X[:33]], targets, batch_size=8, shuffle=False, verbose=0).history
        models.append((model, logs))
    for name, values in models[0][1].items():
        np.testing.assert_allclose(models[1][1][name], values, rtol=1e-5, err_msg=name)
    check_same(models[0][0], models[1][0])


def test_a_train_step_of_ones_own_is_left_alone() -> None:
    class Own(laminar.Sequential):
        def train_step(self, data: Any) -> Any:
            return {"loss": laminar.ops.sum(self(data[0], training=True)) * 0.0 + 7.0}

    laminar.set_random_seed(3)
    model = Own([layers.Input((20,)), layers.Dense(3)])
    model.compile("sgd", "mse", strategy=DataParallel(2))
    assert model.fit(X, Y, verbose=0).history == {"loss": [7.0]}


def test_running_eagerly_gives_the_same() -> None:
    one, several = compiled(dense()), compiled(dense(), DataParallel(2), run_eagerly=True)
    for model in (one, several):
        trained(model, epochs=1)
    check_same(one, several)


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"devices": 0}, InvalidArgumentError, "expected a number of devices from 1 on.*got 0"),
        ({"devices": 2.5}, InvalidArgumentError, "expected a number of devices .*got 2.5"),
        ({"devices": []}, InvalidArgumentError, r"or their names, got \[\]"),
        ({"devices": [0, 1]}, InvalidArgumentError, r"or their names, got \[0, 1\]"),
        ({"devices": "cpu:0"}, InvalidArgumentError, "or their names, got 'cpu:0'"),
        ({"devices": ["cpu:0", "cpu:0"]}, InvalidArgumentError, "named twice"),
        ({"devices": ["gpu:77"]}, NotFoundError, "no device is named"),
        ({"devices": ["nonsense:::"]}, InvalidArgumentError, "not a device name"),
        ({"mode": "both"}, InvalidArgumentError, "mode must be one of sync, async"),
        ({"max_staleness": 1}, InvalidArgumentError, "max_staleness is for mode='async'"),
        ({"mode": "async", "max_staleness": -1}, InvalidArgumentError, "from 0 on"),
        ({"mode": "async", "max_staleness": True}, InvalidArgumentError, "from 0 on"),
    ],
)
def test_wrong_arguments(
    arguments: dict[str, Any], error: type[LaminarError], message: str
) -> None:
    with pytest.raises(error, match=message):
        DataParallel(**arguments)


def test_a_strategy_is_a_strategy() -> None:
    with pytest.raises(
        InvalidArgumentError, match="strategy must be a .*DataParallel, MultiWorker or .*, got 2"
    ):
        compiled(dense(), 2)


def test_an_error_in_a_replica_reaches_the_caller_and_training_goes_on() -> None:
    for mode in ("sync", "async"):
        model = compiled(dense(), DataParallel(2, mode=mode))
        with pytest.raises(LaminarError):
            model.fit(X[:, :7], Y, verbose=0)
        trained(model, epochs=1)


# Asynchronous


def test_every_example_is_trained_on_and_reported() -> None:
    strategy = DataParallel(2, mode="async")
    model = compiled(dense(), strategy, optimizers.SGD(0.1))
    logs = trained(model, epochs=30)
    assert sum(strategy.staleness.counts.values()) == 30 * 5
    assert int(model.optimizer.iterations.numpy()) == 30 * 5
    one = compiled(dense(), None, optimizers.SGD(0.1))
    expected = trained(one, epochs=30)
    assert logs["loss"][-1] < logs["loss"][0]
    np.testing.assert_allclose(logs["loss"][-1], expected["loss"][-1], rtol=0.1)


@pytest.mark.parametrize("most", [0, 1])
def test_staleness_is_bounded_on_request(most: int) -> None:
    strategy = DataParallel(3, mode="async", max_staleness=most)
    model = compiled(dense(), strategy)
    trained(model, epochs=3)
    assert strategy.staleness.max <= most
    if most == 0:  # one after the other
        one = compiled(dense())
        trained(one, epochs=3)
        for a, b in zip(one.get_weights(), model.get_weights(), strict=True):
            np.testing.assert_allclose(b, a, atol=1e-2)


@pytest.mark.parametrize("option", [{"run_eagerly": True}, {"own": True}])
def test_what_does_not_go_with_asynchronous_training(option: dict[str, bool]) -> None:
    class Own(laminar.Sequential):
        def train_step(self, data: Any) -> Any:
            return {"loss": 1.0}

    strategy = DataParallel(2, mode="async")
    if option.pop("own", False):
        model: Any = Own([layers.Input((20,)), layers.Dense(3)])
    else:
        model = dense()
    with pytest.raises(InvalidArgumentError, match="asynchronous training does not go with"):
        trained(compiled(model, strategy, **option))


class Slow:
    """A computation that waits for its turn."""

    def __init__(self, gate: threading.Semaphore, log: list[tuple[str, int]], name: str) -> None:
        self.gate, self.log, self.name = gate, log, name

    def __call__(self, batch: int) -> int:
        self.gate.acquire(timeout=WAIT)
        self.log.append((self.name, batch))
        if batch < 0:
            raise ValueError(f"bad batch {batch}")
        return batch


@pytest.fixture
def gates() -> Iterator[list[threading.Semaphore]]:
    made = [threading.Semaphore(0) for _ in range(2)]
    yield made
    for gate in made:
        gate.release(1000)


def async_step(
    gates: list[threading.Semaphore], log: list[tuple[str, int]], applied: list[int]
) -> AsyncStep:
    computes = [Slow(gate, log, str(i)) for i, gate in enumerate(gates)]

    def apply(batch: int) -> dict[str, Any]:
        applied.append(batch)
        return {"sum": sum(applied)}

    strategy = DataParallel(2, mode="async")
    return AsyncStep(computes, apply, strategy.staleness, lambda batch: None)


def test_a_slow_device_does_not_hold_up_the_other(gates: list[threading.Semaphore]) -> None:
    log: list[tuple[str, int]] = []
    applied: list[int] = []
    step = async_step(gates, log, applied)
    gates[0].release(1000)  # device 1 stays in its first batch
    reports = [step(i) for i in range(10)]
    gates[1].release(1000)
    assert reports[-1]["sum"] == sum(range(10))
    assert sorted(applied) == list(range(10))
    assert sum(name == "0" for name, _ in log) >= 8
    step.close()


def test_a_report_waits_for_all_batches_before_it(gates: list[threading.Semaphore]) -> None:
    log: list[tuple[str, int]] = []
    step = async_step(gates, log, [])
    reports = [step(i) for i in (1, 2)]
    timers = [threading.Timer(0.05, gate.release, (2,)) for gate in gates]
    for timer in timers:
        timer.start()
    assert dict(reports[1]) == {"sum": 3}
    assert len(reports[0]) == 1
    for timer in timers:
        timer.join()
    step.close()


def test_an_error_is_raised_once_and_later_batches_are_trained_on(
    gates: list[threading.Semaphore],
) -> None:
    applied: list[int] = []
    step = async_step(gates, [], applied)
    for gate in gates:
        gate.release(1000)
    report = step(-1)
    with pytest.raises(ValueError, match="bad batch -1"):
        dict(report)
    assert dict(step(5))["sum"] == sum(applied)
    assert 5 in applied
    step.close()


def test_closing_waits_for_what_was_begun(gates: list[threading.Semaphore]) -> None:
    applied: list[int] = []
    step = async_step(gates, [], applied)
    step.close()  # nothing to wait for
    for i in (1, 2, 3):
        step(i)
        if i == 1:
            gates[0].release(1000)
            gates[1].release(1000)
    step.close()
    assert sorted(applied) == [1, 2, 3]
    step(-1)
    step.close()  # its error is nobody's any more
    assert dict(step(4))["sum"] == 10
    step.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("laminar-replica")]
