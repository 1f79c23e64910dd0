from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, ShapeError
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math import compare as c

from ..harness import check_op

rng = np.random.default_rng(0)
SPECIAL = np.array([1.0, -2.0, 0.0, -0.0, math.inf, -math.inf, math.nan])
INTEGERS = rng.integers(-3, 4, size=(3, 4))
BOOLS = rng.uniform(size=(3, 4)) < 0.5
BITS = np.array([0b1100, 0b1010, 255, 0], np.uint8)

ORDER = [
    pytest.param(c.equal, np.equal, id="equal"),
    pytest.param(c.not_equal, np.not_equal, id="not-equal"),
    pytest.param(c.less, np.less, id="less"),
    pytest.param(c.less_equal, np.less_equal, id="less-equal"),
    pytest.param(c.greater, np.greater, id="greater"),
    pytest.param(c.greater_equal, np.greater_equal, id="greater-equal"),
]


@pytest.mark.parametrize(
    ("x", "y"),
    [
        pytest.param(SPECIAL, SPECIAL[:, None], id="floats"),
        pytest.param(INTEGERS, INTEGERS[:1], id="integers"),
        pytest.param(BOOLS, BOOLS[1], id="bools"),
        pytest.param(np.float64(1), np.float64(2), id="scalars"),
        pytest.param(INTEGERS[:0], INTEGERS[0], id="empty"),
    ],
)
@pytest.mark.parametrize(("fn", "reference"), ORDER)
def test_order(fn: Any, reference: Any, x: Any, y: Any) -> None:
    check_op(fn, reference, [x, y], grad=False, dtypes=["float32", "float16", "bfloat16"])


def test_strings_are_equal_or_not() -> None:
    x, y = convert_to_tensor(["a", "b"]), convert_to_tensor(["a", "c"])
    assert c.equal(x, y).numpy().tolist() == [True, False]
    assert c.not_equal(x, y).numpy().tolist() == [False, True]
    assert c.equal(x, y).numpy().dtype == np.bool_


@pytest.mark.parametrize(
    ("fn", "reference", "inputs"),
    [
        pytest.param(c.logical_and, np.logical_and, [BOOLS, BOOLS[0]], id="and"),
        pytest.param(c.logical_or, np.logical_or, [BOOLS, BOOLS[0]], id="or"),
        pytest.param(c.logical_xor, np.logical_xor, [BOOLS, BOOLS[0]], id="xor"),
        pytest.param(c.logical_not, np.logical_not, [BOOLS], id="not"),
        pytest.param(c.bitwise_and, np.bitwise_and, [INTEGERS, INTEGERS[0]], id="bit-and"),
        pytest.param(c.bitwise_or, np.bitwise_or, [BITS, BITS[:, None]], id="bit-or"),
        pytest.param(c.bitwise_xor, np.bitwise_xor, [BITS, BITS[:, None]], id="bit-xor"),
        pytest.param(c.bitwise_not, np.invert, [BITS], id="bit-not"),
        pytest.param(c.bitwise_not, np.invert, [INTEGERS], id="bit-not-signed"),
        pytest.param(c.bitwise_not, np.invert, [BOOLS], id="bit-not-bool"),
        pytest.param(c.left_shift, np.left_shift, [INTEGERS, np.abs(INTEGERS)], id="left"),
        pytest.param(c.right_shift, np.right_shift, [INTEGERS, np.abs(INTEGERS)], id="right"),
        pytest.param(c.is_nan, np.isnan, [SPECIAL], id="is-nan"),
        pytest.param(c.is_inf, np.isinf, [SPECIAL], id="is-inf"),
        pytest.param(c.is_finite, np.isfinite, [SPECIAL], id="is-finite"),
        pytest.param(c.is_finite, np.isfinite, [SPECIAL.astype(complex)], id="is-finite-complex"),
    ],
)
def test_logic_and_bits(fn: Any, reference: Any, inputs: Any) -> None:
    check_op(fn, reference, inputs, grad=False, dtypes=["float32", "float16", "bfloat16"])


X, Y = rng.normal(size=(2, 3, 4))


@pytest.mark.parametrize(
    ("condition", "x", "y"),
    [
        pytest.param(BOOLS, X, Y, id="same"),
        pytest.param(BOOLS[0], X, Y[:, :1], id="broadcast"),
        pytest.param(BOOLS[:, :1], X[0], Y[0, 0], id="all-broadcast"),
        pytest.param(np.True_, X, Y, id="scalar"),
        pytest.param(BOOLS[:0], X[0], Y[0], id="empty"),
    ],
)
def test_where(condition: Any, x: Any, y: Any) -> None:
    check_op(c.where, np.where, [condition, x, y], dtypes=["float32", "float16", "bfloat16"])


def test_where_keeps_a_chosen_gradient_clean() -> None:
    chosen = c.where(
        convert_to_tensor([True]), convert_to_tensor([1.0]), convert_to_tensor([math.nan])
    )
    assert chosen.numpy().tolist() == [1]
    strings = c.where(
        convert_to_tensor([True, False]), convert_to_tensor("a"), convert_to_tensor("b")
    )
    assert strings.numpy().tolist() == [b"a", b"b"]


def test_errors() -> None:
    with pytest.raises(DTypeError) as caught:
        c.less(convert_to_tensor(1j), convert_to_tensor(1j))
    assert caught.value.message.startswith("Less: x must be one of ")
    with pytest.raises(DTypeError) as types:
        c.where(convert_to_tensor([True]), convert_to_tensor([1.0]), convert_to_tensor([1]))
    assert types.value.message == (
        "Where: the inputs must have one dtype, got float32 (x) and int32 (y)"
    )
    with pytest.raises(DTypeError) as condition:
        c.where(convert_to_tensor([1]), convert_to_tensor([1.0]), convert_to_tensor([1.0]))
    assert condition.value.message == "Where: condition must be bool, got int32[1]"
    with pytest.raises(ShapeError):
        c.where(
            convert_to_tensor([True, False]), convert_to_tensor([1.0] * 3), convert_to_tensor(0.0)
        )
