"""Tensors: values at hand, and symbols that have none."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ShapeError,
)
from laminar.engine.graph import EagerTensor, GraphTensor, Tensor


def tensor(value: Any, dtype: Any = None) -> Any:
    return eng.convert_to_tensor(value, dtype)


def symbol(shape: Any, dtype: str = "float32") -> Any:
    with eng.Graph().as_default():
        return eng.placeholder(dtype, shape, name="x")


# Values


def test_properties() -> None:
    x = tensor(np.zeros((2, 3), np.float32))
    assert isinstance(x, EagerTensor)
    assert (x.shape, x.dtype, x.ndim, x.size, x.nbytes) == ((2, 3), "float32", 2, 6, 24)
    assert x.spec == eng.TensorSpec((2, 3), "float32")
    assert x.device == "/device:cpu:0"


def test_a_value_does_not_change() -> None:
    source = np.array([1.0, 2.0])
    x = tensor(source)
    source[0] = 9.0
    copied, seen = x.numpy(), np.asarray(x)
    copied[1] = 9.0
    assert not seen.flags.writeable
    assert x.tolist() == [1.0, 2.0]
    np.from_dlpack(x)[0] = 9.0
    assert x.tolist() == [1.0, 2.0]


def test_array_protocol() -> None:
    x = tensor([1.5, 2.5])
    assert np.asarray(x).dtype == np.float32
    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.array(x).flags.writeable
    np.testing.assert_array_equal(np.add(x, 1.0), [2.5, 3.5])
    assert x.__dlpack_device__() == (1, 0)


SCALARS: list[Any] = [
    pytest.param(int, 3.7, 3, id="int"),
    pytest.param(float, 3, 3.0, id="float"),
    pytest.param(complex, 3, 3 + 0j, id="complex"),
    pytest.param(bool, 0.0, False, id="bool"),
    pytest.param(lambda x: x.item(), 2.5, 2.5, id="item"),
    pytest.param(lambda x: [10, 20, 30][x], 1, 20, id="index"),
    pytest.param(lambda x: f"{x:.2f}", 2.5, "2.50", id="format"),
]


@pytest.mark.parametrize(("convert", "value", "expected"), SCALARS)
def test_scalars_are_python_numbers(
    convert: Callable[[Any], Any], value: Any, expected: Any
) -> None:
    found = convert(tensor(value))
    assert found == expected
    assert type(found) is type(expected)


def test_what_is_no_scalar() -> None:
    with pytest.raises(ValueError, match="ambiguous"):
        bool(tensor([1, 2]))
    with pytest.raises(TypeError):
        range(tensor(1.0))
    with pytest.raises(TypeError):
        len(tensor(1.0))


def test_iteration_and_length() -> None:
    x = tensor([[1, 2], [3, 4]])
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    with pytest.raises(InvalidArgumentError, match="a scalar tensor cannot be iterated"):
        iter(tensor(1))


def test_text() -> None:
    assert repr(tensor([1.0])) == "Tensor([1.], shape=(1,), dtype=float32)"
    assert "resource" in repr(eng.Variable(1.0, name="w").handle)


def test_tensors_can_be_copied() -> None:
    with eng.Graph().as_default():
        literal = tensor([1.0, 2.0])
    for x in (tensor([1.0, 2.0]), literal):
        for twin in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert type(twin) is EagerTensor
            assert (twin.tolist(), twin.dtype) == ([1.0, 2.0], "float32")


def test_a_handle_has_no_numeric_value() -> None:
    with pytest.raises(InvalidArgumentError, match="a handle to variable 'w' has no numeric value"):
        eng.Variable(1.0, name="w").handle.numpy()


# Operators, on values and on symbols

A = np.array([[1.0, -2.0], [3.5, 4.0]], np.float32)
B = np.array([[2.0, 0.5], [-1.0, 3.0]], np.float32)
I = np.array([6, 5, 3])  # noqa: E741  # integers
J = np.array([3, 2, 1])

BINARY: list[Any] = [
    pytest.param(lambda a, b: a + b, A, B, id="add"),
    pytest.param(lambda a, b: a - b, A, B, id="sub"),
    pytest.param(lambda a, b: a * b, A, B, id="mul"),
    pytest.param(lambda a, b: a / b, A, B, id="div"),
    pytest.param(lambda a, b: a // b, A, B, id="floordiv"),
    pytest.param(lambda a, b: a % b, A, B, id="mod"),
    pytest.param(lambda a, b: abs(a) ** b, A, B, id="pow"),
    pytest.param(lambda a, b: a @ b, A, B, id="matmul"),
    pytest.param(lambda a, b: a < b, A, B, id="lt"),
    pytest.param(lambda a, b: a <= b, A, B, id="le"),
    pytest.param(lambda a, b: a > b, A, B, id="gt"),
    pytest.param(lambda a, b: a >= b, A, B, id="ge"),
    pytest.param(lambda a, b: a == b, I, J, id="eq"),
    pytest.param(lambda a, b: a != b, I, J, id="ne"),
    pytest.param(lambda a, b: a & b, I, J, id="and"),
    pytest.param(lambda a, b: a | b, I, J, id="or"),
    pytest.param(lambda a, b: a ^ b, I, J, id="xor"),
    pytest.param(lambda a, b: -a + +b, A, B, id="neg-pos"),
    pytest.param(lambda a, b: ~a + b, I, J, id="invert"),
    pytest.param(lambda a, b: a[1:] + b[:1], A, B, id="slices"),
    pytest.param(lambda a, b: a.T + b, A, B, id="transpose"),
]


@pytest.mark.parametrize(("fn", "a", "b"), BINARY)
def test_operators(fn: Callable[[Any, Any], Any], a: Any, b: Any) -> None:
    expected = fn(a, b)
    x, y = tensor(a), tensor(b)
    for found in (fn(x, y), fn(x, b), fn(a, y)):  # ndarray on either side
        assert isinstance(found, Tensor)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    graph = eng.Graph()
    with graph.as_default():
        p = eng.placeholder(x.dtype, a.shape, name="p")
        q = eng.placeholder(x.dtype, b.shape, name="q")
        z = fn(p, q)
    with eng.Session(graph=graph) as session:
        np.testing.assert_allclose(session.run(z, {p: a, q: b}), expected, rtol=1e-6)


@pytest.mark.parametrize("reflected", [True, False])
def test_python_numbers_are_weak(reflected: bool) -> None:
    x = tensor([4.0], "float16")
    found = 2.0 / x if reflected else x / 2.0
    assert found.dtype == "float16"
    assert found.tolist() == [0.5 if reflected else 2.0]


def test_equality_is_elementwise_and_identity_hashes() -> None:
    x, y = tensor(1.0), tensor(1.0)
    assert bool(x == y)
    assert len({x, y}) == 2
    table = {x: "x", y: "y"}
    assert (table[x], table[y]) == ("x", "y")
    assert (x == None) is False  # noqa: E711  # the operator is what is tested
    assert (x != None) is True  # noqa: E711  # likewise


# Symbols


def test_a_symbol_has_a_name_and_a_spec() -> None:
    x = symbol([None, 3])
    assert isinstance(x, GraphTensor)
    assert (x.name, x.shape, x.dtype, x.value_index) == ("x:0", (None, 3), "float32", 0)
    assert repr(x) == "<Tensor x:0 float32[?, 3]>"
    assert x.device == ""


NO_VALUE: list[Callable[[Any], Any]] = [
    lambda x: x.numpy(),
    lambda x: x.item(),
    lambda x: x.tolist(),
    lambda x: f"{x:.2f}",
    np.asarray,
    float,
    int,
    complex,
]


@pytest.mark.parametrize("use", NO_VALUE)
def test_a_symbol_has_no_value(use: Callable[[Any], Any]) -> None:
    with pytest.raises(FailedPreconditionError, match=r"tensor x:0 \(float32\[\]\) is symbolic"):
        use(symbol([]))


def test_a_symbol_has_no_truth() -> None:
    with pytest.raises(FailedPreconditionError, match="data-dependent control flow") as caught:
        bool(symbol([], "bool"))
    assert caught.value.remedy is not None
    assert "cond or while_loop" in caught.value.remedy


def test_length_of_a_symbol() -> None:
    assert len(symbol([3, None])) == 3
    assert len(list(symbol([2, 5]))) == 2
    for shape in ([None], [], None):
        with pytest.raises(InvalidArgumentError, match="is not known yet"):
            len(symbol(shape))
        with pytest.raises(InvalidArgumentError, match="needs a first axis of known size"):
            iter(symbol(shape))


def test_set_shape_merges() -> None:
    x = symbol([None, 3])
    x.set_shape([2, None])
    assert x.shape == (2, 3)
    with pytest.raises(ShapeError, match="do not agree"):
        x.set_shape([4, 3])


def test_eval_needs_a_session() -> None:
    x = symbol([])
    with pytest.raises(ValueError, match=r"x:0\.eval\(\) needs a session"):
        x.eval()
    with eng.Session(graph=x.graph) as session:
        assert x.eval({x: 3.0}) == session.run(x, {x: 3.0}) == 3.0
    assert session is not None
    with eng.Session(graph=x.graph) as other, eng.eager_scope():
        assert x.eval({x: 4.0}, session=other) == 4.0


def test_the_two_kinds_are_one_type() -> None:
    assert isinstance(tensor(1.0), Tensor)
    assert isinstance(symbol([]), Tensor)
    with pytest.raises(NotImplementedError):
        Tensor().numpy()


def test_what_python_asks_of_a_symbol_is_a_type_error() -> None:
    """As other types raise, which have no truth or length."""
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [None])
        with pytest.raises(TypeError, match="data-dependent"):
            bool(x)
        with pytest.raises(TypeError, match="first axis of known size"):
            iter(x)
        with pytest.raises(TypeError, match="not known yet"):
            len(x)
