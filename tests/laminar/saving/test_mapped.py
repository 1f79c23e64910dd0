"""Weights that are views of the mapped file: same values, no memory of their own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.engine import errors
from laminar.engine.saving import stored_value
from laminar.saving import load_model
from laminar.saving.archive import ArchiveReader
from laminar.saving.weights import WeightsReader
from laminar.saving.window import ALIGNMENT, MappedWindow

HAS_SAFETENSORS = importlib.util.find_spec("safetensors") is not None
FILES = [
    "m.weights.h5",
    "m.weights.json",
    "m.keras",
    pytest.param(
        "m.safetensors",
        marks=pytest.mark.skipif(not HAS_SAFETENSORS, reason="the package is not installed"),
    ),
]
X = np.random.default_rng(0).normal(size=(4, 64)).astype("float32")


def model(seed: int) -> Any:
    laminar.utils.set_random_seed(seed)
    return laminar.Sequential(
        [
            layers.Input((64,)),
            layers.Dense(96, activation="relu"),
            layers.Dense(2, dtype="bfloat16"),
            layers.BatchNormalization(),
        ]
    )


def saved(made: Any, path: Path) -> None:
    if path.name == "m.keras":
        made.save(path)
    elif path.name == "m.weights.json":
        made.save_weights(path, max_shard_size=4e-5)
    else:
        made.save_weights(path)


def is_mapped(variable: Any) -> bool:
    """Whether the memory of a value is that of a file."""
    start = np.asarray(stored_value(variable)).ctypes.data
    for line in Path("/proc/self/maps").read_text().splitlines():
        places, _, _, _, inode, *_ = line.split()
        first, last = (int(place, 16) for place in places.split("-"))
        if first <= start < last:
            return inode != "0"
    return False


@pytest.mark.parametrize("name", FILES)
def test_the_same_values_and_training_goes_on(tmp_path: Path, name: str) -> None:
    one, read, mapped = model(1), model(2), model(3)
    path = tmp_path / name
    saved(one, path)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    read.load_weights(path)
    mapped.load_weights(path, mmap=True)
    for a, b in zip(read.variables, mapped.variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    np.testing.assert_array_equal(read(X), mapped(X))
    for each in (read, mapped):
        laminar.utils.set_random_seed(0)
        each.compile(laminar.optimizers.SGD(0.1), "mse")
        each.fit(X, X[:, :2], epochs=2, verbose=0)
    for a, b in zip(read.variables, mapped.variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it reads /proc")
@pytest.mark.parametrize("name", FILES)
def test_values_are_views_of_the_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    saved(model(1), path)
    mapped = model(2)
    mapped.load_weights(path, mmap=True)
    large = [v for v in mapped.variables if v.numpy().nbytes >= 1 << 14]
    assert large
    assert all(map(is_mapped, large))
    os.replace(path, tmp_path / "other")  # and what stands there stays valid
    assert np.isfinite(mapped(X)).all()


def test_large_arrays_begin_at_a_line(tmp_path: Path) -> None:
    model(1).save(tmp_path / "m.keras")
    model(1).save_weights(tmp_path / "m.weights.h5")
    with ArchiveReader(tmp_path / "m.keras") as archive, archive.weights(mmap=True) as inside:
        found = [inside["layers/dense/vars/0"]]
    with WeightsReader(tmp_path / "m.weights.h5", mmap=True) as reader:
        found.append(reader["layers/dense/vars/0"])
    for array in found:
        assert array.nbytes >= 1 << 14
        assert array.ctypes.data % ALIGNMENT == 0


def test_a_file_that_is_too_short(tmp_path: Path) -> None:
    path = tmp_path / "m.weights.h5"
    model(1).save_weights(path)
    whole = path.read_bytes()
    for size in (0, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(errors.DataLossError):
            model(2).load_weights(path, mmap=True)
    path.write_bytes(b"abcd")
    with path.open("rb") as file:
        window = MappedWindow(file, 2, 2, "here")
        assert bytes(window.mapped(0, 2)) == b"cd"
        with pytest.raises(errors.DataLossError, match="here"):
            window.mapped(1, 2)
        with pytest.raises(errors.DataLossError, match="ends before"):
            MappedWindow(file, 2, 9, "here").mapped(0, 9)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it reads /proc")
def test_no_second_copy_in_memory(tmp_path: Path) -> None:
    """Also not by native code: it takes the arrays where they are."""
    n, count = 1024, 16
    made = laminar.Sequential(
        [layers.Input((n,)), *(layers.Dense(n, use_bias=False) for _ in range(count))]
    )
    path = tmp_path / "large.keras"
    made.save(path)
    program = f"""
import numpy as np, laminar
def own(): 
    lines = dict(l.split(":") for l in open("/proc/self/status") if ":" in l)
    return int(lines["RssAnon"].split()[0]) * 1024
model = laminar.Sequential([laminar.layers.Input((8,)), laminar.layers.Dense(8)])
for _ in range(3): model.predict_on_batch(np.ones((1, 8), "float32"))
before = own()
model = laminar.saving.load_model({str(path)!r}, mmap=True)
for _ in range(3): model.predict_on_batch(np.ones((1, {n}), "float32"))
print(own() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < n * n * 4 * count / 4


def test_load_model_says_what_it_takes(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    one = model(1)
    one.save(path)
    again = load_model(path, mmap=True)
    np.testing.assert_array_equal(one(X), again(X))
    again.save(path)  # over the file that is mapped
    np.testing.assert_array_equal(one(X), load_model(path)(X))
