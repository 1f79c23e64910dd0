"""The recipes of CONTRIBUTING.md, followed to the letter, work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
BLOCKS = re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_each_recipe_has_tests_that_pass(tmp_path: Path) -> None:
    assert TEXT.count("```python") == len(BLOCKS) == len(dict(BLOCKS)), "name each file, once"
    for name, code in BLOCKS:
        (tmp_path / name).write_text(code)
    recipes = re.findall(r"^### (.*)$", TEXT, re.MULTILINE)
    tests = [name for name, _ in BLOCKS if name.startswith("test_")]
    assert len(tests) == len(recipes) == 5
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *tests],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_places_that_it_names_exist() -> None:
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", TEXT))
    assert len(named) > 10
    assert [place for place in sorted(named) if not (ROOT / place).exists()] == []
