"""A wrong type is a TypeError, as where Keras says so, and like every mistake a ValueError, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops, optimizers

X = np.ones((2, 3), "float32")
SYMBOL: Any = laminar.KerasTensor((), dtype="int32")
OF_TYPE: dict[str, Callable[[Any], Any]] = {
    "pooling-sizes": lambda k: k.layers.AdaptiveMaxPooling2D((1, 2, 3)),
    "pooling-word": lambda k: k.layers.AdaptiveAveragePooling1D(2.5),
    "dot-axes": lambda k: k.layers.Dot("a"),
    "repeat": lambda k: k.layers.RepeatVector(2.5),
    "upsampling": lambda k: k.layers.UpSampling1D(True),
    "spec-axes": lambda k: k.layers.InputSpec(axes={"a": 3}),
    "no-input": lambda k: k.layers.Dense(3)(),
    "patches-word": lambda k: k.ops.image.extract_patches(np.ones((1, 8, 8, 3)), size="a"),
    "patches-3d": lambda k: k.ops.image.extract_patches_3d(np.ones((1, 8, 8, 8, 3)), size=(4, 4)),
    "vander-n": lambda k: k.ops.vander(np.arange(3.0), N=2.5),
    "vander-order": lambda k: k.ops.vander(np.arange(3.0), increasing=1),
    "histogram": lambda k: k.ops.histogram(np.ones(8), bins=2.5),
    "array-split-axis": lambda k: k.ops.array_split(np.ones(8), 2, axis=1.5),
    "bartlett": lambda k: k.ops.bartlett(k.KerasTensor((), dtype="int32")),
    "hamming": lambda k: k.ops.hamming(k.KerasTensor((), dtype="int32")),
    "kaiser": lambda k: k.ops.kaiser(k.KerasTensor((), dtype="int32"), beta=1.0),
}


@pytest.mark.parametrize("name", OF_TYPE)
def test_a_wrong_type_is_a_type_error(name: str) -> None:
    keras = pytest.importorskip("keras")
    for k, kinds in ((keras, (TypeError,)), (laminar, (TypeError, ValueError))):
        with pytest.raises(TypeError) as caught:
            OF_TYPE[name](k)
        assert all(isinstance(caught.value, kind) for kind in kinds)


def test_a_scheduled_rate_is_no_number_to_set() -> None:
    rate = optimizers.schedules.ExponentialDecay(0.1, 1, 0.1)
    optimizer = optimizers.SGD(rate)
    with pytest.raises(TypeError, match="it cannot be set to 0.5"):
        optimizer.learning_rate = 0.5
    assert float(optimizer.learning_rate) == pytest.approx(0.1)


def test_a_spec_of_inputs_is_checked() -> None:
    for given in ({"ndim": 1}, {"max_ndim": 1}, {"shape": (3,)}):
        with pytest.raises(ValueError, match="has axis 1, an input has at most 1 axes"):
            layers.InputSpec(axes={1: 2}, **given)
    with pytest.raises(ValueError, match="nope"):
        layers.InputSpec(dtype="nope")
    assert layers.InputSpec(axes={-1: 2}, ndim=1).axes == {-1: 2}


@pytest.mark.parametrize(
    "given", [{"shape": (4,)}, {"batch_shape": (None, 4)}, {"batch_size": 3}, {"dtype": "int32"}]
)
def test_an_input_is_what_its_tensor_is(given: dict[str, Any]) -> None:
    tensor = laminar.KerasTensor((2, 3))
    with pytest.raises(ValueError, match=f"{next(iter(given))} is .*, the tensor is"):
        layers.Input(tensor=tensor, **given)
    said: dict[str, Any] = {
        "shape": (3,),
        "batch_shape": (2, 3),
        "batch_size": 2,
        "dtype": "float32",
    }
    for name, value in said.items():
        assert layers.Input(tensor=laminar.KerasTensor((2, 3)), **{name: value}).shape == (2, 3)


@pytest.mark.parametrize(
    "given", [{"metrics": 3}, {"metrics": [None, 3]}, {"weighted_metrics": {"out": 3}}]
)
def test_compile_takes_metrics_alone(given: dict[str, Any]) -> None:
    model = laminar.Sequential([layers.Input((3,)), layers.Dense(1, name="out")])
    with pytest.raises(ValueError, match="metric: expected a name, a config or a callable, got 3"):
        model.compile(loss="mse", **given)


def test_what_has_no_call_is_not_implemented() -> None:
    class Empty(laminar.Model):
        pass

    for what in (layers.Layer(), Empty()):
        with pytest.raises(NotImplementedError, match="does not say what it computes"):
            what(X)
    with pytest.raises(NotImplementedError, match="does not say what it computes"):
        layers.Layer().compute_output_shape((2, 3))


def test_a_layer_without_states_has_no_attribute_to_reset() -> None:
    with pytest.raises(AttributeError, match="there is no state to reset"):
        layers.Bidirectional(layers.LSTM(3)).reset_state()


def test_what_a_symbol_is_stays() -> None:
    for name in ("shape", "dtype", "sparse", "ragged"):
        with pytest.raises(AttributeError):
            setattr(SYMBOL, name, True)
    assert not SYMBOL.sparse
    assert not SYMBOL.ragged


def test_powers_are_not_fewer_than_none() -> None:
    with pytest.raises(ValueError, match="N must be at least 0, got -2"):
        ops.vander(np.arange(3.0), N=-2)
    assert ops.vander(np.arange(3.0), N=0).shape == (3, 0)
