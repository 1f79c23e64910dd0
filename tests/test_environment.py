"""The environment variables that the code reads are those that README.md lists."""

from __future__ import annotations

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
