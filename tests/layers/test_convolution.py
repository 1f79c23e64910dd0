"""Convolutions, transposed, depthwise and separable ones."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from laminar import layers, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError

from .harness import check_agreement, check_layer, random_inputs

wrong: Any = layers  # for arguments of the wrong type

SPATIAL = (9, 8, 7)


def image(rank: int, data_format: str = "channels_last", channels: int = 4) -> tuple[int, ...]:
    spatial = SPATIAL[:rank]
    if data_format == "channels_first":
        return (2, channels, *spatial)
    return (2, *spatial, channels)


HARNESS = [
    ("Conv1D", {"filters": 3, "kernel_size": 2}, 1, (2, 8, 3), {"kernel": (2, 4, 3), "bias": (3,)}),
    (
        "Conv1D",
        {"filters": 3, "kernel_size": 3, "padding": "causal", "dilation_rate": 2},
        1,
        (2, 9, 3),
        {"kernel": (3, 4, 3), "bias": (3,)},
    ),
    (
        "Conv2D",
        {"filters": 3, "kernel_size": (3, 2), "strides": 2, "padding": "same"},
        2,
        (2, 5, 4, 3),
        {"kernel": (3, 2, 4, 3), "bias": (3,)},
    ),
    (
        "Conv2D",
        {"filters": 6, "kernel_size": 1, "groups": 2, "use_bias": False, "activation": "relu"},
        2,
        (2, 9, 8, 6),
        {"kernel": (1, 1, 2, 6)},
    ),
    (
        "Conv3D",
        {"filters": 2, "kernel_size": 2, "data_format": "channels_first"},
        3,
        (2, 2, 8, 7, 6),
        {"kernel": (2, 2, 2, 4, 2), "bias": (2,)},
    ),
    (
        "Conv1DTranspose",
        {"filters": 3, "kernel_size": 3, "strides": 2},
        1,
        (2, 19, 3),
        {"kernel": (3, 3, 4), "bias": (3,)},
    ),
    (
        "Conv2DTranspose",
        {"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same"},
        2,
        (2, 18, 16, 3),
        {"kernel": (3, 3, 3, 4), "bias": (3,)},
    ),
    (
        "Conv3DTranspose",
        {"filters": 2, "kernel_size": 2},
        3,
        (2, 10, 9, 8, 2),
        {"kernel": (2, 2, 2, 2, 4), "bias": (2,)},
    ),
    (
        "DepthwiseConv1D",
        {"kernel_size": 3, "depth_multiplier": 2},
        1,
        (2, 7, 8),
        {"kernel": (3, 4, 2), "bias": (8,)},
    ),
    (
        "DepthwiseConv2D",
        {"kernel_size": 3, "padding": "same"},
        2,
        (2, 9, 8, 4),
        {"kernel": (3, 3, 4, 1), "bias": (4,)},
    ),
    (
        "SeparableConv1D",
        {"filters": 5, "kernel_size": 3},
        1,
        (2, 7, 5),
        {"depthwise_kernel": (3, 4, 1), "pointwise_kernel": (1, 4, 5), "bias": (5,)},
    ),
    (
        "SeparableConv2D",
        {"filters": 5, "kernel_size": 3, "depth_multiplier": 2},
        2,
        (2, 7, 6, 5),
        {"depthwise_kernel": (3, 3, 4, 2), "pointwise_kernel": (1, 1, 8, 5), "bias": (5,)},
    ),
]


@pytest.mark.parametrize(("name", "kwargs", "rank", "output", "weights"), HARNESS)
def test_layer(
    name: str, kwargs: dict[str, Any], rank: int, output: tuple[int, ...], weights: dict[str, Any]
) -> None:
    check_layer(
        getattr(layers, name),
        kwargs,
        image(rank, kwargs.get("data_format", "channels_last")),
        expected_output_shape=output,
        expected_weights=weights,
        tolerance=1e-5,
    )


def agreement_cases() -> list[Any]:
    """Every layer in both layouts; strides and dilations with both paddings for images."""
    steps: list[dict[str, Any]] = [
        {"strides": 2, "padding": "same"},
        {"dilation_rate": 2, "padding": "valid"},
        {"strides": 2, "padding": "valid"},
        {"dilation_rate": 2, "padding": "same"},
    ]
    cases: list[Any] = []
    for rank, layout in product((1, 2, 3), ("channels_last", "channels_first")):
        if (rank, layout) == (3, "channels_first"):
            continue  # no code of its own, and slow to compile in Keras
        count = 1 if layout == "channels_first" else {1: 2, 2: 4, 3: 1}[rank]
        for step in steps[:count]:
            kwargs = {"kernel_size": 3, "data_format": layout, **step}
            cases += [
                (f"Conv{rank}D", {"filters": 6, **kwargs}, image(rank, layout)),
                (f"Conv{rank}DTranspose", {"filters": 3, **kwargs}, image(rank, layout)),
            ]
            if rank < 3:
                double = {"depth_multiplier": 2, **kwargs}
                cases += [
                    (f"DepthwiseConv{rank}D", double, image(rank, layout)),
                    (f"SeparableConv{rank}D", {"filters": 5, **double}, image(rank, layout)),
                ]
        if rank == 2:
            grouped = {"filters": 6, "kernel_size": 2, "groups": 2, "data_format": layout}
            cases.append(("Conv2D", grouped, image(2, layout)))
    causal = {"filters": 3, "kernel_size": 3, "padding": "causal"}
    spread = {"kernel_size": 2, "strides": 2, "dilation_rate": 2}
    grown = {"filters": 3, "kernel_size": 3, "strides": 3, "output_padding": (0, 1)}
    return [
        *cases,
        ("Conv1D", {**causal, "dilation_rate": 2, "activation": "tanh"}, image(1)),
        ("Conv1D", {**causal, "strides": 2}, image(1)),
        ("DepthwiseConv2D", spread, image(2)),
        ("SeparableConv1D", {**spread, "filters": 3, "padding": "same"}, image(1)),
        ("Conv2D", {"filters": 3, "kernel_size": (1, 3), "strides": (2, 1)}, image(2)),
        ("Conv2DTranspose", grown, image(2)),
        ("Conv2DTranspose", {**grown, "padding": "same"}, image(2)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kwargs", "shape"), agreement_cases())
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of Keras
def test_agrees_with_keras(name: str, kwargs: dict[str, Any], shape: tuple[int, ...]) -> None:
    check_agreement(name, kwargs, shape)


def test_causal_convolution_sees_nothing_later() -> None:
    layer = layers.Conv1D(2, 3, padding="causal")
    x = random_inputs((1, 6, 2))
    before = layer(x).numpy()
    x[:, 4:] += 1
    after = layer(x).numpy()
    np.testing.assert_array_equal(after[:, :4], before[:, :4])
    assert (after[:, 4:] != before[:, 4:]).any()


REFUSED: list[Any] = [
    (lambda: wrong.Conv2D(0, 3), "filters must be a whole number of at least 1, got 0"),
    (lambda: wrong.Conv2D(4.5, 3), "filters must be a whole number"),
    (lambda: wrong.Conv2D(4, 0), "kernel_size must be a whole number of at least 1"),
    (lambda: wrong.Conv2D(4, (3, 3, 3)), "kernel_size must be a whole number, or 2 of them"),
    (lambda: wrong.Conv2D(4, 3, strides=0), "strides must be a whole number"),
    (lambda: wrong.Conv2D(4, 3, strides=(1, 0)), "strides must be a whole number"),
    (lambda: wrong.Conv2D(4, 3, padding="full"), "padding must be one of 'valid', 'same'"),
    (lambda: wrong.Conv2D(4, 3, padding="causal"), "padding must be one of 'valid', 'same'"),
    (lambda: wrong.Conv2D(4, 3, data_format="last"), "data_format: expected one of"),
    (lambda: wrong.Conv2D(4, 3, strides=2, dilation_rate=2), "are both above 1"),
    (lambda: wrong.Conv2D(4, 3, groups=0), "groups must be a whole number"),
    (lambda: wrong.Conv2D(4, 3, groups=3), "4 filters cannot be divided into 3 groups"),
    (lambda: wrong.Conv2D(4, 3, activation="rellu"), "rellu"),
    (lambda: wrong.Conv2DTranspose(4, 3, output_padding=1), "must be below the strides"),
    (lambda: wrong.DepthwiseConv2D(3, depth_multiplier=0), "depth_multiplier must be"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_constructor_refuses(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_build_refuses_what_does_not_fit() -> None:
    with pytest.raises(InvalidArgumentError, match=r"3 channels .* divided into 2 groups"):
        layers.Conv2D(4, 3, groups=2)(np.zeros((1, 5, 5, 3), np.float32))
    with pytest.raises(ShapeError, match="the number of channels .* unknown"):
        layers.Conv2D(4, 3).build((None, 5, 5, None))
    with pytest.raises(ShapeError, match=r"expected 4 axes, got shape \(5, 5, 3\)"):
        layers.Conv2D(4, 3)(np.zeros((5, 5, 3), np.float32))
    layer = layers.Conv2D(4, 3)
    layer(np.zeros((1, 5, 5, 3), np.float32))
    with pytest.raises(ShapeError, match="expected size 3 along axis -1"):
        layer(np.zeros((1, 5, 5, 2), np.float32))
    with pytest.raises(ShapeError, match="window"):
        layers.Conv2D(4, 7)(np.zeros((1, 5, 5, 3), np.float32))


def test_unknown_height_and_width() -> None:
    x = layers.Input((None, None, 3))
    assert tuple(layers.Conv2D(4, 3, padding="same")(x).shape) == (None, None, None, 4)
    assert tuple(layers.Conv2DTranspose(4, 3, strides=2)(x).shape) == (None, None, None, 4)
    assert tuple(layers.SeparableConv2D(4, 3)(x).shape) == (None, None, None, 4)


def test_regularizers_and_constraints_reach_the_weights() -> None:
    layer = layers.SeparableConv2D(
        2, 3, depthwise_regularizer="l2", pointwise_regularizer="l1", bias_constraint="non_neg"
    )
    layer.build((None, 5, 5, 3))
    depthwise, pointwise, bias = layer.weights
    assert type(depthwise.regularizer).__name__ == "L2"
    assert type(pointwise.regularizer).__name__ == "L1"
    assert type(bias.constraint).__name__ == "NonNeg"
    assert len(layer.losses) == 2


def test_the_convolution_can_be_overridden() -> None:
    class Standardized(layers.Conv2D):
        def convolution_op(self, inputs: Any, kernel: Any) -> Any:
            return super().convolution_op(inputs, kernel - ops.mean(kernel, axis=(0, 1, 2)))

    x = np.ones((1, 5, 5, 2), "float32")
    layer = Standardized(3, 3, bias_initializer="ones", activation="relu")
    np.testing.assert_allclose(layer(x), np.ones((1, 3, 3, 3)), atol=1e-5)
