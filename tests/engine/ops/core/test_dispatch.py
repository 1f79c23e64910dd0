"""Applying an op: at once or to a graph, what tapes are told, and how kernels' errors read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from laminar.engine.graph import ANY, EagerTensor, Tensor, TensorSpec
from laminar.engine.ops.core.basic import zeros_like
from laminar.engine.ops.core.dispatch import apply, as_input
from laminar.engine.ops.core.recording import Record, paused, recorders
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.math.arithmetic import add, divide
from laminar.engine.ops.state.variable import VariableStore, read_variable


class Listener:
    """A recorder that writes down what it is told."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def is_tracking(self, tensors: Iterable[Tensor]) -> bool:
        return True

    def record(self, record: Record) -> None:
        self.records.append(record)

    def watched_variable(self, handle: Tensor, variable: Any = None) -> None:
        pass


@pytest.fixture
def listener() -> Any:
    before, found = recorders.active, Listener()
    recorders.active = [found]
    yield found
    recorders.active = before


def test_recorders_see_each_application(listener: Listener) -> None:
    x = eng.convert_to_tensor(1.0)
    y = add(x, 2.0)
    with paused():
        add(y, y)
    with eng.Graph().as_default():
        p = eng.placeholder("float32", [])
        q = add(p, p)
    eager, symbolic = listener.records
    assert eager.definition is symbolic.definition is add
    assert eager.inputs[0] is x
    assert eager.outputs == (y,)
    assert symbolic.inputs == (p, p)
    assert symbolic.outputs == (q,)


def test_attributes_are_recorded_with_defaults(listener: Listener) -> None:
    x: Any = eng.convert_to_tensor([1.0, 2.0])
    eng.function(lambda x: x)  # not called: nothing to record
    x[0]
    assert listener.records[-1].attrs  # those of the slice


def test_nothing_is_printed_for_ieee_values() -> None:
    zero = eng.convert_to_tensor([0.0])
    assert np.isnan(divide(zero, zero).numpy()).all()
    v = eng.Variable(np.float16(6e4))
    assert np.isinf(v.assign_add(np.float16(6e4)).numpy())


@define("TestRefusing", dtypes=ANY | {eng.as_dtype("resource")})
def refusing(x: TensorSpec, *, error: str) -> TensorSpec:
    """Raises."""
    return x


@refusing.reference
def _refusing(xp: Any, x: Any, *, error: str) -> Any:
    raise MemoryError("too much") if error == "memory" else KeyError("lost")


@define("TestBare")
def bare(x: TensorSpec) -> TensorSpec:
    """An op without any kernel."""
    return x


def test_errors_of_kernels() -> None:
    x = eng.convert_to_tensor([1.0, 2.0])
    with pytest.raises(ResourceExhaustedError, match=r"TestRefusing\(float32\[2\]\): too much"):
        refusing(x, error="memory")
    with pytest.raises(InvalidArgumentError, match=r"TestRefusing\(float32\[2\]\): 'lost'") as e:
        refusing(x, error="key")
    assert isinstance(e.value.__cause__, KeyError)
    with pytest.raises(InternalError, match="TestBare has no kernel"):
        bare(x)
    variable = eng.Variable(1.0, name="w")
    with pytest.raises(InvalidArgumentError, match=r"TestRefusing\(variable 'w'\)"):
        apply(refusing, (variable.handle,), {"error": "key"})


def test_handles_are_not_numbers() -> None:
    with pytest.raises(TypeError, match="got resource"):
        zeros_like(eng.Variable(1.0).handle)
    with pytest.raises(TypeError, match="handle must be one of resource, got float32"):
        read_variable(eng.convert_to_tensor(1.0), shape=(), dtype="float32")


def test_inputs_of_a_graph() -> None:
    value = eng.convert_to_tensor(1.0)
    with eng.Graph().as_default() as one:
        x = eng.placeholder("float32", [])
    two = eng.Graph()
    assert as_input(one, x) is x
    assert as_input(one, value).op.type == "Const"
    assert as_input(one, value) is as_input(one, value)
    with pytest.raises(FailedPreconditionError, match="belongs to another graph"):
        as_input(two, x)
    handle = eng.Variable(1.0).handle
    captured = as_input(two, handle)
    assert (captured.op.type, captured.dtype) == ("Placeholder", "resource")
    assert as_input(two, handle) is captured


class Watched(VariableStore):
    """A store that tells what is written to it."""

    written: ClassVar[list[str]] = []

    def __setattr__(self, name: str, value: Any) -> None:
        self.written.append(name)
        super().__setattr__(name, value)


@pytest.mark.parametrize("value", [np.float32(1), np.ones(2, "float32")], ids=["scalar", "array"])
def test_a_read_writes_nothing(value: Any) -> None:
    """Another thread may have stored a newer value meanwhile."""
    store = Watched("w", value)
    Watched.written.clear()
    attrs = {"shape": eng.TensorShape(value.shape), "dtype": eng.as_dtype("float32")}
    (found,) = apply(read_variable, (EagerTensor(store, eng.as_dtype("resource")),), attrs)
    np.testing.assert_array_equal(found.numpy(), value)
    assert not Watched.written


def test_outputs_of_many() -> None:
    parts: Any = eng.lookup("Unstack").many(eng.convert_to_tensor([1.0, 2.0]), axis=0, num=2)
    assert [float(p.numpy()) for p in parts] == [1.0, 2.0]
