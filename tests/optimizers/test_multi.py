"""Several optimizers, each for a part of the variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import callbacks, layers, optimizers
from laminar.engine.errors import InvalidArgumentError, UnimplementedError
from laminar.engine.state import Variable
from laminar.optimizers import SGD, Adam, LossScaleOptimizer, MultiOptimizer, OptimizerMap

X = np.linspace(-1, 1, 24, dtype="float32").reshape(8, 3)
Y = X.sum(axis=1, keepdims=True)


def variables() -> list[Variable]:
    found = [Variable(np.full(2, 2.0, "float32"), name="kernel") for _ in range(3)]
    for v, path in zip(found, ("one/kernel", "two/kernel", "other/kernel"), strict=True):
        v.path = path
    return found


def mapped(**options: Any) -> MultiOptimizer:
    by_pattern = {"one/.*": SGD(0.1), "two/.*": SGD(1.0)}
    return MultiOptimizer(OptimizerMap(SGD(0.5), by_pattern), **options)


def network(optimizer: Any) -> laminar.Sequential:
    model = laminar.Sequential(
        [layers.Input((3,)), layers.Dense(2, name="one"), layers.Dense(1, name="two")]
    )
    model.compile(optimizer, "mse")
    return model


def test_each_variable_has_its_rule() -> None:
    optimizer, (a, b, c) = mapped(), variables()
    optimizer.apply([np.ones(2, "float32")] * 3, [a, b, c])
    for v, expected in ((a, 1.9), (b, 1.0), (c, 1.5)):
        np.testing.assert_allclose(v.numpy(), [expected] * 2, rtol=1e-6)
    assert [int(o.iterations) for o in (optimizer, *optimizer.optimizers)] == [1, 1, 1, 1]
    assert len(optimizer.variables) == 2 + 3 * 2
    optimizer.apply([np.ones(2, "float32")], [a])  # the others have nothing to do
    assert [int(o.iterations) for o in (optimizer, *optimizer.optimizers)] == [2, 2, 1, 1]


def test_the_scale_of_the_loss_is_one() -> None:
    optimizer, (a, *_) = mapped(loss_scale_factor=5.0), variables()
    assert float(optimizer.scale_loss(2.0)) == 10
    optimizer.apply([np.full(2, 10.0, "float32")], [a])
    np.testing.assert_allclose(a.numpy(), [1.8, 1.8], rtol=1e-6)


def test_a_function_chooses() -> None:
    first, second, (a, b, _) = SGD(0.1), Adam(0.1), variables()
    optimizer = MultiOptimizer(lambda v: first if v.path.startswith("one") else second)
    optimizer.build([a, b])
    assert optimizer.optimizers == [first, second]


def test_without_state() -> None:
    optimizer, held = mapped(), variables()
    optimizer.build(held)
    after, _ = optimizer.stateless_apply(
        [v.numpy() for v in optimizer.variables], [np.ones(2)] * 3, [v.numpy() for v in held]
    )
    np.testing.assert_allclose(np.asarray(after)[:, 0], [1.9, 1.0, 1.5], rtol=1e-6)
    np.testing.assert_array_equal(held[0].numpy(), [2, 2])


def test_fit_and_files(tmp_path: Path) -> None:
    adam = Adam(0.01)
    optimizer = MultiOptimizer(OptimizerMap(SGD(0.1), {".*one/.*": adam}))
    model, plain = network(optimizer), network(SGD(0.1))
    plain.set_weights(model.get_weights())
    model.fit(X, Y, verbose=0)
    plain.fit(X, Y, verbose=0)
    for a, b in zip(model.layers[1].get_weights(), plain.layers[1].get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)  # a weight may come near to 0
    assert np.abs(adam.variables[2].numpy()).max() > 0
    model.save(tmp_path / "model.keras")
    again = laminar.saving.load_model(tmp_path / "model.keras")
    assert [type(o) for o in again.optimizer.optimizers] == [Adam, SGD]
    for a, b in zip(optimizer.variables, again.optimizer.variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    again.fit(X, Y, verbose=0)


def test_in_a_loss_scale_optimizer() -> None:
    optimizer, (a, *_) = LossScaleOptimizer(mapped(), initial_scale=4.0), variables()
    optimizer.apply([np.full(2, 4.0, "float32")], [a])
    np.testing.assert_allclose(a.numpy(), [1.9, 1.9], rtol=1e-6)


def test_callbacks_set_all_rates() -> None:
    first, second = SGD(0.1, name="first"), SGD(0.01, name="second")
    model = network(MultiOptimizer(OptimizerMap(second, {".*one/.*": first})))
    halve = callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5)
    history = model.fit(X, Y, callbacks=halve, epochs=2, verbose=0).history
    np.testing.assert_allclose(history["learning_rate_first"], [0.05, 0.025], rtol=1e-6)
    np.testing.assert_allclose(history["learning_rate_second"], [0.005, 0.0025], rtol=1e-6)
    reduce = callbacks.ReduceLROnPlateau("loss", factor=0.1, patience=1, min_delta=9.0)
    model.fit(X, Y, callbacks=reduce, epochs=2, verbose=0)
    np.testing.assert_allclose(float(first.learning_rate.numpy()), 0.0025, rtol=1e-5)
    np.testing.assert_allclose(float(second.learning_rate.numpy()), 0.00025, rtol=1e-5)


def test_averages_of_a_part() -> None:
    averaged = SGD(0.1, use_ema=True, ema_momentum=0.5)
    model = network(MultiOptimizer(OptimizerMap(SGD(0.1), {".*one/.*": averaged})))
    model.fit(X, Y, verbose=0)
    kernels: dict[str, Any] = {}

    def look(when: str) -> None:
        kernels[when] = [layer.weights[0].numpy() for layer in model.layers]

    told = callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: look("training"),
        on_test_begin=lambda logs: look("evaluating"),
    )
    swap = callbacks.SwapEMAWeights()
    model.fit(X, Y, epochs=3, callbacks=[swap, told], validation_data=(X, Y), verbose=0)
    (one, two), (averaged_one, same_two) = kernels["training"], kernels["evaluating"]
    assert np.abs(one - averaged_one).max() > 0
    np.testing.assert_array_equal(two, same_two)


def test_one_optimizer_for_all() -> None:
    first, second = network(MultiOptimizer(SGD(0.1))), network(SGD(0.1))
    second.set_weights(first.get_weights())
    for model in (first, second):
        model.fit(X, Y, verbose=0)
    for a, b in zip(first.get_weights(), second.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    again = MultiOptimizer.from_config(first.optimizer.get_config())
    assert [type(part) for part in again.optimizers] == [SGD]
    with pytest.raises(InvalidArgumentError, match="cannot be a LossScaleOptimizer"):
        MultiOptimizer(LossScaleOptimizer(SGD()))


def test_mistakes() -> None:
    given = OptimizerMap(SGD(), {".*kernel": Adam(), "one/.*": SGD()})
    with pytest.raises(InvalidArgumentError, match=r"2 patterns match 'one/kernel'"):
        given["one/kernel"]
    with pytest.raises(InvalidArgumentError, match="has an optimizer: "):
        given["one/.*"] = SGD()
    with pytest.raises(InvalidArgumentError, match="must be an optimizer, got 'sgd'"):
        OptimizerMap("sgd")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(InvalidArgumentError, match="cannot be a MultiOptimizer"):
        given["three"] = mapped()
    with pytest.raises(InvalidArgumentError, match="cannot be a LossScaleOptimizer"):
        OptimizerMap(LossScaleOptimizer(SGD()))
    optimizer = mapped()
    with pytest.raises(AttributeError, match="has no learning rate"):
        optimizer.learning_rate = 0.1
    with pytest.raises(UnimplementedError, match="several optimizers"):
        optimizer.groups({"one": 0.1})
    with pytest.raises(InvalidArgumentError, match="expected an OptimizerMap, a function or"):
        MultiOptimizer({"a": SGD()})  # type: ignore[arg-type]  # the mistake
    assert (len(given), list(given), "one/.*" in given) == (2, [".*kernel", "one/.*"], True)
    del given["one/.*"]
    assert isinstance(given["one/kernel"], Adam)


def test_the_rule_of_schedule_free_steps() -> None:
    w = Variable(np.array([1.0, -2.0], "float32"))
    rule = {"beta_1": 0.8, "beta_2": 0.9, "epsilon": 1e-3, "warmup_steps": 2}
    optimizer = optimizers.ScheduleFreeAdamW(0.1, **rule)  # type: ignore[arg-type]  # of all kinds
    y = w.numpy().astype("float64")
    z, x, v = y.copy(), y.copy(), np.zeros(2)
    for t, gradient in enumerate(([1.0, 2.0], [-3.0, 0.5], [0.25, 1.0]), start=1):
        g = np.array(gradient)
        optimizer.apply([g.astype("float32")], [w])
        v = 0.9 * v + 0.1 * g**2
        z = z - 0.1 * min(1, t / 2) * g / (np.sqrt(v / (1 - 0.9**t)) + 1e-3)
        x = (1 - 1 / t) * x + z / t
        y = 0.2 * z + 0.8 * x
        np.testing.assert_allclose(w.numpy(), y, rtol=1e-5)
    again = optimizers.deserialize(optimizers.serialize(optimizer))
    assert again.get_config() == optimizer.get_config()
    with pytest.raises(InvalidArgumentError, match="beta_1 must be above 0"):
        optimizers.ScheduleFreeAdamW(beta_1=0.0)
    with pytest.raises(InvalidArgumentError, match="warmup_steps must be a whole number"):
        optimizers.ScheduleFreeAdamW(warmup_steps=-1)
    model = network(optimizers.ScheduleFreeAdamW(0.05))
    losses = model.fit(X, Y, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 2
