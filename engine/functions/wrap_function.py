"""wrap_function: code that builds a graph and expects to be called once, as a callable with state.

Against `function`: the code is traced once, at once; the variables that it makes belong to the
result; collections and variables by name are those of its graph alone; and operations are ordered
by their inputs and control edges only, as in the graph of a session, so that a call runs what its
outputs need.

Source: "RFC: Functions, not sessions", 2018, section "Transitioning from 1.x".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import InvalidArgumentError
from ..graph import GraphTensor, Operation, TensorSpec
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import as_input
from ..ops.core.recording import paused
from ..state import GraphKeys, Variable
from ..state.creation import variable_creator_scope
from ..tree import flatten, map_structure
from .concrete import ConcreteFunction
from .func_graph import FuncGraph
from .signature import Binder, with_specs


class WrappedGraph(FuncGraph):
    """The graph of `wrap_function`.

    Attributes:
        variables: those that its code has made.
    """

    owns_names = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.variables: list[Variable] = []

    def _added(self, op: Operation) -> None:
        """Nothing keeps the order in which operations are written."""

    def updates_of(self, variable: Variable) -> list[Operation]:
        """Its operations that change a variable."""
        handle = self.captures.get(id(variable.handle))
        consumers = () if handle is None else self.consumers_of(handle[1])
        return [op for op in consumers if not op.definition.read_only]

    def make_variable(self, next_creator: Callable[..., Variable], **arguments: Any) -> Variable:
        """A variable of this graph: its name is unique there, and it is listed."""
        keys = arguments.pop("collections")
        arguments["name"] = self.unique_name(arguments["name"] or "Variable")
        made = next_creator(**arguments)
        self.variables.append(made)
        if keys is None:
            keys = [GraphKeys.GLOBAL_VARIABLES]
            if made.trainable:
                keys = [*keys, GraphKeys.TRAINABLE_VARIABLES]
        for key in keys:
            self.add_to_collection(key, made)
        return made


class WrappedFunction(ConcreteFunction):
    """What `wrap_function` makes: call it with the tensors of its signature."""

    graph: WrappedGraph

    @property
    def variables(self) -> list[Variable]:
        """The variables that the wrapped code has made, in order."""
        return list(self.graph.variables)

    def prune(self, feeds: Any, fetches: Any) -> WrappedFunction:
        """The function of `feeds` that computes `fetches`, on the same variables.

        Args:
            feeds: tensors of the graph or their names, in any structure.
            fetches: tensors, operations (run, and given as None) or names, in any structure.

        Raises:
            NotFoundError: the graph has no such name.
            InvalidArgumentError: a feed is no tensor.
        """
        inputs = [self.graph.as_graph_element(feed) for feed in flatten(feeds)]
        tensors = [x for x in inputs if isinstance(x, GraphTensor)]
        if len(tensors) != len(inputs):
            raise InvalidArgumentError(
                f"prune: the feeds must be tensors, got {feeds!r}",
                remedy='name a tensor by its operation and output: "Square:0"',
            )
        captured = {id(inner) for _, inner in self.graph.captures.values()}
        given = [x for x in tensors if id(x) not in captured]
        return _wrapped(self.graph, given, map_structure(self.graph.as_graph_element, fetches))


def wrap_function(
    fn: Callable[..., Any], *signature: Any, name: str | None = None, **arguments: Any
) -> WrappedFunction:
    """Trace a function that builds a graph, once; gives a callable that keeps what it has made.

        def count(step):
            n = Variable(0.0)
            with control_dependencies([n.assign_add(step)]):
                return n.read_value()

        counting = wrap_function(count, [TensorSpec([], "float32")])
        counting(2.0), counting(2.0)  # 2.0, 4.0

    Args:
        fn: gives tensors, variables (whose values are given, after all of its updates of them),
            operations (which a call runs), None, or a structure of these.
        signature: for each argument a TensorSpec, (dtype, shape), a tensor that is like it, or a
            value that it is traced with; one by one, by name, or all in one list or mapping.
            Calls give the tensors alone.
        name: of the graph; by default that of the function. It may follow a list.

    Raises:
        InvalidArgumentError: the function gives something else, or a variable's initial value is
            a tensor that depends on the arguments.

    Examples:
        >>> double = engine.wrap_function(lambda x: 2 * x, [engine.TensorSpec((), "float32")])
        >>> double(engine.constant(3.0))
        Tensor(6., shape=(), dtype=float32)
    """
    binder = Binder(fn, None)
    if "signature" in arguments:
        signature = (arguments.pop("signature"), *signature)
    all_of_them = bool(signature) and _is_signature(signature[0])
    if all_of_them and len(signature) == 2 and isinstance(signature[1], str | None):
        name = signature[1]
        signature = signature[:1]
    if all_of_them and len(signature) == 1 and not arguments:
        (given,) = signature
        signature, arguments = ((), dict(given)) if isinstance(given, Mapping) else (given, {})
    named = {key: with_specs(value) for key, value in arguments.items()}
    bound = binder.bind([*map(with_specs, signature)], named)
    graph = WrappedGraph(name or binder.name)
    with graph.as_default(), paused(), variable_creator_scope(graph.make_variable):
        placeholders = [graph.add_argument(s, n) for n, s in bound.named_specs()]
        result = binder.call(fn, bound.with_tensors(placeholders))
        outputs = map_structure(lambda y: _output(graph, y), result)
    found = _wrapped(graph, graph.arguments, outputs)
    found.call_order = bound.call_order()
    return found


def _is_signature(given: Any) -> bool:
    """Whether what is given first are all arguments, rather than the first of them."""
    return isinstance(given, list | tuple | Mapping) and not isinstance(
        with_specs(given), TensorSpec
    )


def _output(graph: WrappedGraph, y: Any) -> GraphTensor | Operation | None:
    if y is None or (isinstance(y, Operation) and y.graph is graph):
        return y
    try:
        if isinstance(y, Variable):
            with graph.control_dependencies(graph.updates_of(y)):
                return as_input(graph, y.read_value())
        return as_input(graph, convert_to_tensor(y))
    except (TypeError, ValueError) as cause:
        raise InvalidArgumentError(
            f"wrap_function: the function may return tensors, operations and None, got {y!r}"
        ) from cause


def _wrapped(graph: WrappedGraph, inputs: Sequence[GraphTensor], outputs: Any) -> WrappedFunction:
    targets = [y for y in flatten(outputs) if isinstance(y, Operation)]
    structure = map_structure(lambda y: y if isinstance(y, GraphTensor) else None, outputs)
    return WrappedFunction(graph, graph.name, inputs, structure, targets)
