"""The `Scalars` (ops/core/scalars.py) that record: running an expression on them gives it as data.

What has no native form for the types of its operands is refused here, while a program is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType, MappingProxyType
from typing import Any

import numpy as np

from ...graph import DType, bool_, float32, float64, uint32, uint64
from ...ops.core.scalar_operators import COMPARISONS, ScalarOperators
from .element_types import HALVES, check_computed, wide
from .expression import Apply, Argument, Expression, Ref
from .not_lowered import NotLoweredError

# The functions by what they take: float32 and float64 alone, or any type; what gives a bool.
_OF_FLOATS = frozenset(
    {
        *("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10"),
        *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "hypot"),
        *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
        *("erf", "erfc", "normal_cdf", "sigmoid", "next_after", "copysign", "angle", "power"),
        *("is_inf", "is_finite"),
    }
)
_OF_ANY = frozenset(
    {
        *("max", "min", "abs", "sign", "floor", "ceil", "round", "trunc", "conj"),
        *("floor_divide", "floor_mod", "trunc_mod", "shift_left", "shift_right", "is_nan"),
    }
)
_LOGIC = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
_NAMED = {"//": "floor_divide", "%": "floor_mod", "**": "power"}
_TESTS = frozenset({"is_nan", "is_inf", "is_finite"})
NATIVE_FUNCTIONS = _OF_FLOATS | _OF_ANY | _LOGIC

_MOST_RECORDED = 4096  # are remembered
_recorded: dict[Any, Expression] = {}


class Symbol(ScalarOperators):
    """A value that is being recorded, with Python's operators."""

    __slots__ = ("dtype", "ref", "scalars")

    def __init__(self, scalars: RecordingScalars, ref: Ref, dtype: DType) -> None:
        self.scalars = scalars
        self.ref = ref
        self.dtype = dtype

    def operate(self, sign: str, *operands: Any) -> Symbol:
        """Record an operator."""
        if sign in COMPARISONS:
            return self._compare(sign, operands[1])
        if sign in _NAMED:
            return self.scalars.function(_NAMED[sign], *operands)
        if sign == "/":
            _check_float(self.dtype, sign)
        return self.scalars.apply(sign, operands, self.dtype)

    def _compare(self, name: str, other: Any) -> Symbol:
        is_unsigned = self.dtype == bool_ or self.dtype.startswith("u")
        if is_unsigned and not isinstance(other, Symbol) and other < 0:
            raise NotLoweredError(f"a comparison of {self.dtype} with {other}")
        return self.scalars.apply(name, (self, other), bool_)


class RecordingScalars:
    """Records what is done with symbols; numbers among them get the type of the symbol beside.

    Besides the protocol there are `cast(x, dtype)`, `bits(x, dtype)`, the bits of an element as
    another type of its size, and `constant(number, dtype)`.
    """

    def __init__(self) -> None:
        self.applications: list[Apply] = []
        self._num_operands = 0

    def operands(self, dtypes: Sequence[DType]) -> list[Symbol]:
        """The operands, before anything is applied."""
        self._num_operands = len(dtypes)
        return [Symbol(self, Ref(i), dtype) for i, dtype in enumerate(dtypes)]

    def apply(self, name: str, operands: Sequence[Any], dtype: DType) -> Symbol:
        """A function of operands of one type; a number gets that of the first symbol."""
        like = next(x.dtype for x in operands if isinstance(x, Symbol))
        if like in HALVES:
            raise NotLoweredError(f"{name} of {like}, which is computed in float32")
        return self._apply(name, [_operand(name, x, like) for x in operands], dtype)

    def _apply(self, name: str, arguments: Sequence[Argument], dtype: DType) -> Symbol:
        ref = Ref(self._num_operands + len(self.applications))
        self.applications.append(Apply(name, tuple(arguments), dtype))
        return Symbol(self, ref, dtype)

    def where(self, condition: Symbol, a: Any, b: Any) -> Symbol:
        """`a` where `condition`, `b` elsewhere."""
        like = next((x.dtype for x in (a, b) if isinstance(x, Symbol)), None)
        if like is None:
            raise NotLoweredError(f"a choice of {a!r} and {b!r}, whose type is open")
        chosen = [_operand("where", x, like) for x in (a, b)]
        return self._apply("where", [condition.ref, *chosen], like)

    def cast(self, x: Symbol, dtype: DType) -> Symbol:
        """As another element type, as the op Cast defines it."""
        if x.dtype == dtype:
            return x
        check_computed(dtype)
        if x.dtype.is_floating and dtype in (uint32, uint64):
            raise NotLoweredError(f"a float as {dtype}: out of range, the reference's loops differ")
        return self._apply("cast", [x.ref, dtype], dtype)

    def bits(self, x: Symbol, dtype: DType) -> Symbol:
        """The bits of an element as another type of the same size."""
        return self._apply("bits", [x.ref, dtype], dtype)

    def constant(self, value: float, dtype: DType) -> Symbol:
        """A number."""
        return self._apply("constant", [_number(value, dtype), dtype], dtype)

    def root_quotient(self, a: Symbol, x: Symbol, epsilon: float) -> Symbol:
        """a / (sqrt(x) + epsilon)."""
        _check_float(a.dtype, "root_quotient")
        return self._apply("root_quotient", [a.ref, x.ref, epsilon], a.dtype)

    def gelu(self, x: Symbol, approximate: bool) -> Symbol:
        """See ops/nn/gelu.py."""
        _check_float(x.dtype, "gelu")
        return self._apply("gelu", [x.ref, approximate], x.dtype)

    def gelu_slope(self, x: Symbol, approximate: bool) -> Symbol:
        """See ops/nn/gelu.py."""
        _check_float(x.dtype, "gelu_slope")
        return self._apply("gelu_slope", [x.ref, approximate], x.dtype)

    def ldexp(self, x: Symbol, n: Symbol) -> Symbol:
        """x * 2**n; it takes a wider type to round once."""
        if x.dtype != float32:
            raise NotLoweredError(f"ldexp of {x.dtype}")
        return self._apply("ldexp", [x.ref, n.ref], x.dtype)

    def __getattr__(self, name: str) -> Callable[..., Symbol]:
        if name not in NATIVE_FUNCTIONS:
            raise NotLoweredError(f"no native code is generated for {name}")
        return partial(self.function, name)

    def function(self, name: str, *operands: Any) -> Symbol:
        """One of `NATIVE_FUNCTIONS`."""
        first = next((x for x in operands if isinstance(x, Symbol)), None)
        if first is None:
            raise NotLoweredError(f"{name} of numbers alone")
        if name in _OF_FLOATS:
            _check_float(first.dtype, name)
        if name in _LOGIC:
            refs = [x.ref if isinstance(x, Symbol) else _number(x, first.dtype) for x in operands]
            return self._apply(name, refs, bool_)
        return self.apply(name, operands, bool_ if name in _TESTS else first.dtype)


def record(
    scalar: Callable[..., Any],
    dtypes: Sequence[DType],
    result: DType,
    attributes: Mapping[str, Any] = MappingProxyType({}),
) -> Expression:
    """A scalar expression as data: `scalar(s, *operands, **attributes)`.

    Halves are computed with in float32, and the result is rounded once if it is to be a half.

    Args:
        scalar: the expression.
        dtypes: of the operands.
        result: the type to be given.
        attributes: see above.

    Raises:
        NotLoweredError: it has no native form for operands of these types, or another result.
    """
    if not isinstance(scalar, FunctionType) or scalar.__closure__ is not None:
        return _record(scalar, dtypes, result, attributes)
    # It is pure, so its code tells what it is: a lambda of a function is made anew in each call.
    own = repr((scalar.__defaults__, scalar.__kwdefaults__, attributes))
    key = (scalar.__module__, scalar.__code__, own, tuple(dtypes), result)
    found = _recorded.get(key)
    if found is None:
        if len(_recorded) >= _MOST_RECORDED:
            _recorded.clear()
        found = _recorded[key] = _record(scalar, dtypes, result, attributes)
    return found


def _record(
    scalar: Callable[..., Any],
    dtypes: Sequence[DType],
    result: DType,
    attributes: Mapping[str, Any],
) -> Expression:
    s = RecordingScalars()
    operands = [s.cast(x, wide(x.dtype)) for x in s.operands(dtypes)]
    found = scalar(s, *operands, **attributes)
    if not isinstance(found, Symbol):
        found = s.constant(found, wide(result))
    if result in HALVES and found.dtype == float32:
        found = s.cast(found, result)
    if found.dtype != result:
        raise NotLoweredError(f"an expression gives {found.dtype}, not {result}")
    return _needed(Expression(tuple(dtypes), tuple(s.applications), found.ref))


def _needed(expression: Expression) -> Expression:
    """Without the applications that the result does not need."""
    count, applications = len(expression.dtypes), expression.applications
    needed = {expression.result.number}
    for number in reversed(range(count, count + len(applications))):
        if number in needed:
            arguments = applications[number - count].arguments
            needed.update(a.number for a in arguments if isinstance(a, Ref))
    kept = [n for n in range(count, count + len(applications)) if n in needed]
    if len(kept) == len(applications):
        return expression
    refs = {n: Ref(i) for i, n in enumerate([*range(count), *kept])}
    found = []
    for n in kept:
        x = applications[n - count]
        arguments = tuple(refs[a.number] if isinstance(a, Ref) else a for a in x.arguments)
        found.append(x._replace(arguments=arguments))
    return Expression(expression.dtypes, tuple(found), refs[expression.result.number])


def same(dtype: DType) -> Expression:
    """The operand as it is."""
    return Expression((dtype,), (), Ref(0))


def _operand(name: str, x: Any, like: DType) -> Argument:
    """A symbol or a number among operands of a type."""
    if not isinstance(x, Symbol):
        return _number(x, like)
    if x.dtype != like and not _are_integers_alike(x.dtype, like):
        raise NotLoweredError(f"{name} of {like} and {x.dtype}")
    return x.ref


def _are_integers_alike(a: DType, b: DType) -> bool:
    """Whether types differ in nothing but the meaning of the first bit."""
    return a.is_integer and b.is_integer and a.size == b.size


def _number(value: Any, like: DType) -> float | bool:
    """A number of a type; a float among integers would make floats of them."""
    if isinstance(value, np.generic):
        value = value.item()
    if like.is_floating:
        return float(value)
    if isinstance(value, float):
        raise NotLoweredError(f"the constant {value} among {like}")
    return bool(value) if like == bool_ else int(value)


def _check_float(dtype: DType, name: str) -> None:
    if dtype not in (float32, float64):
        raise NotLoweredError(f"{name} of {dtype}")
