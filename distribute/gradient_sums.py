"""Gradients of several replicas, added up beside the variables that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar.engine import (
    ConditionalAccumulator,
    IndexedSlices,
    SparseConditionalAccumulator,
    Variable,
    control_dependencies,
    identity,
)
from laminar.engine.graph import Operation
from laminar.engine.state.update_placement import beside


def accumulator_for(name: str, gradient: Any, variable: Variable) -> Any:
    """What adds up gradients like this one of a variable; rows of it where the gradient has some.

    Args:
        name: before that of the variable, by which graphs share it.
        gradient: of one replica.
        variable: whose gradient it is.
    """
    shared = f"{name}/{variable.name}"
    with beside(variable):
        if isinstance(gradient, IndexedSlices):
            return SparseConditionalAccumulator(
                variable.dtype, variable.shape, shared, reduction_type="MEAN_OF_ALL"
            )
        return ConditionalAccumulator(variable.dtype, variable.shape, shared)


def parts_of(gradient: Any) -> tuple[Any, ...]:
    """What `apply_grad` of its accumulator takes of a gradient."""
    if isinstance(gradient, IndexedSlices):
        return gradient.indices, gradient.values
    return (gradient,)


def taken_means(
    accumulators: Sequence[Any], variables: Sequence[Variable], required: int
) -> list[Any]:
    """The means of so many gradients; none of them is there before all have been taken."""
    taken = [_as_tuple(a.take_grad(required)) for a in accumulators]
    waits = [leaf for found in taken for leaf in found]
    in_order = [found[::-1] for found in taken]  # (values, rows), as IndexedSlices has them
    return held_back(in_order, variables, waits)


def held_back(
    gradients: Sequence[tuple[Any, ...]], variables: Sequence[Variable], waits: Sequence[Any]
) -> list[Any]:
    """Gradients beside their variables, which are there once all of `waits` are.

    Args:
        gradients: each as (gradient,), or as (values, rows).
        variables: whose they are.
        waits: tensors and operations.
    """
    found: list[Any] = []
    with control_dependencies(list(waits)):
        for parts, variable in zip(gradients, variables, strict=True):
            with beside(variable):
                leaves = [identity(leaf) for leaf in parts]
            first, *rows = leaves
            found.append(IndexedSlices(first, rows[0], variable.shape) if rows else first)
    return found


def operation(made: Any) -> Operation:
    """The operation of a tensor of a graph."""
    return made if isinstance(made, Operation) else made.op


def _as_tuple(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)
