"""The steps of rules that scale by the root of a mean of squares."""

from __future__ import annotations

from laminar.engine.graph import Tensor
from laminar.engine.ops.core.promotion import promote
from laminar.engine.ops.math import elementary


def root_quotient(a: Tensor, squares: Tensor, epsilon: float) -> Tensor:
    """a / (sqrt(squares) + epsilon), in the wider type of the two."""
    a, squares = promote(a, squares)
    found: Tensor = elementary.root_quotient(a, squares, epsilon=epsilon)
    return found
