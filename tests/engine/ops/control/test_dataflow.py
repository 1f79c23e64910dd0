"""What waits for parts of a graph that a condition leaves out."""

from __future__ import annotations

import pytest

from laminar import engine
from laminar.engine import errors
from laminar.engine.ops.control.dataflow import control_trigger, switch


@pytest.mark.parametrize("condition", [False, True])
def test_control_trigger_runs_after_what_is_dead(condition: bool) -> None:
    with engine.Graph().as_default() as graph, engine.Session() as session:
        total = engine.Variable(0.0, name="total")
        taken = engine.placeholder("bool", [])
        sides = switch(engine.constant(1.0), taken)
        done = []
        for side in sides:
            done.append(engine.group(total.assign_add(side)))
        with graph.control_dependencies(done):
            trigger = graph.add(control_trigger, (), {}, name="joined")
        with graph.control_dependencies([trigger]):
            after = engine.constant(2.0) * 3.0
        with graph.control_dependencies(done):
            never = engine.constant(2.0) * 4.0
        session.run(total.initializer)
        assert session.run(after, {taken: condition}) == 6.0
        assert session.run(total) == 1.0
        with pytest.raises(errors.InvalidArgumentError, match="no value in this run"):
            session.run(never, {taken: condition})
