"""Updates of variables, as functions."""

from __future__ import annotations

from typing import Any

from ..graph import Tensor
from .variable import Variable


def assign(variable: Variable, value: Any) -> Tensor:
    """Store `value` in the variable; gives the new value."""
    return variable.assign(value)


def assign_add(variable: Variable, value: Any) -> Tensor:
    """Add `value` to the variable; gives the sum."""
    return variable.assign_add(value)


def assign_sub(variable: Variable, value: Any) -> Tensor:
    """Subtract `value` from the variable; gives the difference."""
    return variable.assign_sub(value)
