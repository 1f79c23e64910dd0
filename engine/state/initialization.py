"""Groups of variables of a graph, and the operations that initialise them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..errors import AlreadyExistsError
from ..graph import (
    Graph,
    GraphTensor,
    Operation,
    Tensor,
    TensorSpec,
    bool_,
    get_default_graph,
    string,
)
from ..ops.core.basic import group
from ..ops.core.registry import define, no_gradient
from ..ops.state.variable import is_initialized
from .collections import GraphKeys
from .variable import Variable


def global_variables(scope: str | None = None) -> list[Variable]:
    """The variables of the default graph that are shared and saved.

    Here and below, `scope` is a regular expression that their names begin with.

    Examples:
        >>> with engine.Graph().as_default():
        ...     w = engine.Variable(1.0, name="w")
        ...     [v.name for v in engine.global_variables()]
        ['w']
    """
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Variable]:
    """The variables of the default graph that belong to one process and are not saved.

    Examples:
        >>> with engine.Graph().as_default():
        ...     engine.local_variables()
        []
    """
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Variable]:
    """The variables of the default graph that its model computes with.

    Examples:
        >>> with engine.Graph().as_default():
        ...     engine.model_variables()
        []
    """
    return get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Variable]:
    """The variables of the default graph that training changes.

    Examples:
        >>> with engine.Graph().as_default():
        ...     w = engine.Variable(1.0, name="w")
        ...     step = engine.get_or_create_global_step()
        ...     [v.name for v in engine.trainable_variables()]
        ['w']
    """
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def variables_initializer(variables: Sequence[Variable], name: str = "init") -> Operation:
    """An operation that gives each of `variables` its initial value.

    Args:
        variables: of one graph; for none the operation does nothing. Those that were made eagerly
            have their values already.
        name: of the operation.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     w = engine.Variable([1.0, 2.0])
        ...     session.run(engine.variables_initializer([w]))
        ...     session.run(w)
        array([1., 2.], dtype=float32)
    """
    of_graphs = (v for v in variables if hasattr(v, "initializer"))
    init: Operation = group(*(v.initializer for v in of_graphs), name=name)
    return init


def global_variables_initializer(name: str = "init") -> Operation:
    """An operation that initialises all global variables of the default graph.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     w = engine.Variable([1.0, 2.0])
        ...     session.run(engine.global_variables_initializer())
        ...     session.run(w)
        array([1., 2.], dtype=float32)
    """
    return variables_initializer(global_variables(), name)


def local_variables_initializer(name: str = "init_local") -> Operation:
    """An operation that initialises all local variables of the default graph.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     session.run(engine.local_variables_initializer())
    """
    return variables_initializer(local_variables(), name)


@define("ReportUninitialized", dtypes={"ready": {bool_}})
def _report(*ready: TensorSpec, names: tuple[str, ...]) -> TensorSpec:
    """The names, as a vector of strings, of those that are not ready."""
    return TensorSpec([None], string)


@_report.kernel("cpu")
def _report_kernel(*ready: Any, names: tuple[str, ...]) -> Any:
    missing = [n.encode() for n, is_ready in zip(names, ready, strict=True) if not is_ready]
    return np.array(missing, object)


_report.grad(no_gradient)


def report_uninitialized_variables(
    variables: Sequence[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """A vector of the names of what has no value yet; empty when all are ready.

    Args:
        variables: by default all global and local ones, and the tables of the graph that have an
            initializer.
        name: of the operation.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     w = engine.Variable(1.0, name="w")
        ...     session.run(engine.report_uninitialized_variables())
        array([b'w'], dtype=object)
    """
    found = [*global_variables(), *local_variables()] if variables is None else list(variables)
    pairs = [(v.path, v.handle) for v in found]
    return _report_on(pairs if variables is not None else pairs + _tables(), name)


def report_uninitialized_resources(name: str = "report_uninitialized_resources") -> Tensor:
    """A vector of the names of the tables with an initializer that are not filled yet.

    Queues and other resources are ready once they are made.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     session.run(engine.report_uninitialized_resources())
        array([], dtype=object)
    """
    return _report_on(_tables(), name)


def _tables() -> list[tuple[str, Tensor]]:
    """The names and handles of the tables of the default graph that are to be filled."""
    fills = get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
    return [(op.inputs[0].op.name, op.inputs[0]) for op in fills]


def _report_on(handles: Sequence[tuple[str, Tensor]], name: str) -> Tensor:
    ready = []
    for _, handle in handles:
        # Each is asked where it is.
        beside = handle.graph.colocate_with(handle) if isinstance(handle, GraphTensor) else None
        with beside or nullcontext():
            ready.append(is_initialized(handle))
    return _report(*ready, names=tuple(n for n, _ in handles), name=name)


def create_global_step(graph: Graph | None = None) -> Variable:
    """Make the step counter of a graph: int64, zero, named "global_step".

    Raises:
        AlreadyExistsError: the graph has one.

    Examples:
        >>> with engine.Graph().as_default():
        ...     engine.create_global_step().name
        'global_step'
    """
    graph = graph or get_default_graph()
    if graph.get_collection(GraphKeys.GLOBAL_STEP):
        raise AlreadyExistsError(
            "the graph has a global_step already", remedy="use get_global_step()"
        )
    with graph.as_default(), graph.name_scope(None):
        return Variable(
            np.zeros((), np.int64),
            trainable=False,
            name="global_step",
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def get_global_step(graph: Graph | None = None) -> Variable | None:
    """The step counter that a graph lists, or its variable "global_step"; None without one.

    Examples:
        >>> with engine.Graph().as_default():
        ...     engine.get_global_step() is None
        True
    """
    graph = graph or get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    named = (v for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if v.path == "global_step")
    return found[0] if found else next(named, None)
