"""Activation, the rectifiers and Softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from laminar import layers, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.layers.masking import get_mask, set_mask

from .harness import check_agreement, check_layer, random_inputs

wrong: Any = layers  # for arguments of the wrong type

CASES: list[Any] = [
    ("Activation", {"activation": "gelu"}, (3, 4)),
    ("Activation", {"activation": "softmax"}, (3, 4)),
    ("ReLU", {}, (3, 4)),
    ("ReLU", {"max_value": 1.0, "negative_slope": 0.1, "threshold": 0.2}, (3, 4, 5)),
    ("ReLU", {"max_value": 0.5}, (3, 4)),
    ("LeakyReLU", {}, (3, 4)),
    ("LeakyReLU", {"negative_slope": 0.1}, (3, 4)),
    ("PReLU", {"alpha_initializer": "ones"}, (3, 4, 5)),
    ("PReLU", {"shared_axes": [1]}, (3, 4, 5)),
    ("PReLU", {"shared_axes": [1, 2], "alpha_regularizer": "l2"}, (3, 4, 5, 2)),
    ("ELU", {}, (3, 4)),
    ("ELU", {"alpha": 0.5}, (3, 4, 5)),
    ("Softmax", {}, (3, 4, 5)),
    ("Softmax", {"axis": 1}, (3, 4, 5)),
    ("Softmax", {"axis": [1, 2]}, (3, 4, 5)),
]


@pytest.mark.parametrize(("name", "kwargs", "shape"), CASES)
@pytest.mark.keras_on_jax
def test_layer(name: str, kwargs: dict[str, Any], shape: tuple[int, ...]) -> None:
    check_layer(getattr(layers, name), kwargs, shape, expected_output_shape=shape)
    check_agreement(name, kwargs, shape)


def test_activation_takes_a_function() -> None:
    x = random_inputs((3, 4))
    y = layers.Activation(lambda t: t * 2)(x)
    np.testing.assert_array_equal(y.numpy(), x * 2)


def test_prelu_has_an_alpha_for_each_number() -> None:
    layer = layers.PReLU(shared_axes=(1, 2))
    layer.build((None, 4, 5, 3))
    assert tuple(layer.alpha.shape) == (1, 1, 3)
    layer.set_weights([np.array([[[0.1, 0.2, 0.3]]])])
    y = layer(-np.ones((1, 4, 5, 3), np.float32)).numpy()
    np.testing.assert_allclose(y[0, 2, 2], [-0.1, -0.2, -0.3], rtol=1e-6)
    unknown = layers.PReLU(shared_axes=1)
    assert tuple(unknown(layers.Input((None, 3))).shape) == (None, None, 3)
    with pytest.raises(ShapeError, match="an axis of alpha"):
        layers.PReLU()(layers.Input((None, 3)))


def test_leaky_relu_takes_the_old_name_of_its_slope() -> None:
    with pytest.warns(UserWarning, match="alpha is deprecated"):  # as Keras warns
        assert layers.LeakyReLU(alpha=0.2).negative_slope == 0.2


@pytest.mark.parametrize("axis", [-1, 1, [1, 2]])
@pytest.mark.keras_on_jax
def test_masked_softmax(axis: Any) -> None:
    mask = np.random.default_rng(1).random((3, 4, 5)) > 0.4
    mask[0] = False
    check_agreement("Softmax", {"axis": axis}, (3, 4, 5), mask=mask)
    x = random_inputs((3, 4, 5)).astype(np.float64)
    over = tuple(axis) if isinstance(axis, list) else axis
    some = mask.any(over, keepdims=True)
    expected = special.softmax(np.where(mask | ~some, x, -np.inf), axis=over) * mask
    y = layers.Softmax(axis)(x.astype(np.float32), mask=mask).numpy()
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-7)
    weights = np.where(mask, 0.7, 0.3)
    np.testing.assert_array_equal(layers.Softmax(axis)(x, mask=weights).numpy(), y)


def test_softmax_passes_a_mask_of_steps_on() -> None:
    x = ops.convert_to_tensor(random_inputs((2, 3, 3)))
    mask = ops.convert_to_tensor(np.array([[True, False, True], [True, True, False]]))
    expected = layers.Softmax()(x).numpy()
    set_mask(x, mask)
    y = layers.Softmax()(x)
    np.testing.assert_array_equal(y.numpy(), expected)
    assert get_mask(y) is mask


def test_softmax_refuses_a_mask_that_does_not_fit() -> None:
    x = random_inputs((2, 3))
    for shape in ((2, 2), (4, 2, 3)):
        with pytest.raises(ShapeError, match="does not broadcast to the inputs"):
            layers.Softmax()(x, mask=np.ones(shape, bool))


REFUSED: list[Any] = [
    (lambda: wrong.Activation("rleu"), "rleu"),
    (lambda: wrong.ReLU(max_value=-1), "max_value must be a number of at least 0, got -1"),
    (lambda: wrong.ReLU(negative_slope=None), "negative_slope must be a number of at least 0"),
    (lambda: wrong.ReLU(threshold=-0.5), "threshold must be a number of at least 0"),
    (lambda: wrong.LeakyReLU(-1), "negative_slope must be a number of at least 0"),
    (lambda: wrong.LeakyReLU(None), "negative_slope must be a number of at least 0"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_constructor_refuses(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()
