"""outer, inner, tensordot, dot, vdot, kron, cross."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, TensorShape
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.linalg.products import cross, dot, inner, kron, outer, tensordot, vdot

from ..harness import check_op

rng = np.random.default_rng(20)

CASES = [
    pytest.param(outer, np.outer, (3,), (2,), {}, id="outer"),
    pytest.param(outer, np.outer, (3, 2), (2,), {}, id="outer-matrix"),
    pytest.param(outer, np.outer, (), (2,), {}, id="outer-scalar"),
    pytest.param(inner, np.inner, (3,), (3,), {}, id="inner"),
    pytest.param(inner, np.inner, (2, 3), (4, 3), {}, id="inner-matrices"),
    pytest.param(inner, np.inner, (), (4, 3), {}, id="inner-scalar"),
    pytest.param(tensordot, np.tensordot, (2, 3, 4), (3, 4, 5), {}, id="tensordot"),
    pytest.param(tensordot, np.tensordot, (2, 3), (4, 5), {"axes": 0}, id="tensordot-0"),
    pytest.param(tensordot, np.tensordot, (2, 3), (3, 5), {"axes": 1}, id="tensordot-1"),
    pytest.param(
        tensordot, np.tensordot, (2, 3, 4), (4, 2, 5), {"axes": ([0, 2], [1, 0])}, id="lists"
    ),
    pytest.param(tensordot, np.tensordot, (2, 3), (4, 2), {"axes": (0, -1)}, id="tensordot-pair"),
    pytest.param(tensordot, np.tensordot, (0, 3), (3, 2), {"axes": 1}, id="tensordot-empty"),
    pytest.param(dot, np.dot, (3,), (3,), {}, id="dot"),
    pytest.param(dot, np.dot, (2, 3), (3, 4), {}, id="dot-matrices"),
    pytest.param(dot, np.dot, (2, 3), (3,), {}, id="dot-matrix-vector"),
    pytest.param(dot, np.dot, (2, 2, 3), (3,), {}, id="dot-stack-vector"),
    pytest.param(dot, np.dot, (2, 3), (4, 3, 2), {}, id="dot-stacks"),
    pytest.param(dot, np.dot, (), (2, 3), {}, id="dot-scalar"),
    pytest.param(vdot, np.vdot, (3,), (3,), {}, id="vdot"),
    pytest.param(vdot, np.vdot, (2, 3), (3, 2), {}, id="vdot-matrices"),
    pytest.param(kron, np.kron, (3,), (2,), {}, id="kron"),
    pytest.param(kron, np.kron, (2, 3), (3, 2), {}, id="kron-matrices"),
    pytest.param(kron, np.kron, (2,), (3, 2), {}, id="kron-mixed"),
    pytest.param(kron, np.kron, (3, 2, 1), (2, 2), {}, id="kron-three-axes"),
    pytest.param(cross, np.cross, (3,), (3,), {}, id="cross"),
    pytest.param(cross, np.cross, (4, 1, 3), (2, 3), {}, id="cross-broadcast"),
    pytest.param(
        cross, np.cross, (3, 4), (4, 3), {"axisa": 0, "axisb": 1, "axisc": 0}, id="cross-axes"
    ),
    pytest.param(cross, np.cross, (0, 3), (0, 3), {}, id="cross-empty"),
]


@pytest.mark.parametrize(("fn", "reference", "a", "b", "attrs"), CASES)
def test_op(
    fn: Callable[..., Any], reference: Callable[..., Any], a: Any, b: Any, attrs: Any
) -> None:
    check_op(
        fn,
        reference,
        [rng.normal(size=a), rng.normal(size=b)],
        attrs=attrs,
        dtypes=["float16", "float32", "complex64", "int32"],
    )


@pytest.mark.parametrize(("a", "b"), [((2,), (2,)), ((4, 2), (3,)), ((3,), (2, 2))])
def test_cross_of_plane_vectors(a: Any, b: Any) -> None:
    def reference(a: Any, b: Any) -> Any:
        def full(x: Any) -> Any:
            return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, 3 - x.shape[-1])])

        c = np.cross(full(a), full(b))
        return c[..., 2] if a.shape[-1] == b.shape[-1] == 2 else c

    check_op(cross, reference, [rng.normal(size=a), rng.normal(size=b)], dynamic=False)


def test_vdot_of_complex_numbers() -> None:
    a, b = (rng.normal(size=3) + 1j * rng.normal(size=3) for _ in range(2))
    np.testing.assert_allclose(vdot(constant(a), constant(b)).numpy(), np.vdot(a, b))


def test_static_shapes() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 3])
        assert kron(x, x).shape == TensorShape([None, 9])
        assert tensordot(x, x, ([1], [1])).shape == TensorShape([None, None])
        assert outer(x, x).shape == TensorShape([None, None])


ERRORS: list[Any] = [
    pytest.param(lambda x: tensordot(x, x, 3), ShapeError, "cannot sum over 3 axes", id="count"),
    pytest.param(
        lambda x: tensordot(x, x, ([0], [0, 1])),
        InvalidArgumentError,
        "1 axes of a go with 2 axes of b",
        id="lists",
    ),
    pytest.param(lambda x: tensordot(x, x, ([0], [1])), ShapeError, "sizes 2 and 4", id="sizes"),
    pytest.param(lambda x: tensordot(x, x, ([2], [1])), ShapeError, "axis 2", id="axis"),
    pytest.param(lambda x: cross(x, x), ShapeError, "Cross: expected vectors", id="cross"),
    pytest.param(lambda x: dot(x, x), ShapeError, "inner dimensions differ", id="dot"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(constant(np.zeros((2, 4))))
