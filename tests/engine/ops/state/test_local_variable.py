"""LocalVariable: a store of its own for each run."""

from __future__ import annotations

from laminar import engine
from laminar.engine.ops.core.dispatch import apply
from laminar.engine.ops.state.variable import assign, assign_add, local_variable

FORM = {"shape": (), "dtype": "float32"}


def test_each_run_makes_another() -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        (handle,) = apply(local_variable, [], {**FORM, "name": "v"})
        one = engine.constant(1.0)
        (stored,) = apply(assign, [handle, one], FORM)
        with engine.control_dependencies([stored]):
            (more,) = apply(assign_add, [handle, one], FORM)
        assert [float(session.run(more)) for _ in range(3)] == [2.0, 2.0, 2.0]
