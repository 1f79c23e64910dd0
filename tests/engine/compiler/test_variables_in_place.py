"""Variables that native code updates in place: where their arrays begin, who sees the update.

A run that is refused has updated none.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest

from laminar import ops
from laminar.engine import TensorSpec
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.functions import function
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.state.variable import one_lock
from laminar.engine.state import Variable


def array_of(variable: Variable) -> Any:
    return variable.store.value


def stepping(variable: Variable) -> Any:
    @function(jit_compile=True)
    def step() -> Any:
        variable.assign_add(variable * 2.0 + 1.0)

    return step


@pytest.mark.parametrize("shape", [(), (3,), (33, 5), (100, 100)])
def test_their_arrays_begin_at_a_line_and_are_no_one_elses(shape: tuple[int, ...]) -> None:
    variable = Variable(np.zeros(shape, np.float32))
    step = stepping(variable)
    step()
    place = array_of(variable).ctypes.data
    assert place % 64 == 0 or array_of(variable).nbytes <= 64
    step()
    assert array_of(variable).ctypes.data == place
    for hold in (lambda x: x, lambda x: x[...], memoryview):
        held = hold(array_of(variable))
        before = np.array(held)
        step()  # what others hold stays as it is
        np.testing.assert_array_equal(held, before)
        np.testing.assert_array_equal(array_of(variable), before * 3.0 + 1.0)
        assert not np.shares_memory(held, array_of(variable))


@pytest.mark.parametrize("size", [1, 16, 17])
def test_one_of_less_than_a_line_stays_where_it_is(size: int) -> None:
    memory = np.zeros(48, np.float32)
    start = -(memory.ctypes.data // 4) % 16 + 1  # 4 bytes beside a line
    variable = Variable(np.ones(size, np.float32))
    step = stepping(variable)
    step()
    given = memory[start : start + size]
    variable.store.value = given
    place = given.ctypes.data
    del given, memory
    step()
    step()
    assert (array_of(variable).ctypes.data == place) == (size <= 16)
    np.testing.assert_array_equal(array_of(variable), np.full(size, 4.0))


def _of_sizes(x: Any, i: Any) -> Any:
    return ops.cast(ops.shape(x)[0], "float32") * 2.0, i


def _of_indices(x: Any, i: Any) -> Any:
    return i + 1, i


def _of_what_is_checked(x: Any, i: Any) -> Any:
    return i + 1, i + 1


def _of_a_sum(x: Any, i: Any) -> Any:
    return ops.sum(i), i


@pytest.mark.parametrize("values", [_of_sizes, _of_indices, _of_what_is_checked, _of_a_sum])
def test_a_failed_check_leaves_what_could_be_made_before_it(values: Callable[..., Any]) -> None:
    """New values are made beside what is checked, and take their place behind the checks."""
    x = np.zeros((9, 2), np.float32)
    good, bad = np.array([0, 1, 2], np.int32), np.array([0, 50, 2], np.int32)
    made = np.asarray(values(x, good)[0])
    variable = Variable(np.full_like(made, -1))

    @function(
        input_signature=[TensorSpec((None, 2), "float32"), TensorSpec((3,), "int32")],
        jit_compile=True,
    )
    def step(x: Any, i: Any) -> Any:
        new, indices = values(x, i)
        variable.assign(new)
        return ops.take(x, indices, axis=0)

    step(x, good)
    np.testing.assert_array_equal(array_of(variable), made)
    with pytest.raises(InvalidArgumentError, match="out of range"):
        step(x[:8], bad)
    np.testing.assert_array_equal(array_of(variable), made)


_ROW = np.arange(1, 5, dtype=np.float32)
_TABLE = np.arange(16, dtype=np.float32).reshape(4, 4)


def _used_again(v: Any, x: Any) -> Any:
    product = ops.matmul(x, x)
    return product, product + v


@pytest.mark.parametrize(
    ("start", "values"),
    [
        (_ROW, lambda v, x: (ops.concatenate([x[0, :2], v[:2] * 2]), v * 2)),
        (_ROW, lambda v, x: (ops.concatenate([ops.sum(v, keepdims=True), v[:3]]), v + 1)),
        (_ROW, lambda v, x: (ops.pad(v[:2], ((2, 0),)), x)),
        (_ROW, lambda v, x: (ops.pad(v[:2], ((0, 2),)), x)),
        (_ROW, lambda v, x: (ops.slice_update(v * 2, (1,), v[:2]), x)),
        (_ROW, lambda v, x: (ops.sum(x, 0), ops.sum(x, 0) + v)),
        (_TABLE, lambda v, x: (ops.concatenate([x[:1], v[:3]]), x)),
        (_TABLE, lambda v, x: (x * 2, v * 2 + x)),
        (_TABLE, _used_again),
    ],
)
def test_an_old_value_is_read_before_it_is_written_over(
    start: np.ndarray[Any, Any], values: Callable[..., Any]
) -> None:
    """Also where the new one is written by parts, or what it is made of is used again."""
    new, out = map(np.asarray, values(convert_to_tensor(start), convert_to_tensor(_TABLE)))
    variable = Variable(start.copy())

    @function(jit_compile=True)
    def step(x: Any) -> Any:
        made, result = values(variable, x)
        variable.assign(made)
        return result

    np.testing.assert_allclose(np.asarray(step(_TABLE)), out, rtol=1e-6)
    np.testing.assert_allclose(array_of(variable), new, rtol=1e-6)


def test_a_lock_that_changes_before_it_is_held_is_not_relied_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Variables that two calls share get one lock: a call that waits for an old one asks again."""
    a, b = Variable(np.zeros(4, np.float32)), Variable(np.ones(4, np.float32))

    @function(jit_compile=True)
    def step() -> Any:
        return a.assign_add(ops.exp(a * 2.0 + 1.0))

    step()
    (body,) = step.concrete().clusters
    assert isinstance(body.native, NativeCluster)
    (place,) = body.native._contexts
    (ready,) = place.ready.values()

    class Late:
        """What `ready` takes for the lock; before it is held the variable gets another."""

        def __enter__(self) -> None:
            with one_lock((b.store, a.store)):
                pass

        def __exit__(self, *error: object) -> None:
            pass

    held = []
    run = NativeCluster._run

    def watched(self: NativeCluster, *arguments: Any) -> Any:
        held.append(a.store.lock.locked())
        return run(self, *arguments)

    monkeypatch.setattr(NativeCluster, "_run", watched)
    ready.lock = Late()  # type: ignore[assignment]  # which has no more than `with` asks for
    step()
    assert held == [True]
    assert a.store.lock is b.store.lock is ready.lock


def test_calls_at_the_same_time_have_memory_of_their_own() -> None:
    @function(jit_compile=True)
    def softmax(x: Any) -> Any:
        return ops.softmax(ops.matmul(x, x))

    rows = [np.full((96, 96), i / 96, np.float32) for i in range(4)]
    for row in rows:
        row[:, 0] += 1
    expected = [np.asarray(softmax(x)) for x in rows]
    wrong = []

    def work(i: int) -> None:
        for _ in range(200):
            if not np.array_equal(softmax(rows[i]), expected[i]):
                wrong.append(i)

    threads = [Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    (body,) = softmax.concrete(rows[0]).clusters
    assert isinstance(body.native, NativeCluster)
    assert 1 <= len(body.native._contexts) <= 5
