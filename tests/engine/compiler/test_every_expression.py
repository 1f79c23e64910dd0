"""Every op that is a scalar expression as native code: any dtype it takes, any shape and layout."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import laminar.engine.ops  # noqa: F401  # fills the table
from laminar.engine.errors import DTypeError
from laminar.engine.graph import DType, EagerTensor, Graph, Tensor, as_dtype
from laminar.engine.ops.array.axes import transpose
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.op_def import OpDef
from laminar.engine.ops.core.registry import all_ops, lookup

from ...sampling import examples
from ..ops.native import run_native

Array = np.ndarray[Any, Any]

TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-12}
DTYPES = [
    *("float32", "float64", "float16", "bfloat16", "bool", "int8", "int32", "int64"),
    *("uint8", "uint64"),
]
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0])
SIZES = [1, 2, 3, 5, 16, 17, 33, 70]


def takes_no_attributes(op: OpDef) -> bool:
    """Whether it can be applied to inputs alone."""
    return all(
        p.default is not p.empty
        for p in inspect.signature(op.rule).parameters.values()
        if p.kind is p.KEYWORD_ONLY
    )


EXPRESSIONS = sorted(t for t, op in all_ops().items() if op.scalar and takes_no_attributes(op))


def numbers(dtype: DType, shape: tuple[int, ...], seed: int) -> Array:
    """Numbers of a usual size, and what is special among them."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape).astype(bool))
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        return np.asarray(
            rng.integers(max(info.min, -9), 10, shape, endpoint=True).astype(dtype.numpy)
        )
    x = np.asarray(rng.normal(0, 2, shape))
    some = rng.random(shape) < 0.2
    x = np.where(some, rng.choice(SPECIAL, shape), x)
    return np.asarray(x.astype(dtype.numpy))


# How an input of a shape is given: a shape to feed, and what makes the input of it.
BufferAssignment = tuple[Callable[[tuple[int, ...]], tuple[int, ...]], Callable[[Tensor], Tensor]]
LAYOUTS: list[BufferAssignment] = [
    (lambda shape: shape, lambda x: x),
    (lambda shape: shape[::-1], transpose),
    (
        lambda shape: tuple(2 * n for n in shape),
        lambda x: x[tuple([slice(None, None, 2)] * len(x.shape))],
    ),
    (lambda shape: shape, lambda x: x[tuple([slice(None, None, -1)] * len(x.shape))]),
    (lambda shape: (*shape[:-1], 1), lambda x: x),  # the others have more: it is repeated
    (lambda shape: shape[1:], lambda x: x),
]


def compare(
    type: str, dtype: DType, shape: tuple[int, ...], layouts: list[int], dynamic: bool
) -> bool:
    """Compare native code with the reference kernel; false where the op has none for the dtype."""
    if type == "Pow" and dtype.is_integer:  # NumPy refuses some powers
        return False
    op = lookup(type)
    count = len(op.input_names)
    graph = Graph()
    with graph.as_default():
        arrays, given, inputs = [], [], []
        for i in range(count):
            # One has the whole shape.
            feed, make = LAYOUTS[layouts[i] % (len(LAYOUTS) if i else 4)]
            array = numbers(dtype, feed(shape), i)
            x = placeholder(dtype, [None] * array.ndim if dynamic else array.shape)
            arrays.append(array)
            given.append(x)
            inputs.append(make(x))
        try:
            y = op(*inputs)
        except DTypeError:
            return False
        found = run_native([y], given, arrays)
    if found is None:
        return False
    views = [
        LAYOUTS[layouts[i] % (len(LAYOUTS) if i else 4)][1](EagerTensor(a))
        for i, a in enumerate(arrays)
    ]
    expected = op(*views).numpy()
    (value,) = found
    assert value.dtype == expected.dtype
    assert value.shape == expected.shape
    rtol = TOLERANCE.get(str(as_dtype(value.dtype)), 0)
    if rtol:
        value, expected = value.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(value, expected, rtol=rtol, atol=rtol, err_msg=f"{type} of {dtype}")
    return True


@pytest.mark.slow
@settings(examples(2), derandomize=True)
@given(
    st.lists(st.sampled_from(SIZES), min_size=1, max_size=3).map(tuple),
    st.lists(st.integers(0, 5), min_size=4, max_size=4),
    st.booleans(),
)
@example((5,), [0, 0, 0, 0], False)
@pytest.mark.parametrize("type", EXPRESSIONS)
def test_an_expression(
    type: str, shape: tuple[int, ...], layouts: list[int], dynamic: bool
) -> None:
    for name in DTYPES:
        compare(type, as_dtype(name), shape, layouts, dynamic)


def test_most_have_native_code() -> None:
    native = [
        t
        for t in EXPRESSIONS
        if any(
            compare(t, as_dtype(d), (5, 17), [0] * 4, False) for d in ("float32", "int32", "bool")
        )
    ]
    assert len(native) > 100
