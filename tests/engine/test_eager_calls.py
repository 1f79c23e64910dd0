"""Ops of values at hand: what goes straight to the expression or to NumPy, and what does not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import EagerTensor
from laminar.engine.ops.array.broadcast import broadcast_to
from laminar.engine.ops.array.index import strided_slice
from laminar.engine.ops.core.elementwise import elementwise
from tests.engine.runtime.fake_gpu import two_cpus


def calls_of(fn: Callable[[], Any]) -> int:
    """How many Python functions a call of `fn` enters, itself aside."""
    entered = []

    def see(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            entered.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        fn()
    finally:
        sys.setprofile(before)
    return len(entered) - 1


def test_a_sum_of_two_tensors_takes_few_calls() -> None:
    x, y = (engine.convert_to_tensor(np.arange(6.0, dtype="float32")) for _ in range(2))
    x + y, x * 2.0, ops.tanh(x)
    assert calls_of(lambda: x + y) <= 5
    assert calls_of(lambda: x * 2.0) <= 6
    assert calls_of(lambda: ops.tanh(x)) <= 9
    2 - x, x > 0, x[1:3], ops.stack([x, y])
    assert calls_of(lambda: x + 1) <= 6
    assert calls_of(lambda: 2 - x) <= 6
    assert calls_of(lambda: x > 0) <= 7
    assert calls_of(lambda: x[1:3]) <= 10
    assert calls_of(lambda: ops.stack([x, y])) <= 23
    with laminar.GradientTape() as tape:
        tape.watch(x)
        assert calls_of(lambda: x + y) <= 8


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "bool"])
def test_the_second_call_gives_the_bits_of_the_first(dtype: str) -> None:
    x = ops.cast(np.array([[0.1], [3.0]]), dtype)
    y = ops.cast(np.array([1.7, 0.3, 2.0]), dtype)
    fresh = elementwise(
        f"TestSum{dtype}", "x + y * y", scalar=lambda s, x, y: x + y * y, dtypes=[x.dtype]
    )
    first = fresh(x, y)
    second = fresh(x, y)
    assert second.dtype == first.dtype == dtype
    assert second.numpy().tobytes() == first.numpy().tobytes()
    wide = x.numpy().astype("float64") + y.numpy().astype("float64") ** 2
    if dtype not in ("bool", "int32"):
        np.testing.assert_allclose(second.numpy().astype("float64"), wide, rtol=1e-2)


def test_shapes_that_do_not_fit_are_refused_at_the_line_also_later() -> None:
    x, y = ops.ones((2, 3)), ops.ones((4,))
    x + x
    for _ in range(2):
        with pytest.raises(ShapeError) as caught:
            x + y
        assert caught.value.location is not None
        assert "x + y" in str(caught.value)


def test_types_are_promoted_also_after_calls_of_one_type() -> None:
    x, n = ops.ones((2,)), ops.ones((2,), "int32")
    x + x, n + n
    assert (x + n).dtype == "float32"
    assert (n / n).dtype == "float32"
    assert (n * 2.5).dtype == "float32"
    assert (x < n).dtype == "bool"
    assert np.isinf((x * 1e300).numpy()).all()
    assert np.isnan((x * float("nan")).numpy()).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_python_numbers_take_the_type_of_the_tensor(dtype: str) -> None:
    array = np.array([1, 2, 5], dtype)
    x = engine.convert_to_tensor(array)
    for _ in range(2):
        for got, expected in (
            (x + 3, array + 3),
            (7 - x, 7 - array),
            (-2 * x, -2 * array),
            (x >= 2, array >= 2),
            (x == 2, array == 2),
        ):
            np.testing.assert_array_equal(got.numpy(), expected)
            assert got.dtype == expected.dtype
    assert (x / 2).dtype == (1 / x).dtype == ("float64" if dtype == "float64" else "float32")
    np.testing.assert_allclose((1 / x).numpy(), 1 / array, rtol=1e-6)
    assert (x + True).dtype == dtype
    far = x + 70_000
    np.testing.assert_array_equal(far.numpy(), array + 70_000)


def test_a_number_that_does_not_fit_is_refused_also_later() -> None:
    x = ops.ones((2,), "uint8")
    x + x
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="300"):
            x + 300


def test_a_kernel_of_slices_that_is_registered_is_the_one_that_runs() -> None:
    x = ops.ones((3,))
    strided_slice.kernel("cpu")(lambda x, *, index: x[index[0][0] :] * 7)
    try:
        np.testing.assert_array_equal(x[1:], [7.0, 7.0])
    finally:
        del strided_slice.kernels["cpu"]
        strided_slice.forget_host_kernel()
    np.testing.assert_array_equal(x[1:], [1.0, 1.0])


def test_tapes_are_told_of_slices() -> None:
    x = ops.ones((4,))
    x[1:3]
    with laminar.GradientTape() as tape:
        tape.watch(x)
        y = x[1:3] * 5.0
    np.testing.assert_array_equal(tape.gradient(y, x), [0.0, 5.0, 5.0, 0.0])


def test_a_result_of_rank_0_is_an_array() -> None:
    x = engine.convert_to_tensor(2.0)
    for _ in range(2):
        y = x * x
        assert type(y) is EagerTensor
        assert type(y.value) is np.ndarray
        assert y.shape == ()


def test_nothing_is_printed_for_ieee_values() -> None:
    zero = ops.zeros((3,))
    for _ in range(2):
        assert np.isnan((zero / zero).numpy()).all()
    with pytest.warns(RuntimeWarning):  # what the user computes with NumPy warns as before
        zero.numpy() / zero.numpy()


def test_tapes_are_told_of_straight_calls() -> None:
    x, y = ops.full((2,), 3.0), ops.full((2,), 5.0)
    for _ in range(2):
        with laminar.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            z = x * y * 2.0 - x
        dx, dy = tape.gradient(z, [x, y])
        np.testing.assert_array_equal(dx, [9.0, 9.0])
        np.testing.assert_array_equal(dy, [6.0, 6.0])


def test_a_kernel_that_is_registered_later_is_the_one_that_runs() -> None:
    double = elementwise("TestDouble", "2 * x", scalar=lambda s, x: x + x)
    x = ops.ones((2,))
    double(x), double(x)
    double.kernel("cpu")(lambda x: x * 7)
    np.testing.assert_array_equal(double(x), [7.0, 7.0])
    np.testing.assert_array_equal(double(x), [7.0, 7.0])

    triple = elementwise("TestTriple", "3 * x", scalar=lambda s, x: x * 3)
    triple(x), triple(x)
    triple.reference(lambda xp, x: x * 11, replace=True)
    np.testing.assert_array_equal(triple(x), [11.0, 11.0])


def test_attributes_and_defaults_are_kept_apart() -> None:
    leaky = elementwise(
        "TestScaled", "x * by", scalar=lambda s, x, *, by=2.0: x * s.max(x * 0 + by, x * 0)
    )
    x = ops.ones((2,))
    for _ in range(2):
        np.testing.assert_array_equal(leaky(x), [2.0, 2.0])
        np.testing.assert_array_equal(leaky(x, by=5.0), [5.0, 5.0])


def test_devices_and_graphs_are_obeyed_after_straight_calls() -> None:
    x = ops.ones((2,))
    x + x
    with engine.Graph().as_default() as graph:
        y = x + x
        assert y.graph is graph
    with two_cpus(), laminar.device("cpu:1"):
        assert (x + x).device.endswith("cpu:1")


def test_what_is_repeated_a_few_times_is_an_array_of_its_own() -> None:
    few: Any = broadcast_to(ops.ones((1, 3)), (4, 3))
    many: Any = broadcast_to(ops.ones((1,)), (100, 100))
    assert few.tolist() == [[1.0] * 3] * 4
    assert few.value.flags.c_contiguous
    assert many.value.strides == (0, 0)
