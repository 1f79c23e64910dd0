"""Expressions as CUDA C: each application is a line that names its value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...graph import DType, bfloat16, bool_, float16, float32, float64, int64, uint32, uint64
from ...ops.core.scalar_operators import COMPARISONS, ScalarOperators
from ...ops.nn.gelu import gelu, gelu_slope
from ..ir.element_types import HALVES, wide
from ..ir.expression import Expression
from ..ir.not_lowered import NotLoweredError

# Functions of floats alone that C has under another name; float32's end in "f".
_LIBRARY = {
    **{name: name for name in ("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log1p", "log2")},
    **{name: name for name in ("log10", "sin", "cos", "tan", "hypot", "sinh", "cosh", "tanh")},
    **{name: name for name in ("erf", "erfc", "copysign")},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{"arctan2": "atan2", "normal_cdf": "normcdf", "next_after": "nextafter", "power": "pow"},
}
_ROUNDING = {"floor": "floor", "ceil": "ceil", "round": "rint", "trunc": "trunc"}
# What the prelude has for all types.
_OWN = frozenset(
    {
        *("max", "min", "abs", "sign", "is_nan", "is_inf", "is_finite", "sigmoid", "ldexp"),
        *("shift_left", "shift_right", "floor_divide", "floor_mod", "trunc_mod"),
    }
)
_TESTS = frozenset({"is_nan", "is_inf", "is_finite"})
_LOGIC = {"logical_and": "&", "logical_or": "|", "logical_xor": "^"}
_IN_MEMORY = {float16: "lm_f16", bfloat16: "lm_b16", float32: "float", float64: "double"}


def memory_type(dtype: DType) -> str:
    """The C type of an element in memory."""
    if dtype == bool_:
        return "bool"
    return _IN_MEMORY.get(dtype) or f"lm_{dtype}"


def register_type(dtype: DType) -> str:
    """The C type of a value: a half is a float."""
    return memory_type(wide(dtype))


def literal(value: Any, dtype: DType) -> str:
    """A number in C."""
    if dtype == bool_:
        return "true" if value else "false"
    if not dtype.is_floating:
        whole = int(value)
        if dtype in (uint32, uint64):
            return f"({register_type(dtype)}){whole % (1 << 8 * dtype.size)}ull"
        bits = 8 * dtype.size
        whole = (whole + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        if whole == -(1 << 63):
            return "(lm_int64)0x8000000000000000ull"
        suffix = "ll" if dtype == int64 else ""
        return f"({register_type(dtype)})({whole}{suffix})"
    number = float(dtype.numpy.type(value))
    suffix = "" if dtype == float64 else "f"
    if math.isnan(number):
        return f"LM_NAN{suffix and '_F'}"
    if math.isinf(number):
        return f"{'-' if number < 0 else ''}LM_INF{suffix and '_F'}"
    text = f"{number.hex()}{suffix}"
    return f"({text})" if text.startswith("-") else text


class Term(ScalarOperators):
    """A value in C, with Python's operators."""

    __slots__ = ("dtype", "scalars", "text")

    def __init__(self, scalars: CudaScalars, text: str, dtype: DType) -> None:
        self.scalars = scalars
        self.text = text
        self.dtype = dtype

    def operate(self, sign: str, *operands: Any) -> Term:
        """The value of an operator."""
        s, dtype = self.scalars, self.dtype
        given = [s.text_of(x, dtype) for x in operands]
        if sign in COMPARISONS:
            return s.named(f" {sign} ".join(given), bool_)
        if sign == "negative":
            return s.named(f"lm_neg({self.text})", dtype)
        if sign == "~":
            not_sign = "!" if dtype == bool_ else "~"
            return s.named(f"({register_type(dtype)})({not_sign}{self.text})", dtype)
        if sign in ("&", "|", "^"):
            return s.named(f"({register_type(dtype)})({f' {sign} '.join(given)})", dtype)
        if dtype.is_floating:
            return s.named(f" {sign} ".join(given), dtype)
        name = {"+": "add", "-": "sub", "*": "mul", "/": "div"}[sign]
        return s.named(f"lm_{name}<{register_type(dtype)}>({', '.join(given)})", dtype)


class CudaScalars:
    """Evaluates expressions by adding lines to a list: this back end's `Scalars`.

    Args:
        lines: where they go.
        name: gives a new name.
    """

    def __init__(self, lines: list[str], name: Callable[[], str]) -> None:
        self._lines = lines
        self._name = name

    def named(self, text: str, dtype: DType) -> Term:
        """The value of a C expression, in a variable of its own."""
        name = self._name()
        self._lines.append(f"const {register_type(dtype)} {name} = {text};")
        return Term(self, name, dtype)

    def term(self, text: str, dtype: DType) -> Term:
        """A value that has a name already."""
        return Term(self, text, dtype)

    def text_of(self, x: Any, dtype: DType) -> str:
        """A term, or a number of a type, in C."""
        if not isinstance(x, Term):
            return literal(x, dtype)
        is_other = dtype not in (x.dtype, bool_) and wide(x.dtype) != wide(dtype)
        return f"({register_type(dtype)}){x.text}" if is_other else x.text

    # What expressions call

    def cast(self, x: Term, dtype: DType) -> Term:
        """As another element type."""
        if dtype == x.dtype:
            return x
        if dtype == bool_:
            return self.named(f"{x.text} != 0", dtype)
        if dtype in HALVES:
            kind = "f16" if dtype == float16 else "b16"
            narrow = x.text
            if x.dtype == float64:
                narrow = f"lm_to_odd({x.text})" if dtype == float16 else f"(float){x.text}"
            elif not x.dtype.is_floating:
                narrow = f"(float){x.text}"
            return self.named(f"lm_round_{kind}({narrow})", dtype)
        kind = register_type(dtype)
        if x.dtype.is_floating and dtype.is_integer:
            if dtype in (uint32, uint64):
                raise NotLoweredError(f"a float as {dtype}")
            of = "int64" if dtype == int64 else "int32"
            return self.named(f"({kind})lm_{of}_of({x.text})", dtype)
        return self.named(f"({kind}){x.text}", dtype)

    def bits(self, x: Term, dtype: DType) -> Term:
        """The bits of `x` as another type of the same size."""
        return self.named(f"lm_bits<{register_type(dtype)}>({x.text})", dtype)

    def constant(self, value: float, dtype: DType) -> Term:
        """A number."""
        return self.term(literal(value, dtype), dtype)

    def where(self, condition: Term, a: Any, b: Any) -> Term:
        """`a` where `condition`, `b` elsewhere."""
        dtype = next(x.dtype for x in (a, b) if isinstance(x, Term))
        text = f"{condition.text} ? {self.text_of(a, dtype)} : {self.text_of(b, dtype)}"
        return self.named(text, dtype)

    def root_quotient(self, a: Term, x: Term, epsilon: float) -> Any:
        """a / (sqrt(x) + epsilon)."""
        return a / (self._apply("sqrt", x) + epsilon)

    def gelu(self, x: Term, approximate: bool) -> Any:
        """See ops/nn/gelu.py."""
        return gelu(self, x, approximate)

    def gelu_slope(self, x: Term, approximate: bool) -> Any:
        """See ops/nn/gelu.py."""
        return gelu_slope(self, x, approximate)

    def conj(self, x: Term) -> Term:
        """`x` itself: no complex value exists here."""
        return x

    def angle(self, x: Term) -> Term:
        """0 of what is positive, pi of what is negative, -0 too."""
        return self.named(
            f"{_function('atan2', x.dtype)}({literal(0, x.dtype)}, {x.text})", x.dtype
        )

    def logical_not(self, x: Term) -> Term:
        """not x."""
        return self.named(f"!({x.text} != 0)", bool_)

    def __getattr__(self, name: str) -> Callable[..., Term]:
        return partial(self._apply, name)

    def _apply(self, name: str, *operands: Any) -> Term:
        dtype = next(x.dtype for x in operands if isinstance(x, Term))
        if name in _LOGIC:
            a, b = (f"({self.text_of(x, dtype)} != 0)" for x in operands)
            return self.named(f"{a} {_LOGIC[name]} {b}", bool_)
        if name == "ldexp":
            given = [x.text for x in operands]
        else:
            given = [self.text_of(x, dtype) for x in operands]
        if name in _ROUNDING:
            if not dtype.is_floating:
                return operands[0]  # type: ignore[no-any-return]  # a term
            return self.named(f"{_function(_ROUNDING[name], dtype)}({given[0]})", dtype)
        if name in _LIBRARY:
            return self.named(f"{_function(_LIBRARY[name], dtype)}({', '.join(given)})", dtype)
        if name in _OWN:
            found = bool_ if name in _TESTS else dtype
            return self.named(f"lm_{name}({', '.join(given)})", found)
        raise NotLoweredError(f"no CUDA code is generated for {name}")


def _function(name: str, dtype: DType) -> str:
    """A function of C's library for a type."""
    return name if dtype == float64 else f"{name}f"


def write(scalars: CudaScalars, expression: Expression, values: Sequence[Term]) -> Term:
    """The code of an expression for the values of its operands."""
    found: Term = expression.evaluate(scalars, values)
    return found
