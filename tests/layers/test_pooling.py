"""Pooling over windows, over everything, over a number of windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import layers
from laminar.engine.errors import InvalidArgumentError, ShapeError

from .harness import check_agreement, check_layer, random_inputs

wrong: Any = layers  # for arguments of the wrong type

SPATIAL = (9, 8, 7)


def image(rank: int, data_format: str = "channels_last") -> tuple[int, ...]:
    spatial = SPATIAL[:rank]
    return (2, 4, *spatial) if data_format == "channels_first" else (2, *spatial, 4)


HARNESS = [
    ("MaxPooling1D", {}, 1, (2, 4, 4)),
    ("MaxPooling2D", {"padding": "same"}, 2, (2, 5, 4, 4)),
    ("MaxPooling3D", {"strides": 1}, 3, (2, 8, 7, 6, 4)),
    ("AveragePooling1D", {"pool_size": 3}, 1, (2, 3, 4)),
    ("AveragePooling2D", {"pool_size": (2, 3), "strides": (1, 2)}, 2, (2, 8, 3, 4)),
    ("AveragePooling3D", {"pool_size": 2, "padding": "same"}, 3, (2, 5, 4, 4, 4)),
    ("GlobalMaxPooling1D", {}, 1, (2, 4)),
    ("GlobalMaxPooling2D", {"keepdims": True}, 2, (2, 1, 1, 4)),
    ("GlobalMaxPooling3D", {"data_format": "channels_first"}, 3, (2, 4)),
    ("GlobalAveragePooling1D", {}, 1, (2, 4)),
    ("GlobalAveragePooling2D", {}, 2, (2, 4)),
    ("GlobalAveragePooling3D", {"keepdims": True}, 3, (2, 1, 1, 1, 4)),
    ("AdaptiveMaxPooling1D", {"output_size": 4}, 1, (2, 4, 4)),
    ("AdaptiveMaxPooling2D", {"output_size": 3}, 2, (2, 3, 3, 4)),
    ("AdaptiveMaxPooling3D", {"output_size": 2}, 3, (2, 2, 2, 2, 4)),
    ("AdaptiveAveragePooling1D", {"output_size": 2}, 1, (2, 2, 4)),
    ("AdaptiveAveragePooling2D", {"output_size": (2, 5)}, 2, (2, 2, 5, 4)),
    ("AdaptiveAveragePooling3D", {"output_size": 3}, 3, (2, 3, 3, 3, 4)),
]


@pytest.mark.parametrize(("name", "kwargs", "rank", "output"), HARNESS)
def test_layer(name: str, kwargs: dict[str, Any], rank: int, output: tuple[int, ...]) -> None:
    shape = image(rank, kwargs.get("data_format", "channels_last"))
    check_layer(getattr(layers, name), kwargs, shape, expected_output_shape=output)


WINDOWS = [
    {"pool_size": 2},
    {"pool_size": 3, "strides": 1, "padding": "same"},
    {"pool_size": 2, "strides": 3, "padding": "same"},
    {"pool_size": 2, "data_format": "channels_first"},
]


@pytest.mark.parametrize("kwargs", WINDOWS)
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("kind", ["MaxPooling", "AveragePooling"])
def test_windows_agree_with_keras(kind: str, rank: int, kwargs: dict[str, Any]) -> None:
    shape = image(rank, kwargs.get("data_format", "channels_last"))
    check_agreement(f"{kind}{rank}D", kwargs, shape)


@pytest.mark.slow
@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_global_and_adaptive_agree_with_keras(rank: int, data_format: str) -> None:
    shape = image(rank, data_format)
    for kind in ("GlobalMaxPooling", "GlobalAveragePooling"):
        for keepdims in (False, True):
            kwargs = {"keepdims": keepdims, "data_format": data_format}
            check_agreement(f"{kind}{rank}D", kwargs, shape)
    for kind in ("AdaptiveMaxPooling", "AdaptiveAveragePooling"):
        check_agreement(f"{kind}{rank}D", {"output_size": 4, "data_format": data_format}, shape)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_masked_steps_are_left_out_of_the_mean(data_format: str, keepdims: bool) -> None:
    mask = np.array([[True, False, True], [True, True, True]])
    shape = (2, 3, 4) if data_format == "channels_last" else (2, 4, 3)
    kwargs = {"data_format": data_format, "keepdims": keepdims}
    check_agreement("GlobalAveragePooling1D", kwargs, shape, mask=mask)
    x = random_inputs((2, 3, 4))
    y = layers.GlobalAveragePooling1D()(x, mask=mask).numpy()
    np.testing.assert_allclose(y[0], x[0, [0, 2]].mean(0), rtol=1e-6)


REFUSED: list[Any] = [
    (lambda: wrong.MaxPooling2D(0), "pool_size must be a whole number of at least 1"),
    (lambda: wrong.MaxPooling2D((2, 2, 2)), "pool_size must be a whole number, or 2 of them"),
    (lambda: wrong.MaxPooling2D(2, strides=-1), "strides must be a whole number"),
    (lambda: wrong.AveragePooling1D(2, padding="causal"), "padding must be one of"),
    (lambda: wrong.AveragePooling1D(2, data_format="x"), "data_format"),
    (lambda: wrong.AdaptiveMaxPooling2D(0), "output_size must be a whole number"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_constructor_refuses(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_the_number_of_axes_is_checked() -> None:
    for layer in (layers.MaxPooling2D(), layers.GlobalMaxPooling2D()):
        with pytest.raises(ShapeError, match="expected 4 axes"):
            layer(np.zeros((2, 3, 4), np.float32))
