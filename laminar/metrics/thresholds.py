"""Thresholds between predictions that mean "no" and those that mean "yes"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from laminar.engine.errors import InvalidArgumentError

from .. import config

# With top_k, what is not among the largest gets this value, and the threshold is this value.
NEVER = -1e10


def check_thresholds(
    who: str, thresholds: float | Sequence[float] | None, default: float
) -> list[float]:
    """The thresholds as a list; one number is a list of one, None is `default`.

    Raises:
        InvalidArgumentError: one is outside [0, 1].
    """
    if thresholds is None:
        return [default]
    values = [float(t) for t in np.atleast_1d(np.asarray(thresholds, dtype=np.float64))]
    wrong = [t for t in values if not 0 <= t <= 1]
    if wrong:
        raise InvalidArgumentError(
            f"{who}: thresholds must be between 0 and 1, got {', '.join(map(str, wrong))}"
        )
    return values


def spread_thresholds(num_thresholds: int) -> list[float]:
    """i / (num_thresholds - 1) without the first and the last one."""
    return [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)]


def with_ends(thresholds: Sequence[float]) -> list[float]:
    """The thresholds between one below all probabilities and one above all."""
    return [-config.epsilon(), *thresholds, 1.0 + config.epsilon()]


def are_spread_evenly(thresholds: Sequence[float]) -> bool:
    """Whether sorted thresholds divide [0, 1] into equal parts."""
    if len(thresholds) < 3:
        return False
    even = np.arange(len(thresholds)) / (len(thresholds) - 1)
    return bool(np.allclose(thresholds, even, atol=config.epsilon()))
