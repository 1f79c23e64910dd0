"""`custom_gradient`: a function with a gradient of its own.

In a graph the gradient function is traced at once, so that what it uses of the forward computation
are inputs of the operation: the operation can then be copied, pruned and differentiated again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from ..errors import InvalidArgumentError
from ..graph import ANY, Graph, OpView, Tensor, TensorSpec, building, resource
from ..ops.core.basic import zeros_like
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import as_input, symbolic_graph
from ..ops.core.op_def import Grads
from ..ops.core.recording import Record, paused, recorders
from ..ops.core.registry import define
from ..tree import flatten, pack_sequence_as
from .concrete import ConcreteFunction
from .func_graph import FuncGraph


class Rule(Protocol):
    """The gradient function: one gradient or None for each argument."""

    def __call__(
        self, dys: Sequence[Tensor], captured: Sequence[Tensor]
    ) -> Sequence[Tensor | None]: ...


@define("CustomGradient", dtypes={"tensors": ANY | {resource}}, same_dtype=False)
def custom_op(
    *tensors: TensorSpec, outputs: int, arguments: int, backward: Rule | None = None
) -> tuple[TensorSpec, ...]:
    """The first `outputs` inputs; `backward` gives the gradients of the `arguments` after them.

    The remaining inputs are what `backward` uses besides the gradients of the outputs. Without a
    rule (of a graph that was written out and read again) it is the identity of its values.
    """
    return tuple(tensors[:outputs])


@custom_op.reference
def _custom_kernel(
    xp: Any, *arrays: Any, outputs: int, arguments: int, backward: Rule | None
) -> Any:
    return arrays[0] if outputs == 1 else arrays[:outputs]


@custom_op.grad
def _custom_grad(op: OpView, *dys: Tensor | None) -> Grads:
    outputs, arguments = op.attrs["outputs"], op.attrs["arguments"]
    backward: Rule | None = op.attrs["backward"]
    rest = len(op.inputs) - outputs - arguments
    if backward is None:
        return [*dys, *(None for _ in range(arguments + rest))]
    full = [zeros_like(y) if dy is None else dy for y, dy in zip(op.outputs, dys, strict=True)]
    dxs = backward(full, op.inputs[outputs + arguments :])
    return [*(None for _ in range(outputs)), *dxs, *(None for _ in range(rest))]


def custom_gradient(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: give a function its own gradient.

    Args:
        fn: `fn(*args)` returns `(result, backward)`: the result is a tensor or a structure of
            them, and `backward(*dys)` takes the gradient of each result and returns one for each
            argument (None where there is none). If it has an argument `variables` and `fn` reads
            trainable variables, it gets the list of these, and returns the gradients of the
            arguments and the list of the gradients of the variables.

    Returns:
        A function of the same arguments that gives `result`. Arguments are made tensors; keyword
        arguments are passed as they are.

    Raises:
        InvalidArgumentError: `backward` returns another number of gradients (when it is called).

    Examples:
        >>> rounded = laminar.custom_gradient(lambda x: (ops.round(x), lambda dy: dy))
        >>> laminar.grad(rounded)(ops.array(2.6))  # as if it had not been rounded
        Tensor(1., shape=(), dtype=float32)
    """

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        tensors = [convert_to_tensor(a) for a in args]
        reads = _Reads()
        with reads:
            result, backward = fn(*tensors, **kwargs)
        flat = [convert_to_tensor(y) for y in flatten(result)]
        graph = building() or symbolic_graph("custom_gradient", [*tensors, *flat])
        captured: list[Tensor] = []
        variables: list[Any] = []
        if reads.found and _takes_variables(backward):
            variables = list(reads.found.values())
            tensors += [v.handle for v in variables]
        rule: Rule = _PythonRule(backward, len(tensors), variables)
        if graph is not None:
            flat = [as_input(graph, y) for y in flat]
            tensors = [as_input(graph, x) for x in tensors]
            traced = _TracedRule(graph, rule, [TensorSpec(y.shape, y.dtype) for y in flat])
            rule, captured = traced, traced.captured
        outputs = custom_op.many(
            *flat, *tensors, *captured, outputs=len(flat), arguments=len(tensors), backward=rule
        )
        return pack_sequence_as(result, outputs)

    return wrapped


class _Reads:
    """Takes note of the trainable variables that are read in a block."""

    def __init__(self) -> None:
        self.found: dict[int, Any] = {}

    def __enter__(self) -> None:
        recorders.active = [*recorders.active, self]

    def __exit__(self, *_: object) -> None:
        recorders.active = [r for r in recorders.active if r is not self]

    def is_tracking(self, tensors: Iterable[Tensor]) -> bool:
        return False

    def record(self, record: Record) -> None:
        pass

    def watched_variable(self, handle: Tensor, variable: Any = None) -> None:
        if variable is not None:
            self.found.setdefault(id(variable), variable)


def _takes_variables(backward: Callable[..., Any]) -> bool:
    parameters = inspect.signature(backward).parameters.values()
    return any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters)


def _listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]


class _PythonRule:
    """A gradient function on values; what it uses besides it keeps itself."""

    __hash__ = None  # type: ignore[assignment]  # no cache of attributes may hold on to it

    def __init__(
        self, function: Callable[..., Any], arguments: int, variables: Sequence[Any]
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.variables = variables

    def __call__(
        self, dys: Sequence[Tensor], captured: Sequence[Tensor]
    ) -> Sequence[Tensor | None]:
        if self.variables:
            found, of_variables = self.function(*dys, variables=list(self.variables))
            dxs = [*_listed(found), *_listed(of_variables)]
        else:
            dxs = _listed(self.function(*dys))
        if len(dxs) != self.arguments:
            raise InvalidArgumentError(
                f"custom_gradient: the gradient function returned {len(dxs)} values "
                f"for {self.arguments} arguments"
            )
        return [None if dx is None else convert_to_tensor(dx) for dx in dxs]


class _TracedRule:
    """A gradient function as a graph; `captured` are the tensors of the forward graph it uses."""

    __hash__ = None  # type: ignore[assignment]  # no cache of attributes may hold on to it

    def __init__(self, forward: Graph, rule: Rule, specs: Sequence[TensorSpec]) -> None:
        graph = FuncGraph("custom_gradient", outer=forward)
        with graph.as_default(), paused():
            dys = [graph.add_argument(spec, f"d_{i}") for i, spec in enumerate(specs)]
            dxs = [None if dx is None else as_input(graph, dx) for dx in rule(dys, ())]
        pairs = list(graph.captures.values())
        self.captured = [outer for outer, _ in pairs]
        inputs = [*dys, *(inner for _, inner in pairs)]
        self._function = ConcreteFunction(graph, graph.name, inputs, dxs, graph.effects)

    def __call__(
        self, dys: Sequence[Tensor], captured: Sequence[Tensor]
    ) -> Sequence[Tensor | None]:
        found: list[Tensor | None] = self._function.pack(
            self._function.call_flat([*dys, *captured])
        )
        return found
