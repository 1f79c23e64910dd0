"""Boxes that overlap; values by TensorFlow 2.21's `compat.v1`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar.engine.errors import InvalidArgumentError

BOXES = np.array(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1],
     [0, 100, 1, 101]], np.float32)  # fmt: skip
SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], np.float32)


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(x: Any) -> Any:
    with tf.Session() as session:
        return session.run(x)


def test_scores() -> None:
    image = tf.image
    kept, scores = run(image.non_max_suppression_with_scores(BOXES, SCORES, 6, 0.5))
    assert kept.tolist() == [3, 0, 5]
    np.testing.assert_allclose(scores, [0.95, 0.9, 0.3])
    # exp(-s^2 / (2 * 0.5)) of the shares s = 9 / 11 and 8 / 12, one after the other
    share, other = 9 / 11, 8 / 12
    soft = image.non_max_suppression_with_scores(BOXES, SCORES, 6, 1.0, 0.0, 0.5)
    kept, scores = run(soft)
    assert kept.tolist() == [3, 0, 1, 5, 4, 2]
    weak = [
        0.75 * np.exp(-(share**2)),
        0.3,
        0.5 * np.exp(-(share**2)),
        0.6 * np.exp(-(share**2) - other**2),
    ]
    np.testing.assert_allclose(scores, [0.95, 0.9, *weak], rtol=1e-5)


def test_padded_and_given_overlaps() -> None:
    image = tf.image
    numbers, count = run(
        image.non_max_suppression_padded(BOXES, SCORES, 5, 0.5, pad_to_max_output_size=True)
    )
    assert numbers.tolist() == [3, 0, 5, 0, 0]
    assert count == 3
    numbers, count = run(image.non_max_suppression_padded(BOXES, SCORES, 5, 0.5, 0.4))
    assert numbers.tolist() == [3, 0]
    assert count == 2
    overlaps = np.array([[1, 0.6, 0.1], [0.6, 1, 0.2], [0.1, 0.2, 1]], np.float32)
    found = image.non_max_suppression_overlaps(overlaps, [0.5, 0.9, 0.1], 3, 0.5)
    assert run(found).tolist() == [1, 2]
    with pytest.raises(ValueError, match="from 0 to 1"):
        image.non_max_suppression_padded(BOXES, SCORES, 5, 1.5)


def test_all_classes() -> None:
    scores = np.stack([SCORES, SCORES[::-1]], -1)[None]
    found = run(
        tf.image.combined_non_max_suppression(
            BOXES[None, :, None], scores, 2, 9, 0.5, 0.4, pad_per_class=True, clip_boxes=False
        )
    )
    np.testing.assert_array_equal(found[0][0], BOXES[[3, 2, 0, 5]])
    np.testing.assert_allclose(found[1], [[0.95, 0.95, 0.9, 0.9]])
    assert found[2].tolist() == [[0, 1, 0, 1]]
    assert found[3].tolist() == [4]


def test_random_parts_of_images() -> None:
    boxes = [[[0.2, 0.2, 0.8, 0.8]]]
    begin, size, corners = tf.image.sample_distorted_bounding_box(
        [40, 50, 3], boxes, seed=1, min_object_covered=0.5, area_range=(0.2, 0.6)
    )
    with tf.Session() as session:
        drawn = [session.run([begin, size, corners]) for _ in range(20)]
    assert len({tuple(b) for b, _, _ in drawn}) > 5
    for b, s, c in drawn:
        assert b[2] == 0
        assert s[2] == -1
        assert c.shape == (1, 1, 4)
        np.testing.assert_allclose(
            c[0, 0] * [40, 50, 40, 50], [*b[:2], *(b[:2] + s[:2])], rtol=1e-5
        )
        assert 0.19 < s[0] * s[1] / 2000 < 0.61
        assert 0.7 < s[1] / s[0] < 1.4
        down = min(32, b[0] + s[0]) - max(8, b[0])
        right = min(40, b[1] + s[1]) - max(10, b[1])
        assert down * right >= 0.5 * 24 * 30
    with pytest.raises(InvalidArgumentError, match="no boxes"):
        run(tf.image.sample_distorted_bounding_box([4, 5, 3], np.zeros((0, 4), np.float32)))
    whole = tf.image.sample_distorted_bounding_box(
        [4, 5, 3], np.zeros((0, 4), np.float32), use_image_if_no_bounding_boxes=True,
        area_range=(1.0, 1.0), aspect_ratio_range=(3.0, 3.0),
    )  # fmt: skip
    assert run(whole[1]).tolist() == [4, 5, -1]
