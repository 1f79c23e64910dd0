"""Boxes, masks and labels on images."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import visualization
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError, UnimplementedError

IMAGES = np.full((2, 20, 30, 3), 0.5, "float32")
BOXES = {
    "boxes": np.array([[[5, 4, 15, 12], [0, 0, 2, 2]], [[10, 2, 40, 18], [1, 1, 5, 5]]]),
    "labels": np.array([[1, -1], [2, 7]]),
    "confidences": np.array([[0.5, 0.1], [0.25, 0.9]]),
}
RED = (255, 0, 0)


def reds(image: Any) -> Any:
    return (image == RED).all(axis=-1)


def test_boxes() -> None:
    drawn = visualization.draw_bounding_boxes(IMAGES, BOXES, "xyxy", color=RED, line_thickness=1)
    assert drawn.dtype == "uint8"
    expected = np.zeros((20, 30), bool)
    expected[4, 5:16] = expected[12, 5:16] = expected[4:13, 5] = expected[4:13, 15] = True
    np.testing.assert_array_equal(reds(drawn[0]), expected)  # the second one is none: -1
    assert (drawn[0][~expected] == 127).all()
    assert reds(drawn[1])[2, 10:30].all()  # cut at the edge
    assert reds(drawn[1])[1, 1:6].all()
    first = visualization.draw_bounding_boxes(
        IMAGES.transpose(0, 3, 1, 2),
        BOXES,
        "xyxy",
        color=RED,
        line_thickness=1,
        data_format="channels_first",
    )
    np.testing.assert_array_equal(first, drawn)
    relative = {
        **BOXES,
        "boxes": BOXES["boxes"] / np.array([30, 20, 30, 20]),
    }
    again = visualization.draw_bounding_boxes(
        IMAGES, relative, "rel_xyxy", color=RED, line_thickness=1
    )
    np.testing.assert_array_equal(again, drawn)


def test_texts() -> None:
    pytest.importorskip("PIL")
    big = np.zeros((1, 80, 160, 3), "uint8")
    boxes = {"boxes": [[[10, 40, 60, 70]]], "labels": [[1]], "confidences": [[0.5]]}
    plain = visualization.draw_bounding_boxes(big, boxes, "xyxy", color=RED)
    named = visualization.draw_bounding_boxes(big, boxes, "xyxy", {1: "cat"}, color=RED)
    assert not plain[0, :36].any()
    assert named[0, 16:40].any()
    assert not big.any()


def test_masks() -> None:
    images = np.full((1, 2, 3, 3), 100, "uint8")
    masks = np.array([[[0, 1, 2], [1, -1, 5]]])
    colors = {0: (0, 0, 0), 1: (200, 100, 0), 2: (0, 0, 250)}
    drawn = visualization.draw_segmentation_masks(images, masks, 3, colors, alpha=0.5)
    expected = [[(50, 50, 50), (150, 100, 50), (50, 50, 175)], [(150, 100, 50), (100,) * 3] * 1]
    np.testing.assert_array_equal(drawn[0, 0], expected[0])
    np.testing.assert_array_equal(drawn[0, 1], [*expected[1], (100,) * 3])
    whole = visualization.draw_segmentation_masks(images, masks[..., None], 3, colors, blend=False)
    np.testing.assert_array_equal(whole[0, 0], [(0, 0, 0), (200, 100, 0), (0, 0, 250)])
    ignored = visualization.draw_segmentation_masks(images, masks, 3, colors, ignore_index=1)
    np.testing.assert_array_equal(ignored[0, 0, 1], [100, 100, 100])


def test_galleries(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from PIL import Image

    visualization.plot_image_gallery(
        IMAGES, [0, 1], [1, 1], {0: "cat", 1: "dog"}, value_range=(0, 1), path=tmp_path / "a.png"
    )
    visualization.plot_bounding_box_gallery(
        IMAGES,
        "xyxy",
        BOXES,
        BOXES,
        value_range=(0, 1),
        class_mapping={1: "cat"},
        legend=True,
        path=tmp_path / "b.png",
        transparent=False,
    )
    visualization.plot_segmentation_mask_gallery(
        IMAGES * 255, 3, y_true=np.ones((2, 20, 30, 1), int), path=tmp_path / "c.png"
    )
    for name in "abc":
        assert np.asarray(Image.open(tmp_path / f"{name}.png")).std() > 0
    from matplotlib import pyplot

    assert not pyplot.get_fignums()


def test_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ShapeError, match="images must be a batch"):
        visualization.draw_bounding_boxes(IMAGES[0], BOXES, "xyxy")
    with pytest.raises(InvalidArgumentError, match="'boxes' and 'labels'"):
        visualization.draw_bounding_boxes(IMAGES, {"boxes": BOXES["boxes"]}, "xyxy")
    with pytest.raises(DTypeError, match="whole numbers"):
        visualization.draw_segmentation_masks(IMAGES, np.ones((2, 20, 30)))
    with pytest.raises(ShapeError, match="the masks are"):
        visualization.draw_segmentation_masks(IMAGES, np.ones((2, 20, 31), int))
    with pytest.raises(InvalidArgumentError, match="either path or show"):
        visualization.plot_image_gallery(IMAGES, path="a.png", show=True)
    with pytest.raises(InvalidArgumentError, match="need label_map"):
        visualization.plot_image_gallery(IMAGES, y_true=[0, 1])
    with pytest.raises(InvalidArgumentError, match="either legend or legend_handles"):
        visualization.plot_bounding_box_gallery(IMAGES, "xyxy", legend=True, legend_handles=[1])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(UnimplementedError, match="pip install matplotlib"):
        visualization.plot_image_gallery(IMAGES)
