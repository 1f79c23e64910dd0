"""Python's operators on what stands for a scalar, for the targets of `scalars.py` that write code.

And the functions that such a target can compose of others, where its language has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import ops

COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})


def _unary(sign: str) -> Callable[[Any], Any]:
    return lambda x: x.operate(sign, x)


def _binary(sign: str) -> Callable[[Any, Any], Any]:
    return lambda x, other: x.operate(sign, x, other)


def _reversed(sign: str) -> Callable[[Any, Any], Any]:
    return lambda x, other: x.operate(sign, other, x)


class ScalarOperators:
    """A value whose operators give what `operate` makes of their sign and their operands.

    Signs are those of Python, and "negative"; of two operands one may be a number.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    __add__, __radd__ = _binary("+"), _reversed("+")
    __sub__, __rsub__ = _binary("-"), _reversed("-")
    __mul__, __rmul__ = _binary("*"), _reversed("*")
    __truediv__, __rtruediv__ = _binary("/"), _reversed("/")
    __and__, __rand__ = _binary("&"), _reversed("&")
    __or__, __ror__ = _binary("|"), _reversed("|")
    __xor__, __rxor__ = _binary("^"), _reversed("^")
    __floordiv__, __mod__, __pow__ = _binary("//"), _binary("%"), _binary("**")
    __lt__, __le__ = _binary("<"), _binary("<=")
    __gt__, __ge__ = _binary(">"), _binary(">=")
    __eq__, __ne__ = _binary("=="), _binary("!=")
    __neg__, __invert__ = _unary("negative"), _unary("~")

    def operate(self, sign: str, *operands: Any) -> Any:
        """What an operator gives; it raises where the target has none for this type."""
        raise NotImplementedError


class ComposedScalars:
    """Functions made of sqrt, exp, log and erf, for a target that has these."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(name)

    def exp2(self, x: Any) -> Any:
        """2**x."""
        return self.exp(x * math.log(2))

    def log2(self, x: Any) -> Any:
        """The logarithm to the base 2."""
        return self.log(x) / math.log(2)

    def log10(self, x: Any) -> Any:
        """The logarithm to the base 10."""
        return self.log(x) / math.log(10)

    def hypot(self, a: Any, b: Any) -> Any:
        """sqrt(a**2 + b**2)."""
        return self.sqrt(a * a + b * b)

    def root_quotient(self, a: Any, x: Any, epsilon: float) -> Any:
        """a / (sqrt(x) + epsilon)."""
        return a / (self.sqrt(x) + epsilon)

    def normal_cdf(self, x: Any) -> Any:
        """The normal distribution function."""
        return 0.5 * (1 + self.erf(x / math.sqrt(2)))

    def gelu(self, x: Any, approximate: bool) -> Any:
        """See ops/nn/gelu.py."""
        return ops.gelu.gelu(self, x, approximate)

    def gelu_slope(self, x: Any, approximate: bool) -> Any:
        """See ops/nn/gelu.py."""
        return ops.gelu.gelu_slope(self, x, approximate)

    def logical_and(self, a: Any, b: Any) -> Any:
        """Whether both hold."""
        return a & b

    def logical_or(self, a: Any, b: Any) -> Any:
        """Whether one holds."""
        return a | b

    def logical_not(self, a: Any) -> Any:
        """Whether it does not hold."""
        return ~a
