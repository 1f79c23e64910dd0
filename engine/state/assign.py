"""Updates of variables, as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentTypeError
from ..graph import Tensor, building
from ..ops.core.basic import zeros_like
from ..ops.core.naming import call_named
from ..ops.core.recording import recorders
from ..ops.state.variable import one_lock
from .stateless import current_scope
from .variable import Variable


def check_variable(who: str, variable: Any) -> None:
    """ArgumentTypeError for what cannot be assigned to."""
    if not hasattr(variable, "assign"):
        raise ArgumentTypeError(
            f"{who}: expected a variable, got {variable!r}",
            remedy="give the Variable itself, not what was computed from it",
        )


def assign(
    variable: Variable, value: Any, name: str | None = None, validate_shape: bool = True
) -> Tensor:
    """Store `value` in the variable; gives the new value. See `Variable.assign`.

    Args:
        variable: the variable itself, not what was computed from it.
        value: of its shape; converted to its type.
        name: of the operation.
        validate_shape: whether the shape must stay; else the variable takes that of `value`.

    Raises:
        ArgumentTypeError: `variable` is none.
        ShapeError: the shapes differ.

    Examples:
        >>> v = engine.Variable([1.0, 2.0])
        >>> engine.assign(v, [3.0, 4.0])
        Tensor([3., 4.], shape=(2,), dtype=float32)
    """

    check_variable("assign", variable)

    def store(value: Any) -> Tensor:
        return variable.assign(value, validate_shape=validate_shape)

    updated: Tensor = call_named(name, store, value)
    return updated


def assign_add(variable: Variable, value: Any, name: str | None = None) -> Tensor:
    """Add `value` to the variable; gives the sum.

    Args:
        variable: the variable itself, not what was computed from it.
        value: of exactly its shape, as nothing broadcasts; converted to its type.
        name: of the operation.

    Raises:
        ArgumentTypeError: `variable` is none.
        ShapeError: the shapes differ.

    Examples:
        >>> v = engine.Variable([1.0, 2.0])
        >>> engine.assign_add(v, [3.0, 4.0])
        Tensor([4., 6.], shape=(2,), dtype=float32)
    """
    check_variable("assign_add", variable)
    updated: Tensor = call_named(name, variable.assign_add, value)
    return updated


def assign_sub(variable: Variable, value: Any, name: str | None = None) -> Tensor:
    """Subtract `value` from the variable; gives the difference.

    Args:
        variable: the variable itself, not what was computed from it.
        value: of exactly its shape, as nothing broadcasts; converted to its type.
        name: of the operation.

    Raises:
        ArgumentTypeError: `variable` is none.
        ShapeError: the shapes differ.

    Examples:
        >>> v = engine.Variable([1.0, 2.0])
        >>> engine.assign_sub(v, [3.0, 4.0])
        Tensor([-2., -2.], shape=(2,), dtype=float32)
    """
    check_variable("assign_sub", variable)
    updated: Tensor = call_named(name, variable.assign_sub, value)
    return updated


def set_to_zero(variables: Sequence[Variable]) -> None:
    """Assign zeros to variables."""
    is_plain = building() is None and current_scope() is None and not recorders.active
    for v in variables:
        if not v.shape.is_fully_defined:
            v.assign(zeros_like(v.read_value()))
            continue
        shape: Any = v.shape
        zeros = np.zeros(shape, v.stored_dtype.numpy)
        if is_plain and type(v) is Variable and v.graph is None:  # what `assign` comes to
            with one_lock((v.store,)):
                v.store.value = zeros
        else:
            v.assign(zeros)
