"""Optimizers and a variable for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar import optimizers
from laminar.engine.state import Variable
from laminar.optimizers import LossScaleOptimizer, MultiOptimizer, Optimizer

ONES = np.ones(3, np.float32)
# Not those that are made of others.
RULES = [
    name
    for name, kind in vars(optimizers).items()
    if isinstance(kind, type) and issubclass(kind, Optimizer)
    if kind not in (Optimizer, LossScaleOptimizer, MultiOptimizer)
]


def variable(name: str = "w", value: Any = (1.0, 2.0, 3.0)) -> Variable:
    return Variable(np.array(value, np.float32), name=name)
