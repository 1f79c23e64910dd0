"""Whole models on disk: round trips, Keras's files, failure without damage."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, optimizers
from laminar.engine.errors import (
    AlreadyExistsError,
    DataLossError,
    InvalidArgumentError,
    MissingFileError,
    NotFoundError,
)
from laminar.saving import load_model, register_keras_serializable

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 6, 6, 2)).astype("float32")
Y = rng.integers(0, 3, 40)


def trained(dropout: float = 0.2) -> laminar.Sequential:
    laminar.set_random_seed(0)
    model = laminar.Sequential(
        [
            layers.Input((6, 6, 2)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(dropout),
            layers.Dense(3, activation="softmax"),
        ]
    )
    model.compile(optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(X, Y, epochs=2, verbose=0)
    return model


def test_round_trip_goes_on_training_as_before(tmp_path: Path) -> None:
    model = trained(dropout=0.0)
    model.save(tmp_path / "m.keras")
    again = load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(again.predict(X, verbose=0), model.predict(X, verbose=0))
    assert int(again.optimizer.iterations) == int(model.optimizer.iterations)
    for a, b in zip(again.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    for m in (model, again):
        m.reset_metrics()
    first = model.train_on_batch(X, Y)
    second = again.train_on_batch(X, Y)
    np.testing.assert_allclose(first, second, rtol=1e-5)


def test_weights_file_round_trip(tmp_path: Path) -> None:
    model = trained()
    model.save_weights(tmp_path / "m.weights.h5")
    again = laminar.Sequential.from_config(model.get_config())
    again.load_weights(tmp_path / "m.weights.h5")
    for a, b in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    third = laminar.Sequential.from_config(model.get_config())
    model.save(tmp_path / "m.keras")
    third.load_weights(tmp_path / "m.keras")
    np.testing.assert_array_equal(third.get_weights()[0], model.get_weights()[0])


def test_custom_layer_by_registry_and_by_argument(tmp_path: Path) -> None:
    @register_keras_serializable("tests")
    class Scale(layers.Layer):
        def __init__(self, factor: float, **options: Any) -> None:
            super().__init__(**options)
            self.factor = factor

        def call(self, x: Any) -> Any:
            return x * self.factor

    class Shift(layers.Layer):
        def __init__(self, by: float = 1.0, **options: Any) -> None:
            super().__init__(**options)
            self.by = by

        def call(self, x: Any) -> Any:
            return x + self.by

    model = laminar.Sequential([layers.Input((2,)), Scale(3.0), Shift(by=2.0)])
    model.save(tmp_path / "m.keras")
    with pytest.raises(NotFoundError, match="Shift") as caught:
        load_model(tmp_path / "m.keras")
    assert "custom_objects={'Shift': Shift}" in str(caught.value)
    again = load_model(tmp_path / "m.keras", custom_objects={"Shift": Shift})
    np.testing.assert_array_equal(np.asarray(again(np.ones((1, 2), "float32"))), [[5.0, 5.0]])


def test_weights_of_another_model_change_nothing(tmp_path: Path) -> None:
    model = trained()
    model.save_weights(tmp_path / "m.weights.h5")
    other = laminar.Sequential(
        [layers.Input((6, 6, 2)), layers.Conv2D(4, 3), layers.Flatten(), layers.Dense(5)]
    )
    before = other.get_weights()
    with pytest.raises(InvalidArgumentError):
        other.load_weights(tmp_path / "m.weights.h5")
    for a, b in zip(before, other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.warns(UserWarning, match="m.weights.h5") as told:
        other.load_weights(tmp_path / "m.weights.h5", skip_mismatch=True)
    texts = [str(warning.message) for warning in told]
    assert any("skipped" in text for text in texts)
    assert any("left out: layers/batch_normalization" in text for text in texts)
    assert {warning.filename for warning in told} == {__file__}
    np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])
    np.testing.assert_array_equal(other.get_weights()[2], before[2])


def test_a_failed_save_keeps_the_older_file(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    model = trained()
    model.save(path)
    before = path.read_bytes()
    broken = laminar.Sequential([layers.Input((2,)), layers.Activation(lambda x: x)])
    with pytest.raises(InvalidArgumentError, match="lambda"):
        broken.save(path)
    assert path.read_bytes() == before
    with pytest.raises(AlreadyExistsError):
        model.save(path, overwrite=False)
    assert [p.name for p in tmp_path.iterdir()] == ["m.keras"]


def test_missing_truncated_and_wrong_files(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    with pytest.raises(MissingFileError):
        load_model(path)
    trained().save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataLossError):
        load_model(path)
    path.write_bytes(b"not an archive")
    with pytest.raises(DataLossError):
        load_model(path)


def rewritten(path: Path, change: Any) -> None:
    """Change the config of an archive."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(parts["config.json"])
    change(config)
    parts["config.json"] = json.dumps(config).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(class_name="os", module="os", registered_name="system"),
        lambda c: c.update(class_name="function", config="system", module="os"),
        lambda c: c.update(class_name="__lambda__", config={"code": "4wAA", "defaults": None}),
        lambda c: c["config"]["layers"][1].update(module="builtins", class_name="eval"),
        lambda c: c["config"]["layers"][1].update(module="subprocess", class_name="Popen"),
        lambda c: c["config"].update(layers=[{"class_name": "Sequential", "config": 3}]),
        lambda c: c["config"]["layers"][1]["config"].update(kernel_size="abc"),
        lambda c: c["config"]["layers"][1]["config"].update(unknown_key=1),
        lambda c: c["config"].update(layers=[c["config"]["layers"][2]]),
    ],
)
def test_hostile_configs_are_refused(tmp_path: Path, change: Any) -> None:
    path = tmp_path / "m.keras"
    trained().save(path)
    rewritten(path, change)
    with pytest.raises(laminar.errors.LaminarError):
        load_model(path)


# Both ways between laminar and Keras


def keras_model(keras: Any) -> Any:
    x = keras.Input((6, 6, 2), name="image")
    y = keras.layers.Conv2D(4, 3, padding="same", activation="relu", kernel_regularizer="l2")(x)
    y = keras.layers.BatchNormalization()(y)
    skip = keras.layers.Conv2D(4, 1)(x)
    y = keras.layers.Add()([y, skip])
    y = keras.ops.relu(y) + 0.5
    y = keras.layers.GlobalAveragePooling2D()(y)
    z = keras.ops.mean(x, axis=[1, 2])
    y = keras.layers.Concatenate()([y, z])
    return keras.Model(x, keras.layers.Dense(3, activation="softmax", name="head")(y))


def compiled(model: Any, module: Any) -> Any:
    schedule = module.optimizers.schedules.ExponentialDecay(0.01, 10, 0.9)
    model.compile(
        module.optimizers.AdamW(schedule, weight_decay=0.01),
        loss=module.losses.SparseCategoricalCrossentropy(),
        metrics=["accuracy"],
    )
    return model


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.keras_on_jax
def test_laminar_opens_what_keras_wrote(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    theirs = compiled(keras_model(keras), keras)
    theirs.fit(X, Y, epochs=2, verbose=0)
    theirs.save(tmp_path / "k.keras")
    ours = load_model(tmp_path / "k.keras")
    np.testing.assert_allclose(
        ours.predict(X, verbose=0), np.asarray(theirs.predict(X, verbose=0)), rtol=1e-5, atol=1e-6
    )
    assert len(ours.weights) == len(theirs.weights)
    for a, b in zip(ours.weights, theirs.weights, strict=True):
        assert a.path.split("/")[-1] == b.path.split("/")[-1]
        np.testing.assert_array_equal(a.numpy(), np.asarray(b))
    mine = ours.fit(X, Y, batch_size=40, epochs=3, shuffle=False, verbose=0).history["loss"]
    his = theirs.fit(X, Y, batch_size=40, epochs=3, shuffle=False, verbose=0).history["loss"]
    np.testing.assert_allclose(mine, his, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_keras_opens_what_laminar_wrote(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    compat: Any = laminar  # the same calls as for Keras
    ours = compiled(keras_model(compat), laminar)
    ours.fit(X, Y, epochs=2, verbose=0)
    ours.save(tmp_path / "l.keras")
    theirs = keras.saving.load_model(tmp_path / "l.keras")
    np.testing.assert_allclose(
        ours.predict(X, verbose=0), np.asarray(theirs.predict(X, verbose=0)), rtol=1e-5, atol=1e-6
    )
    assert int(theirs.optimizer.iterations) == int(ours.optimizer.iterations)
    ours.save_weights(tmp_path / "l.weights.h5")
    fresh = keras_model(keras)
    fresh.load_weights(tmp_path / "l.weights.h5")
    np.testing.assert_array_equal(np.asarray(fresh.weights[0]), ours.weights[0].numpy())
