"""Names of packages that are loaded when they are asked for."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import laminar
from laminar.engine.late import late, read_stub

ROOT = Path(laminar.__file__).parent

PROGRAM = """
import sys
from laminar import engine, ops
ops.ones((2,))
rooms = ("saving", "training", "summary", "state.queues", "state.readers", "state.batching")
rooms = (*rooms, "checkpoint.reader")
before = [r for r in rooms if f"laminar.engine.{r}" in sys.modules]
assert not before, before
engine.FIFOQueue, engine.Saver, engine.MonitoredSession, engine.summary.scalar
after = [r for r in rooms if f"laminar.engine.{r}" not in sys.modules]
assert after == ["state.readers", "state.batching"], after
"""


def late_packages() -> list[str]:
    folders = [Path(folder) for folder, _, _ in os.walk(ROOT, followlinks=True)]
    late = [folder for folder in folders if (folder / "__init__.pyi").exists()]
    return sorted(".".join(("laminar", *folder.relative_to(ROOT).parts)) for folder in late)


LATER = re.compile(r'\blater\(\s*"([\w.]+)",\s*"(\w+)"')


def test_what_is_taken_from_rooms_above_is_there() -> None:
    files = [Path(folder, f) for folder, _, names in os.walk(ROOT, followlinks=True) for f in names]
    texts = [file.read_text() for file in files if file.suffix == ".py"]
    named = {found for text in texts for found in LATER.findall(text) if "." in found[0]}
    assert ("laminar.engine.functions.scans", "map_slices") in named
    for module, name in sorted(named):
        assert hasattr(importlib.import_module(module), name), (module, name)


def test_what_a_program_does_without_is_not_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package", late_packages())
def test_all_names_are_there(package: str) -> None:
    module = importlib.import_module(package)
    names = module.__all__
    assert names
    for name in names:
        assert getattr(module, name) is not None
    assert {*names} <= {*dir(module)}
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        module.Nothing  # noqa: B018  # what is not there


@pytest.mark.parametrize("package", late_packages())
def test_a_name_stays_what_it_is_when_a_module_of_that_name_is_loaded(package: str) -> None:
    module = importlib.import_module(package)
    homes = read_stub(f"{Path(str(module.__file__)).with_suffix('.pyi')}")
    for file in pkgutil.iter_modules(module.__path__):
        home = homes.get(file.name)
        if home is not None and home.attribute:
            importlib.import_module(f"{package}.{file.name}")
            own = importlib.import_module(home.module, package)
            assert getattr(module, file.name) is getattr(own, home.attribute), file.name


def test_a_stub_may_have_more_names_than_a_line_holds(tmp_path: Path) -> None:
    stub = tmp_path / "__init__.pyi"
    stub.write_text(
        '"""Names."""\n\nfrom . import a as a\nfrom .b.c import (\n    d as d,\n    e as f,\n)\n'
        "from ..g import h as h\n\nversion: str\n"
    )
    expected = {"a": (".a", ""), "d": (".b.c", "d"), "f": (".b.c", "e"), "h": ("..g", "h")}
    assert read_stub(str(stub)) == expected


def test_a_package_without_stub_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        late("laminar", str(tmp_path / "__init__.py"))
