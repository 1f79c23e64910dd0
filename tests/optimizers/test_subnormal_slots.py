"""Slots full of subnormal numbers, as moments become where gradients have ended."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from laminar import optimizers
from laminar.engine.functions import function
from laminar.engine.state import Variable

SHAPE = (6, 35)
BELOW = np.random.default_rng(0).uniform(1e-42, 1e-38, SHAPE)
# What is made of other optimizers, and has no rule of its own.
OF_OTHERS = (optimizers.LossScaleOptimizer, optimizers.MultiOptimizer)
RULES = {
    name: cls
    for name, cls in vars(optimizers).items()
    if isinstance(cls, type) and issubclass(cls, optimizers.Optimizer)
    if cls is not optimizers.Optimizer and cls not in OF_OTHERS
}


def after_three_steps(name: str, dtype: str, slots: Any, gradient: Any, run: Any) -> list[Any]:
    """The variable and the slots, all of which begin as `slots`."""
    w = Variable(np.linspace(0.5, 1.5, BELOW.size).reshape(SHAPE), dtype=dtype)
    options: Any = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
    optimizer = RULES[name](0.01, **options)
    optimizer.build([w])
    of_w = [v for v in optimizer.variables if v.dtype == dtype and v.ndim]
    for slot in of_w:
        value = slot.numpy()
        value[...] = slots.reshape(-1)[: value.shape[-1]]
        slot.assign(value)
    step = run(lambda g: optimizer.apply([g], [w]))
    for _ in range(3):
        step(np.asarray(gradient, dtype))
    return [v.numpy() for v in (w, *of_w)]


@pytest.mark.parametrize("name", RULES)
def test_they_count_as_zero(name: str) -> None:
    """Against NumPy in float64, with slots of 0."""
    gradient = np.where(np.arange(SHAPE[1]) % 2, 0.0, BELOW / 1e-38 - 0.5)  # some have ended
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Muon says that it is for matrices
        found = after_three_steps(name, "float32", BELOW.astype("float32"), gradient, function)
        expected = after_three_steps(name, "float64", 0 * BELOW, gradient, lambda f: f)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-6)
