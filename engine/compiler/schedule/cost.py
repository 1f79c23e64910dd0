"""How much code an expression is: about as many instructions as it takes for a vector."""

from __future__ import annotations

import functools

from ...graph import bfloat16, bool_, float16
from ..ir.expression import OPERATORS, Apply, Expression, Ref

# What is not here, nor an operator, is a function of many.
_MANY = 20
_FEW = {
    **dict.fromkeys(("constant", "conj"), 0),
    **dict.fromkeys(("where", "bits", "abs", "floor", "ceil", "round", "trunc", "sqrt"), 1),
    **dict.fromkeys(("copysign", "is_nan"), 1),
    **dict.fromkeys(("is_inf", "is_finite"), 2),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "shift_left", "shift_right"), 3),
    **{"logical_not": 2, "max": 2, "min": 2, "root_quotient": 3},
}
_ROUNDING = {bfloat16: 11, float16: 2}
_TO_INTEGER = 6  # of a float: what is out of range needs a number of its own


@functools.lru_cache(maxsize=4096)
def instructions(expression: Expression) -> int:
    """The number for all of its applications."""
    dtypes = [*expression.dtypes, *(x.dtype for x in expression.applications)]
    total = 0
    for x in expression.applications:
        of = dtypes[next((a.number for a in x.arguments if isinstance(a, Ref)), 0)]
        if x.name == "cast":
            is_truncated = of.is_floating and x.dtype.is_integer
            total += _TO_INTEGER if is_truncated else _ROUNDING.get(x.dtype, of not in _ROUNDING)
        elif x.name.startswith("logical") and of == bool_:
            total += 1
        elif x.name in ("max", "min") and of.is_floating and _has_values_alone(x):
            total += 4  # which of equal ones, and of NaN, is taken needs a comparison of its own
        elif x.name.startswith("shift") and not _has_values_alone(x):
            total += 1
        else:
            total += 1 if x.name in OPERATORS else _FEW.get(x.name, _MANY)
    return total


def _has_values_alone(x: Apply) -> bool:
    """Whether no number is among what it takes."""
    return all(isinstance(a, Ref) for a in x.arguments)
