"""Graphs that are frozen for a time."""

from __future__ import annotations

import pytest

from laminar import engine
from laminar.engine.errors import FailedPreconditionError


def test_a_graph_takes_changes_again() -> None:
    graph = engine.Graph()
    with graph.as_default():
        x = engine.constant(1.0, name="x")
        other = engine.no_op()
        assert isinstance(x, engine.GraphTensor)
        for _ in range(2):
            graph.finalize()
            with pytest.raises(FailedPreconditionError, match="finalized"):
                x.op.attrs = {}
            with pytest.raises(TypeError):
                x.op.attrs["value"] = 2  # type: ignore[index]  # what must not work
            graph.unfinalize()
            x.op.attrs = dict(x.op.attrs)
        x.op.add_control_input(other)
        assert x.op.control_inputs == [other]
        engine.constant(2.0)
