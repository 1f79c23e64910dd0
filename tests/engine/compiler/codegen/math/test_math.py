"""Functions of values against float64 and long double references, over the whole range."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from scipy import special

from laminar.engine.compiler.codegen import math as v
from laminar.engine.compiler.codegen.function import IRFunction, Module, Value
from laminar.engine.compiler.ir.not_lowered import NotLoweredError
from laminar.engine.compiler.target.llvm import compile_object, vector_bytes
from laminar.engine.graph import as_dtype, float32, float64

from ...math_values import check, everywhere, pairs, same, special_values, ulps
from ...modules import Array, Body, Processor, elementwise, elementwise_module


def of_double(function: Callable[..., Array]) -> Callable[..., Array]:
    """A reference that has no wider type."""

    def computed(x: Array) -> Array:
        return function(x.astype(np.float64))

    return computed


def erfc(x: Array) -> Array:
    """SciPy's own loses digits where x is large: its exponent is the rounded x**2."""
    x = np.minimum(x, 30)
    cut = np.trunc(x * 16) / 16  # its square is exact
    tail = np.exp(-cut * cut) * np.exp(-(x - cut) * (x + cut)) * of_double(special.erfcx)(x)
    return np.where(x > 0.5, tail, of_double(special.erfc)(x))


def expit(x: Array) -> Array:
    """The logistic function in any type."""
    e = np.exp(-np.abs(x))
    y: Array = np.where(x >= 0, 1, e) / (1 + e)
    return y


# name, function, reference, where most of its range lies, and ulps of float32 and of float64
FUNCTIONS = [
    pytest.param(v.exp, np.exp, 105.0, 1.1, 1.1, id="exp"),
    pytest.param(v.exp2, np.exp2, 150.0, 1.1, 1.1, id="exp2"),
    pytest.param(v.expm1, np.expm1, 2.0, 1.6, 2.0, id="expm1"),
    pytest.param(v.log, np.log, 2.0, 1.0, 1.0, id="log"),
    pytest.param(v.log2, np.log2, 2.0, 1.6, 1.8, id="log2"),
    pytest.param(v.log10, np.log10, 2.0, 1.6, 1.8, id="log10"),
    pytest.param(v.log1p, np.log1p, 2.0, 1.7, 1.8, id="log1p"),
    pytest.param(v.sigmoid, expit, 20.0, 2.0, 2.0, id="sigmoid"),
    pytest.param(v.tanh, np.tanh, 2.0, 2.0, 2.5, id="tanh"),
    pytest.param(v.sinh, np.sinh, 2.0, 0.51, 2.7, id="sinh"),
    pytest.param(v.cosh, np.cosh, 2.0, 0.51, 2.0, id="cosh"),
    pytest.param(v.sin, np.sin, 100.0, 1.7, 2.0, id="sin"),
    pytest.param(v.cos, np.cos, 100.0, 1.7, 2.0, id="cos"),
    pytest.param(v.tan, np.tan, 100.0, 0.51, 3.5, id="tan"),
    pytest.param(v.arcsin, np.arcsin, 1.0, 0.51, 2.5, id="arcsin"),
    pytest.param(v.arccos, np.arccos, 1.0, 0.51, 2.0, id="arccos"),
    pytest.param(v.arctan, np.arctan, 2.0, 0.51, 2.7, id="arctan"),
    pytest.param(v.arcsinh, np.arcsinh, 2.0, 0.51, 2.5, id="arcsinh"),
    pytest.param(v.arccosh, np.arccosh, 4.0, 0.51, 2.5, id="arccosh"),
    pytest.param(v.arctanh, np.arctanh, 1.0, 0.51, 2.7, id="arctanh"),
    pytest.param(v.cbrt, np.cbrt, 2.0, 0.51, 1.0, id="cbrt"),
    pytest.param(v.erf, of_double(special.erf), 4.0, 2.0, 3.0, id="erf"),
    pytest.param(v.erfc, erfc, 10.0, 2.0, 4.0, id="erfc"),
    pytest.param(v.sqrt, np.sqrt, 2.0, 0.5, 0.51, id="sqrt"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("body", "reference", "scale", "limit", "limit_64"), FUNCTIONS)
def test_float32(
    body: Body, reference: Callable[..., Array], scale: float, limit: float, limit_64: float
) -> None:
    rng = np.random.default_rng(1)
    dense = rng.uniform(-scale, scale, 1 << 18).astype(np.float32)
    values = np.concatenate([everywhere("float32", 2000), dense, special_values("float32")])
    check(body, reference, [values], limit)


@pytest.mark.parametrize(("body", "reference", "scale", "limit", "limit_64"), FUNCTIONS)
def test_float64(
    body: Body, reference: Callable[..., Array], scale: float, limit: float, limit_64: float
) -> None:
    rng = np.random.default_rng(1)
    dense = rng.uniform(-scale, scale, 1 << 13)
    values = np.concatenate([everywhere("float64", 4), dense, special_values("float64")])
    if body in (v.sin, v.cos, v.tan):
        values = values[~(np.abs(values) > 1e9)]  # there long double is no reference
    check(body, reference, [values], limit_64)


# sin and cos, correctly rounded from 2400 bits. The first is the float64 nearest to a multiple of
# pi / 2 (Muller, "Elementary Functions", 2006, section 9.3.2).
FAR = [
    (float.fromhex("0x1.6ac5b262ca1ffp+849"), 1.0, -4.687165924254628e-19),
    (1e22, -0.8522008497671888, 0.523214785395139),
    (1e300, -0.8178819121159085, -0.5753861119575491),
    (1.7976931348623157e308, 0.004961954789184062, -0.9999876894265599),
    (3.4028234663852886e38, -0.5218765233336585, 0.8530210398303042),
]


def test_angles_that_are_huge() -> None:
    x, sine, cosine = np.array(FAR).T
    for body, expected in ((v.sin, sine), (v.cos, cosine)):
        found = elementwise(body, ["float64"], "float64")(x)
        assert np.all(ulps(found, expected) <= 2)


@pytest.mark.parametrize(
    ("body", "reference", "limit", "limit_64"),
    [
        pytest.param(v.power, np.power, 0.51, 1.6, id="power"),
        pytest.param(v.arctan2, np.arctan2, 0.51, 2.7, id="arctan2"),
        pytest.param(v.hypot, np.hypot, 1.3, 1.3, id="hypot"),
    ],
)
def test_two_arguments(
    body: Body, reference: Callable[..., Array], limit: float, limit_64: float
) -> None:
    check(body, reference, pairs("float32", 1 << 17), limit)
    check(body, reference, pairs("float64", 1 << 13), limit_64)


def test_powers_whose_exponents_are_large() -> None:
    """What the logarithm is off by, they multiply: up to the borders of overflow and of 0."""
    rng = np.random.default_rng(3)
    x = np.concatenate(
        [
            np.exp(rng.uniform(-700, 700, 1 << 13)),
            rng.uniform(0.6, 1.4, 1 << 13),
            1 + np.ldexp(rng.uniform(0.5, 1, 1 << 13), rng.integers(-50, -1, 1 << 13)),
            1 - np.ldexp(rng.uniform(0.5, 1, 1 << 13), rng.integers(-50, -1, 1 << 13)),
        ]
    )
    check(v.power, np.power, [x, rng.uniform(-750, 715, x.size) / np.log(x)], 1.6)


@pytest.mark.parametrize("exponent", [2.0, 3.0, 4.0, -0.5])
def test_power_of_a_constant(exponent: float) -> None:
    def body(fn: IRFunction, x: Value) -> Value:
        return v.power(fn, x, fn.constant(exponent, x))

    check(body, lambda x: np.power(x, exponent), [everywhere("float32", 100)], 1.6)


def test_what_is_not_offered() -> None:
    fn = IRFunction(Module(), "f", [])
    x = Value(fn, "%x", as_dtype("int32"), 8)
    with pytest.raises(NotLoweredError, match="power of int32"):
        v.power(fn, x, x)
    with pytest.raises(NotLoweredError, match="a function of int32"):
        v.exp(fn, x)
    with pytest.raises(NotLoweredError, match="choice of 1 and 2"):
        v.select(fn, x == 0, 1, 2)


ONE: list[Any] = [case.values[0] for case in FUNCTIONS]


@pytest.mark.parametrize("epsilon", [1e-7, 1e-3, 1.0])
def test_root_quotient(epsilon: float) -> None:
    lanes = max(4, vector_bytes() // 4)  # for whole vectors there may be estimates

    def body(fn: IRFunction, a: Value, x: Value) -> Value:
        return v.root_quotient(fn, a, x, epsilon)

    a = everywhere("float32", 40)
    x = np.abs(np.random.default_rng(1).permutation(a))
    with np.errstate(invalid="ignore", over="ignore"):
        divisor = np.sqrt(x) + np.float32(epsilon)
        expected = a.astype(np.float64) / divisor
        found = elementwise(body, ["float32"] * 2, "float32", lanes=lanes)(a, x)
        assert ulps(found, expected).max() <= 1.5


def test_normal_cdf() -> None:
    """Exact beside 1; what is left of a small share is enough for activations."""
    x = np.concatenate(
        [np.linspace(-15, 15, 1 << 18), everywhere("float32", 2000), special_values("float32")]
    ).astype(np.float32)
    found = elementwise(v.normal_cdf, ["float32"], "float32")(x)
    expected = special.ndtr(x.astype(np.float64))
    same(np.isnan(found), np.isnan(expected))
    known = ~np.isnan(x)
    np.testing.assert_allclose(found[known], expected[known], rtol=0, atol=7e-8)
    near = known & (x > -6)
    np.testing.assert_allclose(found[near], expected[near], rtol=2e-5)
    assert not found[x < -14].any()
    assert (np.diff(found[: 1 << 18]) >= -(2.0**-24)).all()
    wide = elementwise(v.normal_cdf, ["float64"], "float64")(x.astype(np.float64))
    np.testing.assert_allclose(wide[near], expected[near], rtol=1e-13)


TWO: list[Any] = [v.power, v.arctan2, v.hypot, v.floor_mod, v.floor_divide, v.maximum, v.next_after]


@pytest.mark.parametrize("body", [v.exp, v.log1p, v.sin, v.erfc, v.floor_mod, v.power])
@pytest.mark.parametrize("lanes", [0, 4, 5, 32])
def test_lanes_do_not_matter(body: Body, lanes: int) -> None:
    x = np.concatenate([everywhere("float32", 2), special_values("float32")])
    inputs = [x] if body in ONE else [x, x[::-1]]
    dtypes = ["float32"] * len(inputs)
    wide = elementwise(body, dtypes, "float32")(*inputs)
    same(elementwise(body, dtypes, "float32", lanes=lanes)(*inputs), wide)


PROCESSORS = {
    "AVX2": ("x86_64-unknown-linux-gnu", "haswell"),
    "AVX-512": ("x86_64-unknown-linux-gnu", "skylake-avx512"),
    "NEON": ("aarch64-unknown-linux-gnu", "generic"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROCESSORS)
def test_no_library_is_called(name: str) -> None:
    """Vectors of any processor stay vectors: LLVM has calls for what one lacks."""
    processor = Processor(*PROCESSORS[name])
    for bodies, count in ((ONE, 1), (TWO, 2)):
        for body in bodies:
            for dtype, lanes in ((float32, 16), (float32, 8), (float64, 8)):
                module = elementwise_module(body, [dtype] * count, dtype, lanes=lanes)
                text = processor.assembly(module.text())
                calls = re.findall(r"^\s+(?:call\w*|bl|blr)\s.*", text, re.MULTILINE)
                assert not calls, f"{body.__name__} of {dtype} {calls}"


def host_runs(*needed: str) -> bool:
    features = llvm.get_host_cpu_features()
    return all(features.get(f) for f in needed)


@pytest.mark.skipif(not host_runs("avx2", "fma"), reason="the host has no AVX2")
@pytest.mark.parametrize("body", [*ONE, *TWO])
def test_processors_agree(body: Body) -> None:
    processor = Processor(*PROCESSORS["AVX2"])
    x = np.concatenate([everywhere("float32", 4), special_values("float32")])
    inputs = [x] if body in ONE else [x, x[::-1]]
    dtypes = ["float32"] * len(inputs)
    there = elementwise(body, dtypes, "float32", lanes=8, compile=processor.compile)(*inputs)
    same(there, elementwise(body, dtypes, "float32", compile=for_any_processor)(*inputs))


def for_any_processor(text: str) -> bytes:
    """Object code of what was written without a processor in mind."""
    return compile_object(text)


@pytest.mark.parametrize(("body", "reference", "limit"), [(v.exp, np.exp, 1.3)], ids=["exp"])
def test_what_avx_512_has_another_form_of(
    body: Body, reference: Callable[..., Array], limit: float
) -> None:
    x = np.concatenate([everywhere("float32", 2000), special_values("float32")])
    with np.errstate(all="ignore"):
        expected = reference(x.astype(np.float64))
        for compile_ in (for_any_processor, compile_object):
            found = elementwise(body, ["float32"], "float32", compile=compile_)(x)
            assert ulps(found, expected).max() <= limit


STRIDE, CHUNK = 128, 1 << 22  # one in so many of all float32, so many at once


def one_in_so_many() -> Iterator[Array]:
    """Of each `STRIDE` bit patterns that follow each other, one by chance: all over the range."""
    rng = np.random.default_rng(7)
    for start in range(0, 1 << 32, CHUNK * STRIDE):
        heads = np.arange(start, start + CHUNK * STRIDE, STRIDE, dtype=np.uint64)
        bits = heads + rng.integers(0, STRIDE, heads.size, dtype=np.uint64)
        found = bits.astype(np.uint32).view(np.float32)
        found[np.isnan(found)] = np.nan  # none that signals
        yield found


@pytest.mark.exhaustive
@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize(("body", "reference", "scale", "limit", "limit_64"), FUNCTIONS)
def test_the_whole_range(
    body: Body,
    reference: Callable[..., Array],
    scale: float,
    limit: float,
    limit_64: float,
    lanes: int,
) -> None:
    """33 million numbers, in the form of this host's widest vectors and in that of others."""
    compile_ = compile_object if lanes == 16 else for_any_processor
    function = elementwise(body, ["float32"], "float32", lanes=lanes, compile=compile_)
    for x in one_in_so_many():
        with np.errstate(all="ignore"):
            errors = ulps(function(x), np.asarray(reference(x.astype(np.float64)), np.float64))
        worst = int(np.argmax(errors))
        assert errors[worst] <= 2.0, f"{errors[worst]} ulp at {x[worst]!r}"


@pytest.mark.exhaustive
@pytest.mark.parametrize("exponent", [-2.5, -0.3, 0.7, 1.5, 33.0])
def test_powers_of_the_whole_range(exponent: float) -> None:
    y = np.float32(exponent)
    function = elementwise(v.power, ["float32"] * 2, "float32")
    for x in one_in_so_many():
        exponents = np.full_like(x, y)
        with np.errstate(all="ignore"):
            for found, expected in (
                (function(x, exponents), np.power(x.astype(np.float64), np.float64(y))),
                (function(exponents, x), np.power(np.float64(y), x.astype(np.float64))),
            ):
                assert ulps(found, expected).max() <= 0.51
