"""Where tensors begin in what Concat makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import EagerTensor
from laminar.engine.ops.array.offsets import concat_offsets


def test_offsets() -> None:
    shapes = np.array([[2, 3, 5], [2, 7, 5], [2, 1, 5]], np.int32)
    found = concat_offsets.many(EagerTensor(np.int32(1)), *map(EagerTensor, shapes))
    starts = np.cumsum([0, *shapes[:-1, 1]])
    for offset, start in zip(found, starts, strict=True):
        np.testing.assert_array_equal(offset.numpy(), [0, start, 0])
    with pytest.raises(InvalidArgumentError, match="must match"):
        concat_offsets.many(EagerTensor(np.int32(0)), *map(EagerTensor, shapes))
