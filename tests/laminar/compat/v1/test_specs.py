"""Specs, devices, references and shapes: what objects of TensorFlow 1 answer."""

from __future__ import annotations

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar import engine
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError


def test_sparse_tensors_have_specs() -> None:
    spec = tf.SparseTensorSpec([None, 3], tf.int32)
    value = tf.SparseTensorValue([[0, 1]], np.array([5], "int32"), [2, 3])
    assert spec.is_compatible_with(value)
    assert not spec.is_compatible_with(tf.SparseTensorValue([[0, 1]], [5], [2, 4]))
    assert not spec.is_compatible_with(5)
    assert spec.value_type is engine.SparseValues
    assert spec == tf.SparseTensorSpec((None, 3), "int32")
    assert len({spec, tf.SparseTensorSpec([None, 3], tf.int32)}) == 1
    both = spec.most_specific_compatible_type(tf.SparseTensorSpec([2, 4], tf.int32))
    assert both == tf.SparseTensorSpec([None, None], tf.int32)
    with pytest.raises(InvalidArgumentError, match="no spec describes both"):
        spec.most_specific_compatible_type(tf.SparseTensorSpec([2, 3], tf.float32))
    assert tf.SparseTensorSpec.from_value(value) == tf.SparseTensorSpec([2, 3], tf.int32)


def test_slices_have_specs() -> None:
    slices = engine.IndexedSlices(engine.constant([[1.0]]), engine.constant([2]), (3, 1))
    spec = tf.IndexedSlicesSpec([3, None], tf.float32, tf.int32, tf.int64, [None])
    assert spec.is_compatible_with(slices)
    assert not spec.is_compatible_with(tf.IndexedSlicesSpec([3, 1], tf.float32))
    with pytest.raises(ShapeError):
        tf.IndexedSlicesSpec(indices_shape=[2, 2])


def test_specs_of_tensors() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3], name="x")
    spec = tf.TensorSpec.from_tensor(x)
    assert (spec.shape, spec.dtype, spec.name) == ([None, 3], tf.float32, "x")
    assert tf.TensorSpec.from_spec(spec, "y").name == "y"
    assert spec.is_compatible_with(x)
    assert not spec.is_compatible_with(tf.TensorSpec([3], tf.float32))
    both = spec.most_specific_compatible_type(tf.TensorSpec([2, 4], tf.float32))
    assert both == tf.TensorSpec([None, None], tf.float32)
    with pytest.raises(DTypeError, match="dtypes differ"):
        spec.most_specific_compatible_type(tf.TensorSpec([2, 3], tf.int32))


def test_device_specs_change_in_place() -> None:
    spec = tf.DeviceSpec(job="ps", device_type="cpu", device_index=0)
    spec.task = 1
    assert spec.to_string() == "/job:ps/task:1/device:CPU:0"
    assert spec.device_type == "CPU"
    spec.merge_from(tf.DeviceSpec.from_string("/job:worker/gpu:2"))
    assert str(spec) == "/job:worker/task:1/device:GPU:2"
    assert spec.parse_from_string("/replica:3") is spec
    assert spec == tf.DeviceSpec(replica=3)
    merged = spec.make_merged_spec(tf.DeviceSpec(job="a"))
    assert (merged.to_string(), spec.to_string()) == ("/job:a/replica:3", "/replica:3")
    assert merged.replace(replica=None, task=0).to_string() == "/job:a/task:0"
    with tf.Graph().as_default(), tf.device(merged):
        assert tf.constant(1.0).device == "/job:a/replica:3"


def test_the_engines_specs_are_replaced() -> None:
    spec = engine.DeviceSpec(job="ps", task=1)
    assert spec.replace(task=None).to_string() == "/job:ps"


def test_references_are_keys() -> None:
    x, y = engine.constant([1.0, 2.0]), engine.constant([1.0, 2.0])
    v = engine.Variable(1.0)
    assert x.experimental_ref() == x.experimental_ref()
    assert x.experimental_ref() != y.experimental_ref()
    assert x.experimental_ref() != x
    found = {x.experimental_ref(): 1, v.experimental_ref(): 2}
    assert found[v.experimental_ref()] == 2
    assert v.experimental_ref().deref() is v


def test_shapes_assert() -> None:
    shape, unknown = tf.TensorShape([None, 3]), tf.TensorShape(None)
    shape.assert_has_rank(2)
    unknown.assert_has_rank(7)
    shape.assert_same_rank([1, 1])
    shape.assert_same_rank(unknown)
    tf.TensorShape([2]).assert_is_fully_defined()
    for fails in (
        lambda: shape.assert_has_rank(1),
        lambda: shape.assert_same_rank([1]),
        shape.assert_is_fully_defined,
        unknown.assert_is_fully_defined,
    ):
        with pytest.raises(ShapeError):
            fails()


def test_parts_of_an_unknown_shape_are_unknown() -> None:
    unknown = tf.TensorShape(None)
    assert unknown[2] is None
    for shape in (unknown[1:3], unknown + [3], [3] + unknown, tf.TensorShape([1]) + unknown):
        assert shape.rank is None
    assert tf.TensorShape([1]).concatenate(tf.Dimension(2)) == [1, 2]
    with pytest.raises(ShapeError):
        list(unknown)
    assert tf.dimension_value(tf.Dimension(3)) == 3
    assert tf.dimension_value(None) is None
    assert tf.dimension_at_index(unknown, 1).value is None
    assert tf.compat.dimension_at_index([2, 5], 1).value == 5


def test_operations_know_the_line_that_made_them() -> None:
    with tf.Graph().as_default():
        op = tf.no_op()
    ((filename, line, function, _),) = op.traceback
    assert filename == __file__
    assert function == "test_operations_know_the_line_that_made_them"
    assert line > 0
