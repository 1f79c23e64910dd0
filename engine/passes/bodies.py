"""The graphs inside of conditions and loops, rewritten as the graph around them."""

from __future__ import annotations

from collections.abc import Callable

from ..ops.control.structured import CASE, Body
from .inner_graphs import CONTROL_FLOW, bodies_of
from .step_graph import StepGraph


def rewrite_bodies(step: StepGraph, rewrite: Callable[[StepGraph], StepGraph]) -> None:
    """Give conditions and loops rewritten graphs, each with inputs and outputs as it has.

    Args:
        step: is changed in place.
        rewrite: gives what stands for a graph.
    """
    made: dict[int, Body] = {}

    def rewritten(body: Body) -> Body:
        found = made.get(id(body))
        if found is None:
            inner = StepGraph([y for y in body.outputs if y is not None], body.inputs, body.effects)
            inner.compiled = step.compiled
            inner = rewrite(inner)
            fetches = iter(inner.fetches)
            outputs = [None if y is None else next(fetches) for y in body.outputs]
            found = made[id(body)] = body.rebuilt(inner.feeds, outputs, inner.targets)
        return found

    for op in step.runnable():
        if op.definition in CONTROL_FLOW:
            new = [rewritten(body) for body in bodies_of(op)]
            if op.definition in CASE:
                op.attrs = {**op.attrs, "branches": tuple(new)}
            else:
                names = ("condition", "body")[-len(new) :]
                op.attrs = {**op.attrs, **dict(zip(names, new, strict=True))}
