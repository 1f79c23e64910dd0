"""Loops until a condition fails: in Python on eager values, one While while a graph is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import DTypeError, InvalidArgumentError
from ..graph import INTEGER, TensorShape, TensorSpec, bool_
from ..ops.control.structured import WHILE
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.core.entries import whole
from ..tree import pack_sequence_as
from .carried import flows_of, with_arrays
from .func_graph import FuncGraph
from .loop_tracing import Leaves, argument_names, as_value, trace_body
from .subgraph import (
    Subgraph,
    as_output,
    graph_for,
    inside,
    one_element,
    same_structure,
    share_captures,
    trace,
)


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    *,
    shape_invariants: Any = None,
    maximum_iterations: Any = None,
    parallel_iterations: int = 10,
    name: str | None = None,
) -> Any:
    """Apply `body` to the variables of a loop while `cond` holds for them.

    On eager values this is a Python loop; while a graph is built, it is one operation, for any
    number of iterations. Both functions may use tensors and variables from outside, and update
    variables: in the order of the program.

    Args:
        cond: takes the variables, returns one bool.
        body: takes the variables, returns their next values, nested as `loop_vars`.
        loop_vars: the first values: a structure of tensors and TensorArrays. The items of a tuple
            or list are passed as separate arguments.
        shape_invariants: shapes nested as `loop_vars`, with None for sizes that change from one
            iteration to the next.
        maximum_iterations: an upper bound, a number or scalar.
        parallel_iterations: how many iterations may be in flight where the loop is run by several
            threads or devices.

    Returns:
        The variables after the last iteration, nested as `loop_vars`.

    Raises:
        DTypeError, ShapeError: `body` changes the type or shape of a variable; the error names it.
        InvalidArgumentError: it returns another structure, or `cond` is not one bool.

    Examples:
        >>> engine.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, 1))
        (Tensor(3, shape=(), dtype=int32), Tensor(8, shape=(), dtype=int32))
    """
    several = isinstance(loop_vars, tuple | list)
    rebuild = with_arrays(loop_vars)
    if rebuild is not None:

        def on_flows(fn: Callable[..., Any]) -> Callable[..., Any]:
            def call(*values: Any) -> Any:
                packed = rebuild([*values] if several else values[0])
                return flows_of(fn(*packed) if several else fn(packed))

            return call

        return rebuild(
            while_loop(
                on_flows(cond),
                on_flows(body),
                flows_of(loop_vars),
                shape_invariants=shape_invariants,
                maximum_iterations=maximum_iterations,
                parallel_iterations=parallel_iterations,
                name=name,
            )
        )
    first = Leaves.of(loop_vars, "loop_vars")
    outer = graph_for("while_loop", [*first.tensors, maximum_iterations])

    def arguments(packed: Any) -> Sequence[Any]:
        return packed if several else (packed,)

    def next_values(packed: Any) -> Any:
        found = body(*arguments(packed))
        one = several and len(loop_vars) == 1 and not isinstance(found, tuple | list)
        return [found] if one else found

    if outer is None:
        packed, done = first.pack(first.tensors), 0
        most = -1
        if maximum_iterations is not None:
            most = whole("while_loop", "maximum_iterations", maximum_iterations)
        while done != most and _holds(cond(*arguments(packed))):
            said = "while_loop: what the body returns does not match the loop variables"
            leaves = same_structure(loop_vars, next_values(packed), said)
            packed = pack_sequence_as(loop_vars, [as_value(leaf) for leaf in leaves])
            done += 1
        return packed

    declared: list[TensorShape | None] = [None] * len(first.tensors)
    if shape_invariants is not None:
        declared = [None if s is None else TensorShape(s) for s in _shapes(shape_invariants)]
        if len(declared) != len(first.tensors):
            raise InvalidArgumentError(
                f"while_loop: there are {len(first.tensors)} loop variables, "
                f"and {len(declared)} shape invariants"
            )
    with inside(outer):
        traced = trace_body(
            "while_loop",
            outer,
            first,
            lambda graph, tensors: (next_values(first.pack(tensors)), None),
            declared,
        )
        test = FuncGraph("while_loop_condition", outer=outer)
        names = argument_names(first.names)
        holds = as_output(
            test,
            trace(test, lambda *t: cond(*arguments(first.pack(t))), traced.specs, names),
            bool_,
            "while_loop: the condition",
        )
        with test.as_default():
            single = one_element(holds) if holds.dtype == bool_ else None
        if single is None:
            raise InvalidArgumentError(
                f"while_loop: the condition must be one bool, got {holds.spec}",
                remedy="reduce it with all() or any()",
            )
        given, (in_test, in_body) = share_captures(outer, [test, traced.graph], every_run=True)
        condition = Subgraph(
            test, [*test.arguments[: len(names)], *in_test], [single], test.effects
        )
        inputs = [*traced.graph.arguments[: len(names)], *in_body]
        step = Subgraph(traced.graph, inputs, traced.outputs, traced.graph.effects)
        attrs = {
            "condition": condition,
            "body": step,
            "variables": len(names),
            "parallel_iterations": whole("while_loop", "parallel_iterations", parallel_iterations),
        }
        limit = convert_to_tensor(-1 if maximum_iterations is None else maximum_iterations)
        if limit.dtype not in INTEGER or limit.shape.rank not in (0, None):
            raise DTypeError(
                f"while_loop: maximum_iterations must be one integer, got {limit.spec}"
            )
        op = WHILE[step.stateful or condition.stateful]
        found = apply(op, [limit, *first.tensors, *given], attrs, name or "while_loop")
        return first.pack(found[: len(names)])


def _holds(value: Any) -> bool:
    tensor = convert_to_tensor(value)
    if tensor.shape.num_elements() != 1:
        raise InvalidArgumentError(
            f"while_loop: the condition must be one bool, got {tensor.spec}",
            remedy="reduce it with all() or any()",
        )
    return bool(tensor)


def _shapes(invariants: Any) -> list[Any]:
    """The shapes in a structure of them; a TensorShape, TensorSpec or None is a leaf."""
    if isinstance(invariants, TensorSpec):
        return [invariants.shape]
    if invariants is None or isinstance(invariants, TensorShape):
        return [invariants]
    if isinstance(invariants, dict):
        return [s for key in sorted(invariants) for s in _shapes(invariants[key])]
    if not isinstance(invariants, list | tuple):
        raise InvalidArgumentError(
            f"while_loop: a shape invariant is a shape, got {invariants!r}",
            remedy="give a tuple with None for each size that changes, such as (None, 3)",
        )
    if all(d is None or isinstance(d, int) for d in invariants):
        return [TensorShape(invariants)]
    return [s for item in invariants for s in _shapes(item)]
