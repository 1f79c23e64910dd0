"""What every framework does to one array of one or ten million numbers, in rows of 1024."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .cases import Case
from .problems import Problem

TITLES = {
    "softmax": "softmax",
    "layer-norm": "layer normalization",
    "gelu": "GELU",
    "adam": "update by Adam",
}
MILLIONS = (1, 10)


def sized(name: str, millions: int) -> str:
    """The name of the workload."""
    return f"{name}-{millions}m"


def on_rows(
    cases: Mapping[str, Callable[[Problem], Case]],
) -> dict[str, Callable[[Problem], Case]]:
    """The cases by the names of their workloads, of each size."""
    return {sized(name, size): case for name, case in cases.items() for size in MILLIONS}


def ends(y: Any) -> list[float]:
    """The beginning and the end of a result of two axes, and its mean size, to be compared."""
    y = np.asarray(y)
    return [float(number) for number in (*y[0, :8], *y[-1, -8:], np.abs(y).mean())]
