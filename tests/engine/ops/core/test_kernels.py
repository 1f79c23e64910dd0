"""Kernels by element type and label, and what may be registered twice."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import AlreadyExistsError, InvalidArgumentError, UnimplementedError
from laminar.engine.graph import ANY, TensorSpec
from laminar.engine.ops.core.op_def import OpDef
from laminar.engine.ops.core.registry import define
from tests.engine.runtime.fake_gpu import registered
from tests.engine.runtime.test_devices import FakeDevice

number = itertools.count()


def scale() -> OpDef:
    """An op of a name of its own, with no kernel yet."""

    def rule(x: TensorSpec) -> TensorSpec:
        """A multiple of x."""
        return x

    return define(f"KernelTestScale{next(number)}", dtypes=ANY)(rule)


def times(factor: int) -> Any:
    return lambda x: x * x.dtype.type(factor)


def in_session(op: OpDef, value: Any, **config: Any) -> Any:
    with eng.Graph().as_default():
        x = eng.placeholder(value.dtype, value.shape)
        y = op(x)
        with eng.Session(config=eng.SessionConfig(**config)) as session:
            return session.run(y, {x: value})


@pytest.mark.parametrize("compiled", [False, True])
def test_the_element_type_chooses(compiled: bool) -> None:
    op = scale()
    op.kernel("cpu", dtypes=["float32", "float64"])(times(2))
    op.kernel("cpu", dtypes=["int32"])(times(3))
    for dtype, factor in (("float32", 2), ("float64", 2), ("int32", 3)):
        x = np.array([1, 4], dtype)
        np.testing.assert_array_equal(op(eng.convert_to_tensor(x)), x * factor)
        np.testing.assert_array_equal(in_session(op, x, jit_compile=compiled), x * factor)
    with pytest.raises(UnimplementedError, match=r"has no kernel for x: int8"):
        op(eng.convert_to_tensor(np.array([1], "int8")))


def test_one_for_all_types_and_a_reference_serve_the_rest() -> None:
    op = scale()
    op.kernel("cpu", dtypes={"x": ["float32"]})(times(2))
    op.reference(lambda xp, x: x * 5)
    ints, floats = np.array([1, 2], "int32"), np.array([1, 2], "float32")
    np.testing.assert_array_equal(op(eng.convert_to_tensor(ints)), ints * 5)
    np.testing.assert_array_equal(in_session(op, ints), ints * 5)
    np.testing.assert_array_equal(in_session(op, floats), floats * 2)
    op.kernel("cpu")(times(7))
    np.testing.assert_array_equal(op(eng.convert_to_tensor(ints)), ints * 7)
    np.testing.assert_array_equal(op(eng.convert_to_tensor(floats)), floats * 2)


def test_an_attribute_chooses() -> None:
    def rule(*, dtype: str) -> TensorSpec:
        """A number of a type."""
        return TensorSpec((), dtype)

    op = define(f"KernelTestScale{next(number)}")(rule)
    op.kernel("cpu", dtypes={"dtype": ["float32"]})(lambda dtype: np.float32(1.5))
    op.kernel("cpu", dtypes={"dtype": ["int32"]})(lambda dtype: np.int32(3))
    assert op(dtype="float32").numpy() == 1.5
    assert op(dtype="int32").numpy() == 3
    with pytest.raises(InvalidArgumentError, match="no input whose element type could choose"):
        op.kernel("cpu", dtypes=["float32"])(times(1))


def test_placement_knows_the_element_types_of_kernels() -> None:
    op = scale()
    op.kernel("cpu")(times(2))
    op.kernel("fake", dtypes=["float32"])(times(4))
    with registered("fake", lambda index, count, limit: FakeDevice(index)):
        for dtype, factor in (("float32", 4), ("int32", 2)):
            with eng.Graph().as_default():
                x = eng.constant(np.array([1, 2], dtype))
                with eng.device("/device:fake:0"):
                    y = op(x)
                with eng.Session(config=eng.SessionConfig(allow_soft_placement=True)) as session:
                    np.testing.assert_array_equal(session.run(y), np.array([1, 2]) * factor)
                if factor == 2:
                    config = eng.SessionConfig(allow_soft_placement=False)
                    with (
                        eng.Session(config=config) as session,
                        pytest.raises(InvalidArgumentError, match="kernels"),
                    ):
                        session.run(y)


def test_labels() -> None:
    op = scale()
    op.kernel("cpu")(times(2))
    op.kernel("cpu", label="fast")(times(3))
    op.grad(lambda op, dy: dy * 10.0)
    x = np.array([1.0, 2.0], "float32")
    tensor = eng.convert_to_tensor(x)
    np.testing.assert_array_equal(op(tensor), x * 2)
    np.testing.assert_array_equal(op.labelled("fast")(tensor), x * 3)
    with eng.Graph().as_default() as graph:
        given = eng.placeholder("float32", [2], name="x")
        plain = op(given, name="plain")
        with graph.kernel_labels({op.type: "fast"}):
            fast = op(given, name="fast")
            with graph.kernel_labels({op.type: ""}):
                other = op(given)
        (slope,) = eng.gradients(fast, [given])
        with eng.Session() as session:
            found = session.run([plain, fast, other, slope], {given: x})
        for value, factor in zip(found, (2, 3, 2), strict=False):
            np.testing.assert_array_equal(value, x * factor)
        np.testing.assert_array_equal(found[3], [10.0, 10.0])
        data = graph.as_graph_def().to_bytes()
    with eng.Graph().as_default() as again:
        eng.import_graph_def(eng.GraphDef.from_bytes(data), name="")
        with eng.Session(graph=again) as session:
            np.testing.assert_array_equal(session.run("fast:0", {"x:0": x}), x * 3)
            np.testing.assert_array_equal(session.run("plain:0", {"x:0": x}), x * 2)
    with pytest.raises(InvalidArgumentError, match="no kernel with the label 'slow'"):
        op.labelled("slow")


def test_a_second_registration_says_that_it_replaces() -> None:
    op = scale()
    op.kernel("cpu")(times(2))
    with pytest.raises(AlreadyExistsError, match="has a kernel for 'cpu' already"):
        op.kernel("cpu")(times(3))
    op.kernel("CPU", replace=True)(times(3))
    np.testing.assert_array_equal(op(eng.constant([1.0, 2.0])), [3.0, 6.0])
    op.kernel("cpu", dtypes=["int32", "int64"])(times(4))
    with pytest.raises(AlreadyExistsError, match="'cpu' and int64, int8"):
        op.kernel("cpu", dtypes=["int64", "int8"])(times(5))
    op.kernel("cpu", dtypes=["int8"])(times(5))
    op.kernel("cpu", dtypes=["int64"], label="other")(times(6))
    for register in (op.grad, op.reference, op.effect, op.asynchronous):
        register(lambda *args: args[-1])
        with pytest.raises(AlreadyExistsError, match="already"):
            register(lambda *args: args[-1])
        register(lambda *args: args[-1], replace=True)
    with pytest.raises(InvalidArgumentError, match="are a collection"):
        op.kernel("cpu", dtypes="float32")(times(1))
