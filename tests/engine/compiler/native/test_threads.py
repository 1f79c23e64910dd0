"""The pool of native threads: nothing is lost, nothing hangs, nothing is left behind."""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar.engine.compiler.codegen import driver_words
from laminar.engine.compiler.native import cluster_kernel, executable, threads
from laminar.engine.compiler.native.threads import Pool
from laminar.engine.compiler.plan import planner as plan
from laminar.engine.compiler.target.thread_count import num_threads

from ..counting import counting_plan


@pytest.fixture(autouse=True)
def _watchdog() -> Iterator[None]:
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.slow
@pytest.mark.parametrize("num_threads", [1, 2, 3, 5])
def test_each_thread_does_its_part_of_every_kernel(num_threads: int) -> None:
    pool = Pool(num_threads)
    plan, table, words = counting_plan(pool, 7)
    for i in range(200):
        pool.run(plan.ctypes.data)
        if i % 50 == 0:
            time.sleep(0.02)  # the threads fall asleep, and are woken
    assert words[1 : 1 + num_threads].tolist() == [3 * 7 * 200] * num_threads
    assert not words[1 + num_threads :].any()
    pool.close()
    assert not any(thread.is_alive() for thread in pool._threads)
    del table


def test_what_a_thread_does_not_come_to_do_the_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where other processes keep it from running: its shares are left to whoever is there."""
    live = Pool._live
    monkeypatch.setattr(Pool, "_live", lambda pool, i: live(pool, i) if i == 1 else None)
    pool = Pool(4)
    plan, table, words = counting_plan(pool, 7)
    for _ in range(100):
        pool.run(plan.ctypes.data)
    assert words[1:5].tolist() == [3 * 7 * 100] * 4
    pool.close()
    del table


def test_a_pool_without_work_uses_no_time() -> None:
    pool = Pool(3)
    plan, table, words = counting_plan(pool, 1)
    pool.run(plan.ctypes.data)
    time.sleep(0.05)  # they look for work for a moment
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.02
    assert words[1] == 3
    pool.close()
    del table


def test_a_call_on_a_closed_pool_does_not_wait_for_its_threads() -> None:
    pool = Pool(2)
    pool.close()
    assert not pool.lock.acquire(blocking=False)


ROWS = np.random.default_rng(0).normal(size=(2000, 700)).astype("float32")


def large_sums(x: Any) -> Any:
    return laminar.ops.sum(laminar.ops.softmax(x) * x, axis=1)


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    yield laminar.set_threads
    laminar.set_threads(None)


def test_a_plan_runs_alone_when_the_pool_has_another_number_of_threads(
    set_threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where another thread sets the number between the look at it and the run."""
    set_threads(2)
    f, x = laminar.function(large_sums), laminar.ops.convert_to_tensor(ROWS)
    expected = np.asarray(f(x))
    larger, closed = Pool(3), Pool(2)
    closed.close()
    for pool in (larger, closed):
        monkeypatch.setattr(executable, "pool", lambda pool=pool: pool)
        np.testing.assert_array_equal(np.asarray(f(x)), expected)
    assert not larger._words[driver_words.PHASE]
    larger.close()


def test_one_of_two_threads_runs_short_loops_alone_where_they_slept_in_them(
    set_threads: Callable[[int], None],
) -> None:
    """To the same bits, and without meetings; as long as that is not far back."""
    set_threads(2)
    start, w = np.full((64, 256), 0.25, "float32"), ROWS[:256, :256] / 16

    @laminar.function
    def powers(x: Any) -> Any:
        return laminar.ops.fori_loop(0, 12, lambda i, x: laminar.ops.tanh(x @ w), x)

    pool = threads.pool()
    assert pool is not None
    together = np.asarray(powers(start))
    meetings = pool._words[driver_words.ROUND]
    assert meetings >= 12
    pool._words[driver_words.LATE] = 1000
    alone = np.asarray(powers(start))
    assert pool._words[driver_words.ROUND] == meetings
    assert alone.tobytes() == together.tobytes()
    pool._words[driver_words.LATE] = 100
    again = np.asarray(powers(start))
    assert pool._words[driver_words.ROUND] >= meetings + 12
    assert again.tobytes() == together.tobytes()
    expected = start.astype("float64")
    for _ in range(12):
        expected = np.tanh(expected @ w)
    np.testing.assert_allclose(together, expected, rtol=1e-3, atol=1e-5)


def test_a_plan_is_for_one_number_of_threads(
    set_threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where another thread sets another number while it is made."""
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path))
    set_threads(2)
    make, planned = plan.Planner.plan, []

    def slowly(planner: Any, variables: Any) -> Any:
        found = make(planner, variables)
        planned.append(num_threads())
        set_threads(3)
        return found

    monkeypatch.setattr(plan.Planner, "plan", slowly)
    x = laminar.ops.convert_to_tensor(ROWS)
    f = laminar.function(large_sums)
    rows = ROWS.astype("float64")
    e = np.exp(rows)
    expected = (e / e.sum(1, keepdims=True) * rows).sum(1)
    np.testing.assert_allclose(np.asarray(f(x)), expected, rtol=1e-4, atol=1e-5)
    (body,) = f.concrete(x).clusters
    assert isinstance(body.native, cluster_kernel.NativeCluster)
    assert [threads for _, threads in body.native._plans] == [3]
    assert planned[0] == 2


def test_a_process_with_a_pool_ends() -> None:
    code = (
        "from laminar.engine.compiler.native import threads\n"
        "threads.set_threads(3)\n"
        "assert threads.pool().num_threads == 3\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_makes_threads_of_its_own() -> None:
    code = (
        "import os\n"
        "from laminar.engine.compiler.native import threads\n"
        "threads.set_threads(2)\n"
        "first = threads.pool()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os._exit(0 if threads.pool() is not first else 3)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_ends_that_was_forked_while_the_pool_was_in_use() -> None:
    code = (
        "import os, sys\n"
        "from laminar.engine.compiler.native import threads\n"
        "threads.set_threads(2)\n"
        "threads.pool().lock.acquire()\n"
        "child = os.fork()\n"
        "if child:\n"
        "    threads.pool().lock.release()\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert done.returncode == 0
