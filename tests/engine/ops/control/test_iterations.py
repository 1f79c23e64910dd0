"""JoinIterations and SplitIterations against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.ops.control.iterations import join_iterations_op, split_iterations
from laminar.engine.ops.control.structured import Ragged
from tests.engine.ops.harness import check_op

rng = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(3, 2), (2, 1, 4), (1, 3, 2, 2)])
def test_joined(shape: tuple[int, ...]) -> None:
    def joined(x: Any) -> Any:
        return np.concatenate(list(x))

    check_op(join_iterations_op, joined, [rng.normal(size=shape)])


def test_split_as_another_is() -> None:
    y, like = rng.normal(size=(6, 2)), rng.normal(size=(3, 2, 2))
    check_op(split_iterations, lambda y, like: np.stack(np.split(y, 3)), [y, like])


def test_parts_that_differ_in_length() -> None:
    parts = [rng.normal(size=(k, 2)) for k in (2, 0, 3)]
    join = join_iterations_op.reference_kernel
    split = split_iterations.reference_kernel
    assert join is not None
    assert split is not None
    joined = join(np, Ragged(parts))
    np.testing.assert_array_equal(joined, np.concatenate(parts))
    for found, part in zip(split(np, joined, Ragged(parts)), parts, strict=True):
        np.testing.assert_array_equal(found, part)
