"""Bounding boxes follow the pixels that they are around."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.bounding_boxes import convert_format
from laminar.engine.errors import InvalidArgumentError, UnimplementedError
from laminar.typing import DataFormat

HEIGHT, WIDTH = 48, 40
# Left, top, right, bottom of a bright box in each of two images.
BOXES = np.array([[[12, 20, 24, 28]], [[16, 12, 22, 30]]], "float32")
FORMATS = ("xyxy", "yxyx", "xywh", "center_xywh", "rel_xyxy", "rel_yxyx", "rel_center_xywh")
PLACE: dict[str, Any] = {"fill_mode": "constant", "seed": 3}
# Layers with factors that are no choice, or differ from image to image.
CASES = [
    pytest.param(layers.RandomFlip("horizontal", seed=0), id="flip-horizontal"),
    pytest.param(layers.RandomFlip("vertical", seed=1), id="flip-vertical"),
    pytest.param(layers.RandomFlip(seed=1), id="flip-both"),
    pytest.param(layers.RandomTranslation(0.1, 0.2, **PLACE), id="translation"),
    pytest.param(layers.RandomRotation(0.1, **PLACE), id="rotation"),
    pytest.param(layers.RandomZoom((-0.3, -0.1), **PLACE), id="zoom-in"),
    pytest.param(layers.RandomZoom((0.1, 0.5), (0.0, 0.2), **PLACE), id="zoom-out"),
    pytest.param(layers.RandomShear(0.3, **PLACE), id="shear-x"),
    pytest.param(layers.RandomShear((0.1, 0.2), (0.1, 0.3), **PLACE), id="shear"),
    pytest.param(layers.RandomPerspective(scale=0.3, seed=2), id="perspective"),
    pytest.param(layers.RandomCrop(36, 32, seed=0), id="crop"),
    pytest.param(layers.RandomCrop(60, 50, seed=0), id="crop-larger"),
    pytest.param(layers.CenterCrop(36, 32), id="center-crop"),
    pytest.param(layers.CenterCrop(60, 45), id="center-crop-larger"),
    pytest.param(layers.Resizing(96, 60), id="resizing"),
    pytest.param(layers.Resizing(60, 90, crop_to_aspect_ratio=True), id="resizing-crop"),
    pytest.param(layers.Resizing(60, 90, pad_to_aspect_ratio=True), id="resizing-pad"),
    pytest.param(layers.RandAugment((0, 1), 2, 0.1, seed=5), id="rand-augment"),
]


def images() -> Any:
    x = np.zeros((2, HEIGHT, WIDTH, 3), "float32")
    for image, (left, top, right, bottom) in zip(x, BOXES[:, 0].astype(int), strict=True):
        image[top:bottom, left:right] = 1
    return x


def seen(image: Any) -> list[float]:
    """The box around the bright pixels."""
    rows, columns = np.nonzero(np.asarray(image)[..., 0] > 0.5)
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


def configured(layer: Any, **more: Any) -> Any:
    return type(layer).from_config(layer.get_config() | more)


@pytest.mark.parametrize("layer", CASES)
def test_boxes_are_around_the_pixels(layer: Any) -> None:
    layer = configured(layer, bounding_box_format="xyxy")
    boxes = {"boxes": BOXES, "labels": np.array([[3], [4]])}
    found = layer({"images": images(), "bounding_boxes": boxes}, training=True)
    expected = [[seen(image)] for image in found["images"]]
    np.testing.assert_allclose(found["bounding_boxes"]["boxes"], expected, atol=2.0)
    np.testing.assert_array_equal(found["bounding_boxes"]["labels"], [[3], [4]])


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("name", FORMATS)
def test_formats(name: str, data_format: DataFormat) -> None:
    plain = layers.RandomCrop(36, 32, seed=0, bounding_box_format="xyxy")
    x = images()
    expected = plain({"images": x, "bounding_boxes": {"boxes": BOXES}})["bounding_boxes"]["boxes"]
    given = {"boxes": convert_format(BOXES, "xyxy", name, HEIGHT, WIDTH)}
    if data_format == "channels_first":
        x = np.moveaxis(x, -1, 1)
    layer = layers.RandomCrop(36, 32, 0, data_format, bounding_box_format=name)
    assert layer.get_config()["bounding_box_format"] == name
    found = layer({"images": x, "bounding_boxes": given})["bounding_boxes"]["boxes"]
    np.testing.assert_allclose(convert_format(found, name, "xyxy", 36, 32), expected, atol=1e-4)


def test_one_image() -> None:
    layer = layers.RandomTranslation((0.25, 0.25), (0.1, 0.1), bounding_box_format="xywh")
    boxes = {"boxes": np.array([[10.0, 8.0, 4.0, 4.0]], "float32"), "labels": np.array([1])}
    data = {"images": images()[0], "labels": np.eye(3)[0], "bounding_boxes": boxes}
    found = layer(data, training=True)
    assert found["images"].shape == (HEIGHT, WIDTH, 3)
    np.testing.assert_array_equal(found["labels"], [1, 0, 0])
    np.testing.assert_allclose(found["bounding_boxes"]["boxes"], [[14, 20, 4, 4]], rtol=1e-6)
    assert data["bounding_boxes"] is boxes


def test_as_many_boxes_for_one_image() -> None:
    data = {"images": images()[0], "bounding_boxes": {"boxes": BOXES[0], "labels": np.array([3])}}
    found = layers.MaxNumBoundingBoxes(2)(data)["bounding_boxes"]
    np.testing.assert_array_equal(found["boxes"], [BOXES[0, 0], [-1] * 4])
    np.testing.assert_array_equal(found["labels"], [3, -1])


def test_what_leaves_the_image_loses_its_label() -> None:
    layer = layers.RandomTranslation((0.9, 0.9), (0, 0), bounding_box_format="xyxy")
    boxes = {"boxes": BOXES, "labels": np.array([[3], [4]])}
    found = layer({"images": images(), "bounding_boxes": boxes}, training=True)["bounding_boxes"]
    np.testing.assert_array_equal(found["labels"], [[-1], [-1]])
    assert np.asarray(found["boxes"]).max() <= HEIGHT


def test_outside_of_training() -> None:
    data = {"images": images(), "bounding_boxes": {"boxes": BOXES}}
    zoom = layers.RandomZoom(0.5, bounding_box_format="xyxy")
    np.testing.assert_array_equal(zoom(data, training=False)["bounding_boxes"]["boxes"], BOXES)
    crop = layers.RandomCrop(36, 32, bounding_box_format="xyxy")(data, training=False)
    moved = BOXES - np.array([4, 6, 4, 6], "float32")
    np.testing.assert_allclose(crop["bounding_boxes"]["boxes"], moved)


def test_in_a_function() -> None:
    layer = layers.RandomRotation((0.25, 0.25), fill_mode="constant", bounding_box_format="xyxy")
    data = {"images": images(), "bounding_boxes": {"boxes": BOXES}}
    traced = laminar.function(lambda data: layer(data, training=True))
    found, expected = traced(data), layer(data, training=True)
    np.testing.assert_allclose(
        found["bounding_boxes"]["boxes"], expected["bounding_boxes"]["boxes"], atol=1e-3
    )


def test_mixed_images_have_the_boxes_of_both() -> None:
    labels = np.array([[3], [4]])
    boxes = {"boxes": BOXES, "labels": labels}
    found = layers.MixUp(seed=0)({"images": images(), "bounding_boxes": boxes})["bounding_boxes"]
    assert found["boxes"].shape == (2, 2, 4)
    np.testing.assert_array_equal(np.asarray(found["labels"])[:, 0], labels[:, 0])
    np.testing.assert_array_equal(np.asarray(found["boxes"])[:, :1], BOXES)
    second = np.asarray(found["labels"])[:, 1]
    np.testing.assert_array_equal(np.asarray(found["boxes"])[:, 1], BOXES[second - 3, 0])


TRANSFORMED = [
    pytest.param(layers.RandomFlip("horizontal"), {"flips": [[True]]}, id="flip"),
    pytest.param(layers.RandomContrast(0.5), {"contrast_factor": [0.5]}, id="contrast"),
    pytest.param(layers.RandomBrightness(0.5, (0, 1)), {"rgb_delta": [0.25]}, id="brightness"),
    pytest.param(layers.RandomTranslation(0, 0), {"translations": [[1.0, 0.0]]}, id="translation"),
]


@pytest.mark.parametrize(("layer", "transformation"), TRANSFORMED)
def test_transformations_by_hand(layer: Any, transformation: dict[str, Any]) -> None:
    x = np.random.default_rng(0).random((1, 4, 5, 3), "float32")
    name = next(iter(transformation))
    expected = {
        "flips": x[:, :, ::-1],
        "contrast_factor": np.clip((x + x.mean((1, 2), keepdims=True)) / 2, 0, 255),
        "rgb_delta": np.clip(x + 0.25, 0, 1),
        "translations": np.concatenate([x[:, :, :1], x[:, :, :-1]], 2),
    }[name]
    found = layer.transform_images(x, transformation, training=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(layer.transform_images(x, transformation, training=False), x)
    drawn = layer.get_random_transformation(x)
    assert {name, "input_shape"} == set(drawn)


def test_the_parts_of_a_call_can_be_replaced() -> None:
    class Doubled(layers.RandomFlip):
        def transform_images(
            self, images: Any, transformation: Any = None, training: bool = True
        ) -> Any:
            return images * 2

    x = np.ones((1, 4, 4, 3), "float32")
    np.testing.assert_array_equal(Doubled()({"images": x})["images"], 2 * x)
    np.testing.assert_array_equal(Doubled()(x), 2 * x)


def test_mistakes() -> None:
    data = {"images": images(), "bounding_boxes": {"boxes": BOXES}}
    with pytest.raises(InvalidArgumentError, match="bounding_box_format="):
        layers.RandomFlip()(data, training=True)
    with pytest.raises(InvalidArgumentError, match="formats"):
        layers.RandomFlip(bounding_box_format="corners")
    for layer in (layers.CutMix, layers.RandomElasticTransform, layers.AugMix):
        with pytest.raises(UnimplementedError, match="would not follow"):
            layer(bounding_box_format="xyxy")(data, training=True)
