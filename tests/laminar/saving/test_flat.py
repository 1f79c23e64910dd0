"""Weights in checkpoints and in files of safetensors."""

import contextlib
import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine, layers
from laminar.callbacks import ModelCheckpoint
from laminar.engine import errors
from laminar.engine.checkpoint import write_checkpoint
from laminar.saving import Limits

HAS_SAFETENSORS = importlib.util.find_spec("safetensors") is not None
ENDINGS = [
    ".ckpt",
    pytest.param(
        ".safetensors",
        marks=pytest.mark.skipif(not HAS_SAFETENSORS, reason="the package is not installed"),
    ),
]


def model(seed: int, units: int = 3) -> Any:
    laminar.set_random_seed(seed)
    return laminar.Sequential(
        [
            layers.Input((4,)),
            layers.Dense(units, name=f"first_{seed}"),
            layers.Dense(2, dtype="bfloat16"),
            layers.BatchNormalization(),
        ]
    )


def same(a: Any, b: Any) -> None:
    for left, right in zip(a.variables, b.variables, strict=True):
        np.testing.assert_array_equal(left.numpy(), right.numpy())


@pytest.mark.parametrize("ending", ENDINGS)
def test_weights_come_back(tmp_path: Path, ending: str) -> None:
    one, other = model(1), model(2)
    one.save_weights(tmp_path / f"m{ending}")
    other.load_weights(tmp_path / f"m{ending}")
    same(one, other)


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_does_not_fit(tmp_path: Path, ending: str, capsys: Any) -> None:
    one, wider = model(1), model(1, units=5)
    path = tmp_path / f"m{ending}"
    one.save_weights(path)
    before = [v.numpy() for v in wider.variables]
    with pytest.raises(errors.InvalidArgumentError):
        wider.load_weights(path)
    for v, value in zip(wider.variables, before, strict=True):
        np.testing.assert_array_equal(v.numpy(), value)
    assert wider.load_weights(path, partial=True) is not None
    np.testing.assert_array_equal(wider.layers[2].gamma, one.layers[2].gamma)
    with pytest.raises(errors.DataLossError, match="max_bytes"):
        one.load_weights(path, limits=Limits(max_bytes=10))
    with pytest.raises(errors.InvalidArgumentError, match="by_name"):
        one.load_weights(path, by_name=True)
    with pytest.raises(errors.MissingFileError):
        one.load_weights(tmp_path / f"none{ending}")
    with pytest.raises(errors.AlreadyExistsError):
        one.save_weights(path, overwrite=False)


def test_names_in_a_checkpoint(tmp_path: Path) -> None:
    model(1).save_weights(tmp_path / "m.ckpt")
    found = dict(engine.list_variables(tmp_path / "m.ckpt"))
    assert found["layers/dense/vars/0"] == [4, 3]
    assert "_laminar_names" in found


@pytest.mark.parametrize("names", [b"[]", b'{"a": 1}', b"{" * 1000, b"\xff"])
def test_damaged_names(tmp_path: Path, names: bytes) -> None:
    write_checkpoint(tmp_path / "m.ckpt", [("_laminar_names", np.array(names, object))])
    with pytest.raises(errors.DataLossError):
        model(1).load_weights(tmp_path / "m.ckpt")


@pytest.mark.skipif(HAS_SAFETENSORS, reason="the package is installed")
def test_the_package_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(errors.UnimplementedError, match="pip install"):
        model(1).save_weights(tmp_path / "m.safetensors")
    with pytest.raises(errors.UnimplementedError, match="pip install"):
        model(1).load_weights(tmp_path / "m.safetensors")


@pytest.mark.skipif(not HAS_SAFETENSORS, reason="the package is not installed")
def test_its_own_reader_and_damage(tmp_path: Path) -> None:
    library = importlib.import_module("safetensors")
    one = model(1)
    path = tmp_path / "m.safetensors"
    one.save_weights(path)
    with library.safe_open(path, "numpy") as file:
        found = file.get_tensor("layers/dense/vars/0")
    np.testing.assert_array_equal(found, one.layers[0].kernel)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for i in range(60):
        changed = bytearray(data)
        changed[rng.integers(300)] ^= 1 << rng.integers(8)
        path.write_bytes(changed[: rng.integers(len(data))] if i % 2 else changed)
        with contextlib.suppress(errors.LaminarError):
            one.load_weights(path)


def test_model_checkpoint_writes_checkpoints_beside_training(tmp_path: Path) -> None:
    one = model(1)
    one.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")
    saving = ModelCheckpoint(tmp_path / "deep" / "{epoch}.ckpt", save_weights_only=True)
    one.fit(x, x[:, :2], epochs=3, verbose=0, callbacks=[saving])
    indexes = [n for n in os.listdir(tmp_path / "deep") if n.endswith(".index")]
    assert sorted(indexes) == ["1.ckpt.index", "2.ckpt.index", "3.ckpt.index"]
    other = model(2)
    other.load_weights(tmp_path / "deep" / "3.ckpt")
    same(one, other)
    with pytest.raises(errors.InvalidArgumentError, match="must end in"):
        ModelCheckpoint(tmp_path / "m.ckpt")
