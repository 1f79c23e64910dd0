"""Pad in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, TensorShape
from laminar.engine.ops.array.padding import pad
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.core.convert import convert_to_tensor

from ..harness import check_op

rng = np.random.default_rng(9)

CASES = [
    pytest.param((3, 4), [(1, 2), (0, 3)], id="two-axes"),
    pytest.param((3, 4), [(0, 0), (2, 0)], id="one-end"),
    pytest.param((3,), [(0, 0)], id="nothing"),
    pytest.param((3, 2), 1, id="one-number"),
    pytest.param((3, 2), (1, 2), id="one-pair"),
    pytest.param((3, 2), [(2, 1)], id="one-pair-in-a-list"),
    pytest.param((3,), [(5, 7)], id="more-than-the-axis"),
    pytest.param((1, 2), [(2, 2), (1, 1)], id="axis-of-one"),
]


@pytest.mark.parametrize("mode", ["constant", "reflect", "symmetric", "edge"])
@pytest.mark.parametrize(("shape", "paddings"), CASES)
def test_pad(shape: tuple[int, ...], paddings: Any, mode: Any) -> None:
    check_op(
        lambda x: pad(x, paddings, mode),
        lambda x: np.pad(x, paddings, mode),
        [rng.normal(size=shape)],
        dtypes=["float16", "bfloat16", "complex64", "int8", "bool"],
    )


def test_pad_with_a_complex_value() -> None:
    x = np.array([1, 1j], np.complex64)
    found = pad(constant(x), [(1, 2)], value=2 - 3j)
    np.testing.assert_array_equal(found.numpy(), np.pad(x, [(1, 2)], constant_values=2 - 3j))


def test_pad_with_a_value() -> None:
    for value in (2.5, -np.inf):
        check_op(
            lambda x, value=value: pad(x, [(1, 0), (2, 1)], value=value),
            lambda x, value=value: np.pad(x, [(1, 0), (2, 1)], constant_values=value),
            [rng.normal(size=(2, 3))],
            grad=np.isfinite(value),
            dtypes=["float32"],
        )


def test_pad_of_an_empty_axis() -> None:
    check_op(lambda x: pad(x, 2), lambda x: np.pad(x, 2), [np.zeros((0, 1))])
    with pytest.raises(ShapeError, match=r"an empty axis of float64\[0, 1\] has nothing"):
        pad(constant(np.zeros((0, 1))), 2, "edge")


def test_a_scalar_has_no_axes_to_pad() -> None:
    assert pad(constant(1.0), []).shape == ()


def test_static_shapes() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 4])
        assert pad(x, [(1, 2), (3, 0)]).shape == TensorShape([None, 7])
        y = placeholder("float32", None)
        assert pad(y, [(1, 2), (3, 0)]).shape == TensorShape([None, None])


@pytest.mark.parametrize(
    ("paddings", "mode", "error", "message"),
    [
        ([(1, 1)] * 3, "constant", ShapeError, r"3 pairs of paddings for float64\[2, 3\]"),
        ([(-1, 0), (0, 0)], "constant", InvalidArgumentError, "cannot be negative"),
        ([(1, 0), (0, 0)], "wrap", InvalidArgumentError, "mode must be one of .* got 'wrap'"),
    ],
)
def test_errors(paddings: Any, mode: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pad(constant(np.zeros((2, 3))), paddings, mode)


@pytest.mark.parametrize("value", [0.0, -0.0])
def test_the_sign_of_zero_is_kept(value: float) -> None:
    y = pad(convert_to_tensor(np.ones(2, "float32")), [(1, 2)], value=value).numpy()
    np.testing.assert_array_equal(y, [0, 1, 1, 0, 0])
    assert (np.signbit(y) == ((y == 0) & np.signbit(value))).all()
