"""Environment variables: README.md lists what the code reads; what a run of tests sets."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("datasets", "distribute", "engine", "laminar", "layers", "optimizers")


def test_readme_lists_what_is_read() -> None:
    section = (ROOT / "README.md").read_text().partition("\n## Environment variables\n")[2]
    listed = re.findall(r"^\| `(LAMINAR_\w+)` \|", section.partition("\n## ")[0], re.MULTILINE)
    read = {
        name
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"environ(?:\.get\(|\[)\"(LAMINAR_\w+)\"", path.read_text())
    }
    assert sorted(read) == listed


def test_processes_of_a_run_share_what_they_compile() -> None:
    """Native code, and bytecode of laminar: tests start some hundred programs."""
    assert os.environ["LAMINAR_CACHE"]
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ
