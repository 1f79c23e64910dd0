"""Hostile files through every door: no code runs, no other file is read, no room is wasted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
ROOT = Path(__file__).resolve().parents[3]


def run(*arguments: object) -> list[str]:
    """What the program finds wrong, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.laminar.saving.hostile_doors", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    problems: list[str] = json.loads(done.stdout)
    return problems


@pytest.mark.slow
def test_the_corpus(tmp_path: Path) -> None:
    assert run("corpus", tmp_path) == []
    assert len(list(tmp_path.iterdir())) > 150


@pytest.mark.slow
def test_flipped_bits(tmp_path: Path) -> None:
    assert run("fuzz", tmp_path, 400) == []


@pytest.mark.exhaustive
def test_many_flipped_bits(tmp_path: Path) -> None:
    assert run("fuzz", tmp_path, 5000) == []
