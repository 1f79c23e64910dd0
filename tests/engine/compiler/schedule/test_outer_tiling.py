"""Kernels that run together piece by piece: which do, and that the numbers are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine.compiler.ir.builder import Builder
from laminar.engine.compiler.ir.kernel import Kernel
from laminar.engine.compiler.ir.program import Operand, View
from laminar.engine.compiler.lower.rules.contractions import product
from laminar.engine.compiler.native import threads
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.compiler.schedule.buffer_assignment import arrange_for_threads, assign_buffers
from laminar.engine.compiler.target.thread_count import num_threads
from laminar.engine.graph import TensorSpec, bool_, float32

Array = np.ndarray[Any, Any]
rng = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return rng.normal(size=shape).astype(np.float32)


def softmax(b: Builder, x: Operand) -> View:
    rank = len(b.shape(x)) - 1
    e = b.compute(lambda s, x, top: s.exp(x - top), x, b.reduce("max", x, (rank,), keepdims=True))
    return b.compute(lambda s, e, t: e / t, e, b.reduce("sum", e, (rank,), keepdims=True))


def attention(b: Builder, *shape: int) -> tuple[View, View]:
    """The shares, and the values that they are of; the heads of queries lie side by side."""
    q, k, v = (b.storage(shape, float32, "input") for _ in range(3))
    heads = [b.transpose(x, (0, 2, 1, 3)) for x in (q, k, v)]
    shares = softmax(b, product(b, heads[0], b.transpose(heads[1], (0, 1, 3, 2)), float32))
    values = product(b, shares, heads[2], float32)
    assert isinstance(values, View)
    b.program.outputs = [values]
    return shares, values


def kernels(b: Builder) -> list[Kernel]:
    found = assign_buffers(b.program, b.copy).kernels
    b.program.verify()
    return found


def test_attention_is_one_loop() -> None:
    b = Builder()
    attention(b, 64, 32, 4, 16)
    (kernel,) = kernels(b)
    assert kernel.loop is not None
    assert kernel.loop.count == 64
    assert [k.call is not None for k in kernel.body] == [True, False, True]


def test_what_others_read_is_a_window() -> None:
    """The rest has memory for a piece."""
    b = Builder()
    shares, values = attention(b, 64, 32, 4, 16)
    b.program.outputs.append(b.reduce("max", shares, (0,)))
    loop, *_ = kernels(b)
    assert loop.loop is not None
    windows = {w.base for n in loop.loop.windows if (w := b.program.storages[n].window)}
    assert {shares.storage, values.storage} < windows
    made = {n for k in loop.body if k.call for n in k.call.writes}
    sizes = {b.program.storages[n].num_elements for n in made}
    assert sizes == {4 * 32 * 32, 4 * 32 * 16}


@pytest.mark.parametrize(
    "shape",
    [
        (2, 32, 4, 16),  # few pieces
        (64, 8, 2, 4),  # small ones
        (8, 32, 4, 16),  # all of it stays in cache
        (64, 512, 4, 16),  # a piece does not
    ],
)
def test_where_it_does_not_pay_kernels_stay_apart(shape: tuple[int, ...]) -> None:
    b = Builder()
    attention(b, *shape)
    assert len(kernels(b)) == 3


def test_a_sum_over_all_pieces_stays_outside() -> None:
    b = Builder()
    shares, _ = attention(b, 64, 32, 4, 16)
    b.program.outputs.append(b.reduce("sum", shares, (0,)))
    loop, *others = kernels(b)
    assert loop.loop is not None
    assert others
    assert all(k.loop is None for k in others)


def test_what_all_pieces_share_comes_first() -> None:
    """A mask is made between two products, and is the same for all pieces."""
    b = Builder()
    q, k = (b.storage((64, 4, 32, 32), float32, "input") for _ in range(2))
    scores = product(b, q, k, float32)
    mask = b.copy(b.transpose(b.storage((32, 32), float32, "input"), (1, 0)))
    wide = b.broadcast(mask, (64, 4, 32, 32))
    shares = softmax(b, b.compute(lambda s, x, y: x + y, scores, wide))
    values = product(b, shares, b.storage((64, 4, 32, 16), float32, "input"), float32)
    assert isinstance(values, View)
    b.program.outputs = [values]
    first, loop = kernels(b)
    assert first.loop is None
    assert loop.loop is not None
    assert mask.storage in {v.storage for v in loop.views}


def test_threads_that_are_at_different_kernels_share_no_memory() -> None:
    ranges: dict[object, tuple[int, int]] = {"a": (0, 9), "b": (3, 4), "c": (5, 6), "d": (2, 3)}
    sizes: dict[object, int] = {"a": 100, "b": 1000, "c": 64, "d": 10}
    offsets, apart, total = arrange_for_threads(ranges, sizes, [((2, 6), ["b", "c", "d"])], 3)
    assert set(apart) == {"b", "c", "d"}
    memory = {
        (name, thread): range(start, start + sizes[name])
        for name, at in offsets.items()
        for thread in range(3)
        for start in [at + thread * apart.get(name, 0)]
    }
    assert max(part.stop for part in memory.values()) <= total
    for (a, i), x in memory.items():
        for (b, j), y in memory.items():
            if a != b or i != j:
                meets = max(x.start, y.start) < min(x.stop, y.stop)
                of_all = a == b == "a"
                assert not meets or of_all or (i == j and {a, b} in ({"b", "c"}, {"c", "d"}))


# Numbers


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
    """With and without enough pieces for each thread, the same bits for all numbers of them."""
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
    """A piece of the scores has no rows that could be gone on with."""

    def f(q: Any, k: Any, v: Any) -> Any:
        return (ops.matmul(ops.relu(ops.matmul(q, k)), v),)

    q, k, v = normal(64, 1, 32), normal(64, 32, 1000), normal(64, 1000, 16)
    (found,) = natively(f, q, k, v)
    wanted = np.maximum(q.astype(np.float64) @ k, 0) @ v
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-4)


def test_what_is_not_finite_stays_in_its_piece() -> None:
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
