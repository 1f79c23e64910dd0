"""Scalar expressions as data: recorded, shown, compared, and evaluated by different targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.compiler.codegen.function import IRFunction, Module, Value
from laminar.engine.compiler.codegen.scalars import write
from laminar.engine.compiler.ir.expression import Expression
from laminar.engine.compiler.ir.not_lowered import NotLoweredError
from laminar.engine.compiler.ir.recording_scalars import record, same
from laminar.engine.graph import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int32,
    uint8,
    uint32,
)
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.core.scalars import ArrayScalars

from ..modules import Array, elementwise


class NumPyScalars(ArrayScalars):
    """Evaluates recorded expressions on arrays."""

    def __init__(self) -> None:
        super().__init__(np)
        self.floor_divide, self.power = np.floor_divide, np.power

    def cast(self, x: Array, dtype: DType) -> Array:
        return x.astype(dtype.numpy)

    def bits(self, x: Array, dtype: DType) -> Array:
        return x.view(dtype.numpy)

    def constant(self, value: float, dtype: DType) -> Any:
        return dtype.numpy.type(value)


def lines_of(expression: Expression) -> list[str]:
    """The instructions of the code."""
    fn = IRFunction(Module(), "f", [])
    write(fn, expression, [Value(fn, f"%x{i}", d, 8) for i, d in enumerate(expression.dtypes)])
    return fn.lines[1:]


SHOWN: list[tuple[Callable[..., Any], list[DType], DType, str]] = [
    (lambda s, x: x, [int32], int32, "x0"),
    (lambda s, x, y: s.max(x + y, 0), [float32] * 2, float32, "max(x0 + x1, 0.0)"),
    (lambda s, x, y, z: (x - y) - (x - z), [int32] * 3, int32, "x0 - x1 - (x0 - x2)"),
    (lambda s, x, y: -(x * y) / (1 - x), [float64] * 2, float64, "-(x0 * x1) / (1.0 - x0)"),
    (lambda s, x, y: ~(x < y) | (x == 0), [int32] * 2, bool_, "~(x0 < x1) | (x0 == 0)"),
    (lambda s, x: s.where(x > 0, x, 2 * x), [int32], int32, "where(x0 > 0, x0, 2 * x0)"),
    (lambda s, x: x // 2 + x % 3, [int32], int32, "floor_divide(x0, 2) + floor_mod(x0, 3)"),
    (lambda s, x: s.cast(x, float32) * 0.5, [int32], float32, "float32(x0) * 0.5"),
    (lambda s, x: s.bits(x, int32) & 7, [float32], int32, "bits(x0, int32) & 7"),
    (lambda s, x: x + x, [bfloat16], bfloat16, "bfloat16(a + a) with a = float32(x0)"),
    (lambda s, x: 3, [float32], float32, "constant(3.0, float32)"),
]


@pytest.mark.parametrize(("scalar", "dtypes", "result", "text"), SHOWN)
def test_text(scalar: Callable[..., Any], dtypes: list[DType], result: DType, text: str) -> None:
    found = record(scalar, dtypes, result)
    assert str(found) == text
    assert (found.dtypes, found.dtype) == (tuple(dtypes), result)


def test_what_is_used_twice_is_computed_and_shown_once() -> None:
    def doubled(s: Any, x: Any) -> Any:
        for _ in range(20):
            x = x + x
        return x

    found = record(doubled, [float32], float32)
    assert len(found.applications) == 20
    assert len(str(found)) < 300
    assert len(lines_of(found)) == 20


def test_instructions_keep_the_order_in_which_they_were_written() -> None:
    def expression(s: Any, x: Any, y: Any) -> Any:
        later, first = x * y, x + y
        return first - later

    assert [line.split()[2] for line in lines_of(record(expression, [float32] * 2, float32))] == [
        *("fmul", "fadd", "fsub")
    ]


def test_what_the_result_does_not_need_is_left_out() -> None:
    def one_of_two(s: Any, x: Any) -> Any:
        sine, _ = s.sin(x), s.cos(x * 2)
        return sine + 1

    found = record(one_of_two, [float32], float32)
    assert str(found) == "sin(x0) + 1.0"
    assert found == record(lambda s, x: s.sin(x) + 1, [float32], float32)


def test_equal_content_is_equal() -> None:
    def made(number: Any, dtype: DType = float32) -> Expression:
        return record(lambda s, x: s.max(x, number), [dtype], dtype)

    assert made(0.0) == made(0) == made(np.float32(0))
    assert len({made(0.0), made(0), made(-0.0), made(0, int32), made(0, float64)}) == 4
    assert made(float("nan")) == made(float("nan"))
    assert same(float32) != made(0.0)


REFUSED: list[tuple[Callable[..., Any], list[DType], str]] = [
    (lambda s, x: x + 0.5, [int32], "the constant 0.5 among int32"),
    (lambda s, x, y: x + y, [int32, float32], r"\+ of int32 and float32"),
    (lambda s, x: x / 2, [int32], "/ of int32"),
    (lambda s, x: x**2, [int32], "power of int32"),
    (lambda s, x: s.exp(x), [int32], "exp of int32"),
    (lambda s, x: s.lgamma(x), [float32], "no native code is generated for lgamma"),
    (lambda s, x: s.where(x > 0, 1, 2), [float32], "whose type is open"),
    (lambda s, x: s.where(x < -1, x, 0), [uint8], "a comparison of uint8 with -1"),
    (lambda s, x: s.cast(x, uint32), [float32], "a float as uint32"),
    (lambda s, x: s.cast(x, DType("complex64")), [float32], "complex64"),
    (lambda s, x: x == 0, [float32], "an expression gives bool, not float32"),
]


@pytest.mark.parametrize(("scalar", "dtypes", "message"), REFUSED)
def test_what_has_no_native_form_is_refused_while_recording(
    scalar: Callable[..., Any], dtypes: list[DType], message: str
) -> None:
    with pytest.raises(NotLoweredError, match=message):
        record(scalar, dtypes, dtypes[0])


EVALUATED = [
    *("Add", "Sub", "Mul", "Div", "Maximum", "ReluGrad", "HardSilu", "Softsign", "SoftShrink"),
    *("DivNoNan", "LeakyRelu", "Heaviside", "ClipByValue", "SparsePlus", "FloorDiv"),
]


@pytest.mark.parametrize("dtype", [float32, float64, float16])
@pytest.mark.parametrize("type", EVALUATED)
def test_native_code_and_arrays_agree(type: str, dtype: DType) -> None:
    """One recorded expression on two targets; of halves each rounds once."""
    op = lookup(type)
    assert op.scalar is not None
    count = len(op.input_names)
    expression = record(op.scalar, [dtype] * count, dtype)
    draw = np.random.default_rng(0)
    xs = [np.ascontiguousarray(draw.normal(size=83).astype(dtype.numpy)) for _ in range(count)]
    native = elementwise(lambda fn, *x: write(fn, expression, x), [dtype] * count, dtype)(*xs)
    arrays = expression.evaluate(NumPyScalars(), xs)
    np.testing.assert_array_equal(native, arrays)


@pytest.mark.parametrize("dtype", [float32, int32])
def test_whole_quotients(dtype: DType) -> None:
    a = np.array([7, -7, 8, -9, 5], dtype.numpy)
    b = np.array([2, 2, -3, -4, 0], dtype.numpy)
    for scalar, arrays in (
        (lambda s, x, y: x // y, np.floor_divide),
        (lambda s, x, y: x % y, np.mod),
    ):
        expression = record(scalar, [dtype] * 2, dtype)
        native = elementwise(lambda fn, *x, e=expression: write(fn, e, x), [dtype] * 2, dtype)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(native(a, b), arrays(a, b))


def test_an_expression_goes_into_another_one() -> None:
    inner = record(lambda s, x, y: s.max(x, y) * x, [float32] * 2, float32)
    outer = record(
        lambda s, x, y: inner.evaluate(s, [x + 1, s.cast(y, float32)]), [float32, int32], float32
    )
    assert str(outer) == "max(a, float32(x1)) * a with a = x0 + 1.0"
