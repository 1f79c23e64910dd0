"""Placeholders that have a value where none is fed."""

from __future__ import annotations

import numpy as np
import pytest

from laminar import engine
from laminar.engine.errors import LaminarError, ShapeError

from ..harness import check_op


def test_placeholder_with_default() -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        x = engine.placeholder("float32", [], name="x")
        y = engine.placeholder_with_default([x, 2.0 * x], [None], name="y")
        z = engine.identity(y * 2.0)
        assert str(y.spec) == "float32[?]"
        assert session.run(z, {x: 1.0}).tolist() == [2.0, 4.0]
        assert session.run(z, {"y:0": [1.0, 2.0, 3.0]}).tolist() == [2.0, 4.0, 6.0]
        (dx,) = engine.gradients(z, x)
        assert session.run(dx, {x: 1.0}) == 6.0
        with pytest.raises(LaminarError, match="y:0"):
            session.run(z, {y: [[1.0]]})


@pytest.mark.parametrize("optimize", [False, True])
def test_a_default_that_is_constant_can_be_fed(optimize: bool) -> None:
    config = engine.SessionConfig(optimize=optimize, jit_compile=optimize)
    with engine.Graph().as_default(), engine.Session(config=config) as session:
        y = engine.placeholder_with_default(3, [], name="y")
        z = y * 2
        for _ in range(2):
            assert session.run(z) == 6
            assert session.run(z, {y: 5}) == 10


def test_gradient() -> None:
    check_op(
        lambda x: engine.placeholder_with_default(x, x.shape) ** 2, np.square, [np.ones((2, 3))]
    )


def test_the_default_has_the_shape() -> None:
    with pytest.raises(ShapeError, match="is not of"):
        engine.placeholder_with_default(np.zeros((2, 2)), [None])
    assert engine.placeholder_with_default(7, []).numpy() == 7  # at once: nothing can be fed
