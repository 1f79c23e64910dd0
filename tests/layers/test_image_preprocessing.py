"""Layers that change images: what is fixed agrees with Keras, what is drawn is distributed so."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.functions import function
from laminar.engine.graph import TensorSpec

from .harness import check_config, check_same_config, check_symbolic, check_traced

rng = np.random.default_rng(7)
IMAGES = rng.integers(0, 256, size=(3, 9, 8, 3)).astype(np.float32)
BYTES = IMAGES.astype(np.uint8)
UNIT = IMAGES / 255
OPEN = TensorSpec((None, None, 3, 3), "float32")

# Layers that draw nothing, or always the same: (name, arguments, images).
FIXED: list[tuple[str, dict[str, Any], Any]] = [
    *[
        ("Resizing", {"height": h, "width": w, "interpolation": mode}, IMAGES)
        for mode in ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5")
        for h, w in ((5, 4), (12, 15))
    ],
    ("Resizing", {"height": 4, "width": 5, "antialias": True}, IMAGES),
    ("Resizing", {"height": 6, "width": 4, "crop_to_aspect_ratio": True}, IMAGES),
    ("Resizing", {"height": 4, "width": 6, "crop_to_aspect_ratio": True}, IMAGES),
    ("Resizing", {"height": 6, "width": 12, "pad_to_aspect_ratio": True, "fill_value": 3}, IMAGES),
    ("Resizing", {"height": 12, "width": 5, "pad_to_aspect_ratio": True}, IMAGES),
    ("Resizing", {"height": 5, "width": 4}, BYTES),
    ("Resizing", {"height": 12, "width": 15, "interpolation": "bicubic"}, BYTES),
    ("CenterCrop", {"height": 5, "width": 4}, IMAGES),
    ("CenterCrop", {"height": 4, "width": 7}, BYTES),
    ("CenterCrop", {"height": 12, "width": 4}, IMAGES),
    ("CenterCrop", {"height": 4, "width": 18}, IMAGES),
    *[
        ("RandomRotation", {"factor": (0.1, 0.1), "fill_mode": mode, "fill_value": 9}, IMAGES)
        for mode in ("reflect", "wrap", "constant", "nearest")
    ],
    ("RandomRotation", {"factor": (-0.3, -0.3), "interpolation": "nearest"}, IMAGES),
    ("RandomTranslation", {"height_factor": (0.2, 0.2), "width_factor": (-0.3, -0.3)}, IMAGES),
    ("RandomTranslation", {"height_factor": 0, "width_factor": (0.5, 0.5)}, BYTES),
    ("RandomZoom", {"height_factor": (0.3, 0.3)}, IMAGES),
    ("RandomZoom", {"height_factor": (-0.3, -0.3), "width_factor": (0.5, 0.5)}, IMAGES),
    ("RandomBrightness", {"factor": (0.2, 0.2)}, IMAGES),
    ("RandomBrightness", {"factor": (-0.2, -0.2), "value_range": (0, 1)}, UNIT),
    ("RandomSaturation", {"factor": (0.3, 0.3), "value_range": (0, 1)}, UNIT),
    ("RandomSaturation", {"factor": (0.2, 0.2)}, IMAGES),
    ("RandomSharpness", {"factor": (0.1, 0.1)}, IMAGES),
    ("RandomSharpness", {"factor": (0.9, 0.9), "value_range": (0, 1)}, UNIT),
    ("RandomColorDegeneration", {"factor": (0.4, 0.4)}, IMAGES),
    ("RandomGrayscale", {"factor": 1.0}, IMAGES),
    ("RandomGrayscale", {"factor": 0.0}, IMAGES),
    ("RandomInvert", {"factor": (1.0, 1.0)}, IMAGES),
    ("RandomInvert", {"factor": (1.0, 1.0), "value_range": (0, 1)}, UNIT),
    ("RandomPosterization", {"factor": (3, 3)}, IMAGES),
    ("RandomPosterization", {"factor": (1, 1), "value_range": (0, 1)}, UNIT),
    ("RandomGaussianBlur", {"factor": (1.0, 1.0), "kernel_size": 5, "sigma": (0.8, 0.8)}, IMAGES),
    ("RandomPerspective", {"factor": (1.0, 1.0), "scale": 0.0}, IMAGES),
    ("RandomContrast", {"factor": (0.0, 0.0)}, IMAGES),
    ("RandomHue", {"factor": (0.0, 0.0)}, IMAGES),
    ("RandomShear", {}, IMAGES),
    (
        "RandomColorJitter",
        {"brightness_factor": (0.1, 0.1), "saturation_factor": (0.4, 0.4)},
        IMAGES,
    ),
    ("AutoContrast", {}, IMAGES / 2 + 30),
    ("AutoContrast", {"value_range": (0, 1)}, np.stack([UNIT[0] / 3, 0 * UNIT[1] + 0.5])),
    ("Equalization", {}, IMAGES),
    ("Equalization", {"bins": 16, "value_range": (0, 1)}, UNIT**2),
    ("Equalization", {}, 0 * IMAGES + 7),
    ("Solarization", {}, IMAGES),
    ("Solarization", {"value_range": (0, 1)}, UNIT),
    ("ContrastLimitedAdaptiveHistogramEqualization", {"tile_grid_size": (2, 3)}, IMAGES),
    (
        "ContrastLimitedAdaptiveHistogramEqualization",
        {"tile_grid_size": (4, 4), "clip_limit": 0.0, "value_range": (0, 1)},
        UNIT,
    ),
    ("RandomElasticTransform", {"factor": (0.0, 0.0)}, IMAGES),
    ("RandomErasing", {"factor": (0.0, 0.0)}, IMAGES),
    ("RandomErasing", {"scale": (1.0, 1.0), "fill_value": 4, "factor": (1.0, 1.0)}, IMAGES),
]
WRONG: Any = "a"
NO_LAYERS: Any = [len]
# Layers that draw: (name, arguments).
DRAWN: list[tuple[str, dict[str, Any]]] = [
    ("RandomCrop", {"height": 4, "width": 5}),
    ("RandomFlip", {}),
    ("RandomRotation", {"factor": 0.2}),
    ("RandomTranslation", {"height_factor": 0.3, "width_factor": (-0.1, 0.4)}),
    ("RandomZoom", {"height_factor": 0.3, "width_factor": 0.1}),
    ("RandomZoom", {"height_factor": 0.3}),
    ("RandomShear", {"x_factor": 0.4, "y_factor": (0.1, 0.5)}),
    ("RandomPerspective", {"scale": 0.5}),
    ("RandomElasticTransform", {"scale": (0.8, 1.0)}),
    ("RandomBrightness", {"factor": 0.4}),
    ("RandomContrast", {"factor": 0.4}),
    ("RandomHue", {"factor": 0.4}),
    ("RandomSaturation", {"factor": (0.1, 0.4)}),
    ("RandomSharpness", {"factor": 0.4}),
    ("RandomColorDegeneration", {"factor": 0.4}),
    ("RandomColorJitter", {"brightness_factor": 0.1, "contrast_factor": 0.4, "hue_factor": 0.2}),
    ("RandomGrayscale", {}),
    ("RandomInvert", {"factor": 0.5}),
    ("RandomPosterization", {"factor": (2, 6)}),
    ("RandomGaussianBlur", {}),
    ("RandomErasing", {}),
    ("Solarization", {"addition_factor": 0.3, "threshold_factor": 0.5}),
    ("CutMix", {}),
    ("MixUp", {"alpha": 0.5}),
    ("RandAugment", {}),
    ("AugMix", {}),
    ("AugMix", {"all_ops": False, "num_chains": 2, "chain_depth": 1}),
]


def described(cases: list[Any]) -> list[str]:
    return [f"{i}-{case[0]}" for i, case in enumerate(cases)]


# Draws a sign, which is all the same.
HALF_CIRCLE = ("RandomHue", {"factor": (1.0, 1.0)}, IMAGES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kwargs", "images"), [*FIXED, HALF_CIRCLE], ids=described([*FIXED, HALF_CIRCLE])
)
def test_fixed_layers_agree_with_keras(name: str, kwargs: dict[str, Any], images: Any) -> None:
    keras = pytest.importorskip("keras")
    theirs, ours = getattr(keras.layers, name)(**kwargs), getattr(layers, name)(**kwargs)
    with np.errstate(divide="ignore", invalid="ignore"):  # by no contrast
        expected = np.asarray(theirs(images, training=True))
    found = ours(images, training=True).numpy()
    assert found.dtype == expected.dtype
    tolerance = 2e-5 * (255 if images.max() > 1 else 1)
    if found.dtype == np.uint8:
        tolerance = 1  # halves are rounded up or down
    np.testing.assert_allclose(
        found.astype("float64"), expected.astype("float64"), rtol=1e-4, atol=tolerance
    )
    check_configs(theirs, ours)


def check_configs(theirs: Any, ours: layers.Layer) -> None:
    """The configs are equal, but for what Keras's own layers cannot read back or forget."""
    if type(ours) is layers.RandomShear:  # Keras writes a factor below 0, and refuses to read it
        copy = type(theirs).from_config(ours.get_config())
        assert copy.x_factor == theirs.x_factor
        assert copy.y_factor == theirs.y_factor
        mine = type(ours).from_config(theirs.get_config())
        assert mine._x_span == theirs.x_factor
    elif type(ours) is layers.RandomGrayscale:  # Keras forgets the seed
        assert type(theirs).from_config(ours.get_config()).seed == ours.seed
        assert ours.get_config()["factor"] == theirs.get_config()["factor"]
    else:
        if theirs.get_build_config() == {"input_shape": None}:
            ours._laminar_build_shapes = {"input_shape": None}
        check_same_config(theirs, ours)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kwargs", "images"), FIXED, ids=described(FIXED))
def test_fixed_layers_do_what_layers_do(name: str, kwargs: dict[str, Any], images: Any) -> None:
    layer = getattr(layers, name)(**kwargs)
    value = layer(images).numpy()
    check_symbolic(layer, images, value)
    check_traced(layer, images, value, 1e-3)
    check_config(type(layer), layer, images, value)
    other = type(layer).from_config(layer.get_config() | {"data_format": "channels_first"})
    found = other(images.transpose(0, 3, 1, 2)).numpy().transpose(0, 2, 3, 1)
    np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kwargs"), DRAWN, ids=described(DRAWN))
def test_drawing_layers(name: str, kwargs: dict[str, Any]) -> None:
    """The same seed draws the same; other draws differ; outside of training nothing happens."""
    kwargs = {**kwargs, "seed": 3}
    layer, same, other = (getattr(layers, name)(**{**kwargs, "seed": seed}) for seed in (3, 3, 4))
    draws = [layer(IMAGES, training=True).numpy() for _ in range(4)]
    assert all(np.isfinite(y).all() for y in draws)
    for y in draws:
        np.testing.assert_array_equal(same(IMAGES, training=True).numpy(), y)
    assert any((y != draws[0]).any() for y in draws[1:])
    others = [other(IMAGES, training=True).numpy() for _ in range(4)]
    assert any((a != b).any() for a, b in zip(others, draws, strict=True))
    still = layer(IMAGES, training=False).numpy()
    if name != "RandomCrop":
        np.testing.assert_array_equal(still, IMAGES)
    assert still.shape == draws[0].shape

    again = layers.deserialize(json.loads(json.dumps(layers.serialize(layer))))
    np.testing.assert_allclose(again(IMAGES, training=True).numpy(), draws[0], atol=1e-3)
    traced = function(
        lambda x: again(x, training=True), input_signature=[TensorSpec((None, 9, 8, 3), "float32")]
    )
    np.testing.assert_allclose(traced(IMAGES).numpy(), draws[1], atol=1e-2)
    np.testing.assert_allclose(traced(IMAGES).numpy(), draws[2], atol=1e-2)
    assert tuple(layer(IMAGES[0], training=True).shape) == draws[0].shape[1:]
    assert layer(BYTES, training=True).shape == draws[0].shape
    symbol = layer(layers.Input((9, 8, 3), dtype="uint8"))
    assert tuple(symbol.shape) == (None, *draws[0].shape[1:])


@pytest.mark.parametrize(("name", "kwargs"), DRAWN, ids=described(DRAWN))
def test_drawing_layers_have_keras_configs(name: str, kwargs: dict[str, Any]) -> None:
    keras = pytest.importorskip("keras")
    kwargs = {**kwargs, "seed": 3}
    theirs, ours = getattr(keras.layers, name)(**kwargs), getattr(layers, name)(**kwargs)
    check_configs(theirs, ours)


# Distributions


def outcomes(layer: layers.Layer, image: Any, count: int = 200) -> Any:
    """What becomes of one image, many times: (count, ...)."""
    return layer(np.repeat(image[None], count, axis=0), training=True).numpy()


@pytest.mark.parametrize("mode", ["horizontal", "vertical", "horizontal_and_vertical"])
def test_flips_happen_half_the_time(mode: str) -> None:
    image = IMAGES[0]
    turned = image[::-1] if "vertical" in mode else image
    turned = turned[:, ::-1] if "horizontal" in mode else turned
    found = outcomes(layers.RandomFlip(mode, seed=1), image)
    flipped = (found == turned).all((1, 2, 3))
    assert (flipped | (found == image).all((1, 2, 3))).all()
    assert 70 < flipped.sum() < 130


def test_crops_are_everywhere_and_alike_in_a_batch() -> None:
    layer = layers.RandomCrop(7, 7, seed=1)
    places = set()
    for _ in range(60):
        y = layer(IMAGES, training=True).numpy()
        (place,) = [
            (i, j)
            for i in range(3)
            for j in range(2)
            if (y == IMAGES[:, i : i + 7, j : j + 7]).all()
        ]
        places.add(place)
    assert len(places) == 6
    np.testing.assert_array_equal(layer(IMAGES, training=False).numpy(), IMAGES[:, 1:8, :7])
    assert layers.RandomCrop(12, 4)(IMAGES, training=True).shape == (3, 12, 4, 3)


@pytest.mark.parametrize(("factor", "low", "high"), [(0.2, -51, 51), ((0.1, 0.3), 25.5, 76.5)])
def test_brightness_is_uniform(factor: Any, low: float, high: float) -> None:
    found = outcomes(layers.RandomBrightness(factor, seed=1), np.full((2, 2, 3), 120, "float32"))
    shifts = found[:, 0, 0, 0] - 120
    assert (found == found[:, :1, :1, :1]).all()
    assert low <= shifts.min() < low + 5
    assert high - 5 < shifts.max() <= high
    assert abs(shifts.mean() - (low + high) / 2) < (high - low) / 12


def test_contrast_stretches_about_the_mean() -> None:
    image = np.array([[[100.0], [110.0]]], "float32")
    found = outcomes(layers.RandomContrast((0.5, 0.2), seed=1), image)[:, 0, :, 0]
    np.testing.assert_allclose(found.mean(1), 105, rtol=1e-5)
    factors = (found[:, 1] - found[:, 0]) / 10
    assert 0.8 <= factors.min() < 0.85
    assert 1.45 < factors.max() <= 1.5


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("RandomInvert", {"factor": (0.3, 0.3)}),
        ("RandomGrayscale", {"factor": 0.3}),
        ("RandomGaussianBlur", {"factor": (0.3, 0.3), "sigma": (1.0, 1.0)}),
        ("RandomErasing", {"factor": (0.3, 0.3), "scale": (0.5, 0.5)}),
        ("RandomPerspective", {"factor": (0.3, 0.3), "scale": 0.9}),
        ("RandomElasticTransform", {"factor": (0.3, 0.3), "scale": (1.0, 1.0)}),
    ],
)
def test_some_images_are_chosen(name: str, kwargs: dict[str, Any]) -> None:
    found = outcomes(getattr(layers, name)(**kwargs, seed=1), IMAGES[0])
    changed = (found != IMAGES[0]).any((1, 2, 3)).mean()
    assert 0.2 < changed < 0.4


@pytest.mark.parametrize("ends", [(0, 255), (0, 1), (-1, 1)])
def test_solarization_by_the_same_draws_agrees_with_keras(ends: tuple[int, int]) -> None:
    keras = pytest.importorskip("keras")
    kwargs: dict[str, Any] = {"value_range": ends}
    drawn = {
        "additions": np.array([0.0, 40.0, 255.0], "float32").reshape(3, 1, 1, 1),
        "thresholds": np.array([128.0, 0.0, 255.0], "float32").reshape(3, 1, 1, 1),
    }
    images = np.random.default_rng(1).uniform(*ends, (3, 4, 5, 3)).astype("float32")
    images[0, 0, 0] = ends[0], ends[1], ends[0]
    wanted = keras.layers.Solarization(**kwargs).transform_images(images, drawn)
    found = layers.Solarization(**kwargs).change(ops.array(images), drawn)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * ends[1])
    # Keras draws from the part itself up to 255 times it; its documentation says from a range.
    sure = layers.Solarization((0.25, 0.25), (0.5, 0.5), value_range=(0, 100))
    pixels = np.array([[[[0.0], [24.0], [26.0], [74.0], [90.0]]]], "float32")
    y = sure(pixels, training=True)
    np.testing.assert_allclose(np.ravel(y), [25.0, 49.0, 49.0, 1.0, 0.0], atol=1e-4)


def test_erasing_covers_a_box() -> None:
    layer = layers.RandomErasing(1.0, scale=(0.25, 0.25), fill_value=[1, 2, 3], seed=1)
    image = np.full((20, 20, 3), 100, "float32")
    for y in outcomes(layer, image, 30):
        covered = (y != 100).all(-1)
        rows, columns = covered.any(1), covered.any(0)
        assert (covered == rows[:, None] & columns).all()
        assert (9 <= rows.sum() <= 10) or not covered.any()
        assert (y[covered] == [1, 2, 3]).all()
    noise = outcomes(layers.RandomErasing((1.0, 1.0), seed=1), image, 30)
    assert noise.min() >= 0
    assert noise.max() <= 255
    assert len(np.unique(noise)) > 100


def test_shear_takes_both_signs() -> None:
    image = np.zeros((5, 9, 1), "float32")
    image[4, 4] = 1
    layer = layers.RandomShear((0.5, 0.5), fill_mode="constant", interpolation="nearest", seed=1)
    where = {tuple(np.argwhere(y[..., 0])[0]) for y in outcomes(layer, image, 40)}
    assert where == {(4, 2), (4, 6)}


# Dicts


def test_mixing_layers_mix_labels_alike() -> None:
    count = 16
    images = np.arange(count, dtype="float32")[:, None, None, None] * np.ones((1, 20, 20, 1), "f4")
    labels = np.eye(count, dtype="float32")
    data = {"images": images, "labels": labels}
    mixed = layers.MixUp(0.5, seed=1)(data, training=True)
    np.testing.assert_allclose(mixed["labels"].numpy().sum(1), 1, rtol=1e-5)
    expected = mixed["labels"].numpy() @ np.arange(count)
    np.testing.assert_allclose(mixed["images"].numpy()[:, 3, 3, 0], expected, atol=1e-4)

    cut = layers.CutMix((1.0, 1.0), seed=1)(data, training=True)
    values, weights = cut["images"].numpy()[..., 0], cut["labels"].numpy()
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-5)
    for i, (image, weight) in enumerate(zip(values, weights, strict=True)):
        others = image != i
        # the area that is counted is that of the box before it is cut into pixels
        assert abs(others.mean() - (1 - weight[i])) < 0.12
        assert len(np.unique(image[others])) <= 1
    assert layers.MixUp()(data, training=False)["labels"] is not None
    np.testing.assert_array_equal(layers.MixUp()(data, training=False)["labels"], labels)


@pytest.mark.parametrize(
    "layer",
    [
        layers.RandomFlip(seed=1),
        layers.RandomRotation(0.3, seed=1),
        layers.RandomZoom(0.5, seed=1),
        layers.RandomElasticTransform(seed=1),
        layers.RandomPerspective(seed=1),
        layers.CenterCrop(5, 5),
        layers.Resizing(5, 5),
        layers.RandomCrop(4, 4, seed=1),
        layers.RandAugment(seed=1),
        layers.CutMix(seed=1),
    ],
)
def test_masks_follow_their_images(layer: layers.Layer) -> None:
    masks = rng.integers(0, 5, size=(3, 9, 8, 1)).astype("int32")
    data = {"images": IMAGES, "segmentation_masks": masks}
    found = layer(data, training=True)
    assert found["segmentation_masks"].dtype == "int32"
    assert found["segmentation_masks"].shape[:3] == found["images"].shape[:3]
    assert set(np.unique(found["segmentation_masks"])) <= set(range(5))
    symbols = layer(
        {name: layers.Input(v.shape[1:], dtype=v.dtype.name) for name, v in data.items()}
    )
    assert symbols["segmentation_masks"].shape[1:] == found["segmentation_masks"].shape[1:]


def test_colours_leave_masks_labels_and_boxes() -> None:
    data = {
        "images": IMAGES,
        "labels": np.arange(3),
        "segmentation_masks": rng.integers(0, 5, size=(3, 9, 8, 1)),
        "bounding_boxes": {"boxes": np.ones((3, 2, 4), "float32"), "labels": np.ones((3, 2))},
    }
    found = layers.RandomBrightness((0.2, 0.2))(data, training=True)
    np.testing.assert_array_equal(found["labels"], data["labels"])
    np.testing.assert_array_equal(found["segmentation_masks"], data["segmentation_masks"])
    np.testing.assert_array_equal(found["bounding_boxes"]["boxes"], np.ones((3, 2, 4)))
    assert (found["images"].numpy() != IMAGES).any()
    fitted = layers.MaxNumBoundingBoxes(3)(data)["bounding_boxes"]
    assert fitted["boxes"].numpy().tolist() == [[[1.0] * 4] * 2 + [[-1.0] * 4]] * 3
    assert layers.MaxNumBoundingBoxes(1)(data)["bounding_boxes"]["labels"].shape == (3, 1)


def test_pipeline() -> None:
    steps = [
        layers.Resizing(6, 6),
        layers.RandomFlip("horizontal", seed=2),
        layers.Rescaling(1 / 255),
    ]
    pipeline = layers.Pipeline(steps)
    assert pipeline.layers == steps
    y = pipeline(BYTES, training=False).numpy()
    np.testing.assert_allclose(y, steps[0](BYTES).numpy() / 255, rtol=1e-6)
    copy = layers.deserialize(json.loads(json.dumps(layers.serialize(pipeline))))
    np.testing.assert_array_equal(copy(BYTES, training=False), y)
    assert pipeline(layers.Input((9, 8, 3), dtype="uint8")).shape == (None, 6, 6, 3)
    keras = pytest.importorskip("keras")
    theirs = keras.layers.Pipeline([keras.layers.Resizing(6, 6), keras.layers.Rescaling(0.5)])
    mine = layers.deserialize(keras.saving.serialize_keras_object(theirs))
    np.testing.assert_allclose(mine(IMAGES), np.asarray(theirs(IMAGES)), rtol=1e-5, atol=1e-3)


def test_models_augment_in_training_alone() -> None:
    laminar.set_random_seed(0)
    model = laminar.Sequential(
        [
            layers.Input((8, 8, 3)),
            layers.RandomFlip("horizontal"),
            layers.RandomRotation(0.1),
            layers.RandomZoom(0.1),
            layers.RandomCrop(6, 6),
            layers.Flatten(),
            layers.Dense(2),
        ]
    )
    model.compile("sgd", "mse")
    x, y = rng.normal(size=(10, 8, 8, 3)).astype("f4"), rng.normal(size=(10, 2)).astype("f4")
    model.fit(x, y, epochs=2, batch_size=4, verbose=0)
    np.testing.assert_array_equal(model.predict(x, verbose=0), model.predict(x, verbose=0))


def test_sixteen_bits_compute_places_in_more() -> None:
    image = np.zeros((1, 300, 300, 1), "float32")
    image[0, 290, 290] = 1
    kwargs: dict[str, Any] = {
        "height_factor": (0.01, 0.01),
        "width_factor": (0.01, 0.01),
        "fill_mode": "constant",
    }
    y = layers.RandomTranslation(**kwargs, dtype="mixed_bfloat16")(image, training=True)
    assert y.dtype == "bfloat16"
    where = np.argwhere(ops.cast(y, "float32").numpy()[0, ..., 0] > 0.9)
    assert where.tolist() == [[293, 293]]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: layers.Resizing(0, 3), InvalidArgumentError, "height must be a whole number"),
        (lambda: layers.Resizing(2, 3, "cubic"), InvalidArgumentError, "one of 'bilinear'"),
        (lambda: layers.RandomRotation(2), InvalidArgumentError, "from -1 to 1"),
        (lambda: layers.RandomZoom(-1.0), InvalidArgumentError, "height_factor must be"),
        (lambda: layers.RandomFlip("diagonal"), InvalidArgumentError, "mode must be one of"),
        (lambda: layers.RandomContrast(WRONG), InvalidArgumentError, "factor must be a number"),
        (lambda: layers.RandomBrightness(0.1, WRONG), InvalidArgumentError, "value_range"),
        (lambda: layers.RandomGaussianBlur(kernel_size=4), InvalidArgumentError, "odd"),
        (lambda: layers.MixUp(0), InvalidArgumentError, "alpha must be above 0"),
        (lambda: layers.RandomErasing(fill_value=WRONG), InvalidArgumentError, "fill_value"),
        (lambda: layers.RandomPosterization(9), InvalidArgumentError, "from 1 to 8"),
        (lambda: layers.CenterCrop(2, 2)(np.ones((3, 3))), ShapeError, "rank 4 or 3"),
        (lambda: layers.Pipeline(NO_LAYERS), InvalidArgumentError, "expected a layer"),
        (lambda: layers.RandomHue(0.1)({"image": IMAGES}), InvalidArgumentError, "'images'"),
        (
            lambda: layers.RandomFlip()({"images": IMAGES, "bounding_boxes": {}}),
            InvalidArgumentError,
            "bounding boxes",
        ),
        (
            lambda: function(layers.RandomZoom(0.1)).concrete(OPEN),
            ShapeError,
            "height and width",
        ),
    ],
)
def test_mistakes(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("form", [{"crop_to_aspect_ratio": True}, {"pad_to_aspect_ratio": True}])
@pytest.mark.parametrize("size", [(6, 4), (3, 8)])
def test_resizing_in_a_model_of_images_of_any_size(
    form: dict[str, bool], size: tuple[int, int]
) -> None:
    layer = layers.Resizing(*size, **form)  # type: ignore[arg-type]  # bools by name
    inputs = layers.Input((None, None, 3))
    outputs = layer(inputs)
    assert tuple(outputs.shape) == (None, *size, 3)
    model = laminar.Model(inputs, outputs)
    for shape in ((2, 9, 7, 3), (2, 5, 12, 3), (1, 6, 6, 3)):
        x = np.random.default_rng(0).normal(size=shape).astype("float32")
        found = model.predict(x, verbose=0)
        np.testing.assert_allclose(found, np.asarray(layer(x)), rtol=1e-5, atol=1e-6)


def test_height_and_width_may_be_open_until_the_images_come() -> None:
    for make, size in (
        (lambda: layers.CenterCrop(4, 5), (4, 5)),
        (lambda: layers.RandomRotation(0.1), (None, None)),
        (lambda: layers.RandomErasing(), (None, None)),
        (lambda: layers.Pipeline([layers.RandomZoom(0.2), layers.Resizing(3, 2)]), (3, 2)),
    ):
        symbol, layer = layers.Input((None, None, 3)), make()
        y = layer(symbol)
        assert y.shape == (None, *size, 3)
        model = laminar.Model(symbol, layers.Rescaling(2.0)(y))
        for images in (IMAGES, IMAGES, IMAGES, IMAGES[:, 2:]):
            np.testing.assert_allclose(
                model(images, training=False), 2 * layer(images, training=False), rtol=1e-6
            )
    parts = layers.CenterCrop(4, 5, data_format="channels_first")(
        {
            "images": layers.Input((3, None, None)),
            "segmentation_masks": layers.Input((1, None, 9)),
            "labels": layers.Input((7,)),
        }
    )
    assert {k: v.shape for k, v in parts.items()} == {
        "images": (None, 3, 4, 5),
        "segmentation_masks": (None, 1, 4, 5),
        "labels": (None, 7),
    }
