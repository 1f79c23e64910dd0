"""Bitcast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import ShapeError
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math.bits import bitcast

from ..harness import check_op

rng = np.random.default_rng(1)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "int64", "float64"])
@pytest.mark.parametrize("shape", [(4,), (3, 2), (0, 2)])
def test_views(dtype: str, shape: tuple[int, ...]) -> None:
    x = rng.integers(0, 1000, shape).astype("int32")

    def view(x: Any) -> Any:
        return x.view(dtype)

    check_op(lambda x: bitcast(x, dtype=dtype), view, [x], grad=False)


def test_a_transposed_tensor_is_read_in_row_order() -> None:
    x = convert_to_tensor(np.arange(6, dtype="int32").reshape(2, 3).T)
    np.testing.assert_array_equal(
        bitcast(x, dtype="uint8").numpy(), np.ascontiguousarray(x.numpy()).view("uint8")
    )


def test_errors() -> None:
    with pytest.raises(ShapeError, match=r"the scalar int32\[\] has 4 bytes"):
        bitcast(convert_to_tensor(3), dtype="uint8")
    with pytest.raises(ShapeError, match="no whole number of float64"):
        bitcast(convert_to_tensor(np.zeros(3, "int32")), dtype="float64")
