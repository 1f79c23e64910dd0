"""float16 and bfloat16 in native code: every bit as the reference rounds, however they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.engine.compiler.codegen.conversions import convert
from laminar.engine.compiler.codegen.function import IRFunction, Value
from laminar.engine.compiler.ir.builder import Builder
from laminar.engine.compiler.ir.not_lowered import NotLoweredError
from laminar.engine.compiler.ir.program import View
from laminar.engine.compiler.kernels import PairUnit
from laminar.engine.compiler.lower.rules import contractions
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.compiler.plan import plan_cache
from laminar.engine.compiler.schedule.buffer_assignment import assign_buffers
from laminar.engine.graph import as_dtype, bfloat16, float16, float32

from ..modules import elementwise

HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
EACH_HALF = pytest.mark.parametrize("name", HALVES)
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
Array = np.ndarray[Any, Any]
rng = np.random.default_rng(4)


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Some of the NaN below are signals, which some processors report."""
    with np.errstate(invalid="ignore"):
        yield


def every(name: str) -> Array:
    """All numbers that there are of a type."""
    return np.arange(1 << 16, dtype=np.uint16).view(HALVES[name])


def bits(x: Array) -> Array:
    """The bits, with those of one NaN for all: its payload is nobody's business."""
    nan = np.isnan(x.astype(np.float32))
    return np.where(nan, np.uint16(0x7FFF), x.view(np.uint16))


@EACH_HALF
@pytest.mark.parametrize("lanes", [0, 4, 16])
def test_a_float64_is_rounded_as_the_reference_does(name: str, lanes: int) -> None:
    finite = np.sort(np.unique(every(name)[np.isfinite(every(name).astype(np.float64))]))
    halves = finite.astype(np.float64)
    ties = (halves[1:] + halves[:-1]) / 2
    # Beside a tie, by less than a float32 shows: who rounds twice takes these for ties.
    beside = [np.nextafter(ties, to) for to in (-np.inf, np.inf)]
    beside += [ties * (1 + 2.0**-40), ties * (1 - 2.0**-40)]
    largest = float(halves[-1])
    ends = largest * np.array([1.0, 1 + 2.0**-20, 1 + 2.0**-10, 1.1, 1e20, np.inf, np.nan, 1e-300])
    x = np.concatenate([halves, ties, *beside, ends, -ends, [1e-310, 5e-324, 1e300]])
    with np.errstate(over="ignore"):
        want = x.astype(HALVES[name])
    found = elementwise(
        lambda fn, v: convert(fn, v, as_dtype(name)), ["float64"], name, lanes=lanes
    )(x)
    np.testing.assert_array_equal(bits(found), bits(want))


@EACH_HALF
@pytest.mark.parametrize("lanes", [0, 4, 16])
def test_every_half_is_read_and_written(name: str, lanes: int) -> None:
    x = every(name)
    as_it_is = elementwise(lambda fn, v: v, [name], name, lanes=lanes)(x)
    np.testing.assert_array_equal(bits(as_it_is), bits(x))
    wide = elementwise(lambda fn, v: convert(fn, v, float32), [name], "float32", lanes=lanes)(x)
    np.testing.assert_array_equal(wide, x.astype(np.float32))


@EACH_HALF
@pytest.mark.parametrize("lanes", [0, 4, 16])
def test_rounding(name: str, lanes: int) -> None:
    """Ties, their neighbours, what overflows, what is tiny, and any bits at all."""
    half = every(name).astype(np.float32)
    finite = np.sort(half[np.isfinite(half)])
    ties = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    x = np.concatenate(
        [
            ties,
            np.nextafter(ties, np.float32(np.inf)),
            np.nextafter(ties, np.float32(-np.inf)),
            np.array([np.finfo(np.float32).max, -np.finfo(np.float32).max, 1e-45], np.float32),
            rng.integers(0, 1 << 32, 100_000, np.uint32).view(np.float32),
        ]
    )
    dtype = as_dtype(name)
    found = elementwise(lambda fn, v: convert(fn, v, dtype), ["float32"], name, lanes=lanes)(x)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(HALVES[name])
    np.testing.assert_array_equal(bits(found), bits(expected))


@EACH_HALF
def test_a_value_that_is_rounded_is_not_rounded_again(name: str) -> None:
    dtype = as_dtype(name)
    lines = []

    def body(fn: IRFunction, v: Value) -> Value:
        once = convert(fn, v, dtype)
        before = len(fn.text())
        twice = convert(fn, convert(fn, once, float32), dtype)
        lines.append(fn.text()[before:])
        assert twice.name == once.name
        return twice

    elementwise(body, ["float32"], name)(np.ones(16, np.float32))
    assert lines


@EACH_HALF
def test_arithmetic_on_halves_themselves_is_refused(name: str) -> None:
    with pytest.raises(NotLoweredError, match=f"fadd of {name}, which is computed in float32"):
        elementwise(lambda fn, a, b: a + b, [name, name], name)


def natively(f: Callable[..., Any], *arrays: Array) -> tuple[Array, Array]:
    """The value from one native cluster, and that of the reference kernels."""
    xs = [ops.convert_to_tensor(a) for a in arrays]
    function = laminar.function(f)
    found = function(*xs)
    (body,) = function.concrete(*xs).clusters
    assert isinstance(body.native, NativeCluster)
    assert body.native.events
    return found.numpy(), f(*xs).numpy()


@EACH_HALF
@pytest.mark.parametrize(
    "f",
    [
        pytest.param(lambda x: ops.exp(x) * x + 0.1, id="rounded-after-each-op"),
        pytest.param(lambda x: ops.transpose(x)[3:, ::2] * 2, id="strided"),
        pytest.param(lambda x: ops.take(x, np.array([4, 0, 9]), axis=1) + x[:, :3], id="gathered"),
        pytest.param(lambda x: ops.concatenate([x, -x], 1) + 1, id="joined"),
        pytest.param(lambda x: ops.pad(x, ((1, 2), (0, 3)), constant_values=0.1) * 3, id="padded"),
        pytest.param(lambda x: ops.max(x, 0) - ops.min(x, 0), id="extrema"),
        pytest.param(lambda x: ops.cast(ops.cast(x, "int32"), x.dtype) / 3, id="whole-numbers"),
        pytest.param(lambda x: ops.where(x > 0, x, 0.1 * x), id="chosen"),
    ],
)
def test_bits_of_ops(name: str, f: Callable[..., Any]) -> None:
    x = rng.normal(size=(33, 70)).astype(HALVES[name])
    found, expected = natively(f, x)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.view(np.uint16), expected.view(np.uint16))


@EACH_HALF
def test_sums_are_rounded_once(name: str) -> None:
    """In halves, a sum of so many ones would stop growing at 256 or 2048."""
    x = np.ones((5000, 3), HALVES[name])
    found, _ = natively(lambda x: ops.sum(x, 0) / 8, x)
    expected = np.full(3, 5000 / 8).astype(HALVES[name])
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


@EACH_HALF
@pytest.mark.parametrize("unit", [True, False])
def test_products(name: str, unit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the matrix unit where there is one, and without: float32 sums, rounded once."""
    if not unit:
        for module in (contractions, plan_cache):
            monkeypatch.setattr(module, "pair_unit", lambda: None)
    x = rng.normal(size=(3, 40, 70)).astype(HALVES[name])
    w = rng.normal(size=(70, 50)).astype(HALVES[name])
    y = rng.normal(size=(3, 50, 70)).astype(HALVES[name])

    def f(x: Any, w: Any, y: Any) -> Any:
        scores = ops.einsum("bik,bjk->bij", x, y)
        return ops.relu(ops.matmul(x, w)) + scores

    found, expected = natively(f, x, w, y)
    a, b, c = (v.astype(np.float64) for v in (x, w, y))
    exact = np.maximum(a @ b, 0) + a @ c.transpose(0, 2, 1)
    tolerance = 4 * EPSILON[name] * np.abs(exact).max()
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=0, atol=tolerance)
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), rtol=0, atol=tolerance
    )


@EACH_HALF
def test_variables(name: str) -> None:
    v = laminar.Variable(np.full((4, 40), 0.1), dtype=name)

    @laminar.function
    def run(x: Any) -> Any:
        v.assign_add(x)
        v.assign(v * 2)
        return v + 1

    expected = np.full((4, 40), 0.1).astype(HALVES[name])
    x = rng.normal(size=(4, 40)).astype(HALVES[name])
    for _ in range(2):
        found = run(ops.convert_to_tensor(x))
        expected = (expected + x) * HALVES[name].type(2)
        np.testing.assert_array_equal(v.numpy(), expected)
        np.testing.assert_array_equal(found.numpy(), expected + HALVES[name].type(1))


@pytest.mark.parametrize("is_used", [False, True])
def test_a_product_takes_the_halves_that_its_factors_were(
    is_used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contractions, "pair_unit", lambda: PairUnit.MATRIX)
    b = Builder()
    x, y = b.storage((6, 8), bfloat16, "input"), b.storage((5, 8), bfloat16, "input")
    left, right = b.cast(x, float32), b.cast(y, float32)
    assert isinstance(left, View)
    assert isinstance(right, View)
    factors = contractions.factors(b, left, b.transpose(right, (1, 0)))
    assert factors == (x, b.transpose(y, (1, 0)))
    found = contractions.product(b, *factors, float32)
    outputs = [found, left] if is_used else [found]
    b.program.outputs = [v for v in outputs if isinstance(v, View)]
    kernels = assign_buffers(b.program, b.copy).kernels
    assert len(kernels) == 1 + is_used
    b.program.verify()
    # What is not in order, or is of another type, is taken as it is.
    turned = b.cast(b.transpose(x, (1, 0)), float32)
    other = b.cast(b.storage((6, 8), float16, "input"), float32)
    for v in (turned, other):
        assert isinstance(v, View)
        assert contractions.factors(b, left, v) == (left, v)


def test_a_product_of_halves_in_float32_is_not_rounded_to_halves() -> None:
    x = rng.normal(size=(2, 40, 70)).astype(HALVES["bfloat16"])
    y = rng.normal(size=(2, 50, 70)).astype(HALVES["bfloat16"])

    def f(x: Any, y: Any) -> Any:
        wide = ops.cast(x, "float32"), ops.cast(y, "float32")
        return ops.matmul(wide[0], ops.transpose(wide[1], (0, 2, 1))) * 2.0

    found, expected = natively(f, x, y)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)
