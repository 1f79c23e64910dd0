"""Expressions evaluated by writing code: this compiler's `Scalars` (ops/core/scalars.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...graph import DType
from ...ops.nn.gelu import gelu, gelu_slope
from ..ir.expression import Expression
from . import math as v
from .conversions import convert
from .function import IRFunction, Value

# The code of all `NATIVE_FUNCTIONS`: each takes the function under construction, then values.
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "max": v.maximum,
    "min": v.minimum,
    "abs": v.absolute,
    "sign": v.sign,
    "floor": v.floor,
    "ceil": v.ceil,
    "round": v.rint,
    "trunc": v.trunc,
    "sqrt": v.sqrt,
    "cbrt": v.cbrt,
    "exp": v.exp,
    "exp2": v.exp2,
    "expm1": v.expm1,
    "log": v.log,
    "log1p": v.log1p,
    "log2": v.log2,
    "log10": v.log10,
    "sin": v.sin,
    "cos": v.cos,
    "tan": v.tan,
    "arcsin": v.arcsin,
    "arccos": v.arccos,
    "arctan": v.arctan,
    "arctan2": v.arctan2,
    "hypot": v.hypot,
    "sinh": v.sinh,
    "cosh": v.cosh,
    "tanh": v.tanh,
    "arcsinh": v.arcsinh,
    "arccosh": v.arccosh,
    "arctanh": v.arctanh,
    "erf": v.erf,
    "erfc": v.erfc,
    "normal_cdf": v.normal_cdf,
    "sigmoid": v.sigmoid,
    "is_nan": v.is_nan,
    "is_inf": v.is_inf,
    "is_finite": v.is_finite,
    "logical_and": v.logical_and,
    "logical_or": v.logical_or,
    "logical_xor": v.logical_xor,
    "logical_not": v.logical_not,
    "shift_left": v.shift_left,
    "shift_right": v.shift_right,
    "floor_divide": v.floor_divide,
    "floor_mod": v.floor_mod,
    "trunc_mod": v.trunc_mod,
    "power": v.power,
    "next_after": v.next_after,
    "copysign": v.copysign,
    "ldexp": v.ldexp,
    "conj": v.real_part,
    "angle": v.angle,
}


class VectorScalars:
    """Writes an expression on `Value`s into a function; numbers among the operands are constants.

    Args:
        fn: the function under construction.
        lanes: of the result of an expression without operands.
    """

    def __init__(self, fn: IRFunction, lanes: int = 0) -> None:
        self._fn = fn
        self._lanes = lanes

    def cast(self, x: Value, dtype: DType) -> Value:
        """As another element type."""
        return convert(self._fn, x, dtype)

    def bits(self, x: Value, dtype: DType) -> Value:
        """The bits of `x` as another type of the same size."""
        return self._fn.bits(x, dtype)

    def constant(self, value: float, dtype: DType) -> Value:
        """A number."""
        return self._fn.constant(value, Value(self._fn, "poison", dtype, self._lanes))

    def where(self, condition: Value, a: Any, b: Any) -> Value:
        """`a` where `condition`, `b` elsewhere."""
        return v.select(self._fn, condition, a, b)

    def root_quotient(self, a: Value, x: Value, epsilon: float) -> Value:
        """a / (sqrt(x) + epsilon)."""
        return v.root_quotient(self._fn, a, x, epsilon)

    def gelu(self, x: Value, approximate: bool) -> Value:
        """See ops/nn/gelu.py."""
        if v.has_pieces(self._fn, x):
            return v.gelu(self._fn, x, approximate)
        found: Value = gelu(self, x, approximate)
        return found

    def gelu_slope(self, x: Value, approximate: bool) -> Value:
        """See ops/nn/gelu.py."""
        if v.has_pieces(self._fn, x):
            return v.gelu_slope(self._fn, x, approximate)
        found: Value = gelu_slope(self, x, approximate)
        return found

    def __getattr__(self, name: str) -> Callable[..., Value]:
        return partial(self._apply, FUNCTIONS[name])

    def _apply(self, function: Callable[..., Value], *operands: Any) -> Value:
        like = next(x for x in operands if isinstance(x, Value))
        return function(self._fn, *(self._fn.constant(x, like) for x in operands))


def write(fn: IRFunction, expression: Expression, values: Sequence[Value]) -> Value:
    """The code of an expression for the values of its operands."""
    lanes = max((v.lanes for v in values), default=0)
    found: Value = expression.evaluate(VectorScalars(fn, lanes), values)
    return found
