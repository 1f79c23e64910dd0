"""Clipping against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError
from laminar.optimizers import clip_by_global_norm, clip_by_norm, clip_by_value, global_norm

A = np.array([[3.0, -4.0], [0.0, 12.0]], np.float32)  # of norm 13
B = np.array([0.0, 0.3, -0.4], np.float32)  # of norm 0.5


def arrays(found: list[Any]) -> list[Any]:
    return [None if g is None else g.numpy() for g in found]


def test_by_value() -> None:
    a, none, b = arrays(clip_by_value([A, None, B], 0.35))
    np.testing.assert_array_equal(a, np.clip(A, -0.35, 0.35).astype("float32"))
    np.testing.assert_array_equal(b, np.clip(B, -0.35, 0.35).astype("float32"))
    assert none is None


def test_by_norm() -> None:
    a, none, b, zero = arrays(clip_by_norm([A, None, B, 0 * B], 2.0))
    np.testing.assert_allclose(a, A * 2 / 13, rtol=1e-6)
    np.testing.assert_array_equal(b, B)  # within the limit: not a bit changes
    np.testing.assert_array_equal(zero, 0 * B)
    assert none is None


def test_by_global_norm() -> None:
    norm = np.sqrt(13**2 + 0.5**2)
    np.testing.assert_allclose(global_norm([A, None, B]).numpy(), norm, rtol=1e-6)
    a, none, b = arrays(clip_by_global_norm([A, None, B], 2.0))
    np.testing.assert_allclose(a, A * 2 / norm, rtol=1e-6)
    np.testing.assert_allclose(b, B * 2 / norm, rtol=1e-6)
    assert none is None
    np.testing.assert_array_equal(arrays(clip_by_global_norm([A, B], 20.0))[0], A)
    assert clip_by_global_norm([None], 1.0) == [None]
    assert global_norm([]).numpy() == 0


def test_global_norm_without_end_is_seen() -> None:
    a, b = arrays(clip_by_global_norm([A, np.array([np.inf, 1], np.float32)], 2.0))
    assert np.isnan(a).all()
    assert np.isnan(b).all()


def test_half_precision_does_not_overflow() -> None:
    big = np.full(8, 300.0, np.float16)  # 300**2 is beyond float16
    (found,) = clip_by_norm([big], 1.0)
    assert found.dtype == "float16"
    np.testing.assert_allclose(found.numpy(), np.full(8, 8**-0.5), rtol=1e-3)
    assert global_norm([big]).dtype == "float32"
    assert global_norm([A.astype("float64")]).dtype == "float64"


@pytest.mark.parametrize("clip", [clip_by_value, clip_by_norm, clip_by_global_norm])
def test_limit_must_be_positive(clip: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="limit must be positive, got 0"):
        clip([A], 0.0)
