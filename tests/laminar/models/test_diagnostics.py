"""check="nan", dry_run, overfit_batches, plot, profile and lr_find."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops, optimizers
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    UnimplementedError,
)
from laminar.engine.ops.core import cluster
from laminar.engine.ops.core.cluster import ClusterBody

rng = np.random.default_rng(0)
X = rng.uniform(0.1, 1, size=(64, 4)).astype("float32")
Y = X[:, :1] * 2


def regressor(*inner: Any, optimizer: Any = "sgd") -> laminar.Sequential:
    laminar.set_random_seed(2)
    model = laminar.Sequential(
        [layers.Input((4,)), *inner, layers.Dense(1, name="head")], name="net"
    )
    model.compile(optimizer, "mse", metrics=["mae"])
    return model


class Log(layers.Layer):
    def call(self, x: Any) -> Any:
        return ops.log(x)


class Root(layers.Layer):
    """The slope of a root is infinite at zero, where its value is well."""

    def call(self, x: Any) -> Any:
        return ops.sqrt(x - ops.stop_gradient(x))


# check="nan"


def test_the_operation_the_layer_and_the_line_are_named() -> None:
    model = regressor(layers.Dense(3, "relu"), Log(name="bad"))
    with pytest.raises(FailedPreconditionError) as caught:
        model.fit(X, Y, check="nan", verbose=0)
    error = caught.value
    assert error.message.startswith("fit: batch 0 of epoch 1: operation 'net/bad/Log' (Log)")
    assert "of layer 'net/bad' gave float32[32, 3] with" in error.message
    assert error.layer == "net/bad"
    assert error.location is not None
    assert "ops.log(x)" in Path(__file__).read_text().splitlines()[error.location.line - 1]
    assert "above zero" in str(error.remedy)


def test_a_gradient_is_named_with_the_layer_behind_it() -> None:
    model = regressor(layers.Dense(3, name="before"), Root(name="root"))
    with pytest.raises(FailedPreconditionError) as caught:
        model.fit(X, Y, check="nan", verbose=0)
    assert "behind layer 'net/root'" in caught.value.message


def test_the_batch_is_named_when_training_diverges() -> None:
    model = regressor(optimizer=optimizers.SGD(1e18))
    with pytest.raises(FailedPreconditionError, match=r"fit: batch [1-9]\d* of epoch 1: operation"):
        model.fit(X, Y, batch_size=4, check="nan", verbose=0)


def test_nan_in_the_data_and_in_the_weights() -> None:
    bad = X.copy()
    bad[40, 2] = np.nan
    with pytest.raises(FailedPreconditionError, match="batch 1 of epoch 1: x contains NaN: 1 of"):
        regressor().fit(bad, Y, shuffle=False, check="nan", verbose=0)
    model = regressor()
    model.set_weights([np.full((4, 1), np.inf), np.zeros(1)])
    with pytest.raises(FailedPreconditionError, match="head/kernel' is not finite before training"):
        model.fit(X, Y, check="nan", verbose=0)


def test_looking_changes_nothing() -> None:
    looked, plain = (regressor(layers.Dropout(0.5, seed=1)) for _ in range(2))
    found = looked.fit(X, Y, epochs=2, shuffle=False, check="nan", verbose=0).history
    assert found == plain.fit(X, Y, epochs=2, shuffle=False, verbose=0).history
    eager = regressor(Log(name="bad"))
    eager.run_eagerly = True
    with pytest.raises(FailedPreconditionError, match="operation 'net/bad/Log'"):
        eager.fit(X * 0, Y, check="nan", verbose=0)


def test_the_model_is_as_before_the_step_that_failed() -> None:
    model = regressor(Log(name="bad"))
    before = model.get_weights()
    with pytest.raises(FailedPreconditionError):
        model.fit(X * 0, Y, check="nan", verbose=0)
    for left, right in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(left, right)


def test_other_checks_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="check must be None or 'nan', got 'inf'"):
        regressor().fit(X, Y, check="inf", verbose=0)


# dry_run


def states() -> Any:
    """Those of the generators of Python and of NumPy."""
    of_numpy: Any = np.random.get_state()
    return random.getstate(), of_numpy[1].tolist()


def test_a_dry_run_reports_and_sets_everything_back(capsys: pytest.CaptureFixture[str]) -> None:
    model = regressor(layers.Dense(8, "relu"), layers.Dropout(0.5), optimizer="adam")
    model.fit(X, Y, verbose=0)
    before = [v.numpy() for v in (*model.variables, *model.optimizer.variables)]
    numbers = states()
    history = model.fit(X, Y, validation_split=0.25, dry_run=True)
    after = [v.numpy() for v in (*model.variables, *model.optimizer.variables)]
    for left, right in zip(before, after, strict=True):
        np.testing.assert_array_equal(left, right)
    assert numbers == states()
    assert sorted(history.history) == ["loss", "mae", "val_loss", "val_mae"]
    text = capsys.readouterr().out
    assert "x: float32[32, 4], 0.1" in text
    assert "(Dropout)" in text
    assert "update: 4 of 4 trainable weights have changed" in text
    assert "validation: one batch - loss:" in text


def test_a_dry_run_tells_of_weights_that_stay(capsys: pytest.CaptureFixture[str]) -> None:
    model = regressor(layers.Dense(3, name="still"))
    model.optimizer.groups({"still": 0})
    model.fit(X, Y, dry_run=True)
    assert "without a change: net/still/kernel, net/still/bias" in capsys.readouterr().out


def test_a_dry_run_of_an_unbuilt_model_and_of_a_generator(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = laminar.Sequential([layers.Dense(2), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(((X[:8], Y[:8]) for _ in range(3)), dry_run=True)
    assert model.built
    assert "x: float32[8, 4]" in capsys.readouterr().out
    with pytest.raises(OutOfRangeError, match="fit: dry_run: the data ended"):
        model.fit(iter([]), dry_run=True)


# overfit_batches


def test_only_the_first_batches_are_learned() -> None:
    few, part = regressor(), regressor()
    found = few.fit(X, Y, batch_size=8, epochs=3, overfit_batches=2, verbose=0).history
    expected = part.fit(X[:16], Y[:16], batch_size=8, epochs=3, shuffle=False, verbose=0).history
    assert found == expected


def test_more_batches_than_there_are() -> None:
    with pytest.warns(UserWarning, match="overfit_batches=9, but the data has only 2"):
        regressor().fit(X, Y, overfit_batches=9, verbose=0)
    with pytest.raises(InvalidArgumentError, match="overfit_batches must be a whole number"):
        regressor().fit(X, Y, overfit_batches=0, verbose=0)


# plot


def test_curves_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    history = regressor().fit(X, Y, epochs=3, verbose=0, plot=True)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["loss", "mae"]
    history.plot()
    assert capsys.readouterr().out.splitlines() == lines


def test_curves_as_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "curves" / "fit.png"
    history = regressor().fit(X, Y, epochs=2, validation_split=0.2, verbose=0, plot=path)
    assert path.read_bytes().startswith(b"\x89PNG")
    history.plot(tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    history = regressor().fit(X, Y, verbose=0)
    with pytest.raises(UnimplementedError, match="pictures need matplotlib"):
        history.plot(tmp_path / "no.png")
    with pytest.raises(UnimplementedError, match="pictures need matplotlib"):
        regressor().fit(X, Y, verbose=0, plot=tmp_path / "no.png")
    with pytest.raises(InvalidArgumentError, match="plot must be True or the name of a file"):
        regressor().fit(X, Y, verbose=0, plot=3)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(FailedPreconditionError, match="there is no epoch to draw"):
        laminar.callbacks.History().plot()


# profile


def test_a_profile_names_each_call_of_each_layer() -> None:
    shared = layers.Dense(4, name="shared")
    inner = laminar.Sequential([layers.Dense(3, name="deep")], name="inner")
    inputs = layers.Input((4,))
    model = laminar.Model(inputs, inner(shared(shared(inputs))), name="net")
    profile = model.profile(X[:16])
    assert [row.path for row in profile.layers] == [
        "input_layer",
        "shared",
        "shared",
        "inner/deep",
    ][-len(profile.layers) :]
    deep = profile.layers[-1]
    assert (deep.kind, deep.params, deep.output) == ("Dense", 15, "(16, 3)")
    assert (deep.weight_bytes, deep.output_bytes) == (60, 16 * 3 * 4)
    assert profile.batch_size == 16
    assert profile.seconds > 0
    assert "examples/s" in str(profile)
    assert repr(profile) == str(profile)  # as a prompt and a notebook show it
    np.testing.assert_allclose(model.predict(X, verbose=0).shape, (64, 3))  # calls work as before


@pytest.mark.parametrize(("jit_compile", "num_built"), [(False, 0), (True, 2)])
def test_a_profile_runs_what_the_steps_run(
    jit_compile: bool, num_built: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[ClusterBody] = []

    def watched(body: ClusterBody) -> Callable[..., Any]:
        built.append(body)
        return make(body)

    make = cluster._built
    monkeypatch.setattr(cluster, "_built", watched)
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(4, activation="tanh")])
    model.compile("sgd", "mse", jit_compile=jit_compile)
    model.profile(X[:16])
    assert len(built) == num_built  # the model, and its only layer


# lr_find


def test_the_rate_where_the_loss_falls() -> None:
    model = regressor()
    before = [v.numpy() for v in (*model.variables, *model.optimizer.variables)]
    found = laminar.lr_find(model, X, Y, batch_size=8)
    after = [v.numpy() for v in (*model.variables, *model.optimizer.variables)][: len(before)]
    for left, right in zip(before, after, strict=True):
        np.testing.assert_array_equal(left, right)
    # The loss of a line falls for rates below 2 / (greatest curvature), about 1.3 here.
    assert 1e-3 < found.suggestion < found.lowest < 2
    assert found.rates == sorted(found.rates)
    model.optimizer.learning_rate = found.suggestion
    history = model.fit(X, Y, epochs=5, verbose=0).history["loss"]
    assert history[-1] < history[0]


def test_what_lr_find_needs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FailedPreconditionError, match="lr_find: the model has not been compiled"):
        laminar.lr_find(laminar.Sequential([layers.Dense(1)]), X, Y)
    schedule = optimizers.schedules.OneCycle(0.1, 10)
    with pytest.raises(FailedPreconditionError, match="follows a schedule"):
        laminar.lr_find(regressor(optimizer=optimizers.SGD(schedule)), X, Y)
    with pytest.raises(InvalidArgumentError, match="expected 0 < start < end"):
        laminar.lr_find(regressor(), X, Y, start=1.0, end=0.1)
    with pytest.raises(OutOfRangeError, match="lr_find: the data ended after 2"):
        laminar.lr_find(regressor(), iter([(X, Y), (X, Y)]))
    with pytest.raises(FailedPreconditionError, match="the loss is not finite after"):
        laminar.lr_find(regressor(Log()), X * 0, Y)
    laminar.lr_find(regressor(), X, Y, steps=10).plot()
    assert "the loss falls fastest" in capsys.readouterr().out
