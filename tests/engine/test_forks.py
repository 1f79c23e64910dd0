"""Forked children use what another thread of the parent was using."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import pytest

from laminar.engine import forks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

_CHILD = """
import os, signal, threading
import numpy as np
import laminar
from laminar.engine import forks
from laminar.engine.ops.state.variable import one_lock

model = laminar.Sequential([laminar.Input((3,)), laminar.layers.Dense(4)])
model.compile("adam", "mse", metrics=["mae"])
x, y = np.ones((8, 3), "float32"), np.ones((8, 4), "float32")
model.train_on_batch(x, y)
before = model.predict_on_batch(x)
held, done = threading.Event(), threading.Event()

def use():
    with one_lock([v.store for v in model.variables]), twice:
        held.set()
        done.wait()

twice = forks.recursive_lock()
user = threading.Thread(target=use)
user.start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    with twice:
        after = model.predict_on_batch(x)
        model.fit(x, y, verbose=0)
        same = np.array_equal(before, after)
        os._exit(0 if same and not np.array_equal(model.predict_on_batch(x), before) else 3)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
done.set()
user.join()
assert code == 0, code
"""


@pytest.mark.slow
def test_a_child_trains_what_the_parent_was_training() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", _CHILD], check=True, timeout=60)


def test_a_lock_that_the_forking_thread_holds_stays_its_own() -> None:
    lock = forks.recursive_lock()
    with lock:
        child = os.fork()
        if not child:
            taken = []
            other = threading.Thread(target=lambda: taken.append(lock.acquire(timeout=0.1)))
            other.start()
            other.join()
            os._exit(0 if taken == [False] else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_locks_that_are_gone_are_forgotten() -> None:
    gc.collect()
    before = len(forks._made)
    locks = [*(forks.lock() for _ in range(10)), forks.recursive_lock()]
    assert len(forks._made) == before + 11
    del locks
    assert len(forks._made) == before
