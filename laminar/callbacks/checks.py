"""Checks of arguments that several callbacks take."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError


def check_whole(who: str, least: int, **arguments: Any) -> None:
    """InvalidArgumentError unless each argument is a whole number of at least `least`."""
    for name, value in arguments.items():
        is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not is_whole or value < least:
            raise InvalidArgumentError(
                f"{who}: {name} must be a whole number of at least {least}, got {value!r}",
                remedy=f"{name}={least}" if is_whole else None,
            )


def check_number(who: str, **arguments: Any) -> None:
    """InvalidArgumentError unless each argument is a number; NaN is none."""
    for name, value in arguments.items():
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not is_number or np.isnan(value):
            raise InvalidArgumentError(f"{who}: {name} must be a number, got {value!r}")
