from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, ShapeError
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import Graph
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math import complex_numbers as c
from laminar.engine.ops.math.elementary import exp

from ..harness import check_op

rng = np.random.default_rng(0)
A, B = rng.normal(size=(2, 3, 4))
Z = A + 1j * B

# Each is a real function of the two parts, so differences can check both gradients.
PARTS = [
    pytest.param(lambda a, b: c.real(c.complex_of(a, b)), lambda a, b: a + 0 * b, id="real"),
    pytest.param(lambda a, b: c.imag(c.complex_of(a, b)), lambda a, b: b + 0 * a, id="imag"),
    pytest.param(lambda a, b: c.magnitude(c.complex_of(a, b)), np.hypot, id="abs"),
    pytest.param(
        lambda a, b: c.angle(c.complex_of(a, b)), lambda a, b: np.arctan2(b, a), id="angle"
    ),
    pytest.param(
        lambda a, b: c.view_as_real(c.complex_of(a, b)),
        lambda a, b: np.stack(np.broadcast_arrays(a, b), -1),
        id="view-as-real",
    ),
    pytest.param(
        lambda a, b: c.magnitude(exp(c.complex_of(a, b) * c.complex_of(b, a))),
        lambda a, b: np.abs(np.exp((a + 1j * b) * (b + 1j * a))),
        id="chain",
    ),
]


@pytest.mark.parametrize(
    ("a", "b"),
    [(A, B), (A, B[0]), (A[0, 0], B[0, 0]), (A[:0], B[:0])],
    ids=["matrix", "broadcast", "scalar", "empty"],
)
@pytest.mark.parametrize(("fn", "reference"), PARTS)
def test_parts(fn: Any, reference: Any, a: Any, b: Any) -> None:
    check_op(fn, reference, [a, b], dtypes=["float32"])


def test_view_as_complex() -> None:
    def fn(x: Any) -> Any:
        return c.view_as_real(c.view_as_complex(x) * c.view_as_complex(x))

    def reference(x: Any) -> Any:
        z = (x[..., 0] + 1j * x[..., 1]) ** 2
        return np.stack([z.real, z.imag], -1)

    check_op(fn, reference, [rng.normal(size=(3, 2))], dtypes=["float32"])
    check_op(fn, reference, [np.zeros((0, 2))])


def test_dtypes() -> None:
    for part, whole in (("float32", "complex64"), ("float64", "complex128")):
        z = c.complex_of(convert_to_tensor(1.0, part), convert_to_tensor(2.0, part))
        assert z.dtype == whole
        for fn in (c.real, c.imag, c.magnitude, c.angle, c.view_as_real):
            assert fn(z).dtype == fn(z).numpy().dtype.name == part


def test_real_numbers_pass() -> None:
    x = convert_to_tensor([-2.0, 3.0])
    assert c.real(x) is x
    assert c.imag(x).numpy().tolist() == [0, 0]
    assert c.magnitude(x).numpy().tolist() == [2, 3]
    np.testing.assert_allclose(c.angle(x).numpy(), [math.pi, 0], rtol=1e-6)
    check_op(c.angle, np.angle, [A], dtypes=["float32", "float16"])


def test_slope_of_the_size_at_zero() -> None:
    z = convert_to_tensor(np.zeros(2, np.complex128))
    with GradientTape() as tape:
        tape.watch(z)
        y = c.magnitude(z)
    assert tape.gradient(y, z).numpy().tolist() == [0, 0]


def test_errors() -> None:
    with pytest.raises(ShapeError) as caught:
        c.view_as_complex(convert_to_tensor(np.zeros((2, 3))))
    assert caught.value.message == (
        "ViewAsComplex: the last axis holds the two parts, so its size is 2, got float64[2, 3]"
    )
    with pytest.raises(DTypeError):
        c.complex_of(convert_to_tensor(1.0, "float16"), convert_to_tensor(1.0, "float16"))
    with Graph().as_default():
        assert c.view_as_real(placeholder("complex64")).shape.rank is None
        assert c.view_as_complex(placeholder("float32")).shape.rank is None
        assert c.view_as_complex(placeholder("float32", [3, None])).shape == (3,)
