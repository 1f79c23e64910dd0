"""Identity, ActivityRegularization, Masking, Rescaling, Lambda, Wrapper."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from laminar import layers, ops
from laminar.engine.errors import InvalidArgumentError, NotFoundError
from laminar.layers.masking import get_mask
from laminar.models import Sequential
from laminar.registration import register_keras_serializable

from .harness import check_agreement, check_layer, random_inputs


def test_identity() -> None:
    layer = check_layer(layers.Identity, {}, (2, 3, 4), expected_output_shape=(2, 3, 4))
    x = ops.convert_to_tensor(random_inputs((2, 3)))
    assert layer(x) is x


def test_activity_regularization() -> None:
    kwargs = {"l1": 0.1, "l2": 0.01}
    layer = check_layer(layers.ActivityRegularization, kwargs, (4, 3))
    check_agreement("ActivityRegularization", kwargs, (4, 3))
    x = random_inputs((4, 3))
    layer(x)
    expected = (0.1 * abs(x).sum() + 0.01 * (x**2).sum()) / 4
    assert len(layer.losses) == 1
    np.testing.assert_allclose(float(layer.losses[0]), expected, rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_masking(value: float) -> None:
    x = random_inputs((2, 4, 3))
    x[0, 1] = value
    x[1, 2:] = value
    x[1, 0, 1] = value  # one number alone masks nothing
    layer = check_layer(layers.Masking, {"mask_value": value}, random_inputs((2, 4, 3)))
    y = layer(x)
    mask = np.array([[True, False, True, True], [True, True, False, False]])
    np.testing.assert_array_equal(get_mask(y).numpy(), mask)
    np.testing.assert_array_equal(y.numpy(), x * mask[:, :, None])
    check_agreement("Masking", {"mask_value": value}, x)


def test_masks_pass_through_a_model() -> None:
    model = Sequential([layers.Masking(), layers.Dense(3), layers.GlobalAveragePooling1D()])
    x = random_inputs((2, 4, 3))
    x[:, 2:] = 0
    expected = model.layers[1](x[:, :2]).numpy().mean(1)
    np.testing.assert_allclose(model(x).numpy(), expected, rtol=1e-5)


def test_rescaling() -> None:
    kwargs: dict[str, Any] = {"scale": 1 / 127.5, "offset": -1.0}
    check_layer(layers.Rescaling, kwargs, (2, 3, 3, 1))
    pixels = np.arange(0, 256, 5, dtype=np.uint8).reshape(1, 4, 13, 1)
    y = layers.Rescaling(**kwargs)(pixels)
    assert y.dtype == "float32"
    np.testing.assert_allclose(y.numpy(), pixels / 127.5 - 1, rtol=1e-5, atol=1e-6)
    for given in ({"scale": [1.0, 2.0]}, {"scale": 2.0, "offset": [0.5, 1.5]}):
        check_agreement("Rescaling", given, (3, 2))


@register_keras_serializable("test")
def doubled(x: Any, factor: float = 2.0) -> Any:
    return x * factor


def not_registered(x: Any) -> Any:
    return -x


def test_lambda() -> None:
    x = random_inputs((2, 3))
    layer = check_layer(layers.Lambda, {"function": doubled, "arguments": {"factor": 3.0}}, (2, 3))
    np.testing.assert_array_equal(layer(x).numpy(), x * np.float32(3))
    np.testing.assert_array_equal(layers.Lambda(lambda t: t + 1)(x).numpy(), x + 1)
    several = layers.Lambda(lambda ts: ts[0] - ts[1])
    np.testing.assert_array_equal(several([x, x]).numpy(), 0)


def test_lambda_passes_training_and_mask_on() -> None:
    seen: list[Any] = []

    def note(x: Any, training: bool | None = None, mask: Any = None) -> Any:
        seen.append((training, mask))
        return x

    layer = layers.Lambda(note)
    x = random_inputs((2, 3))
    layer(x)
    layer(x, training=True)
    assert seen == [(None, None), (True, None)]
    masked = layers.Embedding(4, 2, mask_zero=True)(np.array([[1, 0]]))
    layer(masked)
    assert seen[2][1].numpy().tolist() == [[True, False]]


def test_lambda_with_a_mask_of_its_own() -> None:
    x = random_inputs((2, 3, 4))
    layer = layers.Lambda(lambda t: t, mask=lambda t, mask: ops.all(t > 0, axis=-1))
    np.testing.assert_array_equal(get_mask(layer(x)).numpy(), (x > 0).all(-1))


def test_lambda_with_a_given_shape() -> None:
    assert layers.Lambda(doubled, output_shape=(5,)).compute_output_shape((None, 3)) == (None, 5)
    by_function = layers.Lambda(doubled, output_shape=lambda shape: (*shape, 1))
    assert by_function.compute_output_shape((None, 3)) == (None, 3, 1)
    assert layers.Lambda(doubled).compute_output_shape((None, 3)) == (None, 3)


def test_a_lambda_cannot_be_saved() -> None:
    with pytest.raises(InvalidArgumentError, match="a lambda cannot be saved"):
        layers.Lambda(lambda x: x).get_config()


def test_a_function_that_is_not_registered_must_be_passed() -> None:
    data = json.loads(json.dumps(layers.serialize(layers.Lambda(not_registered))))
    with pytest.raises(NotFoundError, match="not_registered"):
        layers.deserialize(data)
    layer = layers.deserialize(data, {"not_registered": not_registered})
    assert layer(np.ones((1, 2), np.float32)).numpy().tolist() == [[-1, -1]]


def test_code_in_a_config_is_refused() -> None:
    config = layers.Lambda(doubled).get_config()
    config["function"] = {"class_name": "__lambda__", "config": {"code": "4wEAAA=="}}
    with pytest.raises(InvalidArgumentError, match="which laminar does not run"):
        layers.Lambda.from_config(config)


class Twice(layers.Wrapper):
    """The layer inside applied twice."""

    def call(self, inputs: Any) -> Any:
        return self.layer(self.layer(inputs))


def test_wrapper() -> None:
    x = random_inputs((2, 3))
    layer = Twice(layers.Dense(3, activation="tanh", name="inside"))
    y = layer(x)
    kernel, bias = layer.get_weights()
    expected = np.tanh(np.tanh(x @ kernel + bias) @ kernel + bias)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5)
    data = json.loads(json.dumps(layers.serialize(layer)))
    copy = layers.deserialize(data, {"Twice": Twice})
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(copy(x).numpy(), y.numpy())
    with pytest.raises(InvalidArgumentError, match="got the class Dense"):
        layers.Wrapper(layers.Dense)
