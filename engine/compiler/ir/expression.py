"""What is computed for one element, as data: a list of applications of named functions.

An `Expression` is recorded once (recording_scalars.py) from a scalar expression as ops are written
with, `lambda s, x, y: s.max(x + y, 0.0)` (see ops/core/scalars.py). `evaluate` runs it on any
`Scalars`: those that write code, arrays, or those that record, so that expressions go into larger
ones. Each application is evaluated once, in the order in which it was recorded, however often its
result is used.
"""

from __future__ import annotations

import itertools
import operator
import string
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from ...graph import DType


class Ref(NamedTuple):
    """A value of an expression: first come the operands, then what each application gives."""

    number: int


# What a function takes: a value, a number, or an element type.
Argument: TypeAlias = "Ref | float | bool | DType"


class Apply(NamedTuple):
    """A function applied.

    Attributes:
        name: an operator of `OPERATORS`, or a function of the scalars that evaluate it.
        arguments: what it takes.
        dtype: of the result.
    """

    name: str
    arguments: tuple[Argument, ...]
    dtype: DType


OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "negative": operator.neg,
    "~": operator.invert,
}
# How tightly operators bind; calls and names bind most tightly.
_BINDING = {
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 1),
    **{"|": 2, "^": 3, "&": 4, "+": 5, "-": 5, "*": 6, "/": 6, "negative": 7, "~": 7},
}
_CALL = 8


@dataclass(frozen=True, eq=False)
class Expression:
    """A function of one element of each operand; equal ones have the same content.

    Attributes:
        dtypes: of the operands.
        applications: in order.
        result: which value it gives.
    """

    dtypes: tuple[DType, ...]
    applications: tuple[Apply, ...]
    result: Ref

    @property
    def dtype(self) -> DType:
        """The type of the result."""
        place = self.result.number - len(self.dtypes)
        return self.dtypes[place] if place < 0 else self.applications[place].dtype

    @cached_property
    def content(self) -> str:
        """All of it as text, in which 0.0 is not -0.0, nor 1 True."""
        return repr((self.dtypes, self.applications, self.result))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.content)

    def evaluate(self, scalars: Any, operands: Sequence[Any]) -> Any:
        """The value for operands."""
        values = list(operands)
        for name, arguments, _ in self.applications:
            function = OPERATORS.get(name) or getattr(scalars, name)
            given = [values[a.number] if type(a) is Ref else a for a in arguments]
            values.append(function(*given))
        return values[self.result.number]

    def text(self, operands: Sequence[str]) -> str:
        """It for people, operands by their names; what is used more often has a name, too."""
        uses = Counter(a.number for x in self.applications for a in x.arguments if type(a) is Ref)
        names = (n for n in _letters() if n not in operands)
        values = [(text, _CALL) for text in operands]
        named = []
        for x in self.applications:
            text, binding = _applied(x, values)
            if uses[len(values)] > 1:
                named.append(f"{(name := next(names))} = {text}")
                text, binding = name, _CALL
            values.append((text, binding))
        found = values[self.result.number][0]
        return f"{found} with {', '.join(named)}" if named else found

    def __str__(self) -> str:
        return self.text([f"x{i}" for i in range(len(self.dtypes))])


def _letters() -> Iterator[str]:
    """a, b, ..., z, a1, b1, ..."""
    for number in itertools.count():
        yield from (f"{letter}{number or ''}" for letter in string.ascii_lowercase)


def _applied(x: Apply, values: Sequence[tuple[str, int]]) -> tuple[str, int]:
    """An application as text, and how tightly it binds."""
    given = [values[a.number] if isinstance(a, Ref) else (_constant(a), _CALL) for a in x.arguments]
    if x.name == "cast":
        return f"{x.dtype}({given[0][0]})", _CALL
    own = _BINDING.get(x.name)
    if own is None:
        return f"{x.name}({', '.join(text for text, _ in given)})", _CALL
    # Operators bind to the left; comparisons do not follow each other.
    least = [own + (own == 1), own + 1]
    inside = [
        text if binding >= limit else f"({text})"
        for (text, binding), limit in zip(given, least, strict=False)
    ]
    if len(inside) == 1:
        return f"{'-' if x.name == 'negative' else x.name}{inside[0]}", own
    return f"{inside[0]} {x.name} {inside[1]}", own


def _constant(value: float | bool | DType) -> str:
    return value if isinstance(value, DType) else repr(value)
