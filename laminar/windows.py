"""Windows by which stretches of a signal are multiplied before their transforms: SciPy's names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


def _cosines(*factors: float) -> Callable[[Array], Array]:
    """sum of (-1)^k factors[k] cos(k pi (x + 1)), for x from -1 to 1.

    Source: Harris, "On the use of windows for harmonic analysis with the discrete Fourier
        transform", 1978, equation 33.
    """

    def points(x: Array) -> Array:
        turn = math.pi * (x + 1)
        terms = [(-1) ** k * factor * np.cos(k * turn) for k, factor in enumerate(factors)]
        return np.asarray(sum(terms) + 0 * x)

    return points


def _bohman(x: Array) -> Array:
    distance = np.abs(x)
    return (1 - distance) * np.cos(math.pi * distance) + np.sin(math.pi * distance) / math.pi


def _tukey(x: Array) -> Array:
    """Flat over the middle half, with the ends of a Hann window."""
    edge = np.maximum(np.abs(x) - 0.5, 0) * 2
    return 0.5 * (1 + np.cos(math.pi * edge))


# Each as a function of the place, from -1 at the first point to 1 at the last.
_WINDOWS: dict[str, Callable[[Array], Array]] = {
    "boxcar": np.ones_like,
    "hann": _cosines(0.5, 0.5),
    "hamming": _cosines(0.54, 0.46),
    "blackman": _cosines(0.42, 0.5, 0.08),
    "nuttall": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": _cosines(0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    "bartlett": lambda x: 1 - np.abs(x),
    "barthann": lambda x: 0.62 - 0.24 * np.abs(x) + 0.38 * np.cos(math.pi * x),
    "bohman": _bohman,
    "lanczos": np.sinc,
    "tukey": _tukey,
}


def window_points(who: str, window: Any, length: int, periodic: bool) -> Array:
    """The points of a window, as float64.

    Args:
        who: takes the argument.
        window: a name, or the points themselves.
        length: how many points.
        periodic: whether the next point would be the first again, not the last one.

    Raises:
        InvalidArgumentError: no such name, or another number of points.
    """
    if isinstance(window, str):
        if window not in _WINDOWS:
            raise InvalidArgumentError(
                f"{who}: window must be one of {', '.join(map(repr, _WINDOWS))}, got {window!r}"
            )
        if length == 1:
            return np.ones(1)
        return _WINDOWS[window](2 * np.arange(length) / (length - (not periodic)) - 1)
    points = np.asarray(window, np.float64)
    if points.shape != (length,):
        raise InvalidArgumentError(
            f"{who}: window must have {length} points, got the shape {points.shape}"
        )
    return points
