"""Floats as integers: the same numbers on every processor, also where no integer holds them."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from laminar.engine.graph import as_dtype
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math.cast import cast, truncated

FLOATS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
VALUES = [
    *(math.nan, math.inf, -math.inf, 0.0, -0.0, 0.99, 1.5, 127.9, 128, 255.9, 256, 3e4, 7e4),
    *(
        2.0**31,
        2.0**31 - 1,
        2.0**31 - 128,
        2.0**31 + 4096,
        3e9,
        2.0**63,
        2.0**63 - 1024,
        1e20,
        1e300,
    ),
]


def expected(x: float, target: str) -> int:
    """x cut off, if 32 or 64 bits hold it, and of that the lower bits."""
    info = np.iinfo(target)
    wide = 64 if info.bits == 64 else 32
    whole = int(x) if math.isfinite(x) else 1 << 99
    if not -(1 << wide - 1) <= whole < 1 << wide - 1:
        whole = -(1 << wide - 1)
    return (whole - int(info.min)) % (1 << info.bits) + int(info.min)


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "int32", "int64"])
def test_floats_as_integers(source: str, target: str) -> None:
    kind: Any = FLOATS.get(source, source)
    with np.errstate(over="ignore", invalid="ignore"):
        # Many, so that NumPy takes vectors where it has them.
        x = np.array([*VALUES, *(-v for v in VALUES)] * 9).astype(kind)
        found = cast(convert_to_tensor(x), target).numpy()
    wanted = np.array([expected(float(v), target) for v in x], target)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(truncated(x, as_dtype(target)), wanted)
    assert truncated(x, as_dtype(target)).dtype == target
