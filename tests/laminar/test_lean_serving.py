"""Serving an exported file loads what running needs, and compiles when that pays."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.engine import GradientTape, TensorSpec, Variable, device
from laminar.engine.errors import DataLossError, InvalidArgumentError
from laminar.export import ExportArchive, Exported, load

rng = np.random.default_rng(0)
X = rng.normal(size=(4, 6)).astype(np.float32)

SERVES = """
import sys
import numpy as np
import laminar

served = laminar.export.load(sys.argv[1])
y = np.asarray(served.serve(np.load(sys.argv[2])))
loaded = sorted(name for name in sys.modules if name.split(".")[0] == "laminar")
heavy = {"llvmlite", "h5py", "jax", "cupy", "google", "ml_dtypes"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
rooms = {name.split(".")[1] for name in loaded if "." in name}
assert rooms == {"engine", "export", "saving"}, rooms
inside = {name.split(".")[2] for name in loaded if name.startswith("laminar.engine.")}
beyond = {"autograph", "compiler", "devices", "functions", "gradients", "passes", "runtime"}
assert not inside & beyond, inside & beyond
assert len(loaded) <= int(sys.argv[3]), (len(loaded), loaded)
np.save(sys.argv[4], y)
"""

# With NumPy alone, as on a small machine: what else laminar asks for cannot be imported.
ALONE = """
import os
import sys

os.environ.pop("LAMINAR_FALLBACK", None)


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {
            "google", "grpc", "h5py", "llvmlite", "ml_dtypes", "rich", "tqdm"
        }:
            raise ModuleNotFoundError(f"no module {name}")

sys.meta_path.insert(0, Absent())
import numpy as np
import laminar
from laminar.commands import main

path, x, y = sys.argv[1:]
served, given = laminar.export.load(path), np.load(x)
for _ in range(3):
    found = np.asarray(served.serve(given))
np.save(y, found)
sys.exit(main(["predict", path, "--input", x]))
"""


def perceptron() -> Any:
    laminar.set_random_seed(0)
    return laminar.Sequential(
        [
            layers.Input((6,)),
            layers.Dense(8, activation="relu"),
            layers.Dense(3, activation="softmax"),
        ]
    )


def convnet() -> Any:
    laminar.set_random_seed(0)
    return laminar.Sequential(
        [
            layers.Input((6, 6, 1)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(3, activation="softmax"),
        ]
    )


@pytest.mark.parametrize(("make", "most"), [(perceptron, 60), (convnet, 72)])
def test_a_first_answer_loads_what_it_needs(make: Any, most: int, tmp_path: Path) -> None:
    model = make()
    model.export(tmp_path / "model.laminar", verbose=False)
    x = rng.normal(size=(4, *model.input_shape[1:])).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    files = [tmp_path / "model.laminar", tmp_path / "x.npy", str(most), tmp_path / "y.npy"]
    command = [sys.executable, "-c", SERVES, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert not done.returncode, done.stderr
    found = np.load(tmp_path / "y.npy")
    np.testing.assert_allclose(found, model.predict(x, verbose=0), rtol=1e-5, atol=1e-6)


def recurrent() -> Any:
    laminar.set_random_seed(0)
    return laminar.Sequential([layers.Input((None, 3)), layers.LSTM(4), layers.Dense(2)])


@pytest.mark.parametrize("make", [convnet, recurrent])
def test_loading_and_running_need_numpy_alone(make: Any, tmp_path: Path) -> None:
    model = make()
    model.export(tmp_path / "model.laminar", verbose=False)
    sizes = [5 if n is None else n for n in model.input_shape[1:]]
    x = rng.normal(size=(4, *sizes)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    files = [tmp_path / name for name in ("model.laminar", "x.npy", "y.npy")]
    command = [sys.executable, "-c", ALONE, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert not done.returncode, done.stderr
    expected = model.predict(x, verbose=0)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-4, atol=1e-6)
    printed = np.array(done.stdout.translate(str.maketrans("[]", "  ")).split(), "float32")
    np.testing.assert_allclose(printed, expected.ravel(), rtol=1e-4, atol=1e-6)


def exported(folder: Path, jit_compile: bool | str = "auto") -> tuple[Exported, Any]:
    model = perceptron()
    model.export(folder / "model.laminar", verbose=False)
    return load(folder / "model.laminar", jit_compile=jit_compile), model


def is_function(served: Exported) -> bool:
    """Whether the endpoint has become a function."""
    return served.serve._function is not None


@pytest.mark.parametrize(
    ("jit_compile", "becomes"),
    [("auto", [False, True]), (True, [True, True]), (False, [False] * 2)],
)
def test_when_it_becomes_a_function(
    tmp_path: Path, jit_compile: bool | str, becomes: list[bool]
) -> None:
    served, model = exported(tmp_path, jit_compile)
    for expected in becomes:
        np.testing.assert_allclose(served(X), model.predict(X, verbose=0), rtol=1e-5, atol=1e-6)
        assert is_function(served) == expected


def test_compiled_results_have_the_bits_of_the_model(tmp_path: Path) -> None:
    served, model = exported(tmp_path, jit_compile=True)
    np.testing.assert_array_equal(served(X), model.predict(X, verbose=0))


def test_an_unknown_wish_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="jit_compile must be True, False or 'auto'"):
        exported(tmp_path, "always")


def test_what_is_differentiated_traced_or_placed_is_a_function_at_once(tmp_path: Path) -> None:
    served, model = exported(tmp_path, jit_compile=False)
    variables = served.trainable_variables
    with GradientTape() as tape:
        loss = laminar.ops.sum(served(X) ** 2)
    with GradientTape() as other:
        expected = laminar.ops.sum(model(X) ** 2)
    pairs = zip(
        tape.gradient(loss, variables),
        other.gradient(expected, model.trainable_variables),
        strict=True,
    )
    for found, wanted in pairs:
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
    traced = laminar.function(lambda x: served(x) * 2)
    np.testing.assert_allclose(traced(X), 2 * np.asarray(model(X)), rtol=1e-5, atol=1e-6)
    with device("cpu:0"):
        np.testing.assert_allclose(served(X), model(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_variables_are_those_that_it_computes_with(tmp_path: Path, jit_compile: bool) -> None:
    served, model = exported(tmp_path, jit_compile)
    before = np.asarray(served(X))
    assert [v.shape for v in served.variables] == [v.shape for v in model.variables]
    for v in served.variables:
        v.assign(laminar.ops.zeros_like(v))
    np.testing.assert_allclose(served(X), np.full((4, 3), 1 / 3), rtol=1e-6)
    assert not np.allclose(before, 1 / 3)


def test_variables_are_made_once_and_outside_of_graphs(tmp_path: Path) -> None:
    served, model = exported(tmp_path)
    with laminar.engine.Graph().as_default():
        inside = served.variables
    assert all(a is b for a, b in zip(inside, served.variables, strict=True))
    np.testing.assert_array_equal(inside[0].numpy(), model.variables[0].numpy())


def counting(folder: Path) -> Exported:
    count = Variable(0.0)
    archive = ExportArchive()
    archive.track(count)

    def add(x: Any) -> Any:
        count.assign_add(x)
        return count.value + 0.0

    archive.add_endpoint("add", add, [TensorSpec([])])
    archive.add_endpoint("read", lambda x: count + x, [TensorSpec([])])
    archive.write_out(folder / "count.laminar", verbose=False)
    return load(folder / "count.laminar")


def test_updates_are_seen_by_all_endpoints(tmp_path: Path) -> None:
    served = counting(tmp_path)
    assert float(served.read(1.0)) == 1.0
    assert float(served.add(2.0)) == 2.0
    assert float(served.read(1.0)) == 3.0
    assert float(served.add(2.0)) == 4.0
    assert float(served.variables[0]) == 4.0


def test_many_threads_ask_at_once(tmp_path: Path) -> None:
    served, model = exported(tmp_path)
    expected, failed = model.predict(X, verbose=0), []

    def ask() -> None:
        try:
            for _ in range(5):
                np.testing.assert_allclose(served(X), expected, rtol=1e-5, atol=1e-6)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_the_first_answer_tells_of_wrong_input(tmp_path: Path) -> None:
    served, _ = exported(tmp_path)
    with pytest.raises(laminar.errors.ShapeError, match="input_signature"):
        served(X[:, :5])
    with pytest.raises(laminar.errors.ShapeError, match="a tensor, got dict"):
        served({"x": X})
    assert served(X).shape == (4, 3)


def test_a_graph_that_breaks_its_promise_is_refused(tmp_path: Path) -> None:
    served, _ = exported(tmp_path)
    endpoint = served.serve
    about = {**endpoint._about, "inputs": [{"name": "x:0", "shape": [None, 6], "dtype": "int32"}]}
    about["inputs"][0]["name"] = endpoint._about["inputs"][0]["name"]
    with pytest.raises(DataLossError, match="and said to be int32"):
        type(endpoint)("serve", about, endpoint._graph_def, endpoint._state, {}, "auto")


def test_an_argument_may_be_left_alone(tmp_path: Path) -> None:
    archive = ExportArchive()
    specs = [TensorSpec([2]), TensorSpec([2])]
    archive.add_endpoint("first", lambda x, y: (x, 2.0 * x), specs)
    archive.write_out(tmp_path / "first.laminar", verbose=False)
    served = load(tmp_path / "first.laminar")
    traced = laminar.function(lambda x: served.first(x, x))
    for _ in range(3):  # op by op, then as a function
        for same, twice in (
            served.first([1.0, 2.0], [3.0, 4.0]),
            traced(np.array([1.0, 2.0], np.float32)),
        ):
            np.testing.assert_array_equal(same, [1.0, 2.0])
            np.testing.assert_array_equal(twice, [2.0, 4.0])
