"""Weights in several files, both ways with Keras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.engine.errors import DataLossError, InvalidArgumentError, MissingFileError

KIB = 1 / (1 << 20)  # in GB


def model_of(keras: Any) -> Any:
    model = keras.Sequential(
        [
            keras.layers.Input((8,)),
            keras.layers.Dense(32, name="a"),
            keras.layers.BatchNormalization(name="n"),
            keras.layers.Dense(32, name="b"),
            keras.layers.Dense(3, name="c"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse")
    x = np.random.default_rng(0).normal(size=(16, 8)).astype("float32")
    model.fit(x, x[:, :3], epochs=1, verbose=0)
    return model


def arrays(model: Any) -> list[Any]:
    return [np.asarray(v) for v in [*model.weights, *model.optimizer.variables]]


def check_equal(a: Any, b: Any) -> None:
    for mine, theirs in zip(arrays(a), arrays(b), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def other(keras: Any) -> Any:
    model = model_of(keras)
    for v in model.weights:
        v.assign(np.asarray(v) + 1)
    return model


compat: Any = laminar  # the same calls as for Keras


@pytest.mark.parametrize("size", [4.2, 6, 1000])
def test_round_trip(tmp_path: Path, size: float) -> None:
    model = model_of(compat)
    path = tmp_path / "m.weights.json"
    model.save_weights(path, max_shard_size=size * KIB)
    listed = json.loads(path.read_text())
    files = sorted(p.name for p in tmp_path.glob("m_*.weights.h5"))
    assert files == [f"m_{i:05}.weights.h5" for i in range(len(files))]
    assert (len(files) > 2) == (size < 1000)
    assert listed["metadata"]["total_size"] == sum(a.nbytes for a in arrays(model))
    again = other(compat)
    again.load_weights(path)
    check_equal(again, model)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.keras_on_jax
def test_keras_reads_and_writes_them_too(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    theirs = model_of(keras)
    theirs.save_weights(tmp_path / "k.weights.json", max_shard_size=4.2 * KIB)
    ours = other(compat)
    ours.load_weights(tmp_path / "k.weights.json")
    check_equal(ours, theirs)
    back = other(keras)
    model_of(compat).save_weights(tmp_path / "l.weights.json", max_shard_size=4.2 * KIB)
    ours.save_weights(tmp_path / "l.weights.json", max_shard_size=4.2 * KIB)
    back.load_weights(tmp_path / "l.weights.json")
    check_equal(back, theirs)


def test_an_array_too_large_for_a_file(tmp_path: Path) -> None:
    model = model_of(compat)
    with pytest.raises(InvalidArgumentError, match="4096 bytes, max_shard_size"):
        model.save_weights(tmp_path / "m.weights.json", max_shard_size=KIB)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InvalidArgumentError, match="must end in .weights.json"):
        model.save_weights(tmp_path / "m.weights.h5", max_shard_size=1)
    with pytest.raises(InvalidArgumentError, match="above 0"):
        model.save_weights(tmp_path / "m.weights.json", max_shard_size=0)


def sharded(tmp_path: Path) -> tuple[Any, Path]:
    model = model_of(compat)
    path = tmp_path / "m.weights.json"
    model.save_weights(path, max_shard_size=6 * KIB)
    return model, path


@pytest.mark.parametrize(
    "name",
    ["../m_00000.weights.h5", "/etc/passwd", "a/b.h5", "a\\b.h5", ".h.h5", "C:x.h5", 3, None, "x"],
)
def test_files_elsewhere_are_refused(tmp_path: Path, name: Any) -> None:
    model, path = sharded(tmp_path)
    listed = json.loads(path.read_text())
    listed["weight_map"]["/layers/dense/vars"] = name
    path.write_text(json.dumps(listed))
    with pytest.raises(DataLossError, match="m.weights.json: it names"):
        model.load_weights(path)


def test_a_missing_or_damaged_shard(tmp_path: Path) -> None:
    model, path = sharded(tmp_path)
    before = arrays(model)
    shard = tmp_path / "m_00001.weights.h5"
    content = shard.read_bytes()
    shard.write_bytes(content[:-100])
    with pytest.raises(DataLossError, match="m_00001"):
        model.load_weights(path)
    shard.unlink()
    with pytest.raises(MissingFileError, match="m_00001"):
        model.load_weights(path)
    for mine, old in zip(arrays(model), before, strict=True):
        np.testing.assert_array_equal(mine, old)


def test_two_files_with_the_same_array(tmp_path: Path) -> None:
    model, path = sharded(tmp_path)
    listed = json.loads(path.read_text())
    first = tmp_path / "m_00000.weights.h5"
    (tmp_path / "copy.h5").write_bytes(first.read_bytes())
    listed["weight_map"]["/layers/dense/vars"] = ["m_00000.weights.h5", "copy.h5"]
    path.write_text(json.dumps(listed))
    with pytest.raises(DataLossError, match="two files hold"):
        model.load_weights(path)


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"weight_map": 3}', b"[" * 100_000, b"\xff"])
def test_not_a_list(tmp_path: Path, content: bytes) -> None:
    model, path = sharded(tmp_path)
    path.write_bytes(content)
    with pytest.raises(DataLossError, match="m.weights.json"):
        model.load_weights(path)


def test_partial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, path = sharded(tmp_path)
    wider = laminar.Sequential(
        [layers.Input((8,)), layers.Dense(32), layers.BatchNormalization(), layers.Dense(31)]
    )
    report = wider.load_weights(path, partial=True)
    assert report.loaded == ["layers/dense", "layers/batch_normalization"]
    assert set(report.left_out) == {"layers/dense_1", "layers/dense_2"}
    assert "2 parts loaded, 2 left out" in capsys.readouterr().out
    np.testing.assert_array_equal(wider.get_weights()[0], model.get_weights()[0])
