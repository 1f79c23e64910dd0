"""SavedModels: written and loaded again, with signatures, tags and what runs at the beginning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar.engine.errors import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    MissingFileError,
    NotFoundError,
    ShapeError,
    UnimplementedError,
)

W = np.array([[1.0, -2.0], [3.0, 0.5], [0.0, 4.0]], np.float32)
X = np.array([[1.0, 2.0, 3.0]], np.float32)
SERVE = [tf.saved_model.tag_constants.SERVING]


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def dense() -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.get_variable("w", initializer=W)
    return x, tf.nn.relu(tf.matmul(x, w), name="y")


def test_a_simple_save_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    x, y = dense()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.global_variables()[0].assign(2 * W))
        tf.saved_model.simple_save(session, folder, {"features": x}, {"scores": y})
    assert tf.saved_model.loader.maybe_saved_model_directory(folder)
    with tf.Session(graph=tf.Graph()) as session:
        meta_graph = tf.saved_model.loader.load(session, SERVE, folder)
        signature = meta_graph.signature_def["serving_default"]
        assert signature.method_name == tf.saved_model.signature_constants.PREDICT_METHOD_NAME
        assert list(meta_graph.meta_info_def.tags) == SERVE
        info = signature.inputs["features"]
        assert info.dtype == 1  # DT_FLOAT
        assert [d.size for d in info.tensor_shape.dim] == [-1, 3]
        feed = {info.name: X}
        found = session.run(signature.outputs["scores"].name, feed)
        assert [v.name for v in tf.trainable_variables()] == ["w:0"]
    np.testing.assert_allclose(found, np.maximum(X @ (2 * W), 0))


def test_a_file_says_it_with_tensorflows_numbers(tmp_path: Path) -> None:
    x, y = dense()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, tmp_path / "model", {"x": x}, {"y": y})
    data = (tmp_path / "model" / "saved_model.pb").read_bytes()
    assert data[:3] == b"\x08\x01\x12"  # saved_model_schema_version = 1, then a meta graph
    assert b"MatMul" in data
    assert b"VarHandleOp" in data
    assert (tmp_path / "model" / "variables" / "variables.index").exists()


def test_graphs_by_their_tags(tmp_path: Path) -> None:
    x, y = dense()
    builder = tf.saved_model.Builder(tmp_path / "model")
    with pytest.raises(FailedPreconditionError, match="no variables are saved"):
        builder.add_meta_graph(["other"])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        start = tf.assign(tf.global_variables()[0], W + 1)
        builder.add_meta_graph_and_variables(session, ["train", "cpu"], main_op=start.op)
        z = tf.identity(-y, name="z")
        builder.add_meta_graph(
            SERVE, {"minus": tf.saved_model.predict_signature_def({"x": x}, {"z": z})}
        )
        with pytest.raises(FailedPreconditionError, match="saved already"):
            builder.add_meta_graph_and_variables(session, SERVE)
    builder.save()
    assert not tf.get_collection(tf.saved_model.MAIN_OP_KEY)
    with tf.Session(graph=tf.Graph()) as session:
        tf.saved_model.load(session, ["cpu", "train"], tmp_path / "model", import_scope="a")
        found = session.run("a/y:0", {"a/x:0": X})
    np.testing.assert_allclose(found, np.maximum(X @ (W + 1), 0))
    with tf.Session(graph=tf.Graph()) as session:
        loaded = tf.saved_model.load(session, SERVE, tmp_path / "model")
        found = session.run(loaded.signature_def["minus"].outputs["z"].name, {"x:0": X})
        with pytest.raises(NotFoundError, match=r"no graph with the tags \['gpu'\]") as error:
            tf.saved_model.load(session, ["gpu"], tmp_path / "model")
        assert "['cpu', 'train'], ['serve']" in str(error.value)
    np.testing.assert_allclose(found, -np.maximum(X @ W, 0))


def test_what_tensorflow_has_no_form_for_is_written_for_laminar(tmp_path: Path) -> None:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = tf.identity(tf.sort(x, direction="DESCENDING"), name="y")
    with tf.Session() as session, pytest.warns(UserWarning, match="for laminar alone"):
        tf.saved_model.simple_save(session, tmp_path / "model", {"x": x}, {"y": y})
    with tf.Session(graph=tf.Graph()) as session:
        tf.saved_model.load(session, SERVE, tmp_path / "model")
        np.testing.assert_array_equal(session.run("y:0", {"x:0": X}), [[3, 2, 1]])


def test_signatures() -> None:
    text, real = tf.placeholder(tf.string, [None]), tf.placeholder(tf.float32)
    saved = tf.saved_model
    info = saved.utils.build_tensor_info(real)
    assert (info.name, info.dtype, info.tensor_shape.unknown_rank) == (real.name, 1, True)
    assert saved.get_tensor_from_tensor_info(info) is real
    by_class = saved.classification_signature_def(text, None, real)
    assert by_class.inputs["inputs"].name == text.name
    assert by_class.outputs["scores"].name == real.name
    assert saved.is_valid_signature(by_class)
    number = saved.regression_signature_def(text, real)
    assert number.outputs["outputs"].name == real.name
    assert saved.is_valid_signature(number)
    assert not saved.is_valid_signature(saved.build_signature_def({"x": info}, {"y": info}, "mine"))
    with pytest.raises(ValueError, match="predictions must be of float32"):
        saved.regression_signature_def(text, text)
    with pytest.raises(ValueError, match="outputs must be"):
        saved.predict_signature_def({"x": real}, {})


def test_mistakes(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_bytes(b"")
    with pytest.raises(AlreadyExistsError, match="not empty"):
        tf.saved_model.Builder(tmp_path / "full")
    with tf.Session() as session:
        with pytest.raises(MissingFileError, match=r"saved_model\.pb is missing"):
            tf.saved_model.load(session, SERVE, tmp_path / "full")
        (tmp_path / "full" / "saved_model.pbtxt").write_text("")
        with pytest.raises(UnimplementedError, match="as text"):
            tf.saved_model.load(session, SERVE, tmp_path / "full")
        (tmp_path / "full" / "saved_model.pb").write_bytes(b"\x12\x7f")
        with pytest.raises(DataLossError, match="not a SavedModel"):
            tf.saved_model.load(session, SERVE, tmp_path / "full")
        (tmp_path / "full" / "saved_model.pb").write_bytes(b"\x08\x02")
        with pytest.raises(UnimplementedError, match="version 2"):
            tf.saved_model.load(session, SERVE, tmp_path / "full")


@pytest.mark.parametrize(
    ("value", "dtype", "shape", "expected"),
    [
        (1.5, tf.float32, None, np.float32(1.5)),
        ([[1, 2], [3, 4]], tf.int64, None, np.array([[1, 2], [3, 4]])),
        ([1, 2, 3, 4], None, [2, 2], np.array([[1, 2], [3, 4]], np.int32)),
        (7, tf.int8, [2, 2], np.full((2, 2), 7, np.int8)),
        ([1.0, 2.0], tf.bfloat16, [3], np.array([1.0, 2.0, 2.0])),
        (1 + 2j, tf.complex128, None, np.complex128(1 + 2j)),
        (True, None, None, np.bool_(True)),
        (["a", "b"], None, None, np.array([b"a", b"b"], object)),
    ],
)
def test_values_as_messages(value: Any, dtype: Any, shape: Any, expected: Any) -> None:
    message = tf.make_tensor_proto(value, dtype, shape)
    found = tf.make_ndarray(message)
    np.testing.assert_array_equal(found.astype(expected.dtype), expected)
    assert found.shape == expected.shape
    if dtype is not None:
        assert found.dtype == dtype.numpy


def test_one_value_is_listed_and_too_many_are_refused() -> None:
    assert list(tf.make_tensor_proto(10.0).float_val) == [10.0]
    assert list(tf.make_tensor_proto(1.0, tf.float16).half_val) == [0x3C00]
    with pytest.raises(ShapeError, match="do not make"):
        tf.make_tensor_proto([1, 2, 3], shape=[2])
    with pytest.raises(ShapeError, match="do not make"):
        tf.make_tensor_proto([1, 2], shape=[2, 2], verify_shape=True)
