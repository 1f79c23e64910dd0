"""How many epochs and steps are asked for: checked, and limited where scripts are tried out."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar import config
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.source import warn

from .data import ran_out


def check_counts(who: str, **counts: Any) -> None:
    """An error for what is no count; None is one that is not given."""
    for name, value in counts.items():
        least = 0 if name == "initial_epoch" else 1
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least
        ):
            raise InvalidArgumentError(
                f"{who}: {name} must be a whole number of at least {least}, got {value!r}"
            )


def check_frequency(frequency: Any) -> None:
    """An error for what cannot be `validation_freq`."""
    listed = frequency if isinstance(frequency, list | tuple | set | range) else [frequency]
    for number in listed:
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
            raise InvalidArgumentError(
                f"fit: validation_freq must be a positive whole number, or a list of the epochs "
                f"to validate after, got {frequency!r}",
                remedy="validation_freq=2, or validation_freq=[1, 5, 10]",
            )


def limited(what: str, count: int, most: int | None) -> int:
    """`count`, or less when a limit for trying scripts out says so."""
    if most is None or count <= most:
        return count
    warn(f"{what} is limited to {most}, as set in laminar.config")
    return most


def limited_steps(steps: int | None) -> int | None:
    """Steps of an epoch, no more than the limit for trying scripts out; None for no end."""
    most = config.max_steps_per_epoch()
    if most is None:
        return steps
    return most if steps is None else limited("steps_per_epoch", steps, most)


def check_enough(who: str, done: int, steps: int | None, *, stopped: bool) -> None:
    """An error when there was no data, a warning when there was less than asked for."""
    if done >= (steps or 1) or (done and stopped):
        return
    error = ran_out(who, done, steps or 1)
    if not done:
        raise error
    warn(error.message)


def last_of_group(done: int, interval: int) -> int:
    """The number of the last step of a group of `interval`, of which a step was the `done`-th.

    Callbacks hear of a group by it, also of a last, shorter one.
    """
    return done + -done % interval - 1
