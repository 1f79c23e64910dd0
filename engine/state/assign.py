"""Updates of variables, as functions."""

from __future__ import annotations

from typing import Any

from ..graph import Tensor
from ..ops.core.naming import call_named
from .variable import Variable


def assign(variable: Variable, value: Any, name: str | None = None) -> Tensor:
    """Store `value` in the variable; gives the new value."""
    updated: Tensor = call_named(name, variable.assign, value)
    return updated


def assign_add(variable: Variable, value: Any, name: str | None = None) -> Tensor:
    """Add `value` to the variable; gives the sum."""
    updated: Tensor = call_named(name, variable.assign_add, value)
    return updated


def assign_sub(variable: Variable, value: Any, name: str | None = None) -> Tensor:
    """Subtract `value` from the variable; gives the difference."""
    updated: Tensor = call_named(name, variable.assign_sub, value)
    return updated
