"""Cholesky, QR, eigenvalues, singular values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import (
    DTypeError,
    InvalidArgumentError,
    ShapeError,
    UnimplementedError,
)
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import Graph, Tensor, TensorShape
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.linalg.decompositions import (
    cholesky,
    eig,
    eigh,
    qr,
    singular_values,
    svd,
)
from laminar.engine.ops.linalg.matmul import adjoint, matmul
from laminar.engine.ops.math.arithmetic import add
from laminar.engine.ops.math.reduce import reduce_sum

from ..harness import check_op

rng = np.random.default_rng(18)

SQUARE = [(3, 3), (1, 1), (2, 3, 3), (2, 1, 2, 2), (0, 0), (0, 2, 2)]


def positive(shape: tuple[int, ...]) -> Any:
    x = rng.normal(size=shape)
    return x @ np.swapaxes(x, -1, -2) + 2 * np.eye(shape[-1])


def symmetric(x: Any) -> Any:
    """The symmetric part, of a tensor or an array."""
    return (x + (adjoint(x) if isinstance(x, Tensor) else np.swapaxes(x, -1, -2))) * 0.5


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", SQUARE)
def test_cholesky(shape: tuple[int, ...], upper: bool) -> None:
    def reference(x: Any) -> Any:
        lower = np.linalg.cholesky(symmetric(x))
        return np.swapaxes(lower, -1, -2) if upper else lower

    check_op(
        lambda x: cholesky(symmetric(x), upper),
        reference,
        [positive(shape)],
        dtypes=["float32"],
        rtol=1e-4,
    )


QR_SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 2, 3), (3, 1), (1, 3), (0, 0), (3, 0), (0, 3)]


@pytest.mark.parametrize("shape", QR_SHAPES)
def test_qr(shape: tuple[int, ...]) -> None:
    check_op(
        qr,
        lambda x: tuple(np.linalg.qr(x)),
        [rng.normal(size=shape)],
        dtypes=["float32"],
        rtol=1e-4,
    )


@pytest.mark.parametrize("shape", [(3, 3), (2, 4)])
def test_complete_qr(shape: tuple[int, ...]) -> None:
    check_op(
        lambda x: qr(x, "complete"),
        lambda x: tuple(np.linalg.qr(x, "complete")),
        [rng.normal(size=shape)],
        dynamic=False,  # whether there is a gradient depends on the sizes
    )


def test_complete_qr_of_a_tall_matrix() -> None:
    x = rng.normal(size=(4, 2))
    check_op(
        lambda x: qr(x, "complete"),
        lambda x: tuple(np.linalg.qr(x, "complete")),
        [x],
        grad=False,
    )
    t = constant(x)
    with GradientTape() as tape:
        tape.watch(t)
        q, _ = qr(t, "complete")
    with pytest.raises(UnimplementedError, match="complete decomposition .* has no gradient"):
        tape.gradient(q, t)


@pytest.mark.parametrize("output", [0, 1])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_one_output_of_qr_has_a_gradient(shape: tuple[int, ...], output: int) -> None:
    check_op(lambda x: qr(x)[output], lambda x: np.linalg.qr(x)[output], [rng.normal(size=shape)])


@pytest.mark.parametrize("shape", SQUARE)
def test_eigh(shape: tuple[int, ...]) -> None:
    check_op(
        lambda x: eigh(symmetric(x)),
        lambda x: tuple(np.linalg.eigh(symmetric(x))),
        [rng.normal(size=shape)],
        dtypes=["float32"],
        rtol=1e-3,
    )


@pytest.mark.parametrize("output", [0, 1])
def test_one_output_of_eigh_has_a_gradient(output: int) -> None:
    check_op(
        lambda x: eigh(symmetric(x))[output],
        lambda x: np.linalg.eigh(symmetric(x))[output],
        [rng.normal(size=(3, 3))],
    )


def test_equal_eigenvalues_give_finite_gradients() -> None:
    x = constant(np.eye(3))
    with GradientTape() as tape:
        tape.watch(x)
        outputs = eigh(x)
    assert np.isfinite(tape.gradient(list(outputs), x).numpy()).all()


@pytest.mark.parametrize("shape", SQUARE)
def test_eig(shape: tuple[int, ...]) -> None:
    for x in (rng.normal(size=shape), symmetric(rng.normal(size=shape))):
        values, vectors = eig(constant(x))
        assert values.dtype == vectors.dtype == "complex128"
        w, v = values.numpy(), vectors.numpy()
        np.testing.assert_allclose(x @ v, v * w[..., None, :], atol=1e-9)
        assert w.shape == shape[:-1]
    assert eig(constant(np.eye(2, dtype=np.float32)))[0].dtype == "complex64"


def test_eig_has_no_gradient() -> None:
    x = constant(np.eye(2))
    with GradientTape() as tape:
        tape.watch(x)
        values, _ = eig(x)
    assert tape.gradient(values, x, values) is None


SVD_SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 2), (3, 1), (1, 3), (0, 2), (2, 0)]


@pytest.mark.parametrize("shape", SVD_SHAPES)
def test_svd(shape: tuple[int, ...]) -> None:
    check_op(
        lambda x: svd(x, full_matrices=False),
        lambda x: tuple(np.linalg.svd(x, full_matrices=False)),
        [rng.normal(size=shape)],
        dtypes=["float32"],
        rtol=1e-3,
    )


@pytest.mark.parametrize("output", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_one_output_of_svd_has_a_gradient(shape: tuple[int, ...], output: int) -> None:
    check_op(
        lambda x: svd(x, full_matrices=False)[output],
        lambda x: np.linalg.svd(x, full_matrices=False)[output],
        [rng.normal(size=shape)],
    )


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_full_svd(shape: tuple[int, ...]) -> None:
    x = rng.normal(size=shape)
    check_op(svd, lambda x: tuple(np.linalg.svd(x)), [x], grad=False)
    check_op(lambda x: svd(x)[1], lambda x: np.linalg.svd(x)[1], [x], second=False)
    if shape[0] == shape[1]:
        check_op(svd, lambda x: tuple(np.linalg.svd(x)), [x], dynamic=False)
        return
    t = constant(x)
    with GradientTape() as tape:
        tape.watch(t)
        u, _, _ = svd(t)
    with pytest.raises(UnimplementedError, match="full singular vectors .* have no gradient"):
        tape.gradient(u, t)


@pytest.mark.parametrize("shape", SVD_SHAPES)
def test_singular_values(shape: tuple[int, ...]) -> None:
    check_op(
        singular_values,
        lambda x: np.linalg.svd(x, compute_uv=False),
        [rng.normal(size=shape)],
        dtypes=["float32"],
        rtol=1e-3,
    )


def random_complex(*shape: int) -> Any:
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def test_complex_matrices() -> None:
    z = random_complex(3, 3)
    h = z @ z.conj().T + np.eye(3)
    np.testing.assert_allclose(cholesky(constant(h)).numpy(), np.linalg.cholesky(h))
    w, v = (t.numpy() for t in eigh(constant(h)))
    assert w.dtype == np.float64
    np.testing.assert_allclose(h @ v, v * w)
    for full in (True, False):
        u, s, vh = (t.numpy() for t in svd(constant(random_complex(3, 2)), full))
        assert s.dtype == np.float64
        assert u.shape == ((3, 3) if full else (3, 2))
        assert vh.shape == (2, 2)
    q, r = (t.numpy() for t in qr(constant(z)))
    np.testing.assert_allclose(q @ r, z)


def complex_slope(fn: Callable[[Tensor], Tensor], z: Any) -> None:
    """The gradient of a real function of a complex matrix against differences."""
    step = random_complex(*z.shape)
    t = constant(z)
    with GradientTape() as tape:
        tape.watch(t)
        y = fn(t)
    found = np.sum((tape.gradient(y, t).numpy().conj() * step).real)
    e = 1e-6
    numeric = (fn(constant(z + e * step)).numpy() - fn(constant(z - e * step)).numpy()) / (2 * e)
    np.testing.assert_allclose(found, numeric, rtol=1e-5)


def test_complex_gradients() -> None:
    z = random_complex(3, 3)
    weights = constant(rng.normal(size=3))

    def hermitian(t: Tensor) -> Tensor:
        return add(matmul(t, adjoint(t)), constant(np.eye(3) + 0j))

    complex_slope(lambda t: reduce_sum(eigh(hermitian(t))[0] * weights), z)
    complex_slope(lambda t: reduce_sum(singular_values(t) * weights), z)
    t = constant(z)
    with GradientTape() as tape:
        tape.watch(t)
        u, _, _ = svd(t)
    with pytest.raises(UnimplementedError, match="singular vectors of a complex matrix"):
        tape.gradient(u, t, u)


def test_static_shapes() -> None:
    with Graph().as_default():
        x = placeholder("complex64", [None, 3, 5])
        assert [t.shape for t in qr(x)] == [
            TensorShape([None, 3, 3]),
            TensorShape([None, 3, 5]),
        ]
        u, s, vh = svd(x)
        assert (u.shape, s.shape) == (TensorShape([None, 3, 3]), TensorShape([None, 3]))
        assert (vh.shape, s.dtype) == (TensorShape([None, 5, 5]), "float32")
        y = placeholder("complex64", [None, None])
        assert [(t.shape, t.dtype) for t in eigh(y)] == [
            (TensorShape([None]), "float32"),
            (TensorShape([None, None]), "complex64"),
        ]
        unknown = placeholder("float32", None)
        for fn in (qr, svd, eigh, eig):
            assert all(t.shape.rank is None for t in fn(unknown))


ERRORS: list[Any] = [
    pytest.param(cholesky, (2, 3), ShapeError, "Cholesky: expected square", id="cholesky"),
    pytest.param(cholesky, (2, 2), InvalidArgumentError, "not positive definite", id="definite"),
    pytest.param(eigh, (2, 3), ShapeError, "Eigh: expected square", id="eigh"),
    pytest.param(qr, (2,), ShapeError, "Qr: expected a matrix", id="qr"),
    pytest.param(lambda x: qr(x, "r"), (2, 2), InvalidArgumentError, "got 'r'", id="mode"),
    pytest.param(svd, (), ShapeError, "Svd: expected a matrix", id="svd"),
]


@pytest.mark.parametrize(("call", "shape", "error", "message"), ERRORS)
def test_errors(
    call: Callable[[Any], Any], shape: tuple[int, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(constant(np.zeros(shape)))


def test_integers_are_refused() -> None:
    with pytest.raises(DTypeError, match="Qr: x must be one of"):
        qr(constant(np.eye(2, dtype=np.int32)))
