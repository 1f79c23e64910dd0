"""How a reduction combines elements: what it begins with, one step, the lanes at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...graph import DType, bool_, int32
from ..ir.not_lowered import NotLoweredError
from . import math as v
from .function import IRFunction, Value

_PLACE_LIMIT = 2**31 - 1


class Combine:
    """One kind of reduction of elements of one type.

    What is carried is a list of values: the combined elements, and for "argmax" and "argmin" their
    places.

    Raises:
        NotLoweredError: the kind has no native form for the type.
    """

    def __init__(self, kind: str, dtype: DType) -> None:
        self.kind = kind
        self.dtype = dtype
        self.is_place = kind.startswith("arg")
        if dtype == bool_ and kind not in ("any", "all"):
            raise NotLoweredError(f"{kind} of bool")

    def neutral(self, fn: IRFunction, lanes: int) -> list[Value]:
        """What changes nothing."""
        like = Value(fn, "poison", self.dtype, lanes)
        found = [fn.constant(self._neutral(), like)]
        if self.is_place:
            found.append(fn.constant(_PLACE_LIMIT, Value(fn, "poison", int32, lanes)))
        return found

    def _neutral(self) -> float | int | bool:
        kind = self.kind
        if kind in ("sum", "any"):
            return 0 if self.dtype != bool_ else False
        if kind in ("prod", "all"):
            return 1 if self.dtype != bool_ else True
        lowest = kind in ("max", "argmax")
        if self.dtype.is_floating:
            return -math.inf if lowest else math.inf
        if self.dtype.startswith("u"):
            return 0 if lowest else (1 << (8 * self.dtype.size)) - 1
        top = 1 << (8 * self.dtype.size - 1)
        return -top if lowest else top - 1

    def step(self, fn: IRFunction, carried: Sequence[Value], new: Sequence[Value]) -> list[Value]:
        """`carried` with `new` combined into it."""
        a, b = carried[0], new[0]
        if self.is_place:
            better = self._better(fn, carried, new)
            return [fn.select(better, n, c) for c, n in zip(carried, new, strict=True)]
        one: dict[str, Callable[[], Value]] = {
            "sum": lambda: a + b,
            "prod": lambda: a * b,
            "max": lambda: v.maximum(fn, a, b),
            "min": lambda: v.minimum(fn, a, b),
            "any": lambda: a | b,
            "all": lambda: a & b,
        }
        return [one[self.kind]()]

    def _better(self, fn: IRFunction, carried: Sequence[Value], new: Sequence[Value]) -> Value:
        """Whether the new element goes before the carried one; NaN goes first, then the place."""
        (a, i), (b, j) = carried, new
        beats = b > a if self.kind == "argmax" else b < a
        ties = b == a
        if a.is_float:
            a_is_nan, b_is_nan = a != a, b != b  # only NaN differs from itself
            beats = beats | (b_is_nan & ~a_is_nan)
            ties = ties | (b_is_nan & a_is_nan)
        return beats | (ties & (j < i))

    def across(self, fn: IRFunction, carried: Sequence[Value]) -> list[Value]:
        """The lanes of a vector combined into one scalar, as a tree."""
        values = list(carried)
        while values[0].lanes > 1:
            half = values[0].lanes // 2
            low = [fn.part(x, 0, half) for x in values]
            high = [fn.part(x, half, half) for x in values]
            values = self.step(fn, low, high)
        return [fn.element(x, 0) if x.lanes else x for x in values]
