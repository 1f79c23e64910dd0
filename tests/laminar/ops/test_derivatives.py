"""Gradients of what is composed of several engine ops, against differences in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import activations, ops

from ...engine.ops.harness import check_op

rng = np.random.default_rng(9)


def n(*shape: int) -> Any:
    return rng.normal(size=shape)


def u(*shape: int) -> Any:
    return rng.uniform(0.2, 0.8, shape)


CASES = [
    pytest.param(ops.corrcoef, np.corrcoef, [n(3, 5)], id="corrcoef"),
    pytest.param(ops.ptp, np.ptp, [n(3, 4)], id="ptp"),
    pytest.param(ops.trapezoid, np.trapezoid, [n(3, 4), n(4)], id="trapezoid"),
    pytest.param(ops.diff, lambda x: np.diff(x), [n(3, 4)], id="diff"),
    pytest.param(ops.nanmean, np.nanmean, [n(3, 4)], id="nanmean"),
    pytest.param(ops.nanvar, np.nanvar, [n(3, 4)], id="nanvar"),
    pytest.param(ops.vander, np.vander, [n(4)], id="vander"),
    pytest.param(
        lambda x, w: ops.average(x, weights=w),
        lambda x, w: np.average(x, weights=w),
        [n(3, 4), u(3, 4)],
        id="average",
    ),
    pytest.param(
        lambda x: ops.nanquantile(x, 0.3, 1), lambda x: np.quantile(x, 0.3, 1), [n(3, 4)], id="nanq"
    ),
    pytest.param(
        ops.cdist,
        lambda x, y: np.linalg.norm(x[:, None] - y[None], axis=-1),
        [n(3, 2), n(4, 2)],
        id="cdist",
    ),
    pytest.param(
        lambda x: ops.normalize(x, order=3),
        lambda x: x / (np.abs(x) ** 3).sum(-1, keepdims=True) ** (1 / 3),
        [n(3, 4)],
        id="normalize",
    ),
    pytest.param(
        lambda t, y: ops.categorical_crossentropy(t, y),
        lambda t, y: -(t * np.log(y / y.sum(-1, keepdims=True))).sum(-1),
        [u(3, 4), u(3, 4)],
        id="categorical",
    ),
    pytest.param(
        ops.binary_crossentropy,
        lambda t, y: -(t * np.log(y) + (1 - t) * np.log(1 - y)),
        [u(3, 4), u(3, 4)],
        id="binary",
    ),
    pytest.param(
        lambda t, y: ops.sparse_categorical_crossentropy(t, y),
        lambda t, y: -np.log((y / y.sum(-1, keepdims=True))[np.arange(3), t]),
        [np.array([1, 0, 3]), u(3, 4)],
        id="sparse categorical",
    ),
    pytest.param(
        lambda x: ops.irfft(ops.rfft(x)), lambda x: x, [n(2, 6)], id="rfft there and back"
    ),
    pytest.param(
        lambda x: activations.mish(x), lambda x: x * np.tanh(np.log1p(np.exp(x))), [n(7)], id="mish"
    ),
    pytest.param(
        lambda x: activations.relu(x, 0.3, 2.0, 0.5),
        lambda x: np.where(x > 2, 2.0, np.where(x > 0.5, x, 0.3 * (x - 0.5))),
        [3 * n(20)],
        id="relu with options",
    ),
]


@pytest.mark.parametrize(("fn", "reference", "inputs"), CASES)
def test_gradients(fn: Any, reference: Any, inputs: list[Any]) -> None:
    check_op(fn, reference, inputs, dynamic=False)


STATIC = [
    pytest.param(lambda x: ops.unfold(x, 2, padding=1), [n(1, 2, 3, 3)], id="unfold"),
    pytest.param(lambda x: ops.fold(x, (3, 3), 2), [n(1, 8, 4)], id="fold"),
    pytest.param(lambda x: ops.stft(x, 4, 2, 4), [n(12)], id="stft"),
    pytest.param(lambda x: ops.extract_sequences(x, 4, 2), [n(2, 9)], id="extract_sequences"),
    pytest.param(lambda x: ops.sparsemax(x), [n(3, 5)], id="sparsemax"),
    pytest.param(
        lambda x, y: ops.image.map_coordinates(x, y, 1, "reflect"),
        [n(4, 5), rng.uniform(-2, 6, (2, 7))],
        id="map_coordinates",
    ),
    pytest.param(lambda x: ops.image.resize(x, (3, 5)), [n(4, 4, 2)], id="resize"),
    pytest.param(lambda x: ops.image.gaussian_blur(x), [n(4, 4, 2)], id="gaussian_blur"),
    pytest.param(lambda x: ops.image.rgb_to_hsv(x), [u(2, 3, 3)], id="rgb_to_hsv"),
    pytest.param(lambda x: ops.image.hsv_to_rgb(x), [u(2, 3, 3)], id="hsv_to_rgb"),
    pytest.param(
        lambda x, y: ops.image.ssim(x, y, filter_size=3), [u(5, 5, 1), u(5, 5, 1)], id="ssim"
    ),
    pytest.param(
        lambda x, m: ops.image.affine_transform(x, m),
        [n(1, 4, 4, 1), np.array([[0.91, 0.13, 0.37, -0.17, 1.07, 0.23, 0.01, 0.02]])],
        id="affine_transform",
    ),
    pytest.param(
        lambda q, k, v: ops.dot_product_attention(q, k, v, is_causal=True),
        [n(1, 3, 2, 4), n(1, 3, 2, 4), n(1, 3, 2, 4)],
        id="attention",
    ),
    pytest.param(
        lambda q, k, v: ops.dot_product_attention(q, k, v, attn_logits_soft_cap=2.0),
        [n(1, 3, 2, 4), n(1, 5, 1, 4), n(1, 5, 1, 4)],
        id="attention with shared heads and a soft cap",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("fn", "inputs"), STATIC)
def test_gradients_of_what_needs_shapes(fn: Any, inputs: list[Any]) -> None:
    """The value itself is compared elsewhere; here it is its own reference."""

    def itself(*arrays: Any) -> Any:
        found = fn(*arrays)
        return tuple(y.numpy() for y in found) if isinstance(found, tuple) else found.numpy()

    check_op(fn, itself, inputs, dynamic=False)
