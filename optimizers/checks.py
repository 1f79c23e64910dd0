"""Checks of the numbers that optimizers and schedules are given."""

from __future__ import annotations

from laminar.engine.errors import InvalidArgumentError


def positive(who: str, **values: float) -> None:
    """InvalidArgumentError unless each value is above 0."""
    for name, value in values.items():
        if not value > 0:
            raise InvalidArgumentError(f"{who}: {name} must be positive, got {value!r}")


def not_negative(who: str, **values: float) -> None:
    """InvalidArgumentError unless each value is 0 or above."""
    for name, value in values.items():
        if not value >= 0:
            raise InvalidArgumentError(f"{who}: {name} must not be negative, got {value!r}")


def decay_rate(who: str, **values: float) -> None:
    """InvalidArgumentError unless each value lies in [0, 1): the weight of what was before."""
    for name, value in values.items():
        if not 0 <= value < 1:
            raise InvalidArgumentError(f"{who}: {name} must lie in [0, 1), got {value!r}")
