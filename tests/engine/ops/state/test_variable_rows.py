"""AssignRows: rows of a variable are replaced in place, unless somebody else has the array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine import Graph, Session, Variable, constant
from laminar.engine.errors import DTypeError, FailedPreconditionError, ShapeError
from laminar.engine.functions import function
from laminar.engine.state.rows import assign_rows

X = np.arange(24, dtype="float32").reshape(4, 3, 2)
ROWS = -1.0 - np.arange(18, dtype="float32").reshape(3, 3, 2)
PLACES = [[2, 0, 3], [2, -1, 0], [9, 4, -5]]


def array_of(variable: Variable) -> Any:
    return variable.store.value


def expected(places: list[int]) -> Any:
    after = X.copy()
    for place, row in zip(places, ROWS, strict=True):
        if 0 <= place < len(X):
            after[place] = row
    return after


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("kind", ["eager", "traced", "native"])
def test_values(places: list[int], kind: str) -> None:
    variable = Variable(X)

    def step(places: Any, rows: Any) -> Any:
        return assign_rows(variable, places + 0, rows * 1.0)

    run = step if kind == "eager" else function(jit_compile=kind == "native")(step)
    value = run(constant(places), constant(ROWS))
    np.testing.assert_array_equal(value, expected(places))
    np.testing.assert_array_equal(variable.numpy(), expected(places))


@pytest.mark.parametrize("kind", ["eager", "native"])
def test_what_was_read_stays_and_else_nothing_is_copied(kind: str) -> None:
    variable = Variable(np.zeros((40, 64), "float32"))

    def step(places: Any, rows: Any) -> None:
        assign_rows(variable, places + 0, rows * 1.0)

    run = step if kind == "eager" else function(jit_compile=True)(step)
    rows = constant(np.ones((2, 64), "float32"))
    run(constant([1, 2]), rows)
    place = array_of(variable).ctypes.data
    run(constant([3, 4]), rows)
    assert array_of(variable).ctypes.data == place
    for hold in (lambda x: x, lambda x: x[2:], memoryview):
        held = hold(array_of(variable))
        before = np.array(held)
        run(constant([5, 6]), rows * 9.0)
        np.testing.assert_array_equal(np.array(held), before)
        np.testing.assert_array_equal(variable.numpy()[[5, 6]], np.full((2, 64), 9.0))
        run(constant([5, 6]), rows)
        del held


def test_in_a_session() -> None:
    with Graph().as_default():
        variable = Variable(X)
        step = assign_rows(variable, constant([1, -1, 3]), constant(ROWS))
        with Session() as session:
            with pytest.raises(FailedPreconditionError, match="before it is initialised"):
                session.run(step)
            session.run(variable.initializer)
            np.testing.assert_array_equal(session.run(step), expected([1, -1, 3]))
            np.testing.assert_array_equal(session.run(variable), expected([1, -1, 3]))


def test_errors() -> None:
    variable = Variable(X)
    with pytest.raises(DTypeError, match=r"AssignRows: the variable is float32\[4, 3, 2\]"):
        assign_rows(variable, constant([1]), constant(ROWS[:1].astype("float64")))
    with pytest.raises(ShapeError, match="do not fit"):
        assign_rows(variable, constant([1, 2]), constant(ROWS))
    np.testing.assert_array_equal(variable.numpy(), X)
