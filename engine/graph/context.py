"""The `with` blocks of the default graph, as functions; that of devices is engine/devices/scope.py.

Outside of any graph they work on the implicit one; what computes at once needs no control
dependencies: it runs in the order in which it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from ..errors import ArgumentTypeError, InvalidArgumentError
from ..source import inside_scope
from ..tree import flatten
from .default import building, get_default_graph
from .graph import Graph
from .operation import Operation
from .tensor import GraphTensor


def graph_of(values: Iterable[Any]) -> Graph:
    """The graph that is being built, else that of the first symbol, else the default one."""
    graph = building()
    if graph is None:
        graph = next((g for v in values if (g := getattr(v, "graph", None)) is not None), None)
    return graph if isinstance(graph, Graph) else get_default_graph()


@contextmanager
def name_scope(
    name: str | None, default_name: str | None = None, values: Sequence[Any] = ()
) -> Iterator[str]:
    """Prefix the names of the operations, and the paths of the variables, made inside with `name/`.

    Args:
        name: the scope; one that ends in "/" is re-entered, "" leads to the root.
        default_name: used when `name` is None.
        values: tensors of a graph, in which the block then builds.

    Raises:
        ArgumentTypeError: the name is no string.
        InvalidArgumentError: the values belong to different graphs.

    Examples:
        >>> with engine.Graph().as_default(), engine.name_scope("layer"):
        ...     engine.constant(1.0, name="x").op.name
        'layer/x'
    """
    name = default_name if name is None else name
    if name is not None and not isinstance(name, str):
        raise ArgumentTypeError(f"name_scope: a name is a string, got {name!r}")
    graph = _entered_by(values)
    entered = nullcontext() if graph is None else graph.as_default()
    with entered, (graph or graph_of(())).name_scope(name) as scope, inside_scope(name):
        yield scope


def _entered_by(values: Iterable[Any]) -> Graph | None:
    """The plain graph of the first symbol, where that is not what is being built."""
    now = building()
    if now is not None and now.captures_values:  # a body takes what is outside of it
        return None
    graphs = {id(x.graph): x.graph for x in values if isinstance(x, GraphTensor)}
    if len(graphs) > 1 and not any(graph.captures_values for graph in graphs.values()):
        raise InvalidArgumentError(
            "name_scope: the values belong to different graphs",
            remedy="build all of them in one graph",
        )
    found = next(iter(graphs.values()), None)
    return None if found is None or found is now or found.captures_values else found


def control_dependencies(controls: Any) -> AbstractContextManager[None]:
    """Have the operations made inside run after `controls`; None forgets the outer ones.

    They are tensors, operations and names, one or any structure of them. Tensors and variables that
    have their value already are there before anything runs.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     v = engine.Variable(1.0)
        ...     with engine.control_dependencies([v.assign(5.0)]):
        ...         y = engine.constant(2.0) * 1
        ...     session.run(engine.global_variables_initializer())
        ...     session.run(y), session.run(v)
        (np.float32(2.0), np.float32(5.0))
    """
    if controls is None:
        return get_default_graph().control_dependencies(None)
    symbols = [c for c in flatten(controls) if _is_symbol(c)]
    if not symbols and building() is None:
        return nullcontext()
    return graph_of(symbols).control_dependencies(symbols)


def _is_symbol(value: Any) -> bool:
    if isinstance(value, str | GraphTensor | Operation):
        return True
    if not hasattr(value, "dtype"):
        raise ArgumentTypeError(
            f"control_dependencies: expected tensors, operations or names, got {value!r}"
        )
    return getattr(value, "graph", None) is not None  # a variable of a graph


def colocate_with(target: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """Place the operations made inside where `target` (a tensor, operation or variable) is.

    Examples:
        >>> with engine.Graph().as_default():
        ...     with engine.device("cpu:0"):
        ...         x = engine.constant(1.0)
        ...     with engine.colocate_with(x):
        ...         y = engine.constant(2.0)
        >>> y.op.name
        'Const_1'
    """
    return graph_of([target]).colocate_with(target, ignore_existing)


def container(name: str) -> AbstractContextManager[None]:
    """Keep the state of the operations made inside in the container `name`.

    Examples:
        >>> with engine.Graph().as_default(), engine.container("mine"):
        ...     v = engine.Variable(1.0)
    """
    return get_default_graph().container(name)


def add_to_collection(key: str, value: Any) -> None:
    """Append `value` to the list under `key` of the default graph.

    Args:
        key: the name of the list, made where there is none.
        value: anything.

    Examples:
        >>> with engine.Graph().as_default():
        ...     engine.add_to_collection("mine", 3)
        ...     engine.get_collection("mine")
        [3]
    """
    get_default_graph().add_to_collection(key, value)


def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """A copy of the default graph's list under `key`; see `Graph.get_collection`.

    Args:
        key: the name of the list; the result is empty where there is none.
        scope: only items whose name starts so.

    Examples:
        >>> with engine.Graph().as_default():
        ...     engine.add_to_collection("mine", 3)
        ...     engine.get_collection("mine")
        [3]
    """
    return get_default_graph().get_collection(key, scope)
