"""Barrier: its first inputs as they are, and their gradients; what it waits for gets none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine import GradientTape, constant
from laminar.engine.ops.core.barrier import barrier
from tests.engine.ops.harness import check_op

rng = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 4), (5, 7)])
@pytest.mark.parametrize("outputs", [1, 2])
def test_values_and_gradients(shape: tuple[int, ...], outputs: int) -> None:
    x, y = rng.normal(size=(2, *shape))
    waited_for = np.arange(3)

    def passed(*tensors: Any) -> Any:
        found = barrier.many(*tensors, outputs=outputs)
        return found[0] if outputs == 1 else found

    def expected(*arrays: Any) -> Any:
        return arrays[0] if outputs == 1 else tuple(arrays[:outputs])

    inputs = [x, waited_for] if outputs == 1 else [x, y, waited_for]
    check_op(passed, expected, inputs, dtypes=["float32", "bfloat16", "int32"])


def test_what_is_waited_for_gets_no_gradient() -> None:
    x, late = constant(rng.normal(size=3)), constant(rng.normal(size=2))
    with GradientTape() as tape:
        tape.watch([x, late])
        (y,) = barrier.many(x, late, outputs=1)
        loss = y * y
    dx, dlate = tape.gradient(loss, [x, late])
    np.testing.assert_array_equal(dx, 2 * x.numpy())
    assert dlate is None
