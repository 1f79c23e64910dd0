"""What scripts for Keras expect of saving and loading, beyond whole files of whole models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.engine.errors import AlreadyExistsError, DataLossError
from laminar.saving import (
    deserialize_keras_object,
    load_model,
    register_keras_serializable,
    save_model,
)
from laminar.saving.archive import ArchiveReader, write_archive

X = np.arange(6, dtype="float32").reshape(2, 3)


def small() -> laminar.Sequential:
    words = layers.StringLookup(name="words")
    words.adapt(["a", "b", "a"])
    text = laminar.Sequential([words], name="text")
    model = laminar.Sequential([layers.Input((3,)), layers.Dense(2, bias_initializer="ones")])
    model.text = text
    return model


# Folders


def test_a_folder_holds_what_an_archive_holds(tmp_path: Path) -> None:
    model = small()
    save_model(model, tmp_path / "m", zipped=False)
    model.save(tmp_path / "m.keras")
    with ArchiveReader(tmp_path / "m.keras") as archive:
        config = json.loads((tmp_path / "m" / "config.json").read_text())
        assert config == archive.config
        for name in archive.assets:
            assert (tmp_path / "m" / "assets" / name).read_bytes() == archive.asset(name)
        assert archive.assets
    again = load_model(tmp_path / "m")
    np.testing.assert_array_equal(np.asarray(again(X)), np.asarray(model(X)))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "m.keras"]


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_keras_opens_the_folder(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    model = laminar.Sequential([layers.Input((3,)), layers.Dense(2)])
    model.save(tmp_path / "ours", zipped=False)
    theirs = keras.saving.load_model(tmp_path / "ours")
    np.testing.assert_allclose(theirs.predict(X, verbose=0), np.asarray(model(X)), rtol=1e-6)
    keras.saving.save_model(theirs, str(tmp_path / "theirs"), zipped=False)
    again = load_model(tmp_path / "theirs")
    np.testing.assert_allclose(np.asarray(again(X)), np.asarray(model(X)), rtol=1e-6)


def test_a_folder_takes_the_place_of_a_model_alone(tmp_path: Path) -> None:
    model = small()
    (tmp_path / "empty").mkdir()
    for name in ("empty", "empty"):
        model.save(tmp_path / name, zipped=False)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("dear")
    with pytest.raises(AlreadyExistsError, match="no folder of a model"):
        model.save(tmp_path / "notes", zipped=False)
    assert (tmp_path / "notes" / "diary.txt").read_text() == "dear"
    with pytest.raises(ValueError, match="which has no ending"):
        model.save(tmp_path / "m.keras", zipped=False)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    small().save(tmp_path / "m", zipped=False)
    (tmp_path / "m" / "model.weights.h5").unlink()
    with pytest.raises(DataLossError, match=r"it has no model\.weights\.h5"):
        load_model(tmp_path / "m")


# Models without weights


@register_keras_serializable("like_keras")
class Late(laminar.Model):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dense = layers.Dense(2)

    def call(self, x: Any) -> Any:
        return self.dense(x)


def test_a_model_without_weights_is_saved_as_such(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="has no weights yet, so the file will have none"):
        Late().save(tmp_path / "m.keras")
    again = load_model(tmp_path / "m.keras")
    assert isinstance(again, Late)
    assert not again.built
    assert again(X).shape == (2, 2)


# Files of older versions: layers in lists in lists stood under "layers"


@register_keras_serializable("like_keras")
class Nested(laminar.Model):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.blocks = [(layers.Dense(3, use_bias=False),) for _ in range(2)]
        self.out = layers.Dense(1)

    def call(self, x: Any) -> Any:
        for (dense,) in self.blocks:
            x = dense(x)
        return self.out(x)


def test_layers_in_nested_lists_are_found_where_older_versions_had_them(tmp_path: Path) -> None:
    model = Nested()
    model(X)
    model.save(tmp_path / "new.keras")
    with ArchiveReader(tmp_path / "new.keras") as new:
        config, metadata = new.config, new.metadata
    kernels = [np.full((3, 3), i + 1.0, "float32") for i in range(2)]
    out = [np.full((3, 1), 5.0, "float32"), np.zeros(1, "float32")]
    old: dict[str, list[np.ndarray[Any, Any]]] = {
        "layers/dense": kernels[:1],
        "layers/dense_1": kernels[1:],
        "layers/dense_2": out,
    }
    write_archive(tmp_path / "old.keras", config, metadata, old)
    again = load_model(tmp_path / "old.keras")
    for (dense,), kernel in zip(again.blocks, kernels, strict=True):
        np.testing.assert_array_equal(dense.kernel.numpy(), kernel)
    np.testing.assert_array_equal(again.out.kernel.numpy(), out[0])


# Methods and configs of the user's


@register_keras_serializable("like_keras")
class Particular(layers.Layer):
    def call(self, x: Any) -> Any:
        return x

    def load_own_variables(self, store: Any) -> None:
        raise ValueError(f"{len(store)} arrays are too few")


def test_a_layer_that_reads_its_own_variables_is_asked(tmp_path: Path) -> None:
    laminar.Sequential([layers.Input((1,)), Particular()]).save(tmp_path / "m.keras")
    with pytest.raises(ValueError, match="0 arrays are too few"):
        load_model(tmp_path / "m.keras")


class Growth:
    def get_config(self) -> dict[str, Any]:
        return {}

    def __call__(self, x: Any) -> Any:
        return x * 2


def test_errors_are_of_the_classes_that_keras_raises(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no file"):
        load_model(tmp_path / "none.keras")
    with pytest.raises(ValueError, match="unknown arguments save_format"):
        save_model(small(), tmp_path / "m.keras", save_format="tf")
    dense = {"class_name": "Dense", "module": "keras.layers", "config": {"units": 1}}
    with pytest.raises(TypeError, match="does not know"):
        deserialize_keras_object({**dense, "class_name": "Denze"})
    for name in ("builtins.eval", "my_pkg>MyDense"):
        with pytest.raises(ValueError, match="nobody registered"):
            deserialize_keras_object({**dense, "registered_name": name})
    named = {"class_name": "function", "module": "builtins", "registered_name": "function"}
    assert deserialize_keras_object({**named, "config": "relu"}) is laminar.activations.relu
    stack = {"class_name": "Sequential", "module": "keras", "config": {"layers": [dense]}}
    with pytest.raises(ValueError, match="has 'name' and 'layers'"):
        deserialize_keras_object(stack)
    laminar.Sequential([layers.Input((1,)), layers.Dense(1, activation=Growth())]).save(
        tmp_path / "m.keras"
    )
    with pytest.raises(TypeError, match="cannot be made from a config"):
        load_model(tmp_path / "m.keras", custom_objects={"Growth": Growth})
