from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from laminar.engine.errors import ShapeError
from laminar.engine.graph import Graph
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.nn.softmax import log_softmax, softmax

from ..derivatives import check_third
from ..harness import check_op

rng = np.random.default_rng(0)

CASES = [
    pytest.param((3, 5), -1, id="rows"),
    pytest.param((3, 5), 0, id="columns"),
    pytest.param((2, 3, 4), 1, id="middle"),
    pytest.param((2, 3, 4), (-1, -2), id="two-axes"),
    pytest.param((4,), 0, id="vector"),
    pytest.param((2, 1), -1, id="one-class"),
    pytest.param((0, 3), -1, id="no-rows"),
    pytest.param((3, 0), -1, id="no-classes"),
]
DTYPES = ["float32", "float16", "bfloat16"]


@pytest.mark.parametrize(("shape", "axis"), CASES)
@pytest.mark.parametrize(
    ("fn", "reference"),
    [
        pytest.param(softmax, special.softmax, id="softmax"),
        pytest.param(log_softmax, special.log_softmax, id="log-softmax"),
    ],
)
def test_op(fn: Any, reference: Any, shape: tuple[int, ...], axis: Any) -> None:
    def expected(x: Any, axis: Any) -> Any:
        return reference(x, axis) if x.size else x

    x = 3 * rng.normal(size=shape)
    check_op(fn, expected, [x], attrs={"axis": axis}, dtypes=DTYPES)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_large_inputs_do_not_overflow(dtype: str) -> None:
    x = convert_to_tensor(np.array([[6e4, 6e4 - 32, 0]], dtype))
    np.testing.assert_allclose(softmax(x).numpy(), [[1, np.exp(-32.0), 0]], atol=1e-7)
    np.testing.assert_allclose(log_softmax(x).numpy(), [[0, -32, -6e4]], atol=1e-7)


def test_a_class_of_minus_infinity_has_probability_zero() -> None:
    x = convert_to_tensor(np.array([0.0, -np.inf, 0.0]))
    assert softmax(x).numpy().tolist() == [0.5, 0, 0.5]
    assert log_softmax(x).numpy().tolist() == [-np.log(2), -np.inf, -np.log(2)]


def test_an_axis_that_does_not_exist() -> None:
    with pytest.raises(ShapeError) as caught:
        softmax(convert_to_tensor(np.zeros((2, 3))), 2)
    assert caught.value.message == "Softmax: axis 2 does not exist, the tensor has 2 axes"


def test_unknown_rank() -> None:
    with Graph().as_default():
        assert softmax(placeholder("float32")).shape.rank is None


@pytest.mark.parametrize(
    ("fn", "reference"), [(softmax, special.softmax), (log_softmax, special.log_softmax)]
)
def test_third_derivatives(fn: Any, reference: Any) -> None:
    check_third(fn, reference, [rng.normal(size=(2, 3))], {"axis": -1})
