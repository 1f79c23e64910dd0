"""Variables whose shape is not fixed, and values of another shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine.errors import ShapeError
from laminar.engine.state import set_to_zero

CONFIGS = [eng.SessionConfig(jit_compile=False), eng.SessionConfig(jit_compile=True)]


def ones(*shape: int) -> Any:
    return np.ones(shape, "float32")


def test_eager() -> None:
    v = eng.Variable(ones(2, 3), shape=[None, 3])
    assert v.shape.as_list() == [None, 3]
    v.assign(ones(5, 3))
    np.testing.assert_array_equal((v + 1.0).numpy(), 2 * ones(5, 3))
    with pytest.raises(ShapeError, match=r"is float32\[\?, 3\]"):
        v.assign(ones(5, 4))
    with pytest.raises(ShapeError, match=r"has shape \[5, 3\], the value has shape \[1, 3\]"):
        v.assign_add(ones(1, 3))
    np.testing.assert_array_equal(v.numpy(), ones(5, 3))
    w = eng.Variable(ones(2), validate_shape=False)
    assert w.shape.rank is None
    w.assign(ones(3, 3))
    set_to_zero([w])
    np.testing.assert_array_equal(w.numpy(), np.zeros((3, 3)))


def test_an_assignment_of_another_shape() -> None:
    v = eng.Variable(ones(2))
    with pytest.raises(ShapeError):
        v.assign(ones(3))
    v.assign(ones(3), validate_shape=False)
    assert v.shape.as_list() == [None]
    np.testing.assert_array_equal(v.numpy(), ones(3))
    eng.assign(v, ones(2, 2), validate_shape=False)
    assert v.shape.rank is None
    np.testing.assert_array_equal(v.numpy(), ones(2, 2))


@pytest.mark.parametrize("jit_compile", [False, True])
def test_functions_need_the_shape_that_they_were_traced_for(jit_compile: bool) -> None:
    v = eng.Variable(ones(4))
    f = eng.function(lambda: v.assign_add(v * 2.0), jit_compile=jit_compile)
    f()
    f()
    v.assign(ones(9000), validate_shape=False)
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"has shape \[9000\]"):
            f()
    np.testing.assert_array_equal(v.numpy(), ones(9000))
    v.assign(ones(4))
    np.testing.assert_array_equal(f(), 3 * ones(4))
    v.assign(ones(9000))
    g = eng.function(lambda: v * 2.0, jit_compile=jit_compile)
    for size in (9000, 3):
        v.assign(ones(size))
        np.testing.assert_array_equal(g(), 2 * ones(size))


@pytest.mark.parametrize("config", CONFIGS)
def test_in_a_session(config: eng.SessionConfig) -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [None, 3])
        v = eng.Variable(x * 1.0, name="v")
        w = eng.Variable(ones(1), validate_shape=False, name="w")
        y, store = v * 2.0 + v, w.assign(ops.sum(v, axis=0))
        with eng.Session(config=config) as session:
            for size in (2, 5):
                session.run(v.initializer, {x: ones(size, 3)})
                np.testing.assert_array_equal(session.run(y), 3 * ones(size, 3))
            session.run(w.initializer)
            np.testing.assert_array_equal(session.run(w), ones(1))
            np.testing.assert_array_equal(session.run(store), 5 * ones(3))
            np.testing.assert_array_equal(session.run(w), 5 * ones(3))


@pytest.mark.parametrize("config", CONFIGS)
def test_an_assignment_of_another_shape_in_a_session(config: eng.SessionConfig) -> None:
    with eng.Graph().as_default():
        v = eng.Variable(ones(4), name="v")
        before: Any = v * 2.0
        wide = v.assign(ones(9000), validate_shape=False)
        after = v * 2.0
        with eng.Session(config=config) as session:
            session.run(v.initializer)
            for _ in range(2):
                np.testing.assert_array_equal(session.run(before), 2 * ones(4))
            assert session.run(wide).shape == (9000,)
            np.testing.assert_array_equal(session.run(v), ones(9000))
            np.testing.assert_array_equal(session.run(after), 2 * ones(9000))
            with pytest.raises(ShapeError, match=r"has shape \[9000\]"):
                session.run(before)
            session.run(v.initializer)
            np.testing.assert_array_equal(session.run(before), 2 * ones(4))


def test_what_is_taken_back_has_its_shape_again() -> None:
    v = eng.Variable(ones(2), shape=[None])

    def fails(x: Any) -> Any:
        raise ValueError("no")

    @eng.function
    def step(x: Any) -> Any:
        return eng.py_function(fails, [v.assign(x)], "float32")

    with pytest.raises(ValueError, match="no"):
        step(ops.convert_to_tensor(ones(7)))
    np.testing.assert_array_equal(v.numpy(), ones(2))
