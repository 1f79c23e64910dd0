"""Files of Keras 2, and `.h5` files of Keras 3: read, and written so that Keras reads them."""

from __future__ import annotations

import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped]  # it has no type hints
import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.engine.errors import DataLossError, InvalidArgumentError, NotFoundError
from laminar.models import model_from_json
from laminar.saving import load_model

FILES = Path(__file__).with_name("keras2_files.zip")
MODELS = ("cnn", "old_adam", "functional", "frozen", "recurrent", "mixed")
OPTIMIZERS = {"cnn": ("Adam", 3), "old_adam": ("Adam", 3), "functional": ("SGD", 2)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("keras2")
    with zipfile.ZipFile(FILES) as archive:
        archive.extractall(target)
    return target


def example(folder: Path, name: str) -> tuple[Any, list[Any]]:
    with np.load(folder / f"{name}.npz", allow_pickle=False) as data:
        xs = [data[key] for key in sorted(data) if key.startswith("x")]
        ys = [data[key] for key in sorted(data) if key.startswith("y")]
    return xs if len(xs) > 1 else xs[0], ys


def check(model: Any, folder: Path, name: str) -> None:
    x, expected = example(folder, name)
    found = model(x)
    found = found if isinstance(found, list) else [found]
    for y, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(y), wanted, rtol=1e-5, atol=1e-6)


def scrambled(model: Any) -> Any:
    for v in model.weights:
        v.assign(v.numpy() + np.asarray(1).astype(v.numpy().dtype))
    return model


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("suffix", [".h5", ".keras"])
def test_whole_models(folder: Path, name: str, suffix: str) -> None:
    model = load_model(folder / f"{name}{suffix}")
    check(model, folder, name)
    if name in OPTIMIZERS and (name, suffix) != ("old_adam", ".keras"):  # Keras 2 did not save it
        kind, steps = OPTIMIZERS[name]
        assert (type(model.optimizer).__name__, int(model.optimizer.iterations)) == (kind, steps)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("suffix", ["_weights.h5", ".weights.h5", ".h5", ".keras"])
def test_weights(folder: Path, name: str, suffix: str) -> None:
    model = scrambled(load_model(folder / f"{name}.h5", compile=False))
    model.load_weights(folder / f"{name}{suffix}")
    check(model, folder, name)


@pytest.mark.parametrize("name", MODELS)
def test_json(folder: Path, name: str) -> None:
    model = model_from_json((folder / f"{name}.json").read_text())
    model.load_weights(folder / f"{name}_weights.h5")
    check(model, folder, name)


@pytest.mark.parametrize("name", ["cnn", "old_adam", "functional"])
def test_optimizer_state(folder: Path, name: str) -> None:
    """Each slot has the values that its variable's slot has in the file."""
    model = load_model(folder / f"{name}.h5")
    names = {"momentum": "m", "velocity": "v"}
    with h5py.File(folder / f"{name}.h5") as file:
        stored = {}
        file["optimizer_weights"].visititems(
            lambda path, item: stored.update({path: item[...]}) if hasattr(item, "shape") else None
        )
    checked = 0
    for v in model.trainable_variables:
        for own in model.optimizer.variables:
            tail = own.path.partition("/")[2]
            kind = names.get(tail.rpartition("_")[2])
            if kind is None or tail.rpartition("_")[0] != v.path.replace("/", "_"):
                continue
            layer, leaf = v.path.split("/")[-2:]  # a Sequential's own name stands before them
            leaves = [leaf, f"depthwise_{leaf}"] if layer.startswith("depthwise") else [leaf]
            ends = [f"/{layer}/{leaf}" for leaf in leaves]
            ends = [f"{end}{tail}" for end in ends for tail in (":0", f"/{kind}:0")]
            (value,) = (
                array
                for path, array in stored.items()
                if path.endswith(tuple(ends))
                and (f"/{kind}/" in path or path.endswith(f"/{kind}:0"))
            )
            np.testing.assert_array_equal(own.numpy(), value)
            checked += 1
    slots = 1 if name == "functional" else 2
    assert checked == slots * len(model.trainable_variables)


def test_decay_becomes_its_schedule(folder: Path) -> None:
    model = load_model(folder / "old_adam.h5")
    rate = model.optimizer.learning_rate
    np.testing.assert_allclose(float(np.asarray(rate)), 0.01 / (1 + 0.1 * 3), rtol=1e-6)


def test_compiled_as_it_was(folder: Path) -> None:
    model = load_model(folder / "functional.h5")
    x, y = example(folder, "functional")
    logs = model.evaluate(x, y, return_dict=True, verbose=0)
    assert {"loss", "o1_loss", "o2_loss", "o2_accuracy"} <= set(logs)


def test_older_dialects() -> None:
    """A Sequential as a list, `Model`, `lr`, policies, and arguments that are gone."""
    dense = {"name": "d", "units": 2, "batch_input_shape": [None, 3], "trainable": True}
    policy = {"class_name": "Policy", "config": {"name": "mixed_float16"}}
    stack = [
        {"class_name": "Dense", "config": dense},
        {"class_name": "Activation", "config": {"name": "a", "activation": "hard_sigmoid"}},
        {"class_name": "Dense", "config": {"name": "e", "units": 1, "dtype": policy}},
    ]
    model = model_from_json(json.dumps({"class_name": "Sequential", "config": stack}))
    assert model.input_shape == (None, 3)
    assert model.get_layer("e").compute_dtype == "float16"
    y = model.get_layer("a")(np.array([[-3.0, 0.0, 1.0]], "float32"))
    np.testing.assert_allclose(np.asarray(y), [[0.0, 0.5, 0.7]], rtol=1e-6)


# By order and by name


def small(*names: str, units: tuple[int, ...] = (4, 2)) -> Any:
    return laminar.Sequential(
        [
            layers.Input((3,)),
            *(layers.Dense(n, name=name) for n, name in zip(units, names, strict=True)),
        ]
    )


def saved(path: Path, *names: str) -> Any:
    model = small(*names)
    model.save(path)
    return model


def test_by_order_whatever_the_names(tmp_path: Path) -> None:
    source = saved(tmp_path / "m.h5", "a", "b")
    other = small("x", "y")
    other.load_weights(tmp_path / "m.h5")
    for mine, theirs in zip(other.get_weights(), source.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_by_name(tmp_path: Path) -> None:
    source = saved(tmp_path / "m.h5", "a", "b")
    other = small("a", "new", units=(4, 7))
    kept = other.get_weights()[2]
    other.load_weights(tmp_path / "m.h5", by_name=True)
    np.testing.assert_array_equal(other.get_weights()[0], source.get_weights()[0])
    np.testing.assert_array_equal(other.get_weights()[2], kept)
    with pytest.raises(InvalidArgumentError, match="none of its layers"):
        small("p", "q").load_weights(tmp_path / "m.h5", by_name=True)


def test_mismatches(tmp_path: Path) -> None:
    source = saved(tmp_path / "m.h5", "a", "b")
    other = small("a", "b", units=(4, 7))
    before = other.get_weights()
    with pytest.raises(InvalidArgumentError, match="m.h5: 'b'.*shape"):
        other.load_weights(tmp_path / "m.h5")
    for mine, old in zip(other.get_weights(), before, strict=True):
        np.testing.assert_array_equal(mine, old)
    with pytest.warns(UserWarning, match="skipped.*m.h5: 'b'"):
        other.load_weights(tmp_path / "m.h5", skip_mismatch=True)
    np.testing.assert_array_equal(other.get_weights()[0], source.get_weights()[0])
    with pytest.raises(InvalidArgumentError, match="2 layers with weights.*has 1"):
        small("a", units=(4,)).load_weights(tmp_path / "m.h5")


def test_a_file_of_weights_is_no_model(folder: Path) -> None:
    with pytest.raises(DataLossError, match="no model config"):
        load_model(folder / "cnn_weights.h5")


def test_names_too_long_for_one_attribute(tmp_path: Path) -> None:
    names = [f"{'layer' * 100}_{i}" for i in range(150)]
    model = laminar.Sequential([layers.Input((1,)), *(layers.Dense(1, name=n) for n in names)])
    model.save(tmp_path / "m.h5")
    with h5py.File(tmp_path / "m.h5") as file:
        assert "layer_names1" in file["model_weights"].attrs
    other = scrambled(load_model(tmp_path / "m.h5"))
    other.load_weights(tmp_path / "m.h5")
    for mine, theirs in zip(other.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_lambda_by_the_name_of_its_layer(tmp_path: Path) -> None:
    code = {"name": "double", "trainable": True, "function": ["4wEAAAA=", None, None]}
    stack = [
        {"class_name": "InputLayer", "config": {"batch_input_shape": [None, 2], "name": "i"}},
        {"class_name": "Lambda", "config": {**code, "function_type": "lambda", "arguments": {}}},
    ]
    config = {"class_name": "Sequential", "config": {"name": "s", "layers": stack}}
    with h5py.File(tmp_path / "m.h5", "w", libver="earliest") as file:
        file.attrs["keras_version"] = "2.4.0"
        file.attrs["model_config"] = json.dumps(config)
        file.create_group("model_weights").attrs["layer_names"] = np.array([b"i", b"double"])
        for name in ("i", "double"):
            file["model_weights"].create_group(name).attrs["weight_names"] = np.array([], "S1")
    with pytest.raises(InvalidArgumentError, match="code of a lambda"):
        load_model(tmp_path / "m.h5")
    model = load_model(tmp_path / "m.h5", custom_objects={"double": lambda x: x * 2})
    np.testing.assert_array_equal(np.asarray(model(np.ones((1, 2), "float32"))), [[2.0, 2.0]])


def test_a_tensorflow_function_that_is_not_known(folder: Path) -> None:
    text = (folder / "frozen.json").read_text().replace("math.square", "math.bessel_i0")
    with pytest.raises(DataLossError, match="TensorFlow function 'math.bessel_i0'"):
        model_from_json(text)


# Both ways between laminar and Keras


def keras_model(keras: Any) -> Any:
    a, b = keras.Input((5,), name="a"), keras.Input((5,), name="b")
    shared = keras.layers.Dense(4, activation="relu", name="shared")
    inside = keras.Input((4,), name="inside")
    dense = keras.layers.Dense(4, name="id")(inside)
    inner = keras.Model(inside, keras.layers.BatchNormalization(name="bn")(dense), name="inner")
    h = inner(keras.layers.Add(name="sum")([shared(a), shared(b)]))
    outputs = [keras.layers.Dense(2, name="o1")(h), keras.layers.Dense(1, name="o2")(h)]
    model = keras.Model([a, b], outputs)
    model.compile(keras.optimizers.Adam(0.01), {"o1": "mse", "o2": "mae"})
    return model


def trained(keras: Any) -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(0)
    xs = [rng.normal(size=(8, 5)).astype("float32") for _ in range(2)]
    model = keras_model(keras)
    model.fit(xs, [xs[0][:, :2], xs[1][:, :1]], epochs=2, verbose=0)
    return model, xs


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.keras_on_jax
def test_laminar_opens_what_keras_wrote(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    theirs, xs = trained(keras)
    theirs.save(tmp_path / "m.h5")
    ours = load_model(tmp_path / "m.h5")
    for mine, his in zip(ours(xs), theirs(xs), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(his), rtol=1e-5, atol=1e-6)
    for mine, his in zip(ours.optimizer.variables, theirs.optimizer.variables, strict=True):
        np.testing.assert_array_equal(mine.numpy(), np.asarray(his))


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_keras_opens_what_laminar_wrote(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    compat: Any = laminar  # the same calls as for Keras
    ours, xs = trained(compat)
    ours.save(tmp_path / "m.h5")
    theirs = keras.saving.load_model(tmp_path / "m.h5")
    for mine, his in zip(ours(xs), theirs(xs), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(his), rtol=1e-5, atol=1e-6)
    again = load_model(tmp_path / "m.h5")
    for mine, his in zip(ours.optimizer.variables, again.optimizer.variables, strict=True):
        np.testing.assert_array_equal(mine.numpy(), his.numpy())
    ours.save(tmp_path / "bare.h5", include_optimizer=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert load_model(tmp_path / "bare.h5").optimizer is None


def test_unknown_classes_of_an_old_file(tmp_path: Path) -> None:
    class Mine(layers.Layer):
        def call(self, x: Any) -> Any:
            return x

    model = laminar.Sequential([layers.Input((2,)), Mine(name="mine"), layers.Dense(1)])
    model.save(tmp_path / "m.h5")
    with pytest.raises(NotFoundError, match="m.h5.*'Mine'"):
        load_model(tmp_path / "m.h5")
    assert load_model(tmp_path / "m.h5", custom_objects={"Mine": Mine}).count_params() == 3


def test_h5_files_of_keras_have_a_class_under_its_inner_name(tmp_path: Path) -> None:
    x = np.ones((1, 3, 4), np.float32)
    a = layers.Input((3, 4))
    attention = layers.GroupQueryAttention(2, 2, 1)
    model = laminar.Model(a, attention(a, a))
    model.save(tmp_path / "m.h5")
    with h5py.File(tmp_path / "m.h5", "r+") as file:
        written = str(file.attrs["model_config"])
        assert '"GroupQueryAttention"' in written
        renamed = written.replace('"GroupQueryAttention"', '"GroupedQueryAttention"')
        file.attrs["model_config"] = renamed
    np.testing.assert_array_equal(load_model(tmp_path / "m.h5")(x), model(x))
