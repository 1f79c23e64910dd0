"""Flatten, Reshape, Permute, RepeatVector; cropping, padding, upsampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import layers
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.functions import function
from laminar.engine.graph import TensorSpec

from .harness import check_agreement, check_layer, random_inputs

wrong: Any = layers  # for arguments of the wrong type

FIRST = "channels_first"
CASES: list[Any] = [
    ("Flatten", {}, (2, 3, 4, 5), (2, 60)),
    ("Flatten", {"data_format": FIRST}, (2, 3, 4, 5), (2, 60)),
    ("Flatten", {}, (3,), (3, 1)),
    ("Reshape", {"target_shape": (4, 3)}, (2, 12), (2, 4, 3)),
    ("Reshape", {"target_shape": (-1, 2)}, (2, 3, 4), (2, 6, 2)),
    ("Reshape", {"target_shape": (-1,)}, (2, 3, 4), (2, 12)),
    ("Reshape", {"target_shape": ()}, (2, 1), (2,)),
    ("Permute", {"dims": (2, 1)}, (2, 3, 4), (2, 4, 3)),
    ("Permute", {"dims": (3, 1, 2)}, (2, 3, 4, 5), (2, 5, 3, 4)),
    ("RepeatVector", {"n": 3}, (2, 4), (2, 3, 4)),
    ("Cropping1D", {}, (2, 7, 3), (2, 5, 3)),
    ("Cropping1D", {"cropping": (0, 2)}, (2, 7, 3), (2, 5, 3)),
    ("Cropping2D", {"cropping": 1}, (2, 7, 6, 3), (2, 5, 4, 3)),
    ("Cropping2D", {"cropping": (2, 1), "data_format": FIRST}, (2, 3, 7, 6), (2, 3, 3, 4)),
    ("Cropping2D", {"cropping": ((1, 0), (0, 2))}, (2, 7, 6, 3), (2, 6, 4, 3)),
    ("Cropping3D", {}, (2, 7, 6, 5, 3), (2, 5, 4, 3, 3)),
    ("ZeroPadding1D", {"padding": 2}, (2, 7, 3), (2, 11, 3)),
    ("ZeroPadding1D", {"padding": (1, 0), "data_format": FIRST}, (2, 3, 7), (2, 3, 8)),
    ("ZeroPadding2D", {}, (2, 7, 6, 3), (2, 9, 8, 3)),
    ("ZeroPadding2D", {"padding": ((1, 2), (0, 3))}, (2, 7, 6, 3), (2, 10, 9, 3)),
    ("ZeroPadding2D", {"padding": (1, 2), "data_format": FIRST}, (2, 3, 7, 6), (2, 3, 9, 10)),
    ("ZeroPadding3D", {}, (2, 3, 4, 5, 2), (2, 5, 6, 7, 2)),
    ("UpSampling1D", {"size": 3}, (2, 4, 3), (2, 12, 3)),
    ("UpSampling2D", {}, (2, 4, 5, 3), (2, 8, 10, 3)),
    ("UpSampling2D", {"size": (1, 3), "data_format": FIRST}, (2, 3, 4, 5), (2, 3, 4, 15)),
    ("UpSampling2D", {"size": 2, "interpolation": "bilinear"}, (2, 4, 5, 3), (2, 8, 10, 3)),
    ("UpSampling2D", {"size": 2, "interpolation": "bicubic"}, (2, 4, 5, 3), (2, 8, 10, 3)),
    ("UpSampling2D", {"size": 3, "interpolation": "lanczos3"}, (2, 4, 5, 3), (2, 12, 15, 3)),
    ("UpSampling3D", {"size": (1, 2, 3)}, (2, 2, 3, 4, 2), (2, 2, 6, 12, 2)),
    ("UpSampling3D", {"data_format": FIRST}, (2, 2, 2, 3, 4), (2, 2, 4, 6, 8)),
]


@pytest.mark.parametrize(("name", "kwargs", "shape", "output"), CASES)
def test_layer(
    name: str, kwargs: dict[str, Any], shape: tuple[int, ...], output: tuple[int, ...]
) -> None:
    check_layer(getattr(layers, name), kwargs, shape, expected_output_shape=output)
    check_agreement(name, kwargs, shape)


def test_flatten_of_channels_first_has_the_channels_last() -> None:
    x = random_inputs((2, 3, 4, 5))
    first = layers.Flatten("channels_first")(x).numpy()
    np.testing.assert_array_equal(first, np.moveaxis(x, 1, -1).reshape(2, -1))


def test_integers_pass() -> None:
    x = np.arange(12, dtype=np.int32).reshape(2, 6)
    for layer in (layers.Reshape((3, 2)), layers.Flatten(), layers.RepeatVector(2)):
        assert layer(x).dtype == "int32"


UNKNOWN: list[Any] = [
    (layers.Flatten(), (None, 4), (None, None)),
    (layers.Reshape((2, -1)), (None, 4), (None, 2, None)),
    (layers.Reshape((2, 6)), (None, 4), (None, 2, 6)),
    (layers.Permute((2, 1)), (None, 4), (None, 4, None)),
    (layers.Cropping1D((1, 1)), (None, 4), (None, None, 4)),
    (layers.ZeroPadding1D(), (None, 4), (None, None, 4)),
    (layers.UpSampling1D(), (None, 4), (None, None, 4)),
    (layers.ZeroPadding2D(), (None, 5, 3), (None, None, 7, 3)),
]


@pytest.mark.parametrize(("layer", "shape", "output"), UNKNOWN)
def test_unknown_sizes(
    layer: layers.Layer, shape: tuple[int | None, ...], output: tuple[int | None, ...]
) -> None:
    assert tuple(layer(layers.Input(shape)).shape) == output
    traced = function(layer, input_signature=[TensorSpec((None, *shape), "float32")])
    known = [d or 3 for d in shape]
    x = random_inputs((2, *known))
    np.testing.assert_array_equal(traced(x).numpy(), layer(x).numpy())


def test_bilinear_upsampling_of_unknown_sizes() -> None:
    layer = layers.UpSampling2D(2, interpolation="bilinear")
    traced = function(layer, input_signature=[TensorSpec((None, None, None, 3), "float32")])
    x = random_inputs((2, 4, 5, 3))
    np.testing.assert_allclose(traced(x).numpy(), layer(x).numpy(), rtol=1e-6)


REFUSED: list[Any] = [
    (lambda: wrong.Reshape((-1, -1)), "may have one size of -1"),
    (lambda: wrong.Reshape((2, -3)), "target_shape must be a whole number of at least -1"),
    (lambda: wrong.Permute((0, 1)), "the numbers from 1 to 2"),
    (lambda: wrong.Permute((1, 3)), "the numbers from 1 to 2"),
    (lambda: wrong.RepeatVector(0), "n must be a whole number of at least 1"),
    (lambda: wrong.Cropping1D((1, 2, 3)), "cropping of an axis must be"),
    (lambda: wrong.Cropping1D(-1), "cropping must be a whole number of at least 0"),
    (lambda: wrong.Cropping2D((1, 2, 3)), "cropping must be a whole number, or 2 entries"),
    (lambda: wrong.ZeroPadding2D(((1, 2), 3, 4)), "padding must be a whole number, or 2 entries"),
    (lambda: wrong.ZeroPadding2D("ab"), "padding must be a whole number, or 2 entries"),
    (lambda: wrong.ZeroPadding3D(-1), "padding must be a whole number of at least 0"),
    (lambda: wrong.UpSampling1D(0), "size must be a whole number of at least 1"),
    (lambda: wrong.UpSampling2D((1, 2, 3)), "size must be a whole number, or 2 of them"),
    (lambda: wrong.UpSampling2D(2, interpolation="cubic"), "interpolation must be one of"),
    (lambda: wrong.Flatten("last"), "data_format"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_constructor_refuses(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


@pytest.mark.parametrize("value", ["2", 2.5, True])
def test_numbers_of_other_types(value: Any) -> None:
    for make in (wrong.RepeatVector, wrong.UpSampling1D):
        with pytest.raises(TypeError, match="must be a whole number"):
            make(value)


MISFITS: list[Any] = [
    (layers.Reshape((5,)), (2, 4), r"an example of shape \(4,\) has 4 numbers"),
    (layers.Reshape((3, -1)), (2, 4), "do not fill target_shape"),
    (layers.Permute((2, 1)), (2, 3), "expected 3 axes"),
    (layers.RepeatVector(2), (2, 3, 4), "expected 2 axes"),
    (layers.Cropping1D((2, 2)), (2, 4, 3), "leaves nothing of axis 1"),
    (layers.Cropping2D(3), (2, 9, 6, 3), "leaves nothing of axis 2"),
]


@pytest.mark.parametrize(("layer", "shape", "message"), MISFITS)
def test_what_does_not_fit(layer: layers.Layer, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        layer(np.zeros(shape, np.float32))
