"""Bounding boxes against Keras's functions, and where they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError, UnimplementedError
from laminar.utils import bounding_boxes as boxes

keras = pytest.importorskip("keras")
theirs = keras.utils.bounding_boxes

rng = np.random.default_rng(0)
FORMATS = ["xyxy", "yxyx", "xywh", "center_xywh", "center_yxhw"]
RELATIVE = ["rel_xyxy", "rel_yxyx", "rel_xywh", "rel_center_xywh"]
SIZE: dict[str, Any] = {"height": 50, "width": 40}


def random_boxes(*shape: int) -> Any:
    """Left, top, right, bottom."""
    corners = rng.uniform(0, 40, (*shape, 2, 2))
    return np.sort(corners, axis=-2).reshape(*shape, 4).astype("float32")


X, Y = random_boxes(2, 5), random_boxes(2, 3)


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("source", [*FORMATS, *RELATIVE])
@pytest.mark.parametrize("target", [*FORMATS, *RELATIVE])
def test_formats(source: str, target: str) -> None:
    given = theirs.convert_format(X, "xyxy", source, **SIZE)
    close(
        boxes.convert_format(np.asarray(given), source.upper(), target, **SIZE),
        theirs.convert_format(given, source, target, **SIZE),
    )


def test_a_dict_of_boxes_is_left_as_it_is() -> None:
    given = {"boxes": X, "labels": np.zeros((2, 5))}
    found = boxes.convert_format(given, "xyxy", "xywh")
    close(found["boxes"], boxes.convert_format(X, "xyxy", "xywh"))
    assert found["labels"] is given["labels"]
    assert given["boxes"] is X


@pytest.mark.parametrize("name", ["xyxy", "rel_xyxy"])
def test_clipping(name: str) -> None:
    given = X * 2 - 20 if name == "xyxy" else X / 20 - 0.5
    labels = np.arange(10).reshape(2, 5)
    size = SIZE if name == "xyxy" else {}
    data = {"boxes": given, "labels": labels}
    found = boxes.clip_to_image_size(data, bounding_box_format=name, **size)
    wanted = theirs.clip_to_image_size(
        {"boxes": keras.ops.array(given), "labels": keras.ops.array(labels)},
        bounding_box_format=name,
        **size,
    )
    close(found["boxes"], wanted["boxes"])
    assert np.array_equal(found["labels"], wanted["labels"])
    assert (np.asarray(found["labels"]) == -1).any()


def test_crops_and_pads() -> None:
    close(boxes.crop(X, 5, 3, 20, 15), theirs.crop(keras.ops.array(X), 5, 3, 20, 15))
    close(boxes.pad(X, 5, 3), theirs.pad(keras.ops.array(X), 5, 3))


def test_turns() -> None:
    one = {
        "angle": [30.0, -100.0],
        "translate_x": [0.1, 0.0],
        "translate_y": [-0.2, 0.3],
        "scale": [1.5, 0.7],
        "shear_x": [10.0, 0.0],
        "shear_y": [0.0, 20.0],
    }
    arrays: dict[str, Any] = {name: np.array(v, "float32") for name, v in one.items()}
    centers: list[dict[str, Any]] = [
        {},
        {"center_x": np.float32(0.25), "center_y": np.float32(0.75)},
    ]
    for center in centers:
        found = boxes.affine_transform(X, **arrays, **center, height=50, width=40)
        tensors = {name: keras.ops.array(values) for name, values in arrays.items()}
        wanted = theirs.affine_transform(keras.ops.array(X), **tensors, **center, **SIZE)
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["xyxy", "yxyx", "center_xywh", "rel_yxyx"])
def test_overlaps(name: str) -> None:
    shape = (50, 40, 3)
    a, b = (np.asarray(theirs.convert_format(v, "xyxy", name, **SIZE)) for v in (X, Y))
    close(
        boxes.compute_iou(a, b, name, image_shape=shape),
        theirs.compute_iou(a, b, name, image_shape=shape),
    )
    close(
        boxes.compute_iou(a[0], b[0], name, image_shape=shape),
        theirs.compute_iou(a[0], b[0], name, image_shape=shape),
    )
    if name.startswith("rel"):
        with pytest.raises(InvalidArgumentError, match="boxes in pixels, got 'rel_yxyx'"):
            boxes.compute_ciou(a, b, name)
        return
    close(boxes.compute_ciou(a[:, :3], b, name), theirs.compute_ciou(a[:, :3], b, name))


def test_boxes_that_are_none_are_masked() -> None:
    a, b = X[0].copy(), Y[0].copy()
    a[1], b[2] = -1, -1
    found = np.asarray(boxes.compute_iou(a, b, "xyxy", use_masking=True, mask_val=-7))
    masked = found == -7
    assert masked[1].all()
    assert masked[:, 2].all()
    assert masked.sum() == 3 + 5 - 1


@pytest.mark.parametrize("encoding", ["center_xywh", "center_yxhw"])
@pytest.mark.parametrize("variance", [None, [0.1, 0.1, 0.2, 0.2]])
def test_deltas(encoding: str, variance: Any) -> None:
    anchors = random_boxes(5) + np.array([0, 0, 3, 3], "float32")
    arguments = ("xyxy", "xyxy", encoding, variance)
    deltas = boxes.encode_box_to_deltas(anchors, X, *arguments)
    close(deltas, theirs.encode_box_to_deltas(anchors, X, *arguments))
    close(boxes.decode_deltas_to_boxes(anchors, deltas, *arguments), X)
    levels = boxes.decode_deltas_to_boxes({1: anchors}, {1: deltas}, *arguments)
    close(levels[1], X)


def test_what_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="got 'abc'"):
        boxes.convert_format(X, "xyxy", "abc")
    with pytest.raises(InvalidArgumentError, match="the size of the image"):
        boxes.convert_format(X, "xyxy", "rel_xyxy", height=3)
    with pytest.raises(ShapeError, match="four numbers"):
        boxes.convert_format(X[..., :3], "xyxy", "yxyx")
    with pytest.raises(UnimplementedError, match="'xyxy', got 'xywh'"):
        boxes.crop(X, 0, 0, 3, 3, "xywh")
    with pytest.raises(InvalidArgumentError, match="boxes in pixels take the size"):
        boxes.clip_to_image_size({"boxes": X})
    with pytest.raises(InvalidArgumentError, match="the size of the image"):
        boxes.compute_iou(X, Y, "rel_xyxy")
    with pytest.raises(ShapeError, match="2 or 3 axes, got 1"):
        boxes.compute_iou(X[0, 0], Y, "xyxy")
    with pytest.raises(InvalidArgumentError, match="got 'xyxy'"):
        boxes.encode_box_to_deltas(X[0], X, "xyxy", "xyxy", "xyxy")
    with pytest.raises(InvalidArgumentError, match="four numbers"):
        boxes.encode_box_to_deltas(X[0], X, "xyxy", "xyxy", variance=[1.0])
