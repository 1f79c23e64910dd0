"""Architectures: the layers, weights and results of Keras's."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import applications, layers
from laminar.applications import imagenet_utils
from laminar.applications.scaled_sum import CustomScaleLayer
from laminar.engine.errors import DataLossError, InvalidArgumentError, MissingFileError
from laminar.typing import DataFormat

# Of each architecture without classifier, with "avg" pooling and images of SIZE, in Keras 3.15.1:
# a digest of `facts`, and for the weights of `filled` the norm, first and last of its features.
REFERENCE = {
    "ConvNeXtTiny": ("ce167cda230adba4", (28.8838, -1.31596, 0.34647)),
    "DenseNet121": ("3ea1749243cf0320", (9922.48, 14.043, 0)),
    "EfficientNetB0": ("e4987b6cd72784c1", (5.07382, 0.00587594, 0.0750825)),
    "EfficientNetV2B0": ("7d0a7575d406bb14", (12.6917, 0.0321419, 0.99563)),
    "EfficientNetV2B3": ("91709b08205538b4", (20.4553, -0.0659946, 0.208259)),
    "EfficientNetV2S": ("f204f957de8c2601", (20.5417, 0.122044, 0.410336)),
    "InceptionResNetV2": ("8dc72e9f99e678a7", (49571.6, 0, 1855.35)),
    "InceptionV3": ("1da796b583399e53", (4479.78, 195.901, 187.915)),
    "MobileNet": ("f5690396791cee97", (4.98703, 0, 0.195558)),
    "MobileNetV2": ("13f0693cf070dbb5", (8.42453, 0.0568238, 0)),
    "MobileNetV3Large": ("cfe2d02948656e83", (7.14509, -0.241887, 0.141941)),
    "MobileNetV3Small": ("5630cff41ee953d4", (5.22892, 0.266713, 0.2157)),
    "NASNetMobile": ("d2928fa52b730c02", (74215.8, 155.004, 371.865)),
    "ResNet50": ("65833f08f53faebd", (2.1808e07, 434231, 135236)),
    "ResNet50V2": ("dc21e2360ddbfbc9", (1.98242e07, 2.27253e06, 156700)),
    "VGG16": ("57f9051b392be5f9", (5327.76, 299.088, 5.51814)),
    "Xception": ("74096f0a875a0f99", (46.4843, 0.541713, 0.143638)),
}
# Parameters with the classifier, as Keras counts them.
COUNTS = {
    "ConvNeXtTiny": 28_589_128,
    "DenseNet121": 8_062_504,
    "EfficientNetB0": 5_330_571,
    "EfficientNetV2B0": 7_200_312,
    "EfficientNetV2B3": 14_467_622,
    "EfficientNetV2S": 21_612_360,
    "InceptionResNetV2": 55_873_736,
    "InceptionV3": 23_851_784,
    "MobileNet": 4_253_864,
    "MobileNetV2": 3_538_984,
    "MobileNetV3Large": 5_507_432,
    "MobileNetV3Small": 2_554_968,
    "NASNetMobile": 5_326_716,
    "ResNet50": 25_636_712,
    "ResNet50V2": 25_613_800,
    "VGG16": 138_357_544,
    "Xception": 22_910_480,
}
SIZE = (75, 77, 3)


def slow_but(*quick: str) -> list[Any]:
    """All architectures; those that are not `quick` are for --slow."""
    slow = pytest.mark.exhaustive
    return [name if name in quick else pytest.param(name, marks=slow) for name in REFERENCE]


def bare(module: Any, name: str) -> Any:
    make = getattr(module.applications, name)
    return make(weights=None, include_top=False, pooling="avg", input_shape=SIZE)


def facts(model: Any) -> list[Any]:
    """Name, class and shapes of weights of each layer; names that are counted, without number."""
    found = []
    for layer in model.layers:
        weights = [*layer.trainable_weights, *layer.non_trainable_weights]
        name = layer.name.rstrip("0123456789").rstrip("_")
        shapes = [[int(side) for side in v.shape] for v in weights]
        found.append([name, type(layer).__name__, shapes])
    return found


def digest(model: Any) -> str:
    return hashlib.sha256(json.dumps(facts(model)).encode()).hexdigest()[:16]


def filled(model: Any) -> Any:
    """The model with weights that are the same each time."""
    chance = np.random.default_rng(0)
    for v in model.weights:
        shape = tuple(v.shape)
        if len(shape) > 1:
            scale = np.float32(np.sqrt(2 / np.prod(shape[:-1])))
            value = chance.standard_normal(shape, "float32") * scale
        elif v.name in ("gamma", "moving_variance", "variance"):
            value = chance.random(shape, "float32") + np.float32(0.5)
        else:
            value = np.float32(0.1) * chance.standard_normal(shape, "float32")
        v.assign(value)
    return model


def image() -> Any:
    return np.random.default_rng(1).random((1, *SIZE), "float32") * np.float32(255)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    slow_but("EfficientNetV2B0", "InceptionV3", "MobileNet", "NASNetMobile", "VGG16", "Xception"),
)
def test_layers_and_weights_are_those_of_keras(name: str) -> None:
    assert digest(bare(laminar, name)) == REFERENCE[name][0]


@pytest.mark.parametrize("name", slow_but("MobileNet", "MobileNetV3Small", "Xception"))
def test_results_are_those_of_keras(name: str) -> None:
    features = np.asarray(filled(bare(laminar, name))(image()))[0]
    found = [float(np.linalg.norm(features)), float(features[0]), float(features[-1])]
    scale = REFERENCE[name][1][0]
    np.testing.assert_allclose(found, REFERENCE[name][1], rtol=2e-5, atol=1e-6 * scale)


@pytest.mark.parametrize("name", slow_but("MobileNetV3Small"))
def test_parameters(name: str) -> None:
    model = getattr(applications, name)(weights=None)
    assert model.count_params() == COUNTS[name]


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.keras_on_jax
def test_files_of_keras(name: str, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    theirs = filled(bare(keras, name))
    assert digest(theirs) == REFERENCE[name][0]
    expected = np.asarray(theirs(image()))
    theirs.save_weights(tmp_path / "m.weights.h5")
    theirs.save(tmp_path / "m.h5")
    for file in ("m.weights.h5", "m.h5"):
        ours = getattr(applications, name)(
            weights=tmp_path / file, include_top=False, pooling="avg", input_shape=SIZE
        )
        error = np.abs(np.asarray(ours(image())) - expected).max() / np.abs(expected).max()
        assert error < 1e-5


@pytest.mark.slow
def test_a_model_with_a_layer_of_its_own(tmp_path: Path) -> None:
    """InceptionResNetV2's sum with a factor is in files under Keras's name."""
    layer = CustomScaleLayer(0.5)
    x = layers.Input((3,))
    model = laminar.Model(x, layer([x, 2 * x]))
    model.save(tmp_path / "m.keras")
    again = laminar.saving.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(np.asarray(again(np.ones((1, 3)))), [[2, 2, 2]])
    assert again.layers[-1].get_config()["scale"] == 0.5


@pytest.mark.slow
def test_saved_and_loaded_again(tmp_path: Path) -> None:
    """ConvNeXt has a layer of its own, which files may name."""
    model = applications.ConvNeXtTiny(
        include_top=False, weights=None, input_shape=(32, 32, 3), name="tiny"
    )
    model.save_weights(tmp_path / "m.weights.h5")
    again = laminar.models.model_from_json(model.to_json())
    again.load_weights(tmp_path / "m.weights.h5")
    x = np.ones((1, 32, 32, 3), "float32")
    np.testing.assert_array_equal(np.asarray(again(x)), np.asarray(model(x)))


def test_options() -> None:
    net = applications.MobileNetV3Small
    given: dict[str, Any] = {"weights": None, "include_top": False}
    assert net(**given).output_shape == (None, None, None, 576)
    assert net(**given, pooling="max", input_shape=(64, 64, 3)).output_shape == (None, 576)
    image = layers.Input((64, 64, 3))
    model = net(**given, input_tensor=layers.Rescaling(2.0)(image))
    assert model.inputs == [image]
    top = net(weights=None, classes=7, classifier_activation=None, input_shape=(64, 64, 3))
    assert top.output_shape == (None, 7)
    base = applications.EfficientNetV2B0(**given, include_preprocessing=False)
    assert not any(isinstance(layer, layers.Rescaling) for layer in base.layers)
    assert net(weights=None, alpha=0.75, input_shape=(64, 64, 3)).count_params() < 2_554_968


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"weights": "none.h5"}, MissingFileError, "no weights file at 'none.h5'"),
        ({"weights": 3}, InvalidArgumentError, "weights must be"),
        ({"weights": "imagenet", "classes": 7}, InvalidArgumentError, "for 1000 classes"),
        ({"input_shape": (16, 16, 3)}, InvalidArgumentError, "at least 32x32"),
        ({"input_shape": (64, 64)}, InvalidArgumentError, "height, width, channels"),
        ({"input_shape": (None, None, 3)}, InvalidArgumentError, "image size must be known"),
        ({"pooling": "sum"}, InvalidArgumentError, "pooling must be"),
        ({"input_tensor": np.ones((1, 64, 64, 3))}, InvalidArgumentError, "symbolic"),
        (
            {"weights": "imagenet", "classifier_activation": "relu"},
            InvalidArgumentError,
            "ends in softmax",
        ),
        (
            {"weights": "imagenet", "input_shape": (64, 64, 3)},
            InvalidArgumentError,
            r"images of shape \(224, 224, 3\)",
        ),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        applications.ResNet50(**{"weights": None, **options})


def test_published_weights_are_taken_from_kerass_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    (tmp_path / "models").mkdir()
    name = "mobilenet_v2_weights_tf_dim_ordering_tf_kernels_1.0_96_no_top.h5"
    options: dict[str, Any] = {"include_top": False, "input_shape": (96, 96, 3)}
    model = applications.MobileNetV2(weights=None, **options)
    model.save(tmp_path / "models" / name)
    again = applications.MobileNetV2(**options)
    np.testing.assert_array_equal(again.get_weights()[0], model.get_weights()[0])


# Images and names


@pytest.mark.parametrize("mode", ["caffe", "tf", "torch"])
@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("batched", [True, False])
def test_preprocessing(mode: str, data_format: DataFormat, batched: bool) -> None:
    x = np.random.default_rng(0).uniform(0, 255, (2, 4, 5, 3)).astype("float32")
    expected = {
        "tf": x / 127.5 - 1,
        "torch": (x / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225],
        "caffe": x[..., ::-1] - [103.939, 116.779, 123.68],
    }[mode]
    if data_format == "channels_first":
        x, expected = (np.moveaxis(a, -1, 1) for a in (x, expected))
    if not batched:
        x, expected = x[0], expected[0]
    kept = x.copy()
    for given in (x, laminar.ops.convert_to_tensor(x)):
        found = imagenet_utils.preprocess_input(given, data_format, mode)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(x, kept)


def test_preprocessing_of_symbols_and_integers() -> None:
    image = layers.Input((4, 4, 3))
    model = laminar.Model(image, applications.vgg16.preprocess_input(image))
    x = np.arange(48).reshape(1, 4, 4, 3)
    expected = applications.vgg16.preprocess_input(x)
    assert expected.dtype == np.float32
    np.testing.assert_allclose(np.asarray(model(x.astype("float32"))), expected, rtol=1e-6)
    for module in (applications.mobilenet_v3, applications.efficientnet, applications.convnext):
        assert module.preprocess_input(x) is x
    np.testing.assert_array_equal(
        applications.resnet_v2.preprocess_input(x), np.float32(x / np.float32(127.5) - 1)
    )
    mistakes: list[dict[str, Any]] = [{"mode": "x"}, {"data_format": "y"}]
    for bad in mistakes:
        with pytest.raises(InvalidArgumentError):
            imagenet_utils.preprocess_input(x, **bad)
    with pytest.raises(InvalidArgumentError, match="three colours"):
        imagenet_utils.preprocess_input(np.ones((4, 4, 1)))


def test_predictions_get_names(tmp_path: Path) -> None:
    names = {str(i): [f"n{i:08}", f"name {i}"] for i in range(1000)}
    scores = np.zeros((2, 1000), "float32")
    scores[0, [3, 5]] = 0.9, 0.1
    scores[1, 999] = 1.0
    found = applications.resnet50.decode_predictions(scores, top=2, class_index=names)
    assert [entry[:2] for entry in found[0]] == [("n00000003", "name 3"), ("n00000005", "name 5")]
    assert found[1][0] == ("n00000999", "name 999", 1.0)
    file = tmp_path / "names.json"
    file.write_text(json.dumps(names))
    assert imagenet_utils.decode_predictions(scores, 2, str(file)) == found
    file.write_text("{}")
    with pytest.raises(DataLossError):
        imagenet_utils.decode_predictions(scores, 2, str(file))
    with pytest.raises(MissingFileError):
        imagenet_utils.decode_predictions(scores, 2, str(tmp_path / "none"))
    with pytest.raises(InvalidArgumentError, match="shape"):
        imagenet_utils.decode_predictions(np.ones((2, 10)), class_index=names)
