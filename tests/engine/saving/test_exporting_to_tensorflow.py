"""Graphs written with TensorFlow's ops: read by laminar's own reader of such, and by TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar import engine
from laminar.engine import errors
from laminar.engine.saving import MetaGraph
from laminar.engine.saving.tensorflow import TensorFlowGraph

from .models_for_tensorflow import MODELS

X = np.random.default_rng(0).normal(size=(16, 4)).astype("float32")
Y = np.random.default_rng(1).integers(0, 3, 16).astype("int32")
FEEDS = {"x:0": X, "y:0": Y}


def train_graph(optimizer: Any) -> None:
    """A perceptron with what trains it."""
    x = tf.placeholder("float32", [None, 4], "x")
    y = tf.placeholder("int32", [None], "y")
    w, b = (
        tf.get_variable("w", [4, 5]),
        tf.get_variable("b", [5], initializer=tf.zeros_initializer()),
    )
    w2 = tf.get_variable("w2", [5, 3])
    logits = tf.matmul(tf.nn.relu(tf.matmul(x, w) + b), w2)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(losses)
    tf.add_to_collection("loss", loss)
    step = tf.train.get_or_create_global_step()
    tf.add_to_collection("train", optimizer.minimize(loss, global_step=step))


def losses_of(session: engine.Session) -> list[float]:
    (loss,), (train,) = engine.get_collection("loss"), engine.get_collection("train")
    return [float(session.run([loss, train], FEEDS)[0]) for _ in range(4)]


OPTIMIZERS: list[Any] = [
    pytest.param(lambda: tf.train.GradientDescentOptimizer(0.1), id="descent"),
    pytest.param(lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True), id="nesterov"),
    pytest.param(lambda: tf.train.AdamOptimizer(0.01), id="adam"),
    pytest.param(lambda: tf.train.RMSPropOptimizer(0.01), id="rmsprop"),
    pytest.param(lambda: tf.train.AdagradOptimizer(0.1), id="adagrad"),
]


def write(optimizer: Callable[[], Any], folder: Path, as_text: bool = False) -> list[float]:
    """A checkpoint after two steps with its graph; gives the losses of four more."""
    with engine.Graph().as_default(), engine.Session() as session:
        train_graph(optimizer())
        saver = engine.Saver()
        session.run(engine.global_variables_initializer())
        for _ in range(2):
            session.run(engine.get_collection("train")[0], FEEDS)
        saver.save(session, folder / "m", write_meta_graph=False)
        saver.export_meta_graph(folder / "m.meta", as_text=as_text, tensorflow=True)
        return losses_of(session)


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_read_again_it_is_trained_on(
    optimizer: Callable[[], Any], as_text: bool, tmp_path: Path
) -> None:
    expected = write(optimizer, tmp_path, as_text)
    with engine.Graph().as_default(), engine.Session() as session:
        saver = engine.import_meta_graph(tmp_path / "m.meta")
        assert saver is not None
        saver.restore(session, tmp_path / "m")
        np.testing.assert_allclose(losses_of(session), expected, rtol=1e-6)
        names = {v.name for v in engine.trainable_variables()}
        assert names == {"w", "b", "w2"}
        session.run(engine.global_variables_initializer())
        assert 0.1 < np.std(session.run("w/read:0")) < 1


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_tensorflow_reads_and_trains_it(optimizer: Callable[[], Any], tmp_path: Path) -> None:
    tensorflow: Any = pytest.importorskip("tensorflow")
    expected = write(optimizer, tmp_path)
    v1 = tensorflow.compat.v1
    with tensorflow.Graph().as_default(), v1.Session() as session:
        v1.train.import_meta_graph(str(tmp_path / "m.meta")).restore(session, str(tmp_path / "m"))
        (loss,), (train,) = v1.get_collection("loss"), v1.get_collection("train")
        found = [float(session.run([loss, train], FEEDS)[0]) for _ in range(4)]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert [v.name for v in v1.trainable_variables()] == ["w:0", "b:0", "w2:0"]


def values(x: Any, n: Any) -> list[Any]:
    """One of each kind of operation."""
    positive = tf.abs(x) + 0.5
    return [
        tf.where(x > 0, tf.exp(x), tf.tanh(x) - 1.0),
        tf.sqrt(positive) / tf.maximum(x, 2.0) + tf.pow(positive, 1.5) - tf.floor(x),
        tf.nn.softmax(x) * tf.sigmoid(x) + tf.nn.log_softmax(x) + tf.nn.softplus(x),
        tf.reduce_sum(x, 1, keepdims=True) + tf.reduce_max(x) - tf.reduce_min(x, [0]),
        tf.reshape(tf.transpose(x, [1, 0]), [2, -1]),
        tf.reshape(x, [-1]) * tf.cast(tf.reduce_max(tf.shape(x)), "float32"),
        tf.add_n([x, x, x]),
        tf.cast(n, "float32") + tf.cast(tf.logical_and(n > 1, n < 5), "float32"),
        tf.matmul(x, x, transpose_b=True),
        tf.gradients(tf.reduce_mean(tf.square(tf.nn.relu(x))), [x])[0],
    ]


def test_each_kind_of_operation(tmp_path: Path) -> None:
    feeds = {"x:0": X, "n:0": np.arange(7, dtype="int64")}
    with engine.Graph().as_default(), engine.Session() as session:
        x = tf.placeholder("float32", [None, 4], "x")
        n = tf.placeholder("int64", [None], "n")
        for y in values(x, n):
            tf.add_to_collection("values", y)
        expected = session.run(engine.get_collection("values"), feeds)
        engine.export_meta_graph(tmp_path / "m.meta", tensorflow=True)
    with engine.Graph().as_default(), engine.Session() as session:
        engine.import_meta_graph(tmp_path / "m.meta")
        found = session.run(engine.get_collection("values"), feeds)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def write_model(name: str, folder: Path) -> list[float]:
    """As `write`, of one of the models."""
    build, feeds = MODELS[name]
    with engine.Graph().as_default(), engine.Session() as session:
        loss = build()
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
        tf.add_to_collection("ends", loss)
        tf.add_to_collection("ends", train)
        saver = engine.Saver()
        session.run(engine.global_variables_initializer())
        saver.save(session, folder / "m", write_meta_graph=False)
        saver.export_meta_graph(folder / "m.meta", tensorflow=True)
        return [float(session.run([loss, train], feeds)[0]) for _ in range(3)]


@pytest.mark.parametrize("name", MODELS)
def test_models_are_read_again_and_trained(name: str, tmp_path: Path) -> None:
    expected = write_model(name, tmp_path)
    with engine.Graph().as_default(), engine.Session() as session:
        saver = engine.import_meta_graph(tmp_path / "m.meta")
        assert saver is not None
        saver.restore(session, tmp_path / "m")
        ends = engine.get_collection("ends")
        found = [float(session.run(ends, MODELS[name][1])[0]) for _ in range(3)]
        np.testing.assert_allclose(found, expected, rtol=2e-5)


@pytest.mark.parametrize("name", MODELS)
def test_tensorflow_trains_models(name: str, tmp_path: Path) -> None:
    tensorflow: Any = pytest.importorskip("tensorflow")
    expected = write_model(name, tmp_path)
    v1 = tensorflow.compat.v1
    with tensorflow.Graph().as_default(), v1.Session() as session:
        v1.train.import_meta_graph(str(tmp_path / "m.meta")).restore(session, str(tmp_path / "m"))
        ends = v1.get_collection("ends")
        found = [float(session.run(ends, MODELS[name][1])[0]) for _ in range(3)]
        np.testing.assert_allclose(found, expected, rtol=2e-5)


def test_dropout_makes_the_same_choices_in_its_gradient(tmp_path: Path) -> None:
    with engine.Graph().as_default():
        x = tf.placeholder("float32", [8, 40], "x")
        y = tf.nn.dropout(x, rate=0.25)
        tf.add_to_collection("ends", y)
        tf.add_to_collection("ends", tf.gradients(y, x)[0])
        engine.export_meta_graph(tmp_path / "m.meta", tensorflow=True)
    tensorflow: Any = pytest.importorskip("tensorflow")
    v1 = tensorflow.compat.v1
    with tensorflow.Graph().as_default(), v1.Session() as session:
        v1.train.import_meta_graph(str(tmp_path / "m.meta"))
        y, dx = session.run(v1.get_collection("ends"), {"x:0": np.ones((8, 40), "float32")})
    np.testing.assert_array_equal(y, dx)
    assert 0.6 < np.mean(y > 0) < 0.9
    np.testing.assert_allclose(y[y > 0], 1 / 0.75, rtol=1e-6)


REFUSED: list[Any] = [
    pytest.param(lambda x: tf.pad(x, [[1, 1], [0, 0]], "edge"), "Pad", id="padding"),
    pytest.param(lambda x: engine.ops.sort.sort(x, 0), "no form for TensorFlow: Sort", id="op"),
]


@pytest.mark.parametrize(("build", "text"), REFUSED)
def test_what_has_no_form_is_named_and_nothing_is_written(
    build: Callable[[Any], Any], text: str, tmp_path: Path
) -> None:
    with engine.Graph().as_default():
        build(tf.placeholder("float32", [3, 4]))
        with pytest.raises(errors.UnimplementedError, match=text):
            engine.export_meta_graph(tmp_path / "m.meta", tensorflow=True)
    assert not list(tmp_path.iterdir())


def test_what_was_read_is_written_again(tmp_path: Path) -> None:
    write(lambda: tf.train.GradientDescentOptimizer(0.1), tmp_path)
    data = (tmp_path / "m.meta").read_bytes()
    found = MetaGraph.from_bytes(data)
    assert isinstance(found.graph_def, TensorFlowGraph)
    assert found.to_bytes() == data
    assert MetaGraph.from_text(found.to_text()).to_bytes() == data
