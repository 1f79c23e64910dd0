"""Convolutions of `tf.layers`, against laminar's layers with the same weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import laminar
import laminar.compat.v1 as tf

rng = np.random.default_rng(6)
IMAGES = rng.normal(size=(2, 5, 6, 3)).astype("float32")


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


CASES: list[Any] = [
    ("conv2d_transpose", "Conv2DTranspose", IMAGES, {"strides": 2, "padding": "same"}),
    ("conv2d_transpose", "Conv2DTranspose", IMAGES, {"data_format": "channels_first"}),
    ("conv3d_transpose", "Conv3DTranspose", IMAGES[:, None], {"strides": (1, 2, 2)}),
    ("separable_conv2d", "SeparableConv2D", IMAGES, {"depth_multiplier": 2, "padding": "same"}),
    ("separable_conv1d", "SeparableConv1D", IMAGES[:, 0], {"dilation_rate": 2}),
]


@pytest.mark.parametrize(("function", "layer", "x", "options"), CASES)
def test_convolutions(function: str, layer: str, x: Any, options: dict[str, Any]) -> None:
    if function.startswith("conv3d"):
        x = np.repeat(x, 2, axis=1)
    options = {"activation": tf.nn.relu, **options}
    y = getattr(tf.layers, function)(
        x,
        4,
        3 if x.ndim < 5 else (2, 3, 3),
        name="c",
        bias_initializer=tf.ones_initializer(),
        **options,
    )
    own = getattr(laminar.layers, layer)(
        4, 3 if x.ndim < 5 else (2, 3, 3), **{**options, "activation": "relu"}
    )
    own.build(x.shape)
    names = [v.name.removesuffix(":0") for v in tf.trainable_variables()]
    assert names == [f"c/{v.name}" for v in own.trainable_variables]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        weights, found = session.run([tf.trainable_variables(), y])
    own.set_weights(weights)
    np.testing.assert_allclose(found, own(x).numpy(), rtol=1e-5, atol=1e-5)
    assert found.max() > 0
