"""Every elementwise op as native code against its reference kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from laminar.engine.compiler.codegen.function import IRFunction, Module, Value
from laminar.engine.compiler.codegen.scalars import FUNCTIONS, write
from laminar.engine.compiler.ir.not_lowered import NotLoweredError
from laminar.engine.compiler.ir.recording_scalars import NATIVE_FUNCTIONS, RecordingScalars, record
from laminar.engine.graph import DType, TensorSpec, as_dtype, bool_, int32
from laminar.engine.ops.core.op_def import OpDef
from laminar.engine.ops.core.registry import all_ops
from laminar.engine.ops.core.scalars import Scalars

from ..modules import Array, elementwise

ELEMENTWISE = {
    t: op
    for t, op in all_ops().items()
    if op.scalar is not None and op.rule.__module__.startswith("laminar.")
}
# Attributes without a default, and others than the default.
ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "BesselI": [{"order": 1}],
    "BesselIe": [{"order": 1}],
    "Polygamma": [{"n": 1}],
    "ZetaSlope": [{"order": 1}],
    "NanToNum": [{"nan": 0.5, "posinf": 3.0e38, "neginf": -2.0}],
    "Threshold": [{"threshold": 0.25, "value": -3.0}],
    "ThresholdGrad": [{"threshold": 0.25, "value": -3.0}],
    "RootQuotient": [{"epsilon": 1e-7}, {"epsilon": 0.0}],
    "Gelu": [{"approximate": True}, {"approximate": False}],
    "GeluGrad": [{"approximate": True}, {"approximate": False}],
    "Sinc": [{"order": 0}, {"order": 1}, {"order": 2}],
}
# What has no native code yet, by element type.
SPECIAL = {
    *("BesselI", "BesselIe", "Betainc", "Digamma", "Erfinv", "Igamma", "IgammaGradA", "Igammac"),
    *("Lgamma", "Ndtri", "Polygamma", "PolygammaOf", "Zeta", "ZetaSlope"),
    *("BetaincGradA", "IgammaBendA"),
}
NOT_LOWERED = {
    "float32": {"Complex", *SPECIAL},
    "float64": {"Complex", "Ldexp", *SPECIAL},
    "int32": {
        *("Gcd", "Lcm", "Pow"),
        # Gradients that make floats of integers, and of functions that take none.
        *("CeluGrad", "EluGrad", "GeluGrad", "HardShrinkGrad", "HardSigmoidGrad", "HardSiluGrad"),
        *("LeakyReluGrad", "LogSigmoidGrad", "SeluGrad", "SiluGrad", "SoftShrinkGrad"),
        *("SoftplusGrad", "SoftsignGrad", "SparsePlusGrad", "SparseSigmoidGrad"),
        *("SquareplusGrad", "TanhShrinkGrad", "ThresholdGrad"),
    },
    "bool": set[str](),
}
LEAST = 2.0**-126  # normal number of float32
# The size of the terms of a sum that may cancel, so that the result has the error of the terms.
TERMS: dict[str, Callable[..., Array]] = {
    "Gelu": lambda x, approximate: x,
    "GeluGrad": lambda dy, x, approximate: dy * (1 + 30 * approximate),
    "LogAddExp": lambda x, y: 1 + np.abs(np.maximum(x, y)),
    "LogAddExp2": lambda x, y: 1 + np.abs(np.maximum(x, y)),
    "LogSigmoidGrad": lambda dy, y: dy * LEAST,  # below it expm1(y) has few bits
    "SigmoidCrossEntropy": lambda labels, x: 1 + np.maximum(x, 0) + np.abs(x * labels),
    "SiluGrad": lambda dy, x: dy,
    "Sinc": lambda x, order: np.pi**order / np.maximum(1, np.abs(x)),
    "SoftplusGrad": lambda dy, y: dy * LEAST,
    "TanhShrink": lambda x: x,
}
# The references have errors too, and those of float64 no wider type.
LIMIT = {"float32": 4, "float64": 8}


def input_dtypes(op: OpDef, dtype: DType) -> list[DType] | None:
    """The types of the inputs when those that can be chosen are `dtype`; None when none can."""
    found = []
    for name in op.input_names:
        allowed = op.dtypes.get(name)
        if allowed is None:
            found.append(bool_)  # a condition
        elif dtype in allowed:
            found.append(dtype)
        elif not op.same_dtype and int32 in allowed:
            found.append(int32)
        else:
            return None
    return found if dtype in found else None


def body_of(op: OpDef, attrs: Mapping[str, Any]) -> Any:
    scalar = op.scalar
    assert scalar is not None

    def body(fn: IRFunction, *values: Value) -> Any:
        dtypes = [v.dtype for v in values]
        return write(fn, record(scalar, dtypes, result_dtype(op, dtypes, attrs), attrs), values)

    return body


def attributes(op: OpDef) -> list[dict[str, Any]]:
    return ATTRIBUTES.get(op.type, [dict(op.defaults)])


def result_dtype(op: OpDef, dtypes: list[DType], attrs: Mapping[str, Any]) -> DType:
    (spec,), _ = op.infer([TensorSpec([3], d) for d in dtypes], attrs)
    return spec.dtype


def lowered(op: OpDef, dtype: DType) -> bool:
    """Whether native code can be written."""
    dtypes = input_dtypes(op, dtype)
    assert dtypes is not None
    fn = IRFunction(Module(), "trial", [])
    try:
        for attrs in attributes(op):
            body_of(op, attrs)(fn, *(Value(fn, f"%x{i}", d, 4) for i, d in enumerate(dtypes)))
    except NotLoweredError:
        return False
    return True


def test_the_protocol_is_known() -> None:
    """What it has and native code not is refused, as is what it has not."""
    s = RecordingScalars()
    names = [n for n, f in inspect.getmembers(Scalars, inspect.isfunction) if n[0] != "_"]
    missing = {*("bessel_i", "complex", "digamma", "erfinv", "gcd", "imag", "lcm", "lgamma")}
    missing |= {"polygamma", "real", "bessel_ie", "hurwitz", "incomplete_beta", "lower_gamma"}
    missing |= {"hurwitz_slope", "incomplete_beta_slope", "lower_gamma_bend"}
    missing |= {"lower_gamma_slope", "normal_quantile", "polygamma_of", "upper_gamma"}
    for name in [*names, "no_such_function"]:
        if name in missing or name not in names:
            with pytest.raises(NotLoweredError, match=f"no native code is generated for {name}"):
                getattr(s, name)
        else:
            assert callable(getattr(s, name))


def test_all_that_can_be_recorded_has_code() -> None:
    assert FUNCTIONS.keys() == NATIVE_FUNCTIONS | {"ldexp"}


def test_numbers_alone_have_no_type() -> None:
    with pytest.raises(NotLoweredError, match="exp of numbers alone"):
        RecordingScalars().exp(1.0)


def test_a_float_among_integers_is_refused() -> None:
    s = RecordingScalars()
    (x,) = s.operands([int32])
    with pytest.raises(NotLoweredError, match=r"0\.5 among int32"):
        x + 0.5
    with pytest.raises(NotLoweredError, match=r"1\.0 among int32"):
        s.max(x, 1.0)


@pytest.mark.parametrize("dtype", NOT_LOWERED)
def test_what_is_lowered(dtype: str) -> None:
    """Whoever adds a function takes its ops off the list."""
    kind = as_dtype(dtype)
    takes = {t for t, op in ELEMENTWISE.items() if input_dtypes(op, kind) is not None}
    assert {t for t in takes if not lowered(ELEMENTWISE[t], kind)} == NOT_LOWERED[dtype]


def values(dtype: DType, count: int) -> list[Array]:
    """`count` arrays: numbers of usual sizes, of any size, and all pairs of special ones."""
    rng = np.random.default_rng(0)
    if dtype == "bool":
        return list(np.array(np.meshgrid(*[[False, True]] * count)).reshape(count, -1))
    if dtype == "int32":
        info = np.iinfo(np.int32)
        integers = np.array([info.min, info.max, 0, 1, -1, 2, 31, 32, 7])
        usual = rng.integers(-9, 9, (count, 500))
        any_size = rng.integers(info.min, info.max, (count, 500))
        grid = np.array(np.meshgrid(*[integers] * count)).reshape(count, -1)
        return list(np.concatenate([usual, any_size, grid], 1).astype(np.int32))
    floats = np.array(
        [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 1e-40, -1e-40]
    )
    normal = rng.normal(0, 2, (count, 20000))
    near = rng.normal(0, 0.02, (count, 2000))
    wide = rng.normal(0, 1, (count, 2000)) * 10.0 ** rng.integers(-40, 38, (count, 2000))
    grid = np.array(np.meshgrid(*[floats] * count)).reshape(count, -1)
    with np.errstate(all="ignore"):
        return list(np.concatenate([normal, near, wide, grid], 1).astype(dtype.numpy))


def unit(x: Array, dtype: np.dtype[Any]) -> Array:
    """The unit in the last place of `x` in a type, as float64."""
    below = np.nextafter(np.finfo(dtype).max, dtype.type(0))
    size = np.where(np.isfinite(x), np.minimum(np.abs(x), below), 1)
    found: Array = np.spacing(size.astype(dtype)).astype(np.float64)
    return found


def is_close(found: Array, expected: Array, slack: Array) -> Array:
    rounded = expected.astype(found.dtype)
    near = np.abs(found.astype(np.float64) - expected) <= slack
    good: Array = near | (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    return good


CASES = [
    pytest.param(op, dtypes, id=f"{t}-{dtype}")
    for dtype, missing in NOT_LOWERED.items()
    for t, op in ELEMENTWISE.items()
    if t not in missing and (dtypes := input_dtypes(op, as_dtype(dtype))) is not None
]


@pytest.mark.slow
@pytest.mark.parametrize(("op", "dtypes"), CASES)
def test_native_is_the_reference(op: OpDef, dtypes: list[DType]) -> None:
    """Each result is that of the reference kernel, or that of the same computed in float64."""
    pools = {d: iter(values(d, dtypes.count(d))) for d in set(dtypes)}
    inputs = [next(pools[d]) for d in dtypes]
    size = max(x.size for x in inputs)
    inputs = [np.resize(x, size) for x in inputs]
    assert op.reference_kernel is not None
    for attrs in attributes(op):
        result = result_dtype(op, dtypes, attrs)
        found = elementwise(body_of(op, attrs), dtypes, result)(*inputs)
        with np.errstate(all="ignore"):
            expected = op.reference_kernel(np, *inputs, **attrs)
            assert found.dtype == expected.dtype
            if not result.is_floating:
                np.testing.assert_array_equal(found, expected)
                continue
            wide = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in inputs]
            exact = op.reference_kernel(np, *wide, **attrs)
            limit = LIMIT[result]
            slack = limit * unit(exact, found.dtype)
            if op.type in TERMS:
                terms = TERMS[op.type](*wide, **attrs)
                slack += limit * unit(terms, found.dtype)
            wrong = ~(is_close(found, exact, slack) | is_close(found, expected, slack))
        assert not wrong.any(), (
            f"{wrong.sum()} differ: {[x[wrong][:3] for x in inputs]} {attrs} give "
            f"{found[wrong][:3]}, not {expected[wrong][:3]} or {exact[wrong][:3]}"
        )
