"""Dimension: one size of a shape as a value of its own, which may be unknown.

Shapes hold numbers and None. This is for programs that compute with sizes some of which are not
known: what is computed with an unknown one is unknown.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..errors import InvalidArgumentError, ShapeError


class Dimension:
    """A size, or None where it is unknown. It never changes.

    Args:
        value: a whole number, None, or another Dimension.

    Attributes:
        value: the number, or None.

    Raises:
        ShapeError: it is no whole number, or negative.

    Examples:
        >>> engine.Dimension(None).value is None, engine.Dimension(3) + 1
        (True, Dimension(4))
    """

    __slots__ = ("value",)

    value: int | None

    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "value", _number(value))

    def __setattr__(self, name: str, value: Any) -> None:
        raise InvalidArgumentError("a Dimension does not change", remedy="make another one")

    def is_compatible_with(self, other: Any) -> bool:
        """Whether one size could be both."""
        mine, theirs = self.value, _number(other)
        return mine is None or theirs is None or mine == theirs

    def assert_is_compatible_with(self, other: Any) -> None:
        """ShapeError unless one size could be both."""
        if not self.is_compatible_with(other):
            raise ShapeError(f"the dimensions {self} and {Dimension(other)} do not agree")

    def merge_with(self, other: Any) -> Dimension:
        """What both say together; ShapeError where they contradict each other."""
        self.assert_is_compatible_with(other)
        return Dimension(_number(other) if self.value is None else self.value)

    def __int__(self) -> int:
        return self.__index__()

    def __index__(self) -> int:
        if self.value is None:
            raise ShapeError("this dimension is unknown: it has no value")
        return self.value

    def __eq__(self, other: object) -> Any:
        return self._compared(operator.eq, other)

    def __ne__(self, other: object) -> Any:
        return self._compared(operator.ne, other)

    def __lt__(self, other: Any) -> Any:
        return self._compared(operator.lt, other)

    def __le__(self, other: Any) -> Any:
        return self._compared(operator.le, other)

    def __gt__(self, other: Any) -> Any:
        return self._compared(operator.gt, other)

    def __ge__(self, other: Any) -> Any:
        return self._compared(operator.ge, other)

    def _compared(self, op: Callable[[Any, Any], bool], other: Any) -> Any:
        """None where one is unknown."""
        try:
            theirs = _number(other)
        except ShapeError:
            return NotImplemented
        return None if self.value is None or theirs is None else op(self.value, theirs)

    def __hash__(self) -> int:
        return hash(self.value)

    def _computed(self, op: Callable[[int, int], int], other: Any, *, swapped: bool = False) -> Any:
        try:
            pair = (self.value, _number(other))
        except ShapeError:
            return NotImplemented
        first, second = pair[::-1] if swapped else pair
        return Dimension(None if first is None or second is None else op(first, second))

    def __add__(self, other: Any) -> Any:
        return self._computed(operator.add, other)

    def __sub__(self, other: Any) -> Any:
        return self._computed(operator.sub, other)

    def __mul__(self, other: Any) -> Any:
        return self._computed(operator.mul, other)

    def __floordiv__(self, other: Any) -> Any:
        return self._computed(operator.floordiv, other)

    def __mod__(self, other: Any) -> Any:
        return self._computed(operator.mod, other)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Any:
        return self._computed(operator.sub, other, swapped=True)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._computed(operator.floordiv, other, swapped=True)

    def __rmod__(self, other: Any) -> Any:
        return self._computed(operator.mod, other, swapped=True)

    def __str__(self) -> str:
        return "?" if self.value is None else str(self.value)

    def __repr__(self) -> str:
        return f"Dimension({self.value})"

    def __reduce__(self) -> Any:
        return Dimension, (self.value,)


def _number(value: Any) -> int | None:
    if isinstance(value, Dimension) or value is None:
        return None if value is None else value.value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ShapeError(f"a dimension is a whole number or None, got {value!r}")
    found = operator.index(value)
    if found < 0:
        raise ShapeError(
            f"a dimension cannot be negative, got {found}", remedy="write None for an unknown size"
        )
    return found
