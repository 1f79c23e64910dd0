"""Attention as native code: the numbers are right, for all batches and numbers of threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine.compiler.native import threads
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.compiler.target.thread_count import num_threads
from laminar.engine.graph import TensorSpec, bool_, float32

Array = np.ndarray[Any, Any]
rng = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return rng.normal(size=shape).astype(np.float32)


@pytest.fixture
def several_threads() -> Iterator[None]:
    before = num_threads()
    yield
    threads.set_threads(before)


def gradients(q: Any, k: Any, v: Any, mask: Any, dy: Any) -> Any:
    """Attention of (batch, length, heads, size), and its gradients."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        x, y, z = (ops.transpose(x, (0, 2, 1, 3)) for x in (q, k, v))
        scores = ops.matmul(x, ops.transpose(y, (0, 1, 3, 2))) * 0.25
        shares = ops.softmax(ops.where(mask, scores, -1e9))
        values = ops.transpose(ops.matmul(shares, z), (0, 2, 1, 3))
        return ops.sum(values * dy), values

    (_, values), found = eng.value_and_grad(attend, argnums=(0, 1, 2), has_aux=True)(q, k, v)
    return values, *found


def natively(f: Any, *args: Any, signature: Any = None) -> list[Array]:
    """What a function gives, all of which is native code."""
    made = eng.function(f, input_signature=signature)
    tensors = [ops.convert_to_tensor(x) for x in args]
    found = [np.asarray(x) for x in made(*tensors)]
    bodies = [body.native for body in made.concrete(*tensors).clusters]
    assert bodies or not args[0].shape[0]
    assert all(isinstance(x, NativeCluster) and not x._refused for x in bodies)
    return found


def exact_softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def expected(q: Array, k: Array, v: Array, mask: Array, dy: Array) -> list[Array]:
    """The same in float64."""
    q, k, v, dy = (x.astype(np.float64).transpose(0, 2, 1, 3) for x in (q, k, v, dy))
    shares = exact_softmax(np.where(mask, q @ k.swapaxes(2, 3) * 0.25, -1e9))
    d = dy @ v.swapaxes(2, 3)
    d = shares * (d - (d * shares).sum(-1, keepdims=True)) * 0.25
    found = [shares @ v, d @ k, d.swapaxes(2, 3) @ q, shares.swapaxes(2, 3) @ dy]
    return [x.transpose(0, 2, 1, 3) for x in found]


SIGNATURE = [
    *(TensorSpec((None, 33, 3, 20), float32),) * 3,
    TensorSpec((33, 33), bool_),
    TensorSpec((None, 33, 3, 20), float32),
]


@pytest.mark.parametrize("is_static", [False, True])
@pytest.mark.parametrize("batch", [0, 1, 2, 5, 64])
def test_attention_and_its_gradients(batch: int, is_static: bool, several_threads: None) -> None:
    """The same bits for all numbers of threads."""
    arrays = [normal(batch, 33, 3, 20) for _ in range(3)]
    given = (*arrays, np.tril(np.ones((33, 33), bool)), normal(batch, 33, 3, 20))
    args = [ops.convert_to_tensor(x) for x in given]
    runs = []
    for count in (1, 2, 3):
        threads.set_threads(count)
        runs.append(natively(gradients, *args, signature=None if is_static else SIGNATURE))
    for found, other, last, wanted in zip(*runs, expected(*given), strict=True):
        np.testing.assert_array_equal(found, other)
        np.testing.assert_array_equal(found, last)
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_rows_that_are_gone_over_again() -> None:
    """A softmax of a softmax reads the first one back, which others read too."""

    def f(q: Any, k: Any, v: Any) -> Any:
        shares = ops.softmax(ops.matmul(q, k))
        return shares, ops.matmul(ops.softmax(3 * shares), v)

    q, k, v = normal(64, 64, 20), normal(64, 20, 70), normal(64, 70, 16)
    shares, found = natively(f, q, k, v)
    first = exact_softmax(q.astype(np.float64) @ k)
    np.testing.assert_allclose(shares, first, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(found, exact_softmax(3 * first) @ v, rtol=2e-5, atol=2e-5)


def test_queries_of_one_row() -> None:
    def f(q: Any, k: Any, v: Any) -> Any:
        return (ops.matmul(ops.relu(ops.matmul(q, k)), v),)

    q, k, v = normal(64, 1, 32), normal(64, 32, 1000), normal(64, 1000, 16)
    (found,) = natively(f, q, k, v)
    wanted = np.maximum(q.astype(np.float64) @ k, 0) @ v
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-4)


def test_what_is_not_finite_stays_in_its_row() -> None:
    arrays = [normal(64, 33, 3, 20) for _ in range(3)]
    arrays[0][5, 7, 1, 3] = np.nan
    arrays[2][9, 2, 2, 4] = np.inf
    given = (*arrays, np.ones((33, 33), bool), np.zeros((64, 33, 3, 20), np.float32))
    values = np.asarray(eng.function(gradients)(*map(ops.convert_to_tensor, given))[0])
    bad = ~np.isfinite(values)
    assert bad[5, 7, 1].all()
    assert bad[9, :, 2, 4].all()
    assert bad.sum() == 20 + 33


def test_bfloat16(several_threads: None) -> None:
    """On the matrix unit too, where there is one."""
    arrays = [normal(64, 32, 2, 16) for _ in range(3)]
    given = (*arrays, np.ones((32, 32), bool), normal(64, 32, 2, 16))
    low = [x if x.dtype == bool else x.astype(ml_dtypes.bfloat16) for x in given]
    runs = []
    for count in (1, 3):
        threads.set_threads(count)
        found = eng.function(gradients)(*map(ops.convert_to_tensor, low))
        runs.append([np.asarray(x).astype(np.float32) for x in found])
    for found, other, wanted in zip(*runs, expected(*given), strict=True):
        np.testing.assert_array_equal(found, other)
        assert np.abs(found - wanted).max() < 0.05 * np.abs(wanted).max()
