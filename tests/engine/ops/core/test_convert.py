"""Values become tensors: types, copies, and what is refused."""

from __future__ import annotations

import enum
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import DTypeError, InvalidArgumentError
from laminar.engine.graph import EagerTensor, Literal, TensorSpec
from laminar.engine.ops.core.arrays import Defaults, to_array


class Number(enum.IntEnum):
    TWO = 2


class OnlyDlpack:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class OnlyArray:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.array


F64 = np.array([1.0, 2.0])

VALUES: list[Any] = [
    (1.5, None, "float32", 1.5),
    (3, None, "int32", 3),
    (2**31, None, "int64", 2**31),
    (-(2**31), None, "int32", -(2**31)),
    (True, None, "bool", True),
    (1j, None, "complex64", 1j),
    (Number.TWO, None, "int32", 2),
    ("ä", None, "string", "ä".encode()),
    (b"a\x00", None, "string", b"a\x00"),
    ([b"a\x00", "ä"], None, "string", [b"a\x00", "ä".encode()]),
    ([["a"], ["bb"]], None, "string", [[b"a"], [b"bb"]]),
    (np.array(["a", "bb"]), None, "string", [b"a", b"bb"]),
    ([], None, "float32", []),
    ([1, 2], None, "int32", [1, 2]),
    ([1, 2.5], None, "float32", [1.0, 2.5]),
    ([2**31, 1], None, "int64", [2**31, 1]),
    ([-(2**31)], None, "int32", [-(2**31)]),
    ([-(2**63)], None, "int64", [-(2**63)]),
    ([2**63], None, "uint64", [2**63]),
    ([True, False], None, "bool", [True, False]),
    ((1.0, (2.0)), None, "float32", [1.0, 2.0]),
    (F64, None, "float64", [1.0, 2.0]),
    (np.float64(1.5), None, "float64", 1.5),
    (F64.astype(">f4"), None, "float32", [1.0, 2.0]),
    (np.ones(2, ml_dtypes.bfloat16), None, "bfloat16", [1.0, 1.0]),
    ([F64, F64], None, "float64", [[1.0, 2.0], [1.0, 2.0]]),
    ([EagerTensor(F64), EagerTensor(F64)], None, "float64", [[1.0, 2.0], [1.0, 2.0]]),
    pytest.param(OnlyDlpack(F64), None, "float64", [1.0, 2.0], id="OnlyDlpack"),
    pytest.param(OnlyArray(F64), None, "float64", [1.0, 2.0], id="OnlyArray"),
    (EagerTensor(F64), "float32", "float32", [1.0, 2.0]),
    (1, "float64", "float64", 1.0),
    ([1, 2], "uint8", "uint8", [1, 2]),
    (F64, "float16", "float16", [1.0, 2.0]),
    (0, "bool", "bool", False),
    (1e300, "float32", "float32", np.inf),
    ([1e300], "float32", "float32", [np.inf]),
    (2.0, "complex128", "complex128", 2 + 0j),
]


@pytest.mark.parametrize(("value", "dtype", "found", "expected"), VALUES, ids=repr)
def test_conversion(value: Any, dtype: Any, found: str, expected: Any) -> None:
    x: Any = eng.convert_to_tensor(value, dtype)
    assert x.dtype == found
    assert x.numpy().dtype == eng.as_dtype(found).numpy
    assert x.numpy().tolist() == expected


REFUSED: list[Any] = [
    pytest.param([[1], [2, 3]], None, InvalidArgumentError, "equal lengths", id="ragged"),
    pytest.param(None, None, InvalidArgumentError, "expected a tensor or an array", id="none"),
    pytest.param(TensorSpec([]), None, InvalidArgumentError, "expected a tensor", id="spec"),
    pytest.param(object(), None, DTypeError, "an element of type object", id="object"),
    pytest.param([1, None], None, DTypeError, "expected numbers or strings", id="none-inside"),
    pytest.param({"a": 1}, None, DTypeError, "an element of type dict", id="dict"),
    pytest.param(2**70, None, InvalidArgumentError, "does not fit into int64", id="large"),
    pytest.param(300, "uint8", InvalidArgumentError, "300 does not fit into uint8", id="narrow"),
    pytest.param(float("nan"), "int32", InvalidArgumentError, "nan does not fit", id="nan"),
    pytest.param([1, 300], "int8", InvalidArgumentError, "300 does not fit into int8", id="list"),
    pytest.param([-1], "uint64", InvalidArgumentError, "-1 does not fit into uint64", id="sign"),
    pytest.param([2**63], "int64", InvalidArgumentError, "does not fit into int64", id="wide"),
    pytest.param([2**70], None, InvalidArgumentError, "does not fit into uint64", id="large-list"),
    pytest.param(
        np.array([2**63, 1], np.uint64), "int64", InvalidArgumentError, "not fit", id="array"
    ),
    pytest.param(np.array([2.0**63]), "int64", InvalidArgumentError, "not fit", id="float-array"),
    pytest.param([1.0, np.inf], "int8", InvalidArgumentError, "inf does not fit", id="infinity"),
    pytest.param(1.5, "int32", InvalidArgumentError, "1.5 is not whole", id="fraction"),
    pytest.param([1.0, 2.5], "int32", InvalidArgumentError, "2.5 is not whole", id="fractions"),
    pytest.param(np.array([0.5], np.float16), "uint64", InvalidArgumentError, "0.5 is", id="half"),
    pytest.param(
        np.array([0.5], ml_dtypes.bfloat16), "int8", InvalidArgumentError, "0.5 is", id="bfloat16"
    ),
    pytest.param("a", "float32", DTypeError, "as float32", id="string-as-number"),
    pytest.param(1.0, "string", DTypeError, "the number 1.0 as a string", id="number-as-string"),
    pytest.param([1.0], "string", DTypeError, "as string", id="numbers-as-strings"),
    pytest.param(1j, "float32", DTypeError, "complex128 values as float32", id="complex-as-real"),
    pytest.param(1.0, "resource", DTypeError, "a handle to state", id="resource"),
    pytest.param(np.array(["2020"], "M8[Y]"), None, DTypeError, "expected one of", id="dates"),
]


EXACT: list[Any] = [
    pytest.param([2**63 + 1, 1], "uint64", "uint64", id="uint64"),
    pytest.param([[2**64 - 1], [0]], None, "uint64", id="nested"),
    pytest.param([np.uint64(2**63 + 1), 1], "uint64", "uint64", id="of-numpy"),
    pytest.param([2**53 + 1, 1], None, "int64", id="int64"),
    pytest.param([3.0, 4.0], "int8", "int8", id="whole"),
    pytest.param(np.array([2.0**63]), "uint64", "uint64", id="whole-large"),
]


@pytest.mark.parametrize(("value", "dtype", "found"), EXACT)
def test_integers_keep_their_bits(value: Any, dtype: Any, found: str) -> None:
    tensor = eng.convert_to_tensor(value, dtype)
    expected = np.array([int(v) for v in np.array(value, object).flat], found)
    assert tensor.dtype == found
    np.testing.assert_array_equal(tensor.numpy().ravel(), expected)


WAYS: list[Any] = [
    pytest.param(lambda v: eng.constant(v, "int8"), id="constant"),
    pytest.param(lambda v: eng.Variable([1], dtype="int8").assign(v), id="assign"),
    pytest.param(lambda v: eng.Variable([1], dtype="int8").assign_add(v), id="assign_add"),
    pytest.param(lambda v: eng.FIFOQueue(9, ["int8"], [(1,)]).enqueue(v), id="enqueue"),
    pytest.param(lambda v: eng.FIFOQueue(9, ["int8"], [()]).enqueue_many(v), id="enqueue_many"),
    pytest.param(
        lambda v: eng.function(lambda x: x, input_signature=[TensorSpec([1], "int8")])(v),
        id="signature",
    ),
    pytest.param(lambda v: _feed(v), id="feed"),
]


def _feed(value: Any) -> Any:
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("int8", [1])
        with eng.Session(graph=graph) as session:
            return session.run(x + x, {x: value})


@pytest.mark.parametrize("way", WAYS)
def test_numbers_must_fit_wherever_they_enter(way: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="300 does not fit into int8") as caught:
        way([300])
    assert "test_convert.py" in str(caught.value)
    with pytest.raises((InvalidArgumentError, DTypeError), match="300 does not fit|must be int8"):
        way(np.array([300]))
    with pytest.raises((InvalidArgumentError, DTypeError), match=r"1\.5 is not whole|must be int8"):
        way([1.5])


def test_an_assigned_number_keeps_its_bits() -> None:
    v = eng.Variable(np.zeros(2), name="v")
    v.assign([0.1, 0.2])
    v.assign_add([0.1, 0.1])
    np.testing.assert_array_equal(v.numpy(), np.array([0.1, 0.2]) + 0.1)


@pytest.mark.parametrize(("value", "dtype", "kind", "message"), REFUSED)
def test_what_is_refused(value: Any, dtype: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        eng.convert_to_tensor(value, dtype)


@pytest.mark.parametrize("wrap", [lambda a: a, OnlyArray, OnlyDlpack])
def test_the_tensor_is_a_copy(wrap: Any) -> None:
    array = np.array([1.0, 2.0])
    x: Any = eng.convert_to_tensor(wrap(array))
    shared: Any = eng.convert_to_tensor(wrap(array), copy=False)
    array[0] = 9.0
    assert x.tolist() == [1.0, 2.0]
    assert shared.tolist() == [9.0, 2.0]


def test_a_tensor_stays_itself() -> None:
    x = eng.convert_to_tensor(1.0)
    assert eng.convert_to_tensor(x) is x
    assert eng.convert_to_tensor(x, "float32") is x


def test_symbols() -> None:
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float32", [], name="x")
        assert eng.convert_to_tensor(x) is x
        assert eng.convert_to_tensor(x, "int32").op.type == "Cast"  # type: ignore[attr-defined]  # in a graph
        stacked = eng.convert_to_tensor([[x, 1.0], [2.0, x]])
        assert (stacked.shape, stacked.dtype) == ((2, 2), "float32")
        literal = eng.convert_to_tensor(2.0)
        assert isinstance(literal, Literal)
        assert literal.home is graph
        assert literal.numpy() == 2.0  # its value is known, so shapes can be computed with it


def test_the_default_types() -> None:
    before = Defaults.floating
    try:
        Defaults.floating = eng.float64
        assert eng.convert_to_tensor(1.0).dtype == "float64"
        assert eng.convert_to_tensor([1.0]).dtype == "float64"
        assert (eng.convert_to_tensor(3) / 2).dtype == "float64"
        assert to_array(np.float32(1))[1] == "float32"
    finally:
        Defaults.floating = before


@pytest.mark.parametrize(("value", "shape"), [([], (0,)), ([[], []], (2, 0)), ((), (0,))])
def test_no_strings(value: Any, shape: tuple[int, ...]) -> None:
    found = eng.convert_to_tensor(value, "string")
    assert (found.dtype, found.shape) == ("string", shape)
