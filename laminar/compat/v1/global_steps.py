"""The step counter of a graph, as a variable of these names."""

from __future__ import annotations

from typing import Any

from laminar import engine
from laminar.engine import training

from .adapting import v1
from .variable_class import named


@v1()
def create_global_step(graph: engine.Graph | None = None) -> Any:
    """Make the counter; see `laminar.engine.create_global_step`."""
    return named(engine.create_global_step(graph))


@v1()
def get_global_step(graph: engine.Graph | None = None) -> Any:
    """The counter, None without one."""
    return named(engine.get_global_step(graph))


@v1()
def get_or_create_global_step(graph: engine.Graph | None = None) -> Any:
    """The counter, made if the graph has none."""
    return named(training.get_or_create_global_step(graph))
