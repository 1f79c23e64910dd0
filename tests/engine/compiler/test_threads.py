"""The pool of native threads: nothing is lost, nothing hangs, nothing is left behind."""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from laminar.engine.compiler.threads import Pool

from .counting import counting_plan


@pytest.fixture(autouse=True)
def _watchdog() -> Iterator[None]:
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


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


def test_a_process_with_a_pool_ends() -> None:
    code = (
        "from laminar.engine.compiler import threads\n"
        "threads.set_threads(3)\n"
        "assert threads.pool().num_threads == 3\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_makes_threads_of_its_own() -> None:
    code = (
        "import os\n"
        "from laminar.engine.compiler import threads\n"
        "threads.set_threads(2)\n"
        "first = threads.pool()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os._exit(0 if threads.pool() is not first else 3)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
