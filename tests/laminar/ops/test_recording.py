"""Calls with symbolic tensors go to the recorder, all others compute."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import laminar.random
from laminar import ops
from laminar.engine.errors import FailedPreconditionError
from laminar.engine.graph.operators import OperatorTable
from laminar.ops import recording


class Symbol:
    is_keras_tensor = True


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []

    def record(name: str, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        made.append((name, fn, args, kwargs))
        return "recorded"

    monkeypatch.setattr(recording._Hook, "recorder", staticmethod(record))
    return made


S: Any = Symbol()  # stands for a tensor


@pytest.mark.parametrize(
    ("fn", "args", "kwargs"),
    [
        (ops.relu, (S,), {}),
        (ops.add, (1.0, S), {}),
        (ops.concatenate, ([np.ones(2), S],), {"axis": 0}),
        (ops.concatenate, ((S, S),), {}),
        (ops.where, (S,), {"x1": 1.0, "x2": 2.0}),
        (ops.add, (), {"x1": 1.0, "x2": S}),
        (ops.einsum, ("i,i->", S, S), {}),
        (ops.image.resize, (S, (2, 2)), {}),
        (ops.get_item, (S, (slice(None), 1)), {}),
        (laminar.random.dropout, (S, 0.5), {}),
    ],
)
def test_a_symbolic_argument_is_recorded(fn: Any, args: Any, kwargs: Any, calls: list[Any]) -> None:
    assert fn(*args, **kwargs) == "recorded"
    assert calls == [(fn.__name__, fn, args, kwargs)]


def test_other_arguments_are_computed(calls: list[Any]) -> None:
    np.testing.assert_array_equal(ops.add([1, 2], np.ones(2)).numpy(), [2, 3])
    np.testing.assert_array_equal(ops.stack([ops.ones(1), np.zeros(1)]).numpy(), [[1], [0]])
    assert calls == []


def test_shape_and_type_of_a_symbol_are_read_at_once(calls: list[Any]) -> None:
    class Shaped(Symbol):
        shape = (None, 3)
        dtype = "float32"

    assert ops.shape(Shaped()) == (None, 3)
    assert ops.dtype(Shaped()) == "float32"
    assert calls == []


def test_without_a_recorder_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording._Hook, "recorder", None)
    with pytest.raises(FailedPreconditionError, match="relu: got a symbolic tensor") as error:
        ops.relu(S)
    assert "import laminar.layers" in str(error.value)


def test_names_and_signatures_stay() -> None:
    assert ops.softmax.__name__ == "softmax"
    assert ops.softmax.__doc__
    assert list(inspect.signature(ops.softmax).parameters) == ["x", "axis"]


def test_every_public_op_has_a_docstring() -> None:
    public = [getattr(ops, name) for name in dir(ops) if name[0] != "_"]
    functions = [fn for fn in public if inspect.isfunction(fn)]
    assert len(functions) > 330
    assert [fn.__name__ for fn in functions if not fn.__doc__] == []


def test_the_operator_table_is_complete() -> None:
    wanted = [name for name in vars(OperatorTable) if name[0] != "_"]
    assert "matmul" in wanted
    assert [name for name in wanted if not callable(getattr(ops, name, None))] == []
    assert callable(ops.transpose)
