"""`and`, `or`, `not`, chained comparisons and `assert`: Python's, or operations of a graph."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..functions.conditions import cond
from ..functions.func_graph import FuncGraph
from ..graph import GraphTensor, Tensor, bool_, building
from ..ops.core.basic import const_op, identity, placeholder_op
from ..ops.core.checks import assert_op
from ..ops.core.convert import convert_to_tensor
from ..ops.core.recording import paused
from ..ops.math.compare import logical_and, logical_not, logical_or
from ..ops.state.variable import read_variable
from .conditions import as_bool, choose
from .state import as_condition

_Operand = Callable[[], Any]


def and_(first: Any, *others: _Operand) -> Any:
    """first and others[0]() and ...; a tensor of a graph gives a tensor of the graph."""
    found = first
    for place, operand in enumerate(others):
        test = as_condition(found)
        if isinstance(test, GraphTensor):
            return _both(test, functools.partial(_rest, and_, others[place:]), is_and=True)
        if not test:
            return found
        found = operand()
    return found


def or_(first: Any, *others: _Operand) -> Any:
    """first or others[0]() or ...; a tensor of a graph gives a tensor of the graph."""
    found = first
    for place, operand in enumerate(others):
        test = as_condition(found)
        if isinstance(test, GraphTensor):
            return _both(test, functools.partial(_rest, or_, others[place:]), is_and=False)
        if test:
            return found
        found = operand()
    return found


def _rest(op: Callable[..., Any], operands: Sequence[_Operand]) -> Any:
    return op(operands[0](), *operands[1:])


def _both(test: GraphTensor, rest: _Operand, *, is_and: bool) -> Any:
    """The conjunction or disjunction of a tensor and of what is only looked at where it decides."""
    who = "and" if is_and else "or"
    first = as_bool(who, test)

    def value() -> Any:
        return as_condition(rest())

    def other() -> Any:
        found = value()
        return as_bool(who, found) if isinstance(found, GraphTensor) else bool(found)

    is_harmless, found = _tried(who, value)
    if not (_is_truth(test) and _is_truth(found)) and isinstance(found, Tensor | float | int):
        # `n or 5` is a number in Python, so it is here.
        return choose(test, value, lambda: test) if is_and else choose(test, lambda: test, value)
    if is_harmless:
        second = convert_to_tensor(other())
        return logical_and(first, second) if is_and else logical_or(first, second)
    if is_and:
        return cond(first, other, lambda: identity(first))
    return cond(first, lambda: identity(first), other)


def _is_truth(value: Any) -> bool:
    return value.dtype == bool_ if isinstance(value, Tensor) else isinstance(value, bool)


def _tried(who: str, operand: _Operand) -> tuple[bool, Any]:
    """Whether an operand can be computed although Python would not look at it, and what it is.

    What works element by element neither fails nor changes anything.

    Raises:
        ShapeError: it has more than one element.
    """
    graph = FuncGraph("operand", outer=building())
    with graph.as_default(), paused():
        found = operand()
        if isinstance(found, GraphTensor):
            as_bool(who, found)
    harmless = (placeholder_op, const_op, identity, read_variable)
    is_harmless = all(
        op.definition in harmless or getattr(op.definition, "scalar", None) is not None
        for op in graph.operations
    )
    return is_harmless, found


def not_(value: Any) -> Any:
    """not value; of a tensor of a graph, a bool of the graph."""
    test = as_condition(value)
    return logical_not(as_bool("not", test)) if isinstance(test, GraphTensor) else not value


def chain(left: Any, *rest: tuple[Callable[[Any, Any], Any], _Operand]) -> Any:
    """left < b < c, each operand computed once."""
    (compare, operand), *others = rest
    right = operand()
    found = compare(left, right)
    return and_(found, lambda: chain(right, *others)) if others else found


def contains(value: Any, items: Any) -> Any:
    """value in items; where a tensor of a graph is among a few, whether one of them is equal."""
    if type(items) in (list, tuple):
        among = [value, *items]
        if any(isinstance(as_condition(x), GraphTensor) for x in among):
            return or_(False, *(functools.partial(operator.eq, value, item) for item in items))
    return value in items


def asserted(test: Any, message: Callable[[], Any]) -> bool:
    """What an assert looks at; a tensor of a graph is checked when the graph runs."""
    found = as_condition(test)
    if not isinstance(found, GraphTensor):
        return bool(test)
    said = message()
    text = "an assertion does not hold" if said is None else str(said)
    assert_op(as_bool("assert", found), message=text, summarize=3)
    return True
