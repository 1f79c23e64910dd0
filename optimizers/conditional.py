"""Updates that happen only where a condition holds, without a branch in the graph.

`_scope.condition` is, per thread, the bool scalar tensor that all updates inside the innermost
`only_if` depend on, or None. A skipped update stores the old value again; in a compiled step that
choice is part of the update itself and moves no further bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable
from laminar.typing import TensorLike


class _Scope(threading.local):
    condition: Tensor | None = None


_scope = _Scope()


@contextmanager
def only_if(condition: Tensor) -> Iterator[None]:
    """Let the updates inside take effect only if the bool scalar `condition` holds."""
    outer = _scope.condition
    _scope.condition = condition if outer is None else ops.logical_and(outer, condition)
    try:
        yield
    finally:
        _scope.condition = outer


def assign(variable: Variable, value: TensorLike) -> Tensor:
    """Store `value` if the conditions around hold; gives what is stored then."""
    if _scope.condition is None:
        return variable.assign(value)
    return variable.assign(ops.where(_scope.condition, value, variable))


def assign_add(variable: Variable, value: TensorLike) -> Tensor:
    """Add `value` if the conditions around hold; gives what is stored then."""
    if _scope.condition is None:
        return variable.assign_add(value)
    return assign(variable, variable + value)


def assign_sub(variable: Variable, value: TensorLike) -> Tensor:
    """Subtract `value` if the conditions around hold; gives what is stored then."""
    if _scope.condition is None:
        return variable.assign_sub(value)
    return assign(variable, variable - value)
