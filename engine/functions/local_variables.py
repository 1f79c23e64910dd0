"""Functions whose variables are theirs: made and gone with each call, as what Python makes is.

A variable that is made while such a function is traced is an operation, LocalVariable, that makes a
new store each time that it runs; reads and updates of it are those of any variable.

Source: "RFC: Functions, not sessions", 2018, section "Function-local state".
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

from ..graph import GraphTensor, building
from ..ops.core.dispatch import apply, as_input
from ..ops.state import variable as ops
from ..state import Variable
from ..state.creation import variable_creator_scope
from ..state.initial_values import initial_value_of
from .converting import converted
from .function import Function, function


@overload
def function_with_local_variables(fn: Callable[..., Any], **options: Any) -> Function: ...
@overload
def function_with_local_variables(
    fn: None = None, **options: Any
) -> Callable[[Callable[..., Any]], Function]: ...
def function_with_local_variables(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`function` for code that makes variables at each call, which nothing uses after it.

    A variable that `function` would refuse to make more than once is made by each call here, with
    the initial value of that call, and has gone when the call ends; one that is returned is its
    value. Variables from outside are as in `function`.

    Args:
        fn: as for `function`.
        **options: those of `function`.

    Source: "RFC: Functions, not sessions", 2018, section "Function-local state".

    Examples:
        >>> @engine.function_with_local_variables
        ... def count(x):
        ...     v = engine.Variable(1.0)
        ...     v.assign_add(x)
        ...     return v
        >>> count(engine.constant(1.0)), count(engine.constant(1.0))
        (Tensor(2., shape=(), dtype=float32), Tensor(2., shape=(), dtype=float32))
    """
    if fn is None:
        return functools.partial(function_with_local_variables, **options)
    body = fn

    @functools.wraps(body)
    def traced(*args: Any, **kwargs: Any) -> Any:
        called = converted(body) if options.get("autograph", True) else body
        with variable_creator_scope(_make):
            return called(*args, **kwargs)

    return function(traced, **options)


def _make(next_creator: Callable[..., Variable], **arguments: Any) -> Variable:
    """A variable of the graph that is being built, and of each of its runs."""
    graph = building()
    if graph is None:
        return next_creator(**arguments)
    name = arguments["name"] or "variable"
    value = initial_value_of(
        arguments["initializer"], arguments["shape"], arguments["dtype"], arguments["name"]
    )
    initial = as_input(graph, value)
    attrs = {"shape": initial.shape, "dtype": initial.dtype}
    (handle,) = apply(ops.local_variable, [], {**attrs, "name": name})
    assert isinstance(handle, GraphTensor)
    (stored,) = apply(ops.assign, [handle, initial], attrs)
    assert isinstance(stored, GraphTensor)
    return Variable.of_operations(
        handle,
        stored,
        initial,
        stored.op,
        trainable=arguments["trainable"],
        autocast=arguments["autocast"],
        aggregation=arguments["aggregation"] or "none",
        synchronization=arguments["synchronization"] or "none",
        part_of=None,
    )
