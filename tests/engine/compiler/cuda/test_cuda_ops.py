"""Ops as CUDA C, run on the host and compared with the reference: lowerings and expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import ops
from laminar.engine.compiler.lower.rules import LOWERINGS
from laminar.engine.graph import Graph, as_dtype
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.registry import lookup

from ..test_every_expression import EXPRESSIONS, numbers
from .batch import Array, Case, build, check
from .shim import needs_compiler

pytestmark = needs_compiler
rng = np.random.default_rng(0)
QUICK = ["float32", "int32", "bool"]
ALL = ["float32", "float64", "float16", "bfloat16", "bool", "int8", "int32", "int64", "uint8"]


def f32(*shape: int) -> Array:
    return np.asarray(rng.normal(size=shape).astype(np.float32))


def i32(high: int, *shape: int) -> Array:
    return np.asarray(rng.integers(0, high, shape).astype(np.int32))


def op(type: str, **attrs: Any) -> Callable[..., Any]:
    return lambda *xs: lookup(type).applied(xs, attrs)


STATE = np.array([1, 2, 3, 4], np.uint32)
IMAGES = {"strides": (2, 1), "padding": ((1, 0), (0, 1)), "dilations": (1, 2), "groups": 2}
WINDOW = {"window": (2, 3), "strides": (2, 1), "padding": "valid"}
# For each op, calls of it: the function and its inputs.
CASES: dict[str, tuple[Callable[..., Any], list[Array]]] = {
    "AddN": (op("AddN"), [f32(3, 4), f32(3, 4), f32(3, 4)]),
    "All": (op("All", axis=(0,)), [i32(2, 5, 6).astype(bool)]),
    "Any": (op("Any", axis=(1,)), [i32(2, 5, 6).astype(bool)]),
    "ArgMax": (op("ArgMax", axis=1), [f32(5, 7)]),
    "ArgMin": (op("ArgMin", axis=0), [f32(5, 7)]),
    "ArgSort": (op("ArgSort", axis=1, descending=True, stable=True), [i32(4, 5, 7)]),
    "AvgPool": (op("AvgPool", **WINDOW), [f32(2, 6, 5, 3)]),
    "AvgPoolGrad": (op("AvgPoolGrad", input_dims=(6, 5), **WINDOW), [f32(2, 3, 3, 3)]),
    "BandPart": (op("BandPart", low=1, high=2), [f32(5, 6)]),
    "BroadcastTo": (op("BroadcastTo", shape=(4, 3)), [f32(1, 3)]),
    "Cast": (op("Cast", dtype="int32"), [f32(4, 3) * 5]),
    "Concat": (op("Concat", axis=1), [f32(4, 3), f32(4, 2)]),
    "Conv": (op("Conv", **IMAGES), [f32(2, 7, 6, 4), f32(3, 2, 2, 6)]),
    "ConvInputGrad": (
        op("ConvInputGrad", input_dims=(7, 6), **IMAGES),
        [f32(2, 3, 5, 6), f32(3, 2, 2, 6)],
    ),
    "ConvKernelGrad": (
        op("ConvKernelGrad", window=(3, 2), **IMAGES),
        [f32(2, 7, 6, 4), f32(2, 3, 5, 6)],
    ),
    "CountNonzero": (op("CountNonzero", axis=(1,)), [i32(3, 5, 6)]),
    "Cumprod": (op("Cumprod", axis=1), [f32(5, 6)]),
    "Cumsum": (op("Cumsum", axis=0, reverse=True), [i32(9, 5, 6)]),
    "EuclideanNorm": (op("EuclideanNorm", axis=(1,)), [f32(5, 6)]),
    "ExpandDims": (op("ExpandDims", axis=(1,)), [f32(5, 6)]),
    "FirstOccurrence": (op("FirstOccurrence"), [i32(9, 30)]),
    "Gather": (op("Gather", axis=1, batch_dims=0), [f32(4, 9, 3), i32(9, 5)]),
    "GatherGrad": (
        op("GatherGrad", shape=(9, 3), axis=0, batch_dims=0),
        [f32(40, 3), i32(9, 40)],
    ),
    "GatherGrad-wide": (
        op("GatherGrad", shape=(5, 300), axis=0, batch_dims=0),
        [f32(40, 300), i32(5, 40)],
    ),
    "Identity": (op("Identity"), [f32(4)]),
    "InTopK": (op("InTopK", k=3), [i32(8, 6), f32(6, 8)]),
    "LinearRecurrence": (op("LinearRecurrence", axis=1), [f32(5, 6), f32(5, 6)]),
    "LogSoftmax": (op("LogSoftmax", axes=(1,)), [f32(5, 6)]),
    "LogSumExp": (op("LogSumExp", axis=(1,)), [f32(5, 6)]),
    "MatMul": (op("MatMul"), [f32(3, 70, 65), f32(3, 65, 67)]),
    "MatMul-transposed": (op("MatMul", transpose_a=True, transpose_b=True), [f32(9, 5), f32(4, 9)]),
    "MatMul-integers": (op("MatMul"), [i32(9, 4, 5), i32(9, 5, 6)]),
    "Max": (op("Max", axis=(0,)), [f32(5, 6)]),
    "MaxPool": (op("MaxPool", **WINDOW), [f32(2, 6, 5, 3)]),
    "Mean": (op("Mean", axis=(0, 1)), [f32(5, 6)]),
    "Min": (op("Min", axis=(1,), keepdims=True), [f32(5, 6)]),
    "Normalize": (op("Normalize", axes=(1,), epsilon=1e-3), [f32(5, 6), f32(5, 1), f32(5, 1)]),
    "OneHot": (op("OneHot", depth=7, axis=-1, dtype="float32"), [i32(7, 5)]),
    "Pad": (op("Pad", paddings=((1, 2), (0, 1)), mode="reflect", value=0.0), [f32(5, 6)]),
    "PadGrad": (op("PadGrad", paddings=((1, 2), (0, 1)), mode="reflect"), [f32(8, 7)]),
    "Prod": (op("Prod", axis=(1,)), [f32(5, 6)]),
    "PutAlongAxis": (
        op("PutAlongAxis", axis=1, mode="add"),
        [f32(4, 9), i32(9, 4, 20), f32(4, 20)],
    ),
    "RMSNorm": (op("RMSNorm", axes=(1,), epsilon=1e-3), [f32(5, 6), f32(1, 6)]),
    "RandomAdvance": (op("RandomAdvance", steps=5), [STATE]),
    "RandomInt": (op("RandomInt", shape=(5, 7), low=-3, high=90, dtype="int32"), [STATE]),
    "RandomNormal": (op("RandomNormal", shape=(5, 7), dtype="float32"), [STATE]),
    "RandomUniform": (op("RandomUniform", shape=(5, 7), dtype="float32"), [STATE]),
    "RandomUniform-float64": (op("RandomUniform", shape=(5, 7), dtype="float64"), [STATE]),
    "Repeat": (op("Repeat", repeats=3, axis=1), [f32(5, 6)]),
    "RepeatGrad": (op("RepeatGrad", repeats=3, axis=1, shape=(5, 6)), [f32(5, 18)]),
    "ScatterNd": (op("ScatterNd", shape=(6, 3), num_indices=1), [f32(9, 3), i32(6, 9)]),
    "SegmentSum": (op("SegmentSum", num_segments=4), [f32(9, 3), i32(4, 9)]),
    "Softmax": (op("Softmax", axes=(1,)), [f32(5, 6)]),
    "Sort": (op("Sort", axis=0, descending=False), [f32(9, 6)]),
    "Sum": (op("Sum", axis=(0,)), [f32(5, 6)]),
    "TensorScatter": (op("TensorScatter", mode="max"), [f32(6, 3), f32(9, 3), i32(6, 9)]),
    "TopK": (op("TopK", k=4, sorted=True), [i32(9, 6, 40).astype(np.float32)]),
    "Transpose": (op("Transpose", axes=(1, 0)), [f32(40, 33)]),
}


def test_cases_are_of_lowerings() -> None:
    known = {name.split("-")[0] for name in CASES}
    assert known <= LOWERINGS.keys()
    assert len(known) > 0.4 * len(LOWERINGS)


def test_lowered_ops_agree_with_the_reference() -> None:
    cases = list[Case]()
    for name, (fn, arrays) in CASES.items():
        for dynamic in (False, True):
            case = build(f"{name} {dynamic=}", fn, arrays, dynamic=dynamic)
            assert case is not None or dynamic, f"{name} has no CUDA program"
            cases += [case] if case is not None else []
    check(cases)


def test_random_bits_are_those_of_the_cpu() -> None:
    cases = [build(name, *CASES[name]) for name in ("RandomUniform", "RandomInt")]
    check([case._replace(rtol=0.0) for case in cases if case is not None])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_contractions_of_other_types(dtype: str) -> None:
    kind = as_dtype(dtype).numpy
    tolerance = {"float16": 4e-3, "bfloat16": 3e-2, "float64": 1e-10}[dtype]
    cases = []
    for name in (
        "MatMul",
        "Conv",
        "ConvInputGrad",
        "ConvKernelGrad",
        "Softmax",
        "Sum",
        "Transpose",
    ):
        fn, arrays = CASES[name]
        cases.append(build(name, fn, [x.astype(kind) for x in arrays], rtol=tolerance))
    assert all(cases)
    check([case for case in cases if case is not None])


def expressions(dtypes: list[str], shape: tuple[int, ...]) -> list[Case]:
    cases = []
    for type in EXPRESSIONS:
        definition = lookup(type)
        for name in dtypes:
            dtype = as_dtype(name)
            if type == "Pow" and dtype.is_integer:
                continue  # NumPy refuses some powers
            arrays = [numbers(dtype, shape, i) for i in range(len(definition.input_names))]
            with Graph().as_default():
                try:
                    definition(*(placeholder(dtype, shape) for _ in arrays))
                except TypeError:
                    continue  # there is none for the type
            with np.errstate(all="ignore"):
                rtol = {"float32": 3e-5}.get(name)
                case = build(f"{type} of {name}", definition, arrays, in_float64=False, rtol=rtol)
            cases += [case] if case is not None else []
    return cases


def test_expressions_agree_with_the_reference() -> None:
    cases = expressions(QUICK, (3, 37))
    assert len(cases) > 120
    check(cases)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ALL)
def test_expressions_of_every_type(dtype: str) -> None:
    check(expressions([dtype], (5, 16)))


def test_ops_of_the_face_are_programs_too() -> None:
    case = build("norm", lambda x: ops.norm(x, axis=1), [f32(4, 5)])
    assert case is not None
    check([case])
