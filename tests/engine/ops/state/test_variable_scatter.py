"""Updates of parts of variables, against NumPy's ufunc.at."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine import Graph, Session, Variable, constant, count_up_to
from laminar.engine.errors import (
    AlreadyExistsError,
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    ShapeError,
)
from laminar.engine.ops.state.variable_scatter import raise_number, variable_scatter

Array = np.ndarray[Any, Any]
X = np.arange(1.0, 13.0).reshape(4, 3)
ROWS = np.array([3, 1, 3])
UPDATES = np.array([[2.0, 3, 4], [5, 6, 7], [8, 9, 10]])
AT: dict[str, Callable[..., Any]] = {
    "add": np.add.at,
    "sub": np.subtract.at,
    "mul": np.multiply.at,
    "div": np.divide.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
}


def expected(mode: str, where: Any, updates: Any) -> Array:
    out = X.copy()
    if mode == "update":
        out[where] = updates
    else:
        AT[mode](out, where, updates)
    return out


@pytest.mark.parametrize("mode", ["update", *AT])
@pytest.mark.parametrize("updates", [UPDATES, np.float64(2)])
def test_rows(mode: str, updates: Any) -> None:
    v = Variable(X)
    result = getattr(engine, f"scatter_{mode}")(v, ROWS, updates)
    np.testing.assert_allclose(v.numpy(), expected(mode, ROWS, updates), rtol=1e-15)
    np.testing.assert_array_equal(result.numpy(), v.numpy())


@pytest.mark.parametrize("mode", ["update", "add", "sub", "min", "max"])
def test_places(mode: str) -> None:
    v = Variable(X)
    indices, updates = np.array([[0, 1], [2, 2], [0, 1]]), np.array([5.0, -6.0, 70.0])
    getattr(engine, f"scatter_nd_{mode}")(v, indices, updates)
    where = (indices[:, 0], indices[:, 1])
    np.testing.assert_allclose(v.numpy(), expected(mode, where, updates))
    v = Variable(X)
    getattr(engine, f"scatter_nd_{mode}")(v, ROWS[:, None], UPDATES)
    np.testing.assert_allclose(v.numpy(), expected(mode, ROWS, UPDATES))


def test_in_a_session() -> None:
    graph = Graph()
    with graph.as_default():
        v = Variable(np.zeros(3, np.float32), name="v")
        add = engine.scatter_add(v, [0, 2, 2], [1.0, 2.0, 3.0])
    with Session(graph=graph) as session:
        with pytest.raises(FailedPreconditionError, match="'v'"):
            session.run(add)
        session.run(v.initializer)
        session.run(add)
        assert session.run(v).tolist() == [1, 0, 5]


def test_what_was_read_does_not_change() -> None:
    v = Variable(X)
    before = v.read_value()
    engine.scatter_update(v, [0], 0.0)
    np.testing.assert_array_equal(before.numpy(), X)


def test_counting() -> None:
    v = Variable(np.int64(0))
    assert [count_up_to(v, 3).numpy() for _ in range(3)] == [0, 1, 2]
    for _ in range(2):
        with pytest.raises(OutOfRangeError, match="limit 3"):
            count_up_to(v, 3)
    assert int(v) == 3


def test_numbers_that_only_rise() -> None:
    """One of many who come with the same number goes on, and none with a lower one."""
    v = Variable(np.full(2, -1, np.int64))
    came: list[int] = []

    def come(number: int) -> None:
        with contextlib.suppress(AlreadyExistsError):
            raise_number(v.handle, 1, np.int64(number), dtype="int64")
            came.append(number)

    for number in (3, 2, 5):
        threads = [threading.Thread(target=come, args=(number,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert came == [3, 5]
    assert v.numpy().tolist() == [-1, 5]
    with pytest.raises(AlreadyExistsError, match="holds 5 at 1, and got 5"):
        raise_number(v.handle, 1, np.int64(5), dtype="int64")


def raised(place: Any, number: Any, dtype: str = "int64") -> Callable[[], Any]:
    return of(
        np.zeros(2, dtype),
        lambda v: raise_number(v.handle, place, constant(number, dtype), dtype=str(v.dtype)),
    )


def of(value: Any, call: Callable[[Variable], Any]) -> Callable[[], Any]:
    return lambda: call(Variable(value))


MISTAKES = [
    (of(X, lambda v: engine.scatter_add(v, [4], 1.0)), InvalidArgumentError, "out of range"),
    (of(X, lambda v: engine.scatter_add(v, [0.5], 1.0)), DTypeError, "indices"),
    (of(X, lambda v: engine.scatter_add(v, [0], [1.0])), ShapeError, "updates"),
    (
        of(
            X,
            lambda v: variable_scatter(
                v.handle, [0], constant(1), mode="add", axes=None, shape=v.shape, dtype=v.dtype
            ),
        ),
        DTypeError,
        "cast",
    ),
    (of(np.arange(3), lambda v: engine.scatter_div(v, [0], 1)), DTypeError, "divided"),
    (of(np.array([True]), lambda v: engine.scatter_add(v, [0], True)), DTypeError, "replaced"),
    (of(X, lambda v: engine.scatter_nd_add(v, [[0, 0, 0]], [1.0])), ShapeError, "3 indices"),
    (of(X, lambda v: engine.scatter_nd_add(v, 0, 1.0)), ShapeError, "last axis"),
    (of(np.float32(1), lambda v: count_up_to(v, 3)), DTypeError, "count"),
    (of(np.arange(3), lambda v: count_up_to(v, 3)), ShapeError, "scalar"),
    (raised(2, 1), ShapeError, "no place 2"),
    (raised([0], 1), ShapeError, "place must be a scalar"),
    (raised(0, 1.0, "float32"), DTypeError, "number must be"),
]


@pytest.mark.parametrize(("call", "kind", "text"), MISTAKES)
def test_mistakes(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()
