"""Exported files: what the model computes, without its code; and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops
from laminar.engine import GraphDef, TensorSpec
from laminar.engine.errors import (
    DataLossError,
    InvalidArgumentError,
    ShapeError,
    UnimplementedError,
)
from laminar.engine.ops.core.basic import identity
from laminar.export import ExportArchive, load

rng = np.random.default_rng(0)
BAD: tuple[Any, ...] = (None, "x", -7, [])


def convnet() -> Any:
    return laminar.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(3, activation="softmax"),
        ]
    )


def recurrent() -> Any:
    return laminar.Sequential(
        [layers.Input((None,), dtype="int32"), layers.Embedding(20, 6), layers.LSTM(5)]
    )


def of_two() -> Any:
    a, b = layers.Input((4,), name="a"), layers.Input((3,), name="b")
    y = layers.Dense(2)(layers.Concatenate()([a, b]))
    return laminar.Model({"a": a, "b": b}, {"sum": y, "parts": [ops.tanh(y), a * 2]})


def values(x: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in laminar.tree.flatten(x)]


MODELS: dict[str, tuple[Callable[[], Any], Any]] = {
    "convnet": (convnet, rng.normal(size=(5, 8, 8, 1)).astype("float32")),
    "recurrent": (recurrent, rng.integers(20, size=(3, 7)).astype("int32")),
    "of-two": (
        of_two,
        {name: rng.normal(size=(2, n)).astype("float32") for name, n in (("a", 4), ("b", 3))},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_an_exported_model_gives_what_the_model_does(name: str, tmp_path: Path) -> None:
    make, x = MODELS[name]
    model = make()
    expected = model(x, training=False)
    path = tmp_path / "model.laminar"
    model.export(path, verbose=False)
    exported = load(path)
    for found in (exported.serve(x), exported(x)):
        assert laminar.tree.map_structure(lambda _: 0, found) == laminar.tree.map_structure(
            lambda _: 0, expected
        )
        for a, b in zip(values(found), values(expected), strict=True):
            np.testing.assert_allclose(a, b, 1e-5, 1e-6)
    assert [v.shape for v in exported.variables] == [v.shape for v in model.variables]
    assert len(exported.trainable_variables) == len(model.trainable_variables)
    first = laminar.tree.map_structure(lambda rows: rows[:1], x)
    np.testing.assert_allclose(
        values(exported.serve(first))[0], values(model(first, training=False))[0], 1e-5, 1e-6
    )


@pytest.mark.slow
def test_another_process_needs_no_code_of_the_model(tmp_path: Path) -> None:
    class Doubled(laminar.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(2)

        def call(self, x: Any) -> Any:
            return ops.while_loop(
                lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0, self.dense(x))
            )[1]

    model = Doubled()
    x = rng.normal(size=(3, 4)).astype("float32")
    expected = model(x)
    path = tmp_path / "model.laminar"
    with pytest.raises(InvalidArgumentError, match="has no symbolic inputs"):
        model.export(path)
    model.export(path, input_signature=[TensorSpec([None, 4])], verbose=False)
    np.save(tmp_path / "x.npy", x)
    program = (
        "import sys, numpy as np, laminar.export; "
        "y = laminar.export.load(sys.argv[1]).serve(np.load(sys.argv[2])); np.save(sys.argv[3], y)"
    )
    paths = [str(path), str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]
    subprocess.run([sys.executable, "-c", program, *paths], check=True)
    np.testing.assert_allclose(np.load(paths[2]), expected, 1e-5, 1e-6)


def test_endpoints_share_variables_and_change_them(tmp_path: Path) -> None:
    model = convnet()
    x = rng.normal(size=(6, 8, 8, 1)).astype("float32")
    count = laminar.Variable(0, dtype="int32", trainable=False, name="count")

    def train(x: Any) -> Any:
        count.assign_add(1)
        return {"y": model(x, training=True), "count": count.value}

    archive = ExportArchive()
    archive.track(model)
    archive.add_variable_collection("counters", [count])
    archive.add_endpoint("serve", lambda x: model(x, training=False), [TensorSpec([None, 8, 8, 1])])
    archive.add_endpoint("train", train, [TensorSpec([None, 8, 8, 1])])
    assert len(archive.non_trainable_variables) == len(model.non_trainable_variables) + 1
    path = tmp_path / "model.laminar"
    archive.write_out(path, verbose=False)
    exported = load(path)
    before = values(exported.serve(x))[0]
    assert int(exported.train(x)["count"]) == 1
    assert int(exported.train(x)["count"]) == 2
    assert not np.allclose(values(exported.serve(x))[0], before)  # moving averages have moved
    model(x, training=True)
    assert int(count) == 0
    mean = next(v for v in exported.variables if "moving_mean" in v.name)
    assert np.abs(mean.numpy()).max() > 0


def test_gradients_flow_through_an_endpoint(tmp_path: Path) -> None:
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(3, activation="tanh")])
    path = tmp_path / "model.laminar"
    model.export(path, verbose=False)
    exported = load(path)
    x = ops.convert_to_tensor(rng.normal(size=(2, 4)).astype("float32"))
    found = []
    for f, weights in ((model, model.variables), (exported, exported.variables)):
        with laminar.GradientTape() as tape:
            tape.watch(x)
            loss = ops.sum(f(x) ** 2)
        found.append(tape.gradient(loss, [x, *weights]))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    model = of_two()
    path = tmp_path / "model.laminar"
    model.export(path, verbose=False)
    exported = load(path)
    good = {"a": np.ones((2, 4), "float32"), "b": np.ones((2, 3), "float32")}
    for bad, message in [
        ({"a": good["a"]}, r"serve: expected a dict with a, b, got \['a'\]"),
        (good["a"], "serve: expected a dict with a, b, got ndarray"),
        ({**good, "b": np.ones((2, 5), "float32")}, r"serve: expected float32\[\?, 3\], got"),
    ]:
        with pytest.raises(ShapeError, match=message):
            exported.serve(bad)
    with pytest.raises(AttributeError, match="no endpoint 'predict'; it has serve"):
        exported.predict(good)
    assert values(exported.serve(good))


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(3)])
    archive = ExportArchive()
    with pytest.raises(InvalidArgumentError, match="nothing to write"):
        archive.write_out(tmp_path / "model.laminar")
    with pytest.raises(InvalidArgumentError, match="must be an identifier"):
        archive.add_endpoint("../serve", model, [TensorSpec([None, 4])])
    with pytest.raises(InvalidArgumentError, match="has no input_signature"):
        archive.add_endpoint("serve", model)
    with pytest.raises(InvalidArgumentError, match="keys of dictionaries must be strings"):
        archive.add_endpoint("serve", lambda x: {1: x}, [TensorSpec([None, 4])])
    with pytest.raises(InvalidArgumentError, match="expected a spec or a tensor, got 4"):
        archive.add_endpoint("serve", model, [4])
    with pytest.raises(InvalidArgumentError, match="not built"):
        archive.track(layers.Dense(3))
    words = layers.StringLookup(vocabulary=["a", "b"])
    with pytest.raises(UnimplementedError, match="uses a vocabulary, or other text"):
        archive.add_endpoint("words", words, [TensorSpec([None], "string")])
    with pytest.raises(UnimplementedError, match="'tf_saved_model'"):
        model.export(tmp_path / "model", format="tf_saved_model")
    archive.add_endpoint("serve", model, [TensorSpec([None, 4])])
    with pytest.raises(InvalidArgumentError, match="already"):
        archive.add_endpoint("serve", model, [TensorSpec([None, 4])])
    assert not list(tmp_path.iterdir())


def changed(path: Path, entry: str, change: Callable[[bytes], bytes]) -> Path:
    """A copy of an archive with one entry changed."""
    copy = path.with_name("changed.laminar")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(copy, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, change(content) if name == entry else content)
    return copy


@pytest.fixture
def exported_path(tmp_path: Path) -> Path:
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(3, activation="relu")])
    path = tmp_path / "model.laminar"
    model.export(path, verbose=False)
    return path


@pytest.mark.parametrize("op", ["ReadFile", "MatchingFiles"])
def test_a_graph_that_reads_files_is_refused(tmp_path: Path, op: str) -> None:
    """It would be a right graph: a name goes in, the file comes out."""
    archive = ExportArchive()
    archive.add_endpoint("serve", lambda name: identity(name), [TensorSpec([], "string")])
    path = tmp_path / "model.laminar"
    archive.write_out(path, verbose=False)
    assert load(path).serve(b"name").numpy() == b"name"

    def change(data: bytes) -> bytes:
        graph_def = GraphDef.from_bytes(data)
        node = next(n for n in graph_def.message.node if n.op == "Identity")
        node.op = op
        return graph_def.to_bytes()

    with pytest.raises(DataLossError, match=f"{op} .*is not of its inputs alone"):
        load(changed(path, "assets/serve.graph", change))


@pytest.mark.parametrize("op", ["HostFunction", "Reader", "QueueDequeue", "NoSuchOp"])
def test_other_operations_that_reach_outside_are_refused(exported_path: Path, op: str) -> None:
    def change(data: bytes) -> bytes:
        graph_def = GraphDef.from_bytes(data)
        next(n for n in graph_def.message.node if n.op == "Relu").op = op
        return graph_def.to_bytes()

    with pytest.raises(DataLossError, match="is not of its inputs alone|there is no operation"):
        load(changed(exported_path, "assets/serve.graph", change))


def test_damaged_descriptions_are_refused(exported_path: Path) -> None:
    """Whatever part of config.json is missing or of another kind."""
    with zipfile.ZipFile(exported_path) as archive:
        config = json.loads(archive.read("config.json"))

    def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        found = []
        for key, item in items:
            found.append((*path, key))
            if isinstance(item, dict | list):
                found.extend(places(item, (*path, key)))
        return found

    every = places(config)
    assert len(every) > 25
    for *path, last in every:
        for bad in BAD:
            wrong = json.loads(json.dumps(config))
            owner = wrong
            for key in path:
                owner = owner[key]
            if owner[last] == bad or (last, bad) == ("shape", None):
                continue
            owner[last] = bad
            copy = changed(exported_path, "config.json", lambda _: json.dumps(wrong).encode())  # noqa: B023  called at once
            try:
                exported = load(copy)
            except DataLossError:
                continue
            try:  # what is only a name, or a wider shape, may be another one
                exported.serve(np.ones((2, 4), "float32"))
            except (laminar.engine.errors.LaminarError, AttributeError):
                continue


def test_every_cut_is_found(exported_path: Path) -> None:
    whole = exported_path.read_bytes()
    for size in range(0, len(whole), max(1, len(whole) // 60)):
        cut = exported_path.with_name("cut.laminar")
        cut.write_bytes(whole[:size])
        with pytest.raises(DataLossError):
            load(cut)


def test_a_model_file_is_no_exported_one(tmp_path: Path) -> None:
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(3)])
    path = tmp_path / "model.keras"
    model.save(path)
    with pytest.raises(DataLossError, match="not an exported file"):
        load(path)


def test_arguments_are_in_the_order_of_the_signature(tmp_path: Path) -> None:
    spec = TensorSpec([], "float32")
    archive = laminar.export.ExportArchive()
    archive.add_endpoint(
        "serve", lambda b, a: b["y"] - 2.0 * a + b["x"], [{"y": spec, "x": spec}, spec]
    )
    archive.write_out(tmp_path / "m", verbose=False)
    serve = laminar.export.load(tmp_path / "m").serve
    for _ in range(3):  # by the reference kernels first, as a function from the second time on
        assert float(serve({"y": 10.0, "x": 100.0}, 1.0).numpy()) == 108.0
