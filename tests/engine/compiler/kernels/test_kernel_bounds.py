from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
MODULE = "tests.engine.compiler.kernels.kernel_bounds"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses mprotect")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", MODULE, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_kernels_stay_inside_of_their_arrays() -> None:
    done = run()
    assert done.stdout == "all inside\n", done.stderr


def test_the_guard_would_notice() -> None:
    assert run("beyond").returncode == -signal.SIGSEGV
