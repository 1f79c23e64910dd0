"""ARCHITECTURE.md names what there is: its files, folders, classes and functions."""

from __future__ import annotations

import re

from tests.test_repository import FILES, OWN_CODE, ROOT

PLAN = (ROOT / "ARCHITECTURE.md").read_text()
QUOTED = set(re.findall(r"`([^`\n]+)`", PLAN))
# The folders of the list of rooms: the first words of its lines.
ROOMS = PLAN[PLAN.index("## Rooms") : PLAN.index("Which room may import which")]
LISTED = {
    folder
    for line in re.findall(r"^ {4,}((?:\w+/ ?)+)", ROOMS, re.MULTILINE)
    for folder in line.split()
}
PLACES = {x for x in QUOTED if re.fullmatch(r"[\w/]+(\.py|/)", x)} | LISTED
NAMES = {x for x in QUOTED if re.fullmatch(r"[A-Za-z_][\w.]*(\(\))?", x)} - PLACES


def test_the_names_are_found() -> None:
    assert {"plan/executable_plan.py", "gemm/", "engine/"} <= PLACES
    assert {"KernelCall", "NativeCluster.prepare"} <= NAMES


def test_there_is_each_file_and_folder() -> None:
    files = {path.relative_to(ROOT) for path in FILES}
    folders = {folder for path in files for folder in path.parents}
    there = {f"/{path}" for path in files} | {f"/{folder}/" for folder in folders}
    missing = [x for x in sorted(PLACES) if not any(name.endswith(f"/{x}") for name in there)]
    assert not missing


def test_the_code_has_each_name() -> None:
    words = {word for path in OWN_CODE for word in re.findall(r"\w+", path.read_text())}
    missing = [x for x in sorted(NAMES) if x.removesuffix("()").split(".")[-1] not in words]
    assert not missing
