"""Model archives: what is written is read back, both ways with Keras itself too."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import (
    InvalidArgumentError,
    NotFoundError,
)
from laminar.saving.archive import open_archive, write_archive

from .archives import CONFIG, METADATA, WEIGHTS, entries, read_all, write_good

pytest.importorskip("h5py")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write_good(tmp_path / "good.keras")


def test_round_trip(good: Path) -> None:
    with open_archive(good) as archive:
        assert archive.config == CONFIG
        assert archive.metadata == METADATA
        assert archive.assets == ["layers/string_lookup/vocabulary.txt"]
        assert archive.asset("layers/string_lookup/vocabulary.txt") == b"one\ntwo"
        with pytest.raises(NotFoundError):
            archive.asset("../config.json")
        with archive.weights() as weights:
            assert weights.attributes("layers/dense/vars") == {"name": "dense"}
            for path, arrays in WEIGHTS.items():
                for found, expected in zip(weights.variables(path).values(), arrays, strict=True):
                    assert found.dtype == expected.dtype
                    np.testing.assert_array_equal(found, expected)


def test_same_content_same_bytes(good: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.keras"
    for path in (good, other):
        write_archive(path, CONFIG, METADATA, WEIGHTS)
    assert good.read_bytes() == other.read_bytes()


def test_deflated_archive(good: Path) -> None:
    before = read_all(good)
    parts = entries(good)
    with zipfile.ZipFile(good, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("assets/", b"")
        archive.writestr("notes.txt", b"not ours, and not read")
        for entry, content in parts:
            archive.writestr(entry.filename, content)
    assert read_all(good) == before


def test_archive_behind_other_bytes(good: Path) -> None:
    before = read_all(good)
    good.write_bytes(b"#!/bin/sh\n" + good.read_bytes())
    assert read_all(good) == before


# Refused writing


@pytest.mark.parametrize(
    ("config", "weights", "assets"),
    [
        ({"a": float("nan")}, {}, {}),
        ({"a": object()}, {}, {}),
        ({"a": {1, 2}}, {}, {}),
        ({}, {"../x": [1.0]}, {}),
        ({}, {}, {"../x": b""}),
        ({}, {}, {"/x": b""}),
        ({}, {}, {"a\\b": b""}),
    ],
)
def test_refused_writing_leaves_the_earlier_file(
    config: dict[str, Any], weights: dict[str, Any], assets: dict[str, bytes], good: Path
) -> None:
    before = good.read_bytes()
    with pytest.raises(InvalidArgumentError):
        write_archive(good, config, {}, weights, assets=assets)
    assert good.read_bytes() == before
    assert list(good.parent.iterdir()) == [good]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failing_disk_leaves_the_earlier_file(
    step: str, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    before = good.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(OSError, match="Input/output"):
            write_archive(good, {}, {}, {"x": [np.ones(3)]})
    assert good.read_bytes() == before
    assert list(good.parent.iterdir()) == [good]


# Keras itself


def tiny(keras: Any) -> Any:
    dense = keras.layers.Dense(3, name="first", activation="relu")
    model = keras.Sequential([keras.Input((4,)), dense, keras.layers.Dense(2, dtype="bfloat16")])
    model.compile("adam", "mse")
    model.fit(np.ones((8, 4), np.float32), np.ones((8, 2), np.float32), verbose=0)
    return model


@pytest.mark.filterwarnings("ignore")  # Keras's own
@pytest.mark.keras_on_jax
def test_read_what_keras_wrote(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    path = tmp_path / "model.keras"
    model = tiny(keras)
    model.save(path)
    with open_archive(path) as archive, archive.weights() as weights:
        assert archive.config["class_name"] == "Sequential"
        assert archive.metadata["keras_version"] == keras.__version__
        assert weights.attributes("layers/dense/vars") == {"name": "first"}
        expected = {
            "layers/dense": model.layers[0].weights,
            "layers/dense_1": model.layers[1].weights,
            "optimizer": model.optimizer.variables,
        }
        for name, variables in expected.items():
            found = weights.variables(name).values()
            for mine, theirs in zip(found, variables, strict=True):
                array = keras.ops.convert_to_numpy(theirs)
                assert mine.dtype == array.dtype
                assert mine.tobytes() == array.tobytes()


@pytest.mark.filterwarnings("ignore")  # Keras's own
@pytest.mark.keras_on_jax
def test_keras_reads_what_is_written(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    path = tmp_path / "model.keras"
    model = tiny(keras)
    model.save(path)
    with open_archive(path) as archive, archive.weights() as weights:
        config, metadata = archive.config, archive.metadata
        arrays = {name: weights.variables(name) for name in weights.objects()}
    arrays["layers/dense"] = {name: array + 1 for name, array in arrays["layers/dense"].items()}
    write_archive(path, config, metadata, arrays, names={"layers/dense": "first"})

    loaded = keras.models.load_model(path)
    for mine, theirs in zip(arrays["layers/dense"].values(), loaded.layers[0].weights, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(theirs), mine)
    for mine, theirs in zip(model.layers[1].weights, loaded.layers[1].weights, strict=True):
        assert keras.backend.standardize_dtype(theirs.dtype) == "bfloat16"
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(theirs), keras.ops.convert_to_numpy(mine)
        )
    slots = zip(model.optimizer.variables, loaded.optimizer.variables, strict=True)
    for mine, theirs in slots:
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(theirs), keras.ops.convert_to_numpy(mine)
        )
