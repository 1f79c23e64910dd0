"""No native code of an op reads or writes outside of its arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLUGIN = "tests.engine.compiler.array_bounds"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses mprotect")


def run(edge: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run checks of ops with guards at one edge of all arrays."""
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", PLUGIN, *arguments]
    environment = {**os.environ, "GUARD": edge}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("edge", ["end", "begin"])
def test_rows_stay_inside_of_their_arrays(edge: str) -> None:
    done = run(
        edge,
        "tests/engine/ops/nn/test_softmax.py",
    )
    assert done.returncode == 0, done.stdout + done.stderr


# Each takes less than a minute.
PIECES = 8
FILES = sorted(
    str(path.relative_to(ROOT))
    for path in (
        *(ROOT / "tests/engine/ops").rglob("test_*.py"),
        ROOT / "tests/engine/compiler/test_random_and_casts.py",
        ROOT / "tests/engine/compiler/lower/test_loops.py",
    )
)


@pytest.mark.exhaustive
@pytest.mark.parametrize("edge", ["end", "begin"])
@pytest.mark.parametrize("piece", range(PIECES))
def test_all_ops_stay_inside_of_their_arrays(edge: str, piece: int) -> None:
    done = run(edge, *FILES[piece::PIECES])
    assert done.returncode == 0, done.stdout + done.stderr
