"""`tf.image` of TensorFlow 1 against NumPy, colorsys and plain loops."""

from __future__ import annotations

import colorsys
import math
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf

rng = np.random.default_rng(0)
X = rng.uniform(size=(2, 4, 5, 3)).astype("float32")
BYTES = rng.integers(0, 256, size=(2, 3, 4), dtype="uint8")[..., None]
BOXES = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11]], "float32")
SCORES = np.array([0.9, 0.75, 0.6, 0.95], "float32")


def places(old: int, new: int, align: bool) -> Any:
    step = (old - 1) / (new - 1) if align and new > 1 else old / new
    return np.arange(new) * step


def along(x: Any, axis: int, new: int, kind: str, align: bool) -> Any:
    old = x.shape[axis]
    rows = []
    for p in places(old, new, align):
        if kind == "nearest":
            at = {min(int(math.floor(p + 0.5) if align else p), old - 1): 1.0}
        elif kind == "bilinear":
            low = int(p)
            at = {low: 1 - (p - low)}
            high = min(low + 1, old - 1)
            at[high] = at.get(high, 0.0) + (p - low)
        else:
            step = old / new
            at = {j: max(0.0, min(p + step, j + 1) - max(p, j)) / step for j in range(old)}
        rows.append(sum(np.take(x, j, axis) * w for j, w in at.items()))
    return np.stack(rows, axis)


def resized(x: Any, size: Any, kind: str, align: bool = False) -> Any:
    return along(along(x, -3, size[0], kind, align), -2, size[1], kind, align)


def with_hsv(change: Any) -> Any:
    flat = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*p))) for p in X.reshape(-1, 3)]
    return np.reshape(flat, X.shape)


def greedy(limit: float) -> list[int]:
    found: list[int] = []
    for i in np.argsort(-SCORES):
        a = BOXES[i]

        def share(j: int, a: Any = a) -> float:
            b = BOXES[j]
            sides = [max(0.0, min(a[k + 2], b[k + 2]) - max(a[k], b[k])) for k in (0, 1)]
            return float(sides[0] * sides[1] / (2 - sides[0] * sides[1]))  # all have area 1

        if all(share(j) <= limit for j in found):
            found.append(int(i))
    return found


def cropped(top: float, left: float, bottom: float, right: float) -> Any:
    rows = np.linspace(top, bottom, 3) * 3
    columns = np.linspace(left, right, 2) * 4
    found = np.empty((3, 2, 3))
    for i, y in enumerate(rows):
        for j, x in enumerate(columns):
            y0, x0 = min(int(y), 2), min(int(x), 3)
            v, u = y - y0, x - x0
            p = X[1]
            upper = p[y0, x0] * (1 - u) + p[y0, x0 + 1] * u
            lower = p[y0 + 1, x0] * (1 - u) + p[y0 + 1, x0 + 1] * u
            found[i, j] = upper * (1 - v) + lower * v
    return found


CASES: list[Any] = [
    *(
        pytest.param(
            lambda m=method, s=size, a=align: tf.image.resize_images(X, s, m, a),
            resized(X, size, kind, align),
            id=f"{kind} {size} {align}",
        )
        for method, kind in ((0, "bilinear"), (1, "nearest"), (3, "area"))
        for size in ((7, 3), (2, 9))
        for align in (False, True)
        if not (align and kind == "area")
    ),
    pytest.param(
        lambda: tf.image.resize_bilinear(X, tf.placeholder_with_default([3, 6], [2])),
        resized(X, (3, 6), "bilinear"),
        id="a size of a run",
    ),
    pytest.param(lambda: tf.image.resize_bicubic(X, [8, 10])[:, ::2, ::2], X, id="bicubic"),
    pytest.param(
        lambda: tf.image.resize_images(X, [8, 20], preserve_aspect_ratio=True),
        resized(X, (8, 10), "bilinear"),
        id="aspect ratio",
    ),
    pytest.param(
        lambda: tf.image.resize_image_with_pad(X, 4, 7), np.pad(X, [(0, 0)] * 2 + [(1, 1), (0, 0)])
    ),
    pytest.param(
        lambda: tf.image.resize_image_with_crop_or_pad(X, 2, 8),
        np.pad(X[:, 1:3], [(0, 0), (0, 0), (1, 2), (0, 0)]),
        id="crop or pad",
    ),
    pytest.param(
        lambda: tf.image.resize_image_with_crop_or_pad(
            tf.placeholder_with_default(X, [None, None, None, 3]), 2, 8
        ),
        np.pad(X[:, 1:3], [(0, 0), (0, 0), (1, 2), (0, 0)]),
        id="crop or pad of a run",
    ),
    pytest.param(lambda: tf.image.central_crop(X[0], 0.5), X[0, 1:3, 1:4], id="central"),
    pytest.param(
        lambda: tf.image.convert_image_dtype(BYTES, tf.int16), BYTES.astype("int16") * 128
    ),
    pytest.param(
        lambda: tf.image.convert_image_dtype(np.array([0, 32640, 32767], "int16"), tf.uint8),
        [0, 255, 255],
        id="fewer bits",
    ),
    pytest.param(
        lambda: tf.image.adjust_hue(X, 0.3), with_hsv(lambda h, s, v: ((h + 0.3) % 1, s, v))
    ),
    pytest.param(
        lambda: tf.image.adjust_saturation(X, 1.5),
        with_hsv(lambda h, s, v: (h, min(1.5 * s, 1), v)),
    ),
    pytest.param(lambda: tf.image.adjust_gamma(X, 2.0, 0.5), 0.5 * X**2, id="gamma"),
    pytest.param(lambda: tf.image.yuv_to_rgb(tf.image.rgb_to_yuv(X)), X, id="yuv and back"),
    *(
        pytest.param(lambda k=k: tf.image.rot90(X, k), np.rot90(X, k, (1, 2)), id=f"rot90 {k}")
        for k in (1, 2, 3, -1)
    ),
    pytest.param(
        lambda: tf.image.rot90(X[0, :4, :4], tf.placeholder_with_default(3, [])),
        np.rot90(X[0, :4, :4], 3),
        id="rot90 of a run",
    ),
    pytest.param(
        lambda: tf.image.total_variation(X),
        abs(np.diff(X, axis=1)).sum((1, 2, 3)) + abs(np.diff(X, axis=2)).sum((1, 2, 3)),
        id="total variation",
    ),
    pytest.param(
        lambda: tf.image.image_gradients(X)[1],
        np.pad(np.diff(X, axis=2), [(0, 0), (0, 0), (0, 1), (0, 0)]),
        id="gradients",
    ),
    pytest.param(
        lambda: tf.image.psnr(X[0], X[1], 1.0), -10 * np.log10(((X[0] - X[1]) ** 2).mean())
    ),
    pytest.param(
        lambda: tf.image.non_max_suppression(BOXES, SCORES, 4, 0.5), greedy(0.5), id="boxes"
    ),
    pytest.param(
        lambda: tf.image.non_max_suppression(BOXES, SCORES, 4, 0.9), greedy(0.9), id="more boxes"
    ),
    pytest.param(
        lambda: tf.image.non_max_suppression(BOXES, SCORES, 2, 0.9, 0.7), greedy(0.9)[:2], id="two"
    ),
    pytest.param(lambda: tf.image.non_max_suppression(BOXES[:0], SCORES[:0], 2), [], id="no boxes"),
    pytest.param(
        lambda: tf.image.crop_and_resize(X, [[0.1, 0.2, 0.9, 1.0]], [1], [3, 2]),
        cropped(0.1, 0.2, 0.9, 1.0)[None],
        id="crop and resize",
    ),
    pytest.param(
        lambda: tf.image.crop_and_resize(X, [[-1.0, 0, 0, 1]], [0], [2, 2], "nearest", 7.0),
        [[[[7.0] * 3] * 2, [X[0, 0, 0], X[0, 0, -1]]]],
        id="outside of the image",
    ),
    pytest.param(
        lambda: tf.extract_image_patches(X, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
        np.concatenate([X[:, i::2, j:4:2] for i in (0, 1) for j in (0, 1)], -1),
        id="patches",
    ),
]


@pytest.mark.parametrize(("make", "expected"), CASES)
def test_values(make: Any, expected: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(make())
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_yiq() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.image.rgb_to_yiq(X))[0, 0, 0]
    expected = colorsys.rgb_to_yiq(*X[0, 0, 0].tolist())  # of coefficients with fewer digits
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_lines_around_boxes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        drawn = tf.image.draw_bounding_boxes(
            np.zeros((1, 6, 8, 3), "float32"), [[[0.2, 0.3, 0.9, 0.8]]]
        )
        found = session.run(drawn)[0]
    expected = np.zeros((6, 8, 3))
    yellow = [1, 1, 0]
    expected[1, 2:6] = expected[4, 2:6] = yellow
    expected[1:5, 2] = expected[1:5, 5] = yellow
    np.testing.assert_array_equal(found, expected)


WRONG: list[Any] = [
    pytest.param(lambda: tf.image.resize_images(X, [0, 1]), "above 0", id="size"),
    pytest.param(lambda: tf.image.resize_images(X, [3]), "height, width", id="one size"),
    pytest.param(lambda: tf.image.resize_images(X[0, 0], [3, 3]), "3 or 4 axes", id="axes"),
    pytest.param(lambda: tf.image.crop_to_bounding_box(X, -1, 0, 1, 1), "0 or more", id="offset"),
    pytest.param(lambda: tf.image.crop_to_bounding_box(X, 3, 0, 2, 1), "do not lie", id="beyond"),
    pytest.param(lambda: tf.image.pad_to_bounding_box(X, 0, 0, 3, 5), "do not fit", id="pad"),
    pytest.param(lambda: tf.image.central_crop(X, 0.0), "in .0, 1.", id="central"),
    pytest.param(lambda: tf.image.adjust_gamma(X, -1), "0 or more", id="gamma"),
    pytest.param(lambda: tf.image.non_max_suppression(BOXES, SCORES[:2], 1), "4 boxes", id="boxes"),
    pytest.param(lambda: tf.image.non_max_suppression(BOXES, SCORES, 1, 2.0), "from 0 to 1"),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_wrong_arguments(make: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        make()
