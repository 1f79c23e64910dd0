"""The folders, the package, the links and the directions of the imports agree."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("datasets", "distribute", "engine", "layers", "optimizers")

# The rooms of the face that know nothing of layers: layers and optimizers stand on them.
BASE = {
    "activations",
    "config",
    "constraints",
    "dtype_policies",
    "file_reading",
    "initializers",
    "naming",
    "ops",
    "quantizers",
    "random",
    "recorded",
    "regularizers",
    "serialization",
    "settings",
    "tree",
    "typing",
}
# Which rooms of the package each room may import; laminar's own rooms above BASE may import all.
MAY_IMPORT = {
    "engine": set[str](),
    "datasets": {"engine", *BASE},
    "optimizers": {"engine", *BASE},
    "layers": {"engine", *BASE},
    "distribute": {"engine", "optimizers", "layers", *BASE},
    **{room: {"engine", *BASE} for room in sorted(BASE)},
}
# The doors inside the engine.
ENGINE_MAY_IMPORT = {
    "graph": set[str](),
    "io": set[str](),
    "resources": {"io"},
    "ops": {"graph", "io", "resources"},
    "devices": {"graph", "ops"},
    "gradients": {"graph", "ops"},
    "passes": {"devices", "graph", "ops"},
    "state": {"graph", "io", "ops", "resources"},
    "runtime": {"devices", "graph", "ops", "passes"},
    "compiler": {"graph", "ops"},
    "functions": {"graph", "ops", "gradients", "passes", "runtime", "state"},
}


def python_files(folder: Path) -> Iterator[Path]:
    return (p for p in sorted(folder.rglob("*.py")) if "__pycache__" not in p.parts)


def imports(path: Path, package: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The modules that a file imports, as paths from `laminar`, with their lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = (*base, *(node.module or "").split(".")) if node.module else base
            for alias in node.names:
                yield node.lineno, (*module, alias.name)


def package_of(path: Path, folder: Path, name: tuple[str, ...]) -> tuple[str, ...]:
    """The package that a file belongs to, as a path from `laminar`."""
    return (*name, *path.relative_to(folder).parent.parts)


def test_every_package_is_in_the_wheel() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {
        ".".join(("laminar", *init.parent.relative_to(ROOT).parts))
        for folder in FOLDERS
        for init in (ROOT / folder).rglob("__init__.py")
    }
    found |= {
        ".".join(init.parent.relative_to(ROOT).parts)
        for init in (ROOT / "laminar").rglob("__init__.py")
        if init.relative_to(ROOT / "laminar").parts[0] not in FOLDERS
    }
    assert set(settings["packages"]) == found


@pytest.mark.parametrize("folder", FOLDERS)
def test_link(folder: str) -> None:
    assert (ROOT / "laminar" / folder).resolve() == ROOT / folder


def test_links_are_relative() -> None:
    for folder in FOLDERS:
        link = ROOT / "laminar" / folder
        if link.is_symlink():
            assert str(link.readlink()) == f"../{folder}"


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_imports_point_down(room: str) -> None:
    home = ROOT / room if room in FOLDERS else ROOT / "laminar" / room
    files = python_files(home) if home.is_dir() else [home.with_suffix(".py")]
    allowed = MAY_IMPORT[room] | {room}
    for path in files:
        anchor = home if home.is_dir() else home.parent
        name = ("laminar", room) if home.is_dir() else ("laminar",)
        for line, target in imports(path, package_of(path, anchor, name)):
            if target[0] == "laminar" and len(target) > 1 and not target[1].startswith("_"):
                assert target[1] in allowed, f"{path.relative_to(ROOT)}:{line} imports {target[1]}"


@pytest.mark.parametrize("room", ENGINE_MAY_IMPORT)
def test_doors_of_the_engine(room: str) -> None:
    home = ROOT / "engine" / room
    allowed = ENGINE_MAY_IMPORT[room] | {room}
    for path in python_files(home):
        for line, target in imports(path, package_of(path, home, ("laminar", "engine", room))):
            inside = target[:2] == ("laminar", "engine") and len(target) > 2
            if inside and target[2] in ENGINE_MAY_IMPORT:
                where = f"{path.relative_to(ROOT)}:{line}"
                assert target[2] in allowed, f"{where} imports {target[2]}"


def test_relative_inside_a_folder_absolute_across() -> None:
    for folder in FOLDERS:
        for path in python_files(ROOT / folder):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    inside = node.module == f"laminar.{folder}"
                    inside |= node.module.startswith(f"laminar.{folder}.")
                    where = f"{path.relative_to(ROOT)}:{node.lineno}"
                    assert not inside, f"{where}: import {node.module} relatively"


def test_import_is_quick_and_quiet() -> None:
    program = (
        "import sys, time; start = time.process_time(); import laminar; "
        "taken = time.process_time() - start; "
        "heavy = {'llvmlite', 'cupy', 'grpc', 'h5py', 'matplotlib', 'rich', 'tqdm'}; "
        "assert not heavy & set(sys.modules), heavy & set(sys.modules); "
        "sys.exit(0 if taken < 0.2 else f'import laminar took {taken:.3f} s')"
    )
    best = min(
        (
            subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, check=False
            )
            for _ in range(3)
        ),
        key=lambda run: run.returncode,
    )
    assert best.returncode == 0, best.stderr
    assert best.stdout == ""
    assert best.stderr == ""


def test_no_module_is_loaded_twice() -> None:
    doubles = [name for name in sys.modules if name.split(".")[0] in FOLDERS]
    ours = [n for n in doubles if str(ROOT) in str(getattr(sys.modules[n], "__file__", ""))]
    assert not ours, f"loaded beside the package: {ours}"
