"""Full passes of the garbage collector wait while something is traced or compiled."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from laminar.engine.collector import few_full_passes


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_thresholds_come_back_behind_the_last_block() -> None:
    with few_full_passes():
        assert gc.get_threshold() == (700, 10, 110)
        with few_full_passes():
            assert gc.get_threshold() == (700, 10, 110)
        assert gc.get_threshold() == (700, 10, 110)
    assert gc.get_threshold() == (700, 10, 10)


def test_also_after_an_error() -> None:
    with pytest.raises(ValueError, match="inside"), few_full_passes():
        raise ValueError("inside")
    assert gc.get_threshold() == (700, 10, 10)


def test_what_somebody_else_sets_stays() -> None:
    with few_full_passes():
        gc.set_threshold(500, 5, 5)
    assert gc.get_threshold() == (500, 5, 5)


@pytest.mark.parametrize("thresholds", [(0, 10, 10), (700, 10, 0)])
def test_what_is_turned_off_stays_off(thresholds: tuple[int, int, int]) -> None:
    gc.set_threshold(*thresholds)
    with few_full_passes():
        assert (gc.get_threshold()[0] == 0, gc.get_threshold()[2] == 0) == (
            thresholds[0] == 0,
            thresholds[2] == 0,
        )
    assert gc.get_threshold() == thresholds


def test_threads_share_it() -> None:
    inside, done = threading.Barrier(3), threading.Barrier(3)

    def hold() -> None:
        with few_full_passes():
            inside.wait(10)
            done.wait(10)

    threads = [threading.Thread(target=hold) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait(10)
    assert gc.get_threshold() == (700, 10, 110)
    done.wait(10)
    for thread in threads:
        thread.join()
    assert gc.get_threshold() == (700, 10, 10)


FIRST_STEP = """
import gc
import numpy as np
import laminar

model = laminar.Sequential([laminar.layers.Input((4,)), laminar.layers.Dense(3)])
model.compile("adam", loss="mse")
x, y = np.ones((8, 4), "float32"), np.ones((8, 3), "float32")
gc.disable()
gc.set_threshold(700, 10, 10)
kept = [[] for _ in range(400_000)]  # a full pass is due
for _ in range(12):
    gc.collect(1)
assert gc.get_count()[2] > 10
passes = []
gc.callbacks.append(lambda phase, told: passes.append(told["generation"]))
gc.enable()
{step}
during = list(passes)
more = [[] for _ in range(2000)]
print(2 in during, 0 in during, 2 in passes)
"""


@pytest.mark.slow
def test_a_first_step_waits_for_no_full_pass() -> None:
    program = FIRST_STEP.format(step="model.train_on_batch(x, y)")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True", "True"], done.stderr
