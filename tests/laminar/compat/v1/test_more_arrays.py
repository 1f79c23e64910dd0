"""Orders, blocks, transforms, pieces of strings and checks under TensorFlow 1's names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf

rng = np.random.default_rng(3)
A = rng.normal(size=(3, 4)).astype("float32")
B = (rng.normal(size=(2, 3, 3)) + 3 * np.eye(3)).astype("float64")
C = (rng.normal(size=(2, 4, 6)) + 1j * rng.normal(size=(2, 4, 6))).astype("complex64")
L = np.tril(B)


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(x: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(x, feed)


IMAGE = np.arange(16.0).reshape(1, 4, 4, 1)
ROWS, IDS = np.array([[1.0, 2], [3, 4], [5, 6]]), [0, 0, 2]

CASES: list[Any] = [
    pytest.param(lambda: tf.sort(A, direction="DESCENDING"), -np.sort(-A), id="sort"),
    pytest.param(lambda: tf.argsort(A, axis=0), np.argsort(A, 0), id="argsort"),
    pytest.param(
        lambda: tf.unravel_index([5, 11], [3, 4]), np.unravel_index([5, 11], (3, 4)), id="unravel"
    ),
    pytest.param(lambda: tf.setdiff1d([1, 5, 2, 5], [2, 7])[0], [1, 5, 5], id="setdiff1d"),
    pytest.param(lambda: tf.setdiff1d(["a", "b"], ["b"])[1], [0], id="setdiff1d-strings"),
    pytest.param(lambda: tf.saturate_cast([-5, 300], tf.uint8), [0, 255], id="saturate"),
    pytest.param(lambda: tf.saturate_cast([1e20, -1e20], tf.int8), [127, -128], id="saturate-real"),
    pytest.param(lambda: tf.segment_mean(ROWS, IDS), [[2, 3], [0, 0], [5, 6]], id="segment_mean"),
    pytest.param(
        lambda: tf.math.unsorted_segment_sqrt_n(ROWS, IDS, 3),
        [[4 / 2**0.5, 6 / 2**0.5], [0, 0], [5, 6]],
        id="sqrt_n",
    ),
    pytest.param(
        lambda: tf.space_to_batch(IMAGE, [[0, 0], [0, 0]], 2)[:, :, :, 0],
        [[[0, 2], [8, 10]], [[1, 3], [9, 11]], [[4, 6], [12, 14]], [[5, 7], [13, 15]]],
        id="space_to_batch",
    ),
    pytest.param(
        lambda: tf.batch_to_space_nd(
            tf.space_to_batch_nd(IMAGE, [2, 3], [[0, 0], [1, 1]]), [2, 3], [[0, 0], [1, 1]]
        ),
        IMAGE,
        id="batch_to_space",
    ),
    pytest.param(lambda: tf.batch_gather(A, [[0], [2], [1]]), A[[0, 1, 2], [0, 2, 1]][:, None]),
    pytest.param(lambda: tf.parallel_stack([A, A]), np.stack([A, A]), id="parallel_stack"),
    pytest.param(lambda: tf.matrix_band_part(A, 0, 1), np.triu(A) - np.triu(A, 2), id="band"),
    pytest.param(lambda: tf.matrix_diag(A), A[:, :, None] * np.eye(4), id="matrix_diag"),
    pytest.param(
        lambda: tf.matrix_set_diag(A, [1.0, 2, 3]),
        A * (1 - np.eye(3, 4)) + [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 3, 0]],
        id="set_diag",
    ),
    pytest.param(
        lambda: tf.matrix_set_diag(A.T, [1.0, 2, 3]),
        A.T * (1 - np.eye(4, 3)) + np.diag([1, 2, 3, 0])[:, :3],
        id="set_diag-tall",
    ),
    pytest.param(
        lambda: tf.matrix_inverse(B, adjoint=True),
        np.linalg.inv(B.swapaxes(-1, -2)),
        id="inverse",
    ),
    pytest.param(
        lambda: tf.matrix_solve(B, B[..., :1], adjoint=True),
        np.linalg.solve(B.swapaxes(-1, -2), B[..., :1]),
        id="solve",
    ),
    pytest.param(
        lambda: tf.matrix_triangular_solve(L, B, adjoint=True),
        np.linalg.solve(L.swapaxes(-1, -2), B),
        id="triangular",
    ),
    pytest.param(
        lambda: tf.cholesky_solve(L, B), np.linalg.solve(L @ L.swapaxes(-1, -2), B), id="cholesky"
    ),
    pytest.param(lambda: tf.linalg.matvec(B, B[:, 0]), np.einsum("bij,bj->bi", B, B[:, 0])),
    pytest.param(
        lambda: tf.self_adjoint_eigvals(B + B.swapaxes(-1, -2)),
        np.linalg.eigvalsh(B + B.swapaxes(-1, -2)),
        id="eigvals",
    ),
    pytest.param(lambda: tf.fft(C), np.fft.fft(C), id="fft"),
    pytest.param(lambda: tf.ifft2d(C), np.fft.ifft2(C), id="ifft2d"),
    pytest.param(lambda: tf.signal.fft3d(C), np.fft.fftn(C), id="fft3d"),
    pytest.param(lambda: tf.spectral.rfft(A, [6]), np.fft.rfft(A, 6), id="rfft"),
    pytest.param(lambda: tf.spectral.rfft2d(A), np.fft.rfft2(A), id="rfft2d"),
    pytest.param(lambda: tf.spectral.irfft(C, [7]), np.fft.irfft(C, 7), id="irfft"),
    pytest.param(lambda: tf.spectral.irfft2d(C), np.fft.irfft2(C), id="irfft2d"),
    pytest.param(lambda: tf.bitwise.bitwise_xor([5, 6], [3, 3]), [6, 5], id="xor"),
    pytest.param(lambda: tf.bitwise.invert([0, -2]), [-1, 1], id="invert"),
    pytest.param(lambda: tf.is_non_decreasing([1, 1, 2]), True, id="non_decreasing"),
    pytest.param(lambda: tf.is_strictly_increasing([[1, 2], [2, 3]]), False, id="increasing"),
    pytest.param(lambda: tf.string_strip([" a "]), [b"a"], id="strip"),
    pytest.param(lambda: tf.tensor_scatter_nd_max([1, 5], [[0], [1]], [3, 3]), [3, 5]),
]


@pytest.mark.parametrize(("build", "expected"), CASES)
def test_values(build: Any, expected: Any) -> None:
    found = run(build())
    if np.asarray(expected).dtype.kind in "fc":
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    else:
        np.testing.assert_array_equal(found, expected)


def test_pieces_of_strings() -> None:
    found = run(tf.string_split(["a b", "", " c  d,e"], " ,"))
    assert found.indices.tolist() == [[0, 0], [0, 1], [2, 0], [2, 1], [2, 2]]
    assert found.values.tolist() == [b"a", b"b", b"c", b"d", b"e"]
    assert found.dense_shape.tolist() == [3, 3]
    whole = run(tf.string_split(["a,,b"], ",", skip_empty=False))
    assert whole.values.tolist() == [b"a", b"", b"b"]
    assert run(tf.string_split(["xyz"], "")).values.tolist() == [b"x", b"y", b"z"]
    assert run(tf.strings.split("a  b")).values.tolist() == [b"a", b"b"]
    none = run(tf.string_split(tf.placeholder_with_default(np.zeros(0, object), [None])))
    assert none.dense_shape.tolist() == [0, 0]


def test_checks() -> None:
    with tf.control_dependencies([tf.assert_near(1.0, 1.0 + 1e-7)]):
        assert run(tf.constant(1)) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="near"):
        run(tf.assert_near(1.0, 1.1))
    with pytest.raises(ValueError, match="one of the ranks"):
        tf.assert_rank_in(A, [1, 3])
    with pytest.raises(ValueError, match="scalar"):
        tf.assert_scalar(A)
    with pytest.raises(TypeError, match="whole numbers"):
        tf.assert_integer(A)
    with pytest.raises(TypeError):
        tf.assert_proper_iterable(tf.constant([1]))
    tf.assert_proper_iterable([1])
    assert tf.assert_same_float_dtype([tf.constant(A)]) == "float32"
    with pytest.raises(ValueError, match="one floating type"):
        tf.debugging.assert_same_float_dtype([tf.constant(A), tf.constant(B)])
    assert tf.is_numeric_tensor(tf.constant(1))
    assert not tf.is_numeric_tensor(tf.constant("a"))


def test_shapes_are_ensured() -> None:
    x = tf.placeholder("float32")
    y = tf.ensure_shape(x, [None, 4])
    assert y.shape.as_list() == [None, 4]
    assert run(y, {x: A}).shape == (3, 4)
    with pytest.raises(tf.errors.OpError, match="EnsureShape"):
        run(y, {x: A.T})
    with pytest.raises(ValueError, match="3"):
        tf.ensure_shape(y, [3, 5])
    (dx,) = tf.gradients(tf.reduce_sum(y * y), [x])
    np.testing.assert_allclose(run(dx, {x: A}), 2 * A, rtol=1e-6)


def test_templates_share_their_variables() -> None:
    def scaled(x: Any, by: float) -> Any:
        w = tf.get_variable("w", shape=[], initializer=tf.ones_initializer())
        return x * w * by

    double = tf.make_template("scale", scaled, by=2.0)
    other = tf.make_template("scale", scaled, create_scope_now_=True, by=3.0)
    first, second, third = double(1.0), double(4.0), other(1.0)
    assert [v.name for v in tf.trainable_variables()] == ["scale_1/w:0", "scale/w:0"]
    assert [v.name for v in double.variables] == ["scale_1/w:0"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([first, second, third]) == [2.0, 8.0, 3.0]
    one, two = (
        tf.make_template("other", lambda n: tf.get_variable(n, []), unique_name_="other")
        for _ in range(2)
    )
    one("w")
    with pytest.raises(ValueError, match="w"):
        two("w")
