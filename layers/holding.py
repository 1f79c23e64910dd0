"""Variables that have other values for a while: what the stateless methods stand on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.state import StatelessScope, Variable


def holding(variables: Sequence[Variable], values: Sequence[Any], who: str) -> StatelessScope:
    """`variables` have `values` inside the block, where updates stay; what they have is untouched.

    Raises:
        InvalidArgumentError: another number of values.
        ShapeError: a value has another shape than its variable.
    """
    if len(values) != len(variables):
        raise InvalidArgumentError(
            f"{who}: expected {len(variables)} values of variables, got {len(values)}",
            remedy="pass one value for each variable, in their order",
        )
    return StatelessScope(zip(variables, values, strict=True))
