"""Memory of results is used again."""

import os
import platform
import subprocess
import sys

import pytest

# Four results of 1024 x 1024 at a time, as a function that returns them makes and drops.
PROGRAM = """
import resource
import numpy as np
import laminar.engine.compiler

def make():
    results = [np.empty((1024, 1024), np.float32) for _ in range(4)]
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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have other rules")
def test_results_take_no_page_faults_again() -> None:
    chosen = ("MALLOC_", "GLIBC_TUNABLES")
    env = {name: value for name, value in os.environ.items() if not name.startswith(chosen)}
    run = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
    # Ten rounds over 4,096 pages.
    assert int(found.stdout) < 1000
