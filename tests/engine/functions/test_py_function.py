"""Python functions as operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine, ops
from laminar.engine.errors import DTypeError, InvalidArgumentError, LaminarError


def test_eager_tensors_and_a_gradient() -> None:
    kinds = []

    def f(x: Any, n: Any) -> Any:
        kinds.append(type(x))
        return x**3 if n > 1 else x

    with engine.Graph().as_default(), engine.Session() as session:
        x = engine.placeholder("float32", [2])
        y = engine.py_function(f, [x, engine.constant(2)], "float32", name="cube")
        (dx,) = engine.gradients(y, x)
        assert dx is not None
        assert (str(y.spec), str(dx.spec)) == ("float32[...]", "float32[2]")
        fed = {x: [1.0, 2.0]}
        assert session.run("cube:0", fed).tolist() == [1.0, 8.0]
        assert session.run(dx, fed).tolist() == [3.0, 12.0]
    assert set(kinds) == {engine.EagerTensor}


def test_at_once_and_in_a_function() -> None:
    def f(x: Any, y: Any) -> Any:
        return [x * y, ops.sum(x)]

    def g(x: Any) -> Any:
        return engine.py_function(f, [x, 2.0 * x], ["float32", "float32"])

    x = engine.constant([1.0, 3.0])
    for call in (g, engine.function(g)):
        with engine.GradientTape() as tape:
            tape.watch(x)
            y = call(x)
        assert [v.numpy().tolist() for v in y] == [[2.0, 18.0], 4.0]
        assert tape.gradient(y, x).numpy().tolist() == [5.0, 13.0]


def test_arrays_and_effects() -> None:
    seen: list[Any] = []
    with engine.Graph().as_default(), engine.Session() as session:
        words = engine.placeholder("string", [None])
        counted = engine.numpy_function(
            lambda a: np.asarray([len(w) for w in a]), [words], "int64", name="lengths"
        )
        told = engine.numpy_function(seen.append, [counted], [])
        session.run([told], {words: ["a", "bcd"]})
    assert [a.tolist() for a in seen] == [[1, 3]]
    assert engine.py_function(seen.append, [1.0], []) == []
    assert len(seen) == 2
    assert engine.numpy_function(lambda a: a + 1, [3], "int32").numpy() == 4


@pytest.mark.parametrize(
    ("result", "error", "said"),
    [
        (np.float64(1), DTypeError, "'f' returned float64 as result 0, expected float32"),
        ([1.0, 2.0, 3.0], InvalidArgumentError, "'f' returned 3 values, expected 2"),
        (None, InvalidArgumentError, "'f' returned 1 values, expected 2"),
        ([1.0, None], InvalidArgumentError, "'f' returned None as result 1"),
    ],
)
def test_results_that_do_not_fit(result: Any, error: type[LaminarError], said: str) -> None:
    def f() -> Any:
        return [result, 1.0] if isinstance(result, np.float64) else result

    with pytest.raises(error, match=said):
        engine.py_function(f, [], ["float32", "float32"])


def test_a_graph_that_holds_one_cannot_be_written() -> None:
    with engine.Graph().as_default() as graph:
        engine.py_function(lambda x: x, [1.0], "float32")
    with pytest.raises(InvalidArgumentError, match="'PyFunction' calls the Python function"):
        graph.as_graph_def()
