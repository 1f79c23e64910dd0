"""Memory of results is used again."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest

import laminar

# Four results at a time, as a function that returns them makes and drops.
PROGRAM = """
import resource
import sys
import numpy as np
import laminar.engine.compiler

size = int(sys.argv[1])

def make():
    results = [np.empty((size, size), np.float32) for _ in range(4)]
    for result in results:
        result.fill(0)

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(3):
    make()
before = faults()
for _ in range(10):
    make()
print(faults() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have other rules")
@pytest.mark.parametrize("size", [1024, 2048])
def test_results_take_no_page_faults_again(size: int) -> None:
    chosen = ("MALLOC_", "GLIBC_TUNABLES")
    env = {name: value for name, value in os.environ.items() if not name.startswith(chosen)}
    run = [sys.executable, "-c", PROGRAM, str(size)]
    found = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
    # Ten rounds over 4,096 or 16,384 pages, if they are not huge.
    assert int(found.stdout) < 1000


def test_large_results_begin_at_a_line_of_the_cache() -> None:
    twice = laminar.function(lambda x: [x + x, x[:3]])
    x = laminar.ops.convert_to_tensor(np.ones((1000, 1001), np.float32))
    kept = [np.asarray(twice(x)[0]) for _ in range(4)]
    assert [result.ctypes.data % 64 for result in kept] == [0] * 4
    assert all((result == 2).all() for result in kept)
