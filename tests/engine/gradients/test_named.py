"""Gradients by name, and in place of an op's own."""

from __future__ import annotations

from typing import Any

import pytest

from laminar import engine as eng
from laminar.engine import errors
from laminar.engine.gradients.named import not_differentiable


def test_operations_made_in_a_block_have_another_gradient() -> None:
    @eng.register_gradient("TestHundredfold")
    def hundredfold(op: Any, dy: Any) -> Any:
        return dy * 100.0

    graph = eng.Graph()
    with graph.as_default(), eng.Session(graph=graph) as session:
        x = eng.constant(3.0)
        square = eng.lookup("Square")
        with graph.gradient_override_map({"Square": "TestHundredfold"}):
            by_name = square(x)
            with graph.gradient_override_map({"Square": lambda op, dy: dy * 7.0}):
                by_function = square(x)
        own = square(x)
        found = [eng.gradients(y, [x])[0] for y in (by_name, by_function, own)]
        assert session.run(found) == [100.0, 7.0, 6.0]
    with pytest.raises(errors.AlreadyExistsError):
        eng.register_gradient("TestHundredfold")(hundredfold)
    with graph.as_default():
        with graph.gradient_override_map({"Square": "TestNowhere"}):
            y = square(x)
        with pytest.raises(errors.NotFoundError, match="TestNowhere"):
            eng.gradients(y, [x])


def test_an_op_gets_its_gradient_by_name() -> None:
    @eng.define("TestTwice")
    def twice(x: eng.TensorSpec) -> eng.TensorSpec:
        return x

    twice.kernel("cpu")(lambda x: x + x)

    @eng.register_gradient("TestTwice")
    def twice_gradient(op: Any, dy: Any) -> Any:
        return dy * 2.0

    @eng.define("TestStep")
    def step(x: eng.TensorSpec) -> eng.TensorSpec:
        return x

    not_differentiable("TestStep")
    with eng.Graph().as_default() as graph, eng.Session(graph=graph) as session:
        x = eng.constant(3.0)
        (dx,) = eng.gradients(twice(x) * x, [x])
        assert session.run(dx) == 12.0
        assert eng.gradients(step(x), [x]) == [None]
    with pytest.raises(errors.AlreadyExistsError):
        eng.register_gradient("TestTwice")(twice_gradient)
