from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from laminar import ops
from laminar.engine.errors import DTypeError, ShapeError
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import as_dtype
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math import numbers as n

from ..harness import check_op

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(2, 3, 4))
HALF = ["float32", "float16", "bfloat16"]
INF, NAN = math.inf, math.nan


def tensor(values: Any, dtype: str = "float64") -> Any:
    return convert_to_tensor(np.array(values), dtype)


@pytest.mark.parametrize(
    ("fn", "reference", "inputs"),
    [
        pytest.param(n.copysign, np.copysign, [X, Y], id="copysign"),
        pytest.param(n.copysign, np.copysign, [X, Y[0]], id="copysign-broadcast"),
        pytest.param(n.heaviside, np.heaviside, [X, Y], id="heaviside"),
        pytest.param(n.clip, np.clip, [X, np.float64(-0.5), np.float64(0.7)], id="clip"),
        pytest.param(n.clip, np.clip, [X, Y[0] - 0.5, Y[1:2] + 0.5], id="clip-broadcast"),
        pytest.param(n.clip, np.clip, [X, np.float64(0.7), np.float64(-0.5)], id="clip-crossed"),
        pytest.param(n.nan_to_num, np.nan_to_num, [X], id="nan-to-num"),
        pytest.param(n.ldexp, np.ldexp, [X, np.array([-3, 0, 1, 5])], id="ldexp"),
        pytest.param(n.ldexp, np.ldexp, [X[0], np.array([[2], [-1]])], id="ldexp-broadcast"),
        pytest.param(n.clip, np.clip, [X[:0], np.float64(0), np.float64(1)], id="empty"),
    ],
)
def test_floating(fn: Any, reference: Any, inputs: Any) -> None:
    check_op(fn, reference, inputs, dtypes=HALF)


@pytest.mark.parametrize(
    ("fn", "reference", "inputs"),
    [
        pytest.param(n.signbit, np.signbit, [np.array([1.0, -1.0, 0.0, -0.0])], id="signbit"),
        pytest.param(n.gcd, np.gcd, [np.array([12, -18, 0]), np.array([18, 12, 5])], id="gcd"),
        pytest.param(n.lcm, np.lcm, [np.array([[4], [-6]]), np.array([6, 0])], id="lcm"),
        pytest.param(n.clip, np.clip, [np.arange(9), np.int64(2), np.int64(5)], id="clip"),
    ],
)
def test_without_gradient(fn: Any, reference: Any, inputs: Any) -> None:
    check_op(fn, reference, inputs, grad=False, rtol=0)


def test_next_after() -> None:
    """The slope by x is 1."""
    check_op(n.next_after, np.nextafter, [X, Y], rtol=0)
    check_op(n.next_after, np.nextafter, [X, Y[0]], rtol=0)


def test_copysign_of_zero() -> None:
    y = n.copysign(tensor([2.0, -3.0]), tensor([-0.0, 0.0])).numpy()
    assert y.tolist() == [-2, 3]
    assert not n.signbit(n.copysign(tensor(0.0), tensor(1.0))).numpy().item()
    assert n.signbit(tensor(-NAN, "float32")).numpy().item()


def test_heaviside_at_the_step() -> None:
    x, y = tensor([-1.0, 0.0, -0.0, 2.0, NAN]), tensor([5.0] * 5)
    with GradientTape() as tape:
        tape.watch([x, y])
        z = n.heaviside(x, y)
    np.testing.assert_array_equal(z.numpy(), [0, 5, 5, 1, NAN])
    dx, dy = tape.gradient(z, [x, y])
    assert dx is None
    assert dy.numpy().tolist() == [0, 1, 1, 0, 0]


def test_clip_shares_no_gradient_at_its_limits() -> None:
    x, low, high = tensor([-2.0, -1.0, 0.0, 1.0, 2.0]), tensor(-1.0), tensor(1.0)
    with GradientTape() as tape:
        tape.watch([x, low, high])
        y = n.clip(x, low, high)
    dx, dlow, dhigh = tape.gradient(y, [x, low, high])
    assert (dx.numpy().tolist(), dlow.numpy().item(), dhigh.numpy().item()) == (
        [0, 1, 1, 1, 0],
        1,
        1,
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_what_nan_and_infinities_become(dtype: str) -> None:
    x = tensor([NAN, INF, -INF, 1.5], dtype)
    y = n.nan_to_num(x)
    assert np.isfinite(y.numpy()).all()
    greatest = y.numpy()[1]
    assert y.numpy().tolist() == [0, greatest, -greatest, 1.5]
    with np.errstate(over="ignore"):
        assert np.isinf(np.nextafter(greatest, np.array(INF, greatest.dtype)))
    assert n.nan_to_num(x, 7.0, 8.0, -9.0).numpy().tolist() == [7, 8, -9, 1.5]
    with GradientTape() as tape:
        tape.watch(x)
        y = n.nan_to_num(x)
    assert tape.gradient(y, x).numpy().tolist() == [0, 0, 0, 1]


def test_ldexp_where_the_power_alone_overflows() -> None:
    x = tensor([1e-300, 1e300, 1.0])
    found = n.ldexp(x, convert_to_tensor(np.array([1990, -1990, -(2**40)]))).numpy()
    np.testing.assert_array_equal(found[:2], np.ldexp([1e-300, 1e300], [1990, -1990]))
    assert found[2] == 0
    assert np.isfinite(found).all()


def test_errors() -> None:
    with pytest.raises(DTypeError) as caught:
        n.next_after(tensor(1.0, "float16"), tensor(2.0, "float16"))
    assert caught.value.message == "NextAfter: x must be one of float32, float64, got float16[]"
    with pytest.raises(ShapeError) as shapes:
        n.ldexp(tensor([1.0, 2.0]), convert_to_tensor([1, 2, 3]))
    assert shapes.value.message.startswith("Ldexp: the shapes [2] and [3] do not broadcast")


@pytest.mark.parametrize("dtype", HALF)
def test_neighbours_move_with_their_number(dtype: str) -> None:
    x, y = tensor([1.0, 2.0], dtype), tensor([[3.0], [0.0]], dtype)
    with GradientTape() as tape:
        tape.watch([x, y])
        z = ops.nextafter(x, y)
    dx, dy = tape.gradient(z, [x, y], output_gradients=tensor([[1.0, 2.0], [3.0, 4.0]], dtype))
    assert dx.tolist() == [4.0, 6.0]
    assert dy.tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_neighbours_of_halves(dtype: str) -> None:
    """Of all of them, on the way up and down, and to themselves."""
    numpy = as_dtype(dtype).numpy
    x = np.arange(2**16, dtype=np.uint16).view(numpy)
    for target in (-INF, -0.0, 0.0, 1.0, INF, NAN):
        y = np.full(x.shape, target, numpy)
        with np.errstate(all="ignore"):
            expected = np.nextafter(x, y)
            found = n.next_after_half(convert_to_tensor(x), convert_to_tensor(y[:1])).numpy()
        assert found.dtype == numpy
        np.testing.assert_array_equal(found.astype("float32"), expected.astype("float32"))
    half = ops.nextafter(convert_to_tensor(x[:3]), convert_to_tensor([[1], [2]]))
    assert (half.dtype, half.shape) == (as_dtype(dtype), (2, 3))
