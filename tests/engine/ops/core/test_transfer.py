"""The 16-bit form of floats in transfer; Send and Recv are tested where graphs are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.engine.errors import DTypeError
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.core.transfer import from_upper_half, upper_half

from ..harness import check_op

SPECIAL = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, 3.4e38, 1e-45, 1.1754944e-38], "float32")


def cut(x: np.ndarray) -> np.ndarray:
    return (x.view("uint32") & 0xFFFF0000).view("float32")


@pytest.mark.parametrize("shape", [(9,), (3, 3), (0, 2), ()])
def test_halves(shape: tuple[int, ...]) -> None:
    x = np.resize(SPECIAL, shape).astype("float32")

    def upper(x: np.ndarray) -> np.ndarray:
        return (x.view("uint32") >> 16).astype("uint16")

    def widened(x: np.ndarray) -> np.ndarray:
        return (x.astype("uint32") << 16).view("float32")

    check_op(upper_half, upper, [x], grad=False)
    check_op(from_upper_half, widened, [upper(x)], grad=False)


@given(st.integers(0, 2**32 - 1))
def test_the_upper_half_is_kept_of_any_bits(bits: int) -> None:
    x = np.array([bits], "uint32").view("float32")
    y = from_upper_half(upper_half(convert_to_tensor(x))).numpy()
    if np.isnan(x[0]):
        assert np.isnan(y[0])
    else:
        np.testing.assert_array_equal(y.view("uint32"), cut(x).view("uint32"))


def test_a_nan_whose_payload_is_cut_off_stays_a_nan() -> None:
    x = np.array([0x7F800001, 0xFF800001, 0x7FC00000], "uint32").view("float32")
    y = from_upper_half(upper_half(convert_to_tensor(x))).numpy()
    assert np.isnan(y).all()
    assert np.signbit(y).tolist() == [False, True, False]


def test_only_float32_is_halved() -> None:
    with pytest.raises(DTypeError, match="must be one of float32"):
        upper_half(convert_to_tensor(np.zeros(2)))
