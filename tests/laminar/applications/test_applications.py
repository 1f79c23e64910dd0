"""Architectures: the layers, weights and results of Keras's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import applications, layers
from laminar.applications import imagenet_utils
from laminar.engine.errors import DataLossError, InvalidArgumentError, MissingFileError

# Name -> parameters with the classifier, as Keras counts them.
COUNTS = {
    "ConvNeXtTiny": 28_589_128,
    "DenseNet121": 8_062_504,
    "EfficientNetB0": 5_330_571,
    "MobileNetV2": 3_538_984,
    "MobileNetV3Large": 5_507_432,
    "MobileNetV3Small": 2_554_968,
    "ResNet50": 25_636_712,
    "ResNet50V2": 25_613_800,
    "VGG16": 138_357_544,
    "Xception": 22_910_480,
}
SMALL = ("MobileNetV2", "MobileNetV3Small")
SIZE = (75, 77, 3)


def make(module: Any, name: str, **options: Any) -> Any:
    return getattr(module.applications, name)(weights=None, **options)


def bare(module: Any, name: str) -> Any:
    return make(module, name, include_top=False, pooling="avg", input_shape=SIZE)


def facts(model: Any) -> list[Any]:
    """Name, class and shapes of weights of each layer; names that are counted, without number."""
    found = []
    for layer in model.layers:
        kind = type(layer).__name__
        weights = [*layer.trainable_weights, *layer.non_trainable_weights]
        name = layer.name.rstrip("0123456789").rstrip("_")
        found.append((name, kind, [tuple(v.shape) for v in weights]))
    return found


@pytest.mark.parametrize("name", COUNTS)
def test_layers_and_weights_are_those_of_keras(name: str) -> None:
    keras = pytest.importorskip("keras")
    ours = bare(laminar, name)
    assert facts(ours) == facts(bare(keras, name))
    assert ours.output_shape[0] is None


@pytest.mark.parametrize("name", ["MobileNetV2", "MobileNetV3Small", "EfficientNetB0"])
def test_parameters_with_the_classifier(name: str) -> None:
    assert make(laminar, name).count_params() == COUNTS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_all_parameters(name: str) -> None:
    assert make(laminar, name).count_params() == COUNTS[name]


def check_results(name: str, folder: Path) -> None:
    keras = pytest.importorskip("keras")
    theirs = bare(keras, name)
    chance = np.random.default_rng(0)
    for v in theirs.weights:
        shape = tuple(v.shape)
        if len(shape) > 1:
            value = chance.normal(size=shape) * np.sqrt(2 / np.prod(shape[:-1]))
        elif v.name in ("gamma", "moving_variance", "variance"):
            value = chance.uniform(0.5, 1.5, shape)
        else:
            value = 0.1 * chance.normal(size=shape)
        v.assign(value)
    x = chance.uniform(0, 255, (1, *SIZE)).astype("float32")
    expected = np.asarray(theirs(x))
    theirs.save_weights(folder / "m.weights.h5")
    theirs.save(folder / "m.h5")
    for file in ("m.weights.h5", "m.h5"):
        ours = getattr(applications, name)(
            weights=folder / file, include_top=False, pooling="avg", input_shape=SIZE
        )
        error = np.abs(np.asarray(ours(x)) - expected).max() / np.abs(expected).max()
        assert error < 1e-5


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("name", SMALL)
def test_results_with_the_weights_of_keras(name: str, tmp_path: Path) -> None:
    check_results(name, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("name", [name for name in COUNTS if name not in SMALL])
def test_more_results_with_the_weights_of_keras(name: str, tmp_path: Path) -> None:
    check_results(name, tmp_path)


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
    given = {"weights": None, "include_top": False}
    assert net(**given).output_shape == (None, None, None, 576)
    assert net(**given, pooling="max", input_shape=(64, 64, 3)).output_shape == (None, 576)
    image = layers.Input((64, 64, 3))
    model = net(**given, input_tensor=layers.Rescaling(2.0)(image))
    assert model.inputs == [image]
    top = net(weights=None, classes=7, classifier_activation=None, input_shape=(64, 64, 3))
    assert top.output_shape == (None, 7)
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
    options = {"include_top": False, "input_shape": (96, 96, 3)}
    model = applications.MobileNetV2(weights=None, **options)
    model.save(tmp_path / "models" / name)
    again = applications.MobileNetV2(**options)
    np.testing.assert_array_equal(again.get_weights()[0], model.get_weights()[0])


# Images and names


@pytest.mark.parametrize("mode", ["caffe", "tf", "torch"])
@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("batched", [True, False])
def test_preprocessing(mode: str, data_format: str, batched: bool) -> None:
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
    for bad in ({"mode": "x"}, {"data_format": "y"}):
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
