"""Objects with functions as files: attributes keep their names, and no class is needed."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops
from laminar.engine import TensorSpec, Variable
from laminar.engine.errors import DataLossError, InvalidArgumentError, ShapeError

X = np.arange(6, dtype=np.float32).reshape(3, 2)


class Encoder:
    """A part of a model, with a function of its own."""

    def __init__(self) -> None:
        self.scale = Variable(np.array([2.0, 3.0], np.float32), name="scale")

    @laminar.function
    def encode(self, x: Any) -> Any:
        return x * self.scale


class Regressor:
    """Variables, layers, parts in lists and dicts, and functions of several kinds."""

    def __init__(self) -> None:
        self.W = Variable(np.ones((2, 1), np.float32), name="W")
        self.steps = Variable(0, trainable=False)
        self.encoders = [Encoder(), Encoder()]
        self.heads = {"b": layers.Dense(1, kernel_initializer="ones")}
        self.heads["b"](X)
        self.note = "is not written"
        self.twice = laminar.function(lambda x: x * 2.0)

    @laminar.function(input_signature=[TensorSpec([None, 2])])
    def predict(self, x: Any) -> Any:
        self.steps.assign_add(1)
        for encoder in self.encoders:
            x = encoder.encode(x)
        return {"y": ops.matmul(x, self.W.value), "z": self.heads["b"](x)}

    @laminar.function
    def step(self, x: Any, y: Any) -> Any:
        with laminar.GradientTape() as tape:
            loss = ops.mean((ops.matmul(x, self.W.value) - y) ** 2)
        self.W.assign_sub(0.01 * tape.gradient(loss, self.W))
        return loss


USES = """
import sys
import numpy as np
import laminar
m = laminar.export.load(sys.argv[1])
x = np.arange(6, dtype=np.float32).reshape(3, 2)
found = m.predict(x)
assert m.predict(x[:1])["y"].shape == (1, 1)
assert int(m.steps) == 3, m.steps
np.testing.assert_allclose(found["y"], x * [4, 9] @ np.ones((2, 1)))
np.testing.assert_allclose(found["z"], found["y"])
assert m.encoders[1].encode(x).tolist() == (x * [2, 3]).tolist()
assert len(m.encoders) == 2 and m.heads["b"].kernel.shape == (2, 1)
losses = [float(m.step(x, np.ones((3, 1), np.float32))) for _ in range(3)]
assert losses[2] < losses[0]
with laminar.GradientTape() as tape:
    y = m.predict(x)["y"]
assert tape.gradient(y, m.W).shape == (2, 1)
assert m.twice(np.ones(1, np.float32)) == 2.0
assert m.twice(np.ones((1, 1), np.float32)).shape == (1, 1)
try:
    m.note
except AttributeError as error:
    assert "no endpoint 'note'" in str(error)
"""


def test_it_runs_and_trains_without_its_class(tmp_path: Path) -> None:
    m = Regressor()
    m.predict(X)
    m.step(X, np.ones((3, 1), np.float32))
    m.W.assign(np.ones((2, 1)))
    m.twice(np.ones(1, np.float32))
    m.twice(np.ones((1, 1), np.float32))
    path = tmp_path / "regressor.laminar"
    laminar.export.save(m, path, {f"encoders.{i}.encode": [TensorSpec([None, 2])] for i in (0, 1)})
    command = [sys.executable, "-c", USES, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert not done.returncode, done.stderr


def test_several_graphs_of_one_function(tmp_path: Path) -> None:
    holder = Encoder()
    holder.encode(X)
    holder.encode(X[0])
    laminar.export.save(holder, tmp_path / "file")
    loaded = laminar.export.load(tmp_path / "file")
    for x in (X, X[0]):
        np.testing.assert_array_equal(loaded.encode(x), holder.encode(x))
    with pytest.raises(ShapeError, match="expected"):
        loaded.encode(np.ones(7, np.float32))


class Broken:
    @laminar.function(input_signature=[TensorSpec([2])])
    def measure(self, x: Any) -> Any:
        return np.sin(x)


class Untraceable:
    @laminar.function
    def size(self, x: Any) -> Any:
        raise OSError("no such thing")


def test_errors_name_the_function_and_the_line(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgumentError, match="function 'inner.measure' cannot be tr"
    ) as caught:
        laminar.export.save({"inner": Broken()}, tmp_path / "file")
    assert "return np.sin(x)" in str(caught.value)
    signatures = {"size": [TensorSpec([2])]}
    with pytest.raises(InvalidArgumentError, match="'size' cannot be traced: OSError") as caught:
        laminar.export.save(Untraceable(), tmp_path / "file", signatures)
    assert 'raise OSError("no such thing")' in str(caught.value)
    with pytest.raises(InvalidArgumentError, match="'encode' has no input_signature") as caught:
        laminar.export.save(Encoder(), tmp_path / "file")
    assert "signatures={'encode'" in str(caught.value)
    encoder = Encoder()
    encoder.encode(X)
    with pytest.raises(InvalidArgumentError, match="Encoder has no function decode") as caught:
        laminar.export.save(encoder, tmp_path / "file", {"decode": []})
    assert "it has encode" in str(caught.value)
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(
    "objects",
    [
        5,
        [5],
        [{}],
        [{"variable": "9"}],
        [{"parts": {"a": 7}, "functions": {}}],
        [{"parts": {}, "functions": {"f": ["none"]}}],
        [{"parts": {}, "functions": {"f": []}}],
        [{"parts": [], "functions": {}}],
    ],
)
def test_descriptions_that_are_none(tmp_path: Path, objects: Any) -> None:
    encoder = Encoder()
    encoder.encode(X)
    laminar.export.save(encoder, tmp_path / "good")
    with zipfile.ZipFile(tmp_path / "good") as good, zipfile.ZipFile(tmp_path / "bad", "w") as bad:
        for name in good.namelist():
            data = good.read(name)
            if name == "config.json":
                data = json.dumps({**json.loads(data), "objects": objects}).encode()
            bad.writestr(name, data)
    with pytest.raises(DataLossError):
        laminar.export.load(tmp_path / "bad")


def test_functions_take_their_arguments_in_order(tmp_path: Path) -> None:
    spec = TensorSpec((), "float32")

    class Difference:
        less = laminar.function(lambda self, b, a: b - 2.0 * a, input_signature=[spec, spec])

    laminar.export.save(Difference(), tmp_path / "m")
    assert float(laminar.export.load(tmp_path / "m").less(10.0, 1.0).numpy()) == 8.0


class Switched:
    """Functions whose Python arguments choose what they compute."""

    def __init__(self) -> None:
        self.w = laminar.Variable([1.0, 2.0])

    @laminar.function
    def scaled(self, x: Any, by: float = 2.0, mode: str = "up") -> Any:
        return x * by if mode == "up" else x - by

    @laminar.function
    def call(self, x: Any, training: bool | None = None) -> Any:
        return x * self.w if training else x


def test_python_arguments_choose_among_the_graphs(tmp_path: Path) -> None:
    owner, x = Switched(), laminar.engine.constant([3.0, 4.0])
    calls: list[tuple[list[Any], dict[str, Any]]] = [
        ([], {}),
        ([3.0], {}),
        ([], {"mode": "down"}),
    ]
    for args, kwargs in calls:
        owner.scaled(x, *args, **kwargs)
    owner.call(x)
    owner.call(x, training=True)
    laminar.export.save(owner, tmp_path / "switched.laminar")
    loaded = laminar.export.load(tmp_path / "switched.laminar")
    calls += [([3.0, "up"], {}), ([2.0, "down"], {}), ([], {"by": 3.0, "mode": "up"})]
    for args, kwargs in calls:
        expected = owner.scaled(x, *args, **kwargs)
        np.testing.assert_array_equal(loaded.scaled(x, *args, **kwargs), expected)
        np.testing.assert_array_equal(loaded.scaled(x=x, **kwargs), owner.scaled(x, **kwargs))
    for training in (None, True):
        np.testing.assert_array_equal(loaded.call(x, training=training), owner.call(x, training))
    assert loaded.scaled.endpoints[1].input_signature[1:] == [3.0, "up"]
    for wrong in ({"by": 5.0}, {"by": 2}, {"other": 1}):
        with pytest.raises(ShapeError, match="expected"):
            loaded.scaled(x, **wrong)
    with pytest.raises(ShapeError, match="a sequence of 3, got list of 0"):
        loaded.scaled()


def test_what_was_loaded_is_trained_and_written_again(tmp_path: Path) -> None:
    owner = Switched()
    x = laminar.engine.constant([3.0, 4.0])
    model = Regressor()
    model.step(X, np.ones((3, 1), np.float32))
    model.twice(X)
    owner.call(x)
    whole = {"model": model, "switched": owner}
    owner.scaled(x)
    owner.scaled(x, 3.0)
    expected = owner.scaled(x, 3.0)
    laminar.export.save(whole, tmp_path / "a.laminar")
    loaded = laminar.export.load(tmp_path / "a.laminar")
    for path in ("b.laminar", "c.laminar"):
        loss = loaded.model.step(X, np.ones((3, 1), np.float32))
        laminar.export.save(loaded, tmp_path / path)
        again = laminar.export.load(tmp_path / path)
        assert list(again.endpoints) == list(loaded.endpoints)
        assert [v.shape for v in again.variables] == [v.shape for v in loaded.variables]
        np.testing.assert_array_equal(again.model.W, loaded.model.W)
        np.testing.assert_allclose(
            again.model.predict(X)["y"], loaded.model.predict(X)["y"], rtol=1e-6
        )
        np.testing.assert_array_equal(again.switched.scaled(x, by=3.0), expected)
        assert float(again.model.step(X, np.ones((3, 1), np.float32))) < float(loss)
        loaded = again


def test_an_export_of_a_model_is_written_again_and_checkpointed(tmp_path: Path) -> None:
    model = laminar.Sequential([layers.Input((2,)), layers.Dense(3)])
    model.export(tmp_path / "a.laminar", verbose=False)
    loaded = laminar.export.load(tmp_path / "a.laminar")
    kernel = loaded.variables[0]
    kernel.assign(2.0 * kernel)
    laminar.export.save(loaded, tmp_path / "b.laminar")
    np.testing.assert_array_equal(
        laminar.export.load(tmp_path / "b.laminar").serve(X), loaded.serve(X)
    )
    prefix = laminar.engine.Checkpoint(served=loaded).save(tmp_path / "ckpt")
    other = laminar.export.load(tmp_path / "a.laminar")
    laminar.engine.Checkpoint(served=other).restore(prefix).assert_consumed()
    np.testing.assert_array_equal(other.serve(X), loaded.serve(X))
