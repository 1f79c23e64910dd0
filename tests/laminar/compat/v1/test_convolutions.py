"""Convolutions, their gradients and windows under `tf.nn`, against sums written out in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar.engine.errors import InvalidArgumentError, ShapeError

rng = np.random.default_rng(5)
X = rng.normal(size=(2, 5, 6, 2))
K = rng.normal(size=(3, 2, 2, 3))
D = rng.normal(size=(3, 2, 2, 2))


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(x: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(x, feed)


def padded(x: Any, window: Any, strides: Any, rates: Any, padding: Any, fill: float = 0.0) -> Any:
    """(x with its padding, the number of positions), the first axis and the last one apart."""
    pads, out = [(0, 0)], []
    for n, k, s, r in zip(x.shape[1:-1], window, strides, rates, strict=True):
        span = (k - 1) * r + 1
        total = max((-(-n // s) - 1) * s + span - n, 0) if padding == "SAME" else 0
        pads.append((total // 2, total - total // 2))
        out.append((n + total - span) // s + 1)
    return np.pad(x, [*pads, (0, 0)], constant_values=fill), out


def windows(x: Any, window: Any, strides: Any, rates: Any, padding: Any, fill: float = 0.0) -> Any:
    """(batch, y, x, rows, columns, channels): what lies under each tap of each window."""
    x, (h, w) = padded(x, window, strides, rates, padding, fill)
    (kh, kw), (sh, sw), (rh, rw) = window, strides, rates
    found = np.empty((x.shape[0], h, w, kh, kw, x.shape[-1]))
    for i, j, a, b in np.ndindex(h, w, kh, kw):
        found[:, i, j, a, b] = x[:, i * sh + a * rh, j * sw + b * rw]
    return found


def conv(x: Any, k: Any, strides: Any, rates: Any, padding: Any) -> Any:
    return np.einsum("nyxabc,abcf->nyxf", windows(x, k.shape[:2], strides, rates, padding), k)


def depthwise(x: Any, k: Any, strides: Any, rates: Any, padding: Any) -> Any:
    y = np.einsum("nyxabc,abcm->nyxcm", windows(x, k.shape[:2], strides, rates, padding), k)
    return y.reshape(*y.shape[:3], -1)


def adjoint(linear: Callable[[Any], Any], shape: Any, dy: Any) -> Any:
    """The gradient of sum(dy * linear(x)) by x, one element of x after the other."""
    found = np.zeros(shape)
    for place in np.ndindex(*shape):
        one = np.zeros(shape)
        one[place] = 1
        found[place] = np.sum(dy * linear(one))
    return found


def first(x: Any) -> Any:
    return np.moveaxis(x, -1, 1)


STEPS: list[Any] = [
    ((1, 1), (1, 1), "SAME"),
    ((2, 1), (1, 1), "SAME"),
    ((2, 2), (1, 1), "VALID"),
    ((1, 1), (1, 2), "VALID"),
]


@pytest.mark.parametrize(("strides", "rates", "padding"), STEPS)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_a_convolution_and_its_gradients(
    strides: Any, rates: Any, padding: str, layout: str
) -> None:
    last = layout == "NHWC"
    give: Any = (lambda x: x) if last else first
    y = conv(X, K, strides, rates, padding)
    dy = rng.normal(size=y.shape)
    dx = adjoint(lambda x: conv(x, K, strides, rates, padding), X.shape, dy)
    dk = adjoint(lambda k: conv(X, k, strides, rates, padding), K.shape, dy)
    s = [1, *strides, 1] if last else [1, 1, *strides]
    r = [1, *rates, 1] if last else [1, 1, *rates]
    options: Any = {"strides": s, "padding": padding, "data_format": layout, "dilations": r}
    shape = give(X).shape
    found = run(
        [
            tf.nn.conv2d(give(X), K, **options),
            tf.nn.conv2d_transpose(give(dy), K, shape, **options),
            tf.nn.conv2d_backprop_input(shape, K, give(dy), **options),
            tf.nn.conv2d_backprop_filter(give(X), K.shape, give(dy), **options),
            tf.nn.convolution(
                give(X), K, padding, strides, data_format=layout, dilation_rate=rates
            ),
            tf.nn.conv_transpose(give(dy), K, shape, strides, padding, layout, rates),
        ]
    )
    for value, expected in zip(
        found, (give(y), give(dx), give(dx), dk, give(y), give(dx)), strict=True
    ):
        np.testing.assert_allclose(value, expected, atol=1e-12)


@pytest.mark.parametrize(("strides", "rates", "padding"), STEPS)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_each_channel_by_itself(strides: Any, rates: Any, padding: str, layout: str) -> None:
    last = layout == "NHWC"
    give: Any = (lambda x: x) if last else first
    y = depthwise(X, D, strides, rates, padding)
    dy = rng.normal(size=y.shape)
    s = [1, *strides, 1] if last else [1, 1, *strides]
    r = [1, *rates, 1] if last else [1, 1, *rates]
    given: Any = (s, padding, layout, r)
    found = run(
        [
            tf.nn.depthwise_conv2d(give(X), D, s, padding, rates, data_format=layout),
            tf.nn.depthwise_conv2d_backprop_input(give(X).shape, D, give(dy), *given),
            tf.nn.depthwise_conv2d_backprop_filter(give(X), D.shape, give(dy), *given),
        ]
    )
    expected = [
        give(y),
        give(adjoint(lambda x: depthwise(x, D, strides, rates, padding), X.shape, dy)),
        adjoint(lambda k: depthwise(X, k, strides, rates, padding), D.shape, dy),
    ]
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, wanted, atol=1e-12)


def test_sizes_that_a_run_knows() -> None:
    x = tf.placeholder(tf.float64, [None, None, None, 2])
    dy = tf.nn.conv2d(x, K, [1, 2, 2, 1], "SAME")
    again = tf.nn.conv2d_transpose(dy, K, tf.shape(x), [1, 2, 2, 1])
    y = conv(X, K, (2, 2), (1, 1), "SAME")
    expected = adjoint(lambda x: conv(x, K, (2, 2), (1, 1), "SAME"), X.shape, y)
    np.testing.assert_allclose(run(again, {x: X}), expected, atol=1e-12)


def test_paddings_by_number() -> None:
    pads = [[0, 0], [1, 2], [0, 3], [0, 0]]
    found = run(tf.nn.conv2d(X, K, 1, pads))
    np.testing.assert_allclose(found, conv(np.pad(X, pads), K, (1, 1), (1, 1), "VALID"), atol=1e-12)


def test_taps_that_are_apart() -> None:
    y = conv(X, K, (1, 1), (2, 2), "SAME")
    atrous = tf.nn.atrous_conv2d(X, K, 2, "SAME")
    back = tf.nn.atrous_conv2d_transpose(y, K, X.shape, 2, "SAME")
    found = run([atrous, back])
    np.testing.assert_allclose(found[0], y, atol=1e-12)
    expected = adjoint(lambda x: conv(x, K, (1, 1), (2, 2), "SAME"), X.shape, y)
    np.testing.assert_allclose(found[1], expected, atol=1e-12)


def test_one_and_three_axes() -> None:
    x, k = rng.normal(size=(2, 6, 2)), rng.normal(size=(3, 2, 4))
    y = conv(x[:, None], k[None], (1, 2), (1, 1), "SAME")
    dx = adjoint(lambda x: conv(x[:, None], k[None], (1, 2), (1, 1), "SAME"), x.shape, y)
    found = run(
        [
            tf.nn.conv1d(x, k, 2, "SAME"),
            tf.nn.conv1d(input=first(x), filters=k, stride=2, padding="SAME", data_format="NCW"),
            tf.nn.conv1d_transpose(y[:, 0], k, x.shape, 2),
        ]
    )
    for value, wanted in zip(found, (y[:, 0], first(y[:, 0]), dx), strict=True):
        np.testing.assert_allclose(value, wanted, atol=1e-12)
    volume, taps = X[:, None], K[None]
    y3 = conv(X, K, (2, 1), (1, 1), "SAME")
    found = run(
        [
            tf.nn.conv3d_transpose(y3[:, None], taps, volume.shape, [1, 1, 2, 1, 1]),
            tf.nn.conv3d_backprop_filter(volume, taps.shape, y3[:, None], [1, 1, 2, 1, 1], "SAME"),
        ]
    )
    dx3 = adjoint(lambda x: conv(x, K, (2, 1), (1, 1), "SAME"), X.shape, y3)
    dk3 = adjoint(lambda k: conv(X, k, (2, 1), (1, 1), "SAME"), K.shape, y3)
    np.testing.assert_allclose(found[0], dx3[:, None], atol=1e-12)
    np.testing.assert_allclose(found[1], dk3[None], atol=1e-12)


def test_windows_are_pooled() -> None:
    inside = windows(X, (2, 3), (1, 2), (2, 1), "SAME", np.nan)
    found = run(
        [
            tf.nn.pool(X, [2, 3], "MAX", "SAME", [2, 1], [1, 2]),
            tf.nn.pool(first(X), [2, 3], "AVG", "SAME", [2, 1], [1, 2], data_format="NCHW"),
            tf.nn.pool(X, [2, 2], "AVG", "VALID"),
            tf.nn.max_pool1d(X[:, 0], 2, 2, "VALID"),
            tf.nn.avg_pool1d(X[:, 0], [2], [2], "VALID"),
        ]
    )
    pairs = X[:, 0].reshape(2, 3, 2, 2)
    expected = [
        np.nanmax(inside, (3, 4)),
        first(np.nanmean(inside, (3, 4))),
        windows(X, (2, 2), (1, 1), (1, 1), "VALID").mean((3, 4)),
        pairs.max(2),
        pairs.mean(2),
    ]
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, wanted, atol=1e-12)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("with_batch", [False, True])
def test_the_places_of_the_greatest(padding: str, with_batch: bool) -> None:
    x = rng.integers(0, 5, size=X.shape).astype("float32")
    greatest, places = run(
        tf.nn.max_pool_with_argmax(
            x, [1, 2, 3, 1], [1, 2, 2, 1], padding, include_batch_in_index=with_batch
        )
    )
    inside = windows(x, (2, 3), (2, 2), (1, 1), padding, -1.0)
    np.testing.assert_array_equal(greatest, inside.max((3, 4)))
    number = np.broadcast_to(np.arange(x[0].size).reshape(1, *x.shape[1:]), x.shape)
    if with_batch:
        number = np.arange(x.size).reshape(x.shape)
    numbers = windows(number.astype(float), (2, 3), (2, 2), (1, 1), padding)
    order = inside.reshape(*inside.shape[:3], 6, 2).argmax(3)
    expected = np.take_along_axis(
        numbers.reshape(*numbers.shape[:3], 6, 2), order[:, :, :, None], 3
    )[:, :, :, 0]
    assert places.dtype == np.int64
    np.testing.assert_array_equal(places, expected)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_dilation_and_erosion(padding: str) -> None:
    kernel = D[..., 0]
    inside = windows(X, (3, 2), (1, 2), (1, 2), padding, -np.inf)
    expected = (inside + kernel).max((3, 4))
    inside = windows(X, (3, 2), (1, 2), (1, 2), padding, np.inf)
    least = (inside - kernel[::-1, ::-1]).min((3, 4))
    given = ([1, 1, 2, 1], [1, 1, 2, 1], padding)
    x = tf.constant(X)
    y = tf.nn.dilation2d(x, kernel, *given)
    found = run([y, tf.nn.erosion2d(X, kernel, *given), tf.gradients(y, x)[0]])
    np.testing.assert_allclose(found[0], expected, atol=1e-12)
    np.testing.assert_allclose(found[1], least, atol=1e-12)
    np.testing.assert_allclose(found[2].sum(), expected.size)


def test_what_cannot_be() -> None:
    x = tf.placeholder(tf.float32, [1, None, None, 1])
    with pytest.raises(ShapeError, match="must be known"):
        tf.nn.max_pool_with_argmax(x, 2, 2, "SAME")
    with pytest.raises(InvalidArgumentError, match="'MAX' or 'AVG'"):
        tf.nn.pool(X, [2, 2], "MIN", "SAME")
    with pytest.raises(InvalidArgumentError, match="'SAME' or 'VALID'"):
        tf.nn.max_pool(X, 2, 2, "FULL")
    with pytest.raises(InvalidArgumentError, match="over the batch"):
        tf.nn.conv2d(X, K, [2, 1, 1, 1], "SAME")
