"""Layers that prepare data inside of `tf.data` pipelines, where TensorFlow is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import layers

tf = pytest.importorskip("tensorflow")

rng = np.random.default_rng(0)
IMAGES = rng.random((4, 8, 8, 3)).astype("float32")
WORDS = np.array([["a b"], ["b c"], ["c"]], object)


def mapped(layer: Any, data: Any, **options: Any) -> list[Any]:
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(2).map(layer, **options)
    return [tf.nest.map_structure(lambda x: x.numpy(), batch) for batch in dataset]


NUMBERS = [
    pytest.param(layers.Rescaling(2.0, 1.0), IMAGES, id="rescaling"),
    pytest.param(layers.Resizing(4, 5), IMAGES, id="resizing"),
    pytest.param(layers.CenterCrop(4, 5), IMAGES, id="center-crop"),
    pytest.param(layers.Normalization(mean=0.5, variance=2.0), IMAGES, id="normalization"),
    pytest.param(layers.Discretization([0.3, 0.6]), IMAGES[:, 0, 0], id="discretization"),
    pytest.param(
        layers.CategoryEncoding(5, "multi_hot"), np.array([[0, 1], [2, 4], [3, 3]]), id="encoding"
    ),
    pytest.param(layers.Hashing(7), WORDS, id="hashing"),
    pytest.param(layers.StringLookup(vocabulary=["a b", "c"]), WORDS, id="string-lookup"),
    pytest.param(
        layers.IntegerLookup(vocabulary=[1, 2]), np.array([[0], [1], [2]]), id="integer-lookup"
    ),
    pytest.param(
        layers.TextVectorization(vocabulary=["a", "b", "c"]), WORDS, id="text-vectorization"
    ),
    pytest.param(
        layers.Pipeline([layers.Rescaling(2.0), layers.CenterCrop(4, 4)]), IMAGES, id="pipeline"
    ),
]


@pytest.mark.parametrize(("layer", "data"), NUMBERS)
def test_batches_are_those_of_the_layer(layer: Any, data: Any) -> None:
    found = mapped(layer, data)
    for i, batch in enumerate(found):
        expected = np.asarray(layer(data[2 * i : 2 * i + 2]))
        assert batch.dtype == expected.dtype
        np.testing.assert_allclose(batch, expected, rtol=1e-6)


def test_shapes_are_known() -> None:
    dataset = tf.data.Dataset.from_tensor_slices(IMAGES).batch(2).map(layers.RandomFlip())
    assert dataset.element_spec == tf.TensorSpec((None, 8, 8, 3), "float32")
    words = tf.data.Dataset.from_tensor_slices(WORDS).batch(2)
    encoded = words.map(layers.StringLookup(vocabulary=["a b"], output_mode="multi_hot"))
    assert encoded.element_spec.shape == (None, 2)


def test_images_with_what_belongs_to_them() -> None:
    data = {
        "images": IMAGES,
        "labels": np.arange(4),
        "bounding_boxes": {"boxes": np.ones((4, 2, 4), "float32")},
    }
    layer = layers.RandomTranslation(0.5, 0.5, seed=0, bounding_box_format="xyxy")
    (batch, _) = mapped(layer, data, num_parallel_calls=2)
    assert batch["images"].shape == (2, 8, 8, 3)
    assert batch["bounding_boxes"]["boxes"].shape == (2, 2, 4)
    np.testing.assert_array_equal(batch["labels"], [0, 1])


def test_in_a_function_of_the_users() -> None:
    flip = layers.RandomFlip("horizontal", seed=1)
    dataset = tf.data.Dataset.from_tensor_slices((IMAGES, np.arange(4))).batch(2)
    found = [(x.numpy(), y.numpy()) for x, y in dataset.map(lambda x, y: (flip(x), y))]
    for (x, _), given in zip(found, (IMAGES[:2], IMAGES[2:]), strict=True):
        for image, before in zip(x, given, strict=True):
            assert (image == before).all() or (image == before[:, ::-1]).all()
