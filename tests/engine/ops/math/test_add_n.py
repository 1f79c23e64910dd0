"""Sums of many tensors of one shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError

from ..harness import check_op

rng = np.random.default_rng(0)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_add_n(count: int) -> None:
    check_op(
        lambda *xs: engine.add_n(xs),
        lambda *xs: sum(xs[1:], xs[0]),
        [rng.normal(size=(2, 3)) for _ in range(count)],
        dtypes=["float32", "float16"],
    )


def test_nothing_is_broadcast_at_run_time_either() -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        x, y = (engine.placeholder("float32", [None], name=n) for n in "xy")
        z = engine.add_n([x, y, engine.placeholder_with_default([1.0, 1.0], [None])], name="sum")
        fed: dict[Any, Any] = {x: [1.0, 2.0], y: [3.0, 4.0]}
        assert session.run("sum:0", fed).tolist() == [5.0, 7.0]
        with pytest.raises(ShapeError, match="the shapes differ"):
            session.run(z, {x: [1.0], y: [3.0, 4.0]})


def test_mistakes() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one"):
        engine.add_n([])
    with pytest.raises(ShapeError, match="the shapes differ"):
        engine.add_n([[1.0], [[1.0]]])
    with pytest.raises(DTypeError, match="one dtype"):
        engine.add_n([engine.constant(1.0), engine.constant(1)])
