"""A tensor whose gradient nobody may ask for."""

from __future__ import annotations

import numpy as np
import pytest

from laminar.engine.errors import NoGradientError
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import EagerTensor
from laminar.engine.ops.core.checks import prevent_gradient


def test_the_value_passes_and_the_gradient_does_not() -> None:
    x = EagerTensor(np.array([1.0, -2.0]))
    with GradientTape() as tape:
        tape.watch(x)
        y = prevent_gradient(x, message="it is not known")
    np.testing.assert_array_equal(y.numpy(), [1.0, -2.0])
    with pytest.raises(NoGradientError, match="explicitly disabled: it is not known"):
        tape.gradient(y, x)
