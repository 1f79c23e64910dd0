"""Checks of the numbers that optimizers and schedules are given.

What a symbol stands for (a tensor or variable of a graph) is not known before a step runs: such
values pass.
"""

from __future__ import annotations

from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.engine.graph import GraphTensor
from laminar.engine.state import Variable


class ScheduledRateError(FailedPreconditionError, TypeError):
    """A learning rate that follows a schedule is no number to set."""


def is_symbol(value: object) -> bool:
    """Whether a value is known only when a step runs."""
    if isinstance(value, Variable):
        return value.graph is not None
    return isinstance(value, GraphTensor)


def is_used(value: object) -> bool:
    """Whether a coefficient is, or may be, another number than 0."""
    return is_symbol(value) or bool(value)


def _number(who: str, name: str, value: object) -> float:
    """`value` as a float; InvalidArgumentError for what is no number, text included."""
    try:
        if not isinstance(value, str | bytes):
            return float(value)  # type: ignore[arg-type]  # what cannot be converted is refused
    except (TypeError, ValueError):
        pass
    raise InvalidArgumentError(f"{who}: {name} must be a number, got {value!r}")


def positive(who: str, **values: float) -> None:
    """InvalidArgumentError unless each value is above 0."""
    for name, value in values.items():
        if not (is_symbol(value) or _number(who, name, value) > 0):
            raise InvalidArgumentError(f"{who}: {name} must be positive, got {value!r}")


def not_negative(who: str, **values: float) -> None:
    """InvalidArgumentError unless each value is 0 or above."""
    for name, value in values.items():
        if not (is_symbol(value) or _number(who, name, value) >= 0):
            raise InvalidArgumentError(f"{who}: {name} must not be negative, got {value!r}")


def decay_rate(who: str, **values: float) -> None:
    """InvalidArgumentError unless each value lies in [0, 1): the weight of what was before."""
    for name, value in values.items():
        if not (is_symbol(value) or 0 <= _number(who, name, value) < 1):
            raise InvalidArgumentError(f"{who}: {name} must lie in [0, 1), got {value!r}")


def fraction(who: str, **values: object) -> None:
    """InvalidArgumentError unless each value lies in [0, 1]."""
    for name, value in values.items():
        if not (is_symbol(value) or 0 <= _number(who, name, value) <= 1):
            raise InvalidArgumentError(f"{who}: {name} must lie in [0, 1], got {value!r}")
