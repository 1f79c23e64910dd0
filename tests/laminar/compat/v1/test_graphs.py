"""Graphs as data, checkpoints' state files, summaries as messages, device names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError


def test_a_frozen_graph(tmp_path: Path) -> None:
    """Its variables are constants, so that it runs without a checkpoint."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        w = tf.get_variable("w", initializer=[[1.0], [2.0]])
        b = tf.get_variable("b", initializer=[0.5])
        tf.add(tf.matmul(x, w), b, name="y")
        tf.constant(1.0, name="other")
        convert = tf.graph_util.convert_variables_to_constants
        with pytest.raises(FailedPreconditionError):
            convert(session, graph.as_graph_def(), ["y"])
        session.run(tf.global_variables_initializer())
        frozen = convert(session, graph.as_graph_def(), ["y"])
        partly = convert(session, graph.as_graph_def(), ["y"], variable_names_blacklist=["b"])
        with pytest.raises(NotFoundError, match="nowhere"):
            convert(session, graph.as_graph_def(), ["nowhere"])
        with pytest.raises(InvalidArgumentError, match=r"\['y'\]"):
            tf.graph_util.extract_sub_graph(graph.as_graph_def(), "y")
    ops = {node.name: node.op for node in frozen.node}
    assert "VarHandle" not in ops.values()
    assert "other" not in ops
    assert [node.name for node in partly.node if node.op == "VarHandle"] == ["b"]
    path = tf.train.write_graph(frozen, tmp_path / "new", "graph.pb", as_text=False)
    with tf.gfile.GFile(path, "rb") as file:
        read = tf.GraphDef()
        read.ParseFromString(file.read())
    with tf.Graph().as_default(), tf.Session() as session:
        (y,) = tf.import_graph_def(read, return_elements=["y:0"], name="")
        np.testing.assert_array_equal(session.run(y, {"x:0": [[1.0, 1.0]]}), [[3.5]])
        text = tf.io.write_graph(session.graph, tmp_path, "graph.pbtxt")
    assert 'name: "y"' in Path(text).read_text()


def test_state_files(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("w", initializer=1.0)
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver()
        paths = [saver.save(session, str(tmp_path / "m"), global_step=i) for i in (1, 2)]
    assert len(tf.train.get_checkpoint_mtimes([*paths, "nowhere"])) == 2
    assert list(tf.train.checkpoints_iterator(str(tmp_path), timeout=0)) == [paths[1]]
    tf.train.update_checkpoint_state(str(tmp_path), paths[0])
    assert tf.train.latest_checkpoint(str(tmp_path)) == paths[0]
    made = tf.train.generate_checkpoint_state_proto(str(tmp_path), "b", ["a"])
    assert made.all_model_checkpoint_paths == ["a", "b"]
    tf.train.remove_checkpoint(paths[0])
    assert not tf.train.checkpoint_exists(paths[0])


def test_summaries_as_messages(tmp_path: Path) -> None:
    made = tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=0.5)])
    made.value.add(tag="rate", simple_value=0.25)
    read = tf.Summary()
    data = made.SerializeToString()
    assert read.ParseFromString(data) == len(data)
    assert [(v.tag, v.simple_value) for v in read.value] == [("loss", 0.5), ("rate", 0.25)]
    assert tf.Summary.FromString(data) == made
    with tf.summary.FileWriter(str(tmp_path)) as writer:
        writer.add_summary(made, 7)
    (path,) = map(str, tmp_path.iterdir())
    events = [(e.step, v.tag) for e in tf.train.summary_iterator(path) for v in e.summary.value]
    assert events == [(7, "loss"), (7, "rate")]


def test_device_names_have_types_in_capitals() -> None:
    spec = tf.DeviceSpec(job="ps", replica=0, task=0, device_type="CPU", device_index=0)
    assert spec.to_string() == "/job:ps/replica:0/task:0/device:CPU:0"
    assert tf.DeviceSpec.from_string("/gpu:0").to_string() == "/device:GPU:0"
    changed = tf.DeviceSpec()
    changed.job, changed.task = "worker", 3
    changed.merge_from(tf.DeviceSpec(device_type="GPU", device_index=2))
    assert changed.to_string() == str(changed) == "/job:worker/task:3/device:GPU:2"
    assert changed.parse_from_string("/cpu:1") == tf.DeviceSpec(device_type="CPU", device_index=1)
    with pytest.raises(ValueError, match="task must be a whole number"):
        changed.task = -1
    with tf.Graph().as_default() as graph, graph.device(changed), tf.device(lambda op: changed):
        changed.job = "later"
        assert tf.constant(1.0).op.device == "/job:later/device:CPU:1"
    merged = spec.merge_from(tf.DeviceSpec(device_type="gpu", device_index=1))
    assert merged.to_string() == "/job:ps/replica:0/task:0/device:GPU:1"
    with tf.Graph().as_default(), tf.device(spec):
        assert tf.constant(1.0).device == "/job:ps/replica:0/task:0/device:GPU:1"


def test_variables_are_found_in_lists() -> None:
    with tf.Graph().as_default():
        v, w = tf.get_variable("v", []), tf.get_variable("w", [], trainable=False)
        assert w in tf.global_variables()
        assert w not in tf.trainable_variables()
        assert [v, w] == tf.global_variables()
        assert v != w
        assert (v == 1.0).op.type == "Equal"  # with anything else, elementwise
