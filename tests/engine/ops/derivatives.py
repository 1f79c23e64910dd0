"""Derivatives beyond what `check_op` sees: up to the third, and through the gradient that comes in.

`check_op` weighs an output with constants, so the gradient that reaches an op does not depend on
its inputs. Here it does: the gradient of sum(op(...) ** 3) is itself put through `check_op`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from laminar.engine.gradients import grad
from laminar.engine.graph import Tensor
from laminar.engine.ops.math.arithmetic import multiply, square
from laminar.engine.ops.math.reduce import reduce_sum

from .harness import check_op

Array = np.ndarray[Any, Any]
STEP = 1e-4


def check_third(
    fn: Callable[..., Any],
    reference: Callable[..., Any],
    inputs: Sequence[Array],
    attrs: Mapping[str, Any] | None = None,
    *,
    dynamic: bool = True,
) -> None:
    """Check the derivatives of `fn(*tensors, **attrs)`, one tensor, for small float64 inputs.

    The reference's gradient is taken by central differences of the fourth order, element by
    element.
    """
    given = attrs or {}
    everything = tuple(range(len(inputs)))

    def cubes(*tensors: Tensor) -> Tensor:
        y = fn(*tensors, **given)
        return reduce_sum(multiply(y, square(y)))

    def expected(*arrays: Array) -> tuple[Array, ...]:
        def loss(place: int, index: tuple[int, ...], step: float) -> float:
            moved = [a.copy() for a in arrays]
            moved[place][index] += step
            return float(np.sum(reference(*moved, **given) ** 3))

        return tuple(
            np.array(
                [
                    (
                        8 * (loss(place, index, STEP) - loss(place, index, -STEP))
                        - (loss(place, index, 2 * STEP) - loss(place, index, -2 * STEP))
                    )
                    / (12 * STEP)
                    for index in np.ndindex(a.shape)
                ]
            ).reshape(a.shape)
            for place, a in enumerate(arrays)
        )

    check_op(grad(cubes, everything), expected, inputs, rtol=1e-7, dynamic=dynamic)
