"""What is loaded on first use, by several threads at the same time."""

from __future__ import annotations

import subprocess
import sys

import pytest

# One thread loads the compiler; when it is in the midst of that, another one loads a part of it.
SCRIPT = """
import importlib.abc, sys, threading, time
import numpy as np
import laminar
from laminar import ops

begun, failed = threading.Event(), []

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "laminar.engine.compiler.native.cluster_kernel":
            begun.set()
            time.sleep(0.3)

sys.meta_path.insert(0, Slow())
threading.excepthook = lambda told: failed.append(told.exc_value)

def first():
    laminar.function(lambda x: ops.softmax(x) * 2 + 1)(np.ones((3, 4), "float32"))

def second():
    begun.wait(20)
    {use}

threads = [threading.Thread(target=run) for run in (first, second)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed, begun.is_set())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "use",
    [
        "laminar.set_threads(2)",
        "from laminar.saving.checksum import _fastest; _fastest(1 << 30)(b'', 0)",
        "from laminar.engine.devices import local_devices; local_devices()[0].compiler.prepare()",
    ],
)
def test_a_part_is_used_while_another_thread_loads_the_whole(use: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("{use}", use)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[] True\n", done.stderr
