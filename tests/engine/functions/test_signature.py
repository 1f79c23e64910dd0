"""Input signatures: what a call is converted to, and what is refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine import PYTHON_VALUE, TRACE_ON_NEW_VALUE, TensorSpec
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.functions.signature import Binder, as_pattern, trace_key
from laminar.engine.ops.math.arithmetic import square


def tensor(value: Any, dtype: str = "float32") -> Any:
    return eng.convert_to_tensor(np.asarray(value, dtype))


def test_one_trace_for_all_sizes() -> None:
    f = eng.function(lambda x: x + 1, input_signature=(("float32", [None]),))
    assert f(tensor([2])).tolist() == [3.0]
    assert f(tensor([2, 3])).tolist() == [3.0, 4.0]
    assert f([2.0]).tolist() == [3.0]  # a Python value becomes a tensor of the dtype
    assert f(eng.Variable([5.0])).tolist() == [6.0]
    assert f.trace_count == 1
    with pytest.raises(ShapeError, match=r"the argument 'x' must be float32\[\?\], got float32\[1"):
        f([[2.0]])
    with pytest.raises(DTypeError, match=r"the argument 'x' must be float32\[\?\], got int32"):
        f(tensor([2], "int32"))
    with pytest.raises(DTypeError, match="got float64"):
        f(np.ones(3))
    with pytest.raises(DTypeError, match="got int32"):
        f(eng.Variable([1]))


def test_python_values() -> None:
    f = eng.function(lambda n, mode: n, input_signature=(("int32", []), PYTHON_VALUE))
    for call in ((3, "a"), (4, "a"), (4, "b")):
        assert int(f(*call)) == call[0]
    assert f.trace_count == 2


def test_a_tensor_for_a_python_value_is_traced_as_it_is() -> None:
    f = eng.function(lambda a, b: b * 2.0, input_signature=(PYTHON_VALUE, ("float32", [])))
    assert f(tensor([1, 2]), 3.0) == 6.0
    assert f(tensor([1, 2, 3]), 4.0) == 8.0
    assert f.trace_count == 2


def test_every_new_dtype() -> None:
    f = eng.function(square, input_signature=((TRACE_ON_NEW_VALUE, [None]),))
    assert f(tensor([2])).tolist() == [4.0]
    assert f(tensor([2, 2], "int32")).tolist() == [4, 4]
    assert f(tensor([3, 3, 3], "int32")).tolist() == [9, 9, 9]
    assert f.trace_count == 2
    with pytest.raises(ShapeError, match="must be"):
        f(tensor(2))


def test_unknown_rank() -> None:
    f = eng.function(square, input_signature=[TensorSpec(None)])
    for value in (tensor(1), tensor([1, 2]), tensor([[1]])):
        f(value)
    assert f.trace_count == 1


def test_arguments_beyond_the_signature() -> None:
    f = eng.function(lambda x, y=1.0, *, z=0.0: x + y + z, input_signature=[("float32", [])])
    assert f(1.0) == 2.0
    assert f(1.0, z=tensor(5)) == 7.0
    assert f(2.0, z=tensor(6)) == 9.0
    assert f.trace_count == 2


def test_any_number_of_arguments() -> None:
    f = eng.function(lambda x, *rest: x + sum(rest), input_signature=[("float32", [])] * 3)
    assert f(1.0, 2.0, 3.0) == 6.0
    assert f(2.0, 3.0, 4.0) == 9.0
    assert f.trace_count == 1
    with pytest.raises(InvalidArgumentError, match="the argument 'rest' has other elements"):
        f(1.0, 2.0)


class Pair(NamedTuple):
    left: Any
    right: Any


def test_structures() -> None:
    signature: list[Any] = [{"a": ("float32", []), "b": (("float32", [None]), ("int32", []))}]

    @eng.function(input_signature=signature)
    def f(batch: dict[str, Any]) -> Any:
        assert type(batch["b"]) is Pair  # the containers stay as they are given
        return batch["a"] + batch["b"].left

    assert f({"a": 1.0, "b": Pair([1.0, 2.0], 3)}).tolist() == [2.0, 3.0]
    assert f({"b": Pair([1.0], 3), "a": 5.0}).tolist() == [6.0]
    assert f.trace_count == 1
    concrete = f.concrete({"a": 1.0, "b": Pair([1.0], 3)})
    assert [x.op.name for x in concrete.inputs] == ["batch_a", "batch_b_0", "batch_b_1"]
    for wrong in ({"a": 1.0}, {"a": 1.0, "b": (1.0, 2, 3)}):
        with pytest.raises(InvalidArgumentError, match="has other elements than input_signature"):
            f(wrong)
    for shape in (3.0, [1.0]):
        with pytest.raises(InvalidArgumentError, match="must be a dict, as in input_signature"):
            f(shape)


def test_lists_of_any_length() -> None:
    f = eng.function(lambda xs: sum(xs), input_signature=[[TensorSpec([])]])
    assert f([1.0, 2.0]) == 3.0
    assert f([3.0, 4.0]) == 7.0
    assert f([1.0, 2.0, 3.0]) == 6.0
    assert f.trace_count == 2


def test_the_signature_of_the_first_call() -> None:
    f = eng.function(lambda x, flag: x, infer_signature_from_first_call=True)
    f(tensor([1, 2]), True)
    f(tensor([3, 4]), True)
    assert f.trace_count == 1
    with pytest.raises(DTypeError, match="must be float32"):
        f(tensor([1, 2], "int32"), True)
    with pytest.raises(ShapeError, match="must be float32"):
        f(tensor([1, 2, 3]), True)
    f(tensor([1, 2]), False)
    assert f.trace_count == 2


ENTRIES: list[Any] = [
    pytest.param(TensorSpec([2]), TensorSpec([2]), id="spec"),
    pytest.param(("float64", (None, 2)), TensorSpec((None, 2), "float64"), id="pair"),
    pytest.param((np.int32, None), TensorSpec(None, "int32"), id="numpy"),
    pytest.param((np.dtype("f4"), []), TensorSpec([]), id="numpy-dtype"),
    pytest.param(np.ones((2, 3), np.float32), TensorSpec((2, 3)), id="array"),
    pytest.param([("int32", [])], [TensorSpec([], "int32")], id="list"),
    pytest.param({"k": ("int32", [])}, {"k": TensorSpec([], "int32")}, id="dict"),
    pytest.param(PYTHON_VALUE, PYTHON_VALUE, id="python"),
]


@pytest.mark.parametrize(("entry", "pattern"), ENTRIES)
def test_entries(entry: Any, pattern: Any) -> None:
    assert as_pattern(entry) == pattern


@pytest.mark.parametrize("entry", [3, "float32", None])
def test_what_is_no_entry(entry: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="input_signature: expected TensorSpec"):
        eng.function(lambda x: x, input_signature=[entry])


def test_too_many_entries() -> None:
    with pytest.raises(InvalidArgumentError, match=r"has 2 entries, the function takes \(x\)"):
        eng.function(lambda x: x, input_signature=[("float32", []), ("float32", [])])


def test_wrong_calls_are_pythons_errors() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        eng.function(lambda x: x)()


def test_keys() -> None:
    binder = Binder(lambda x, y=None: x, None)

    def key(*args: Any, **kwargs: Any) -> Any:
        return trace_key(binder.bind(args, kwargs), None)

    x = tensor([1])
    assert key(x) == key(tensor([5])) == key(x=x, y=None) == key(np.ones(1, np.float32))
    assert key(x) != key(TensorSpec([2]))
    assert key(x) == key(TensorSpec([1], name="other"))
    assert hash(key(x)) == hash(key(tensor([5])))
    thing = eng.Graph()
    with_thing = key(x, thing)
    assert with_thing == key(x, thing)
    assert with_thing != key(x, eng.Graph())
    del thing
    assert with_thing != key(x, eng.Graph())


class Slotted:
    """An object that cannot be referred to weakly."""

    __slots__ = ()


class Unhashable:
    """An object whose hash depends on something that has none."""

    def __hash__(self) -> int:
        return hash([])

    def __eq__(self, other: object) -> bool:
        return True


@pytest.mark.parametrize("kind", [Slotted, Unhashable, list, dict])
def test_what_has_no_value_to_compare_counts_by_identity(kind: type[Any]) -> None:
    f = eng.function(lambda x, thing: x)
    one, two = [kind()], [kind()]  # empty containers are structure: they are equal
    for things in (one, two, one):
        f(tensor(1), things)
    assert f.trace_count == (1 if kind in (list, dict) else 2)


class OtherArray:
    """An array of another library."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray([1.0, 2.0], np.float32 if dtype is None else dtype)


def test_arrays_of_other_libraries_are_tensors() -> None:
    f = eng.function(lambda x: x * 2.0)
    assert f(OtherArray()).tolist() == [2.0, 4.0]
    f(OtherArray())
    assert f.trace_count == 1
