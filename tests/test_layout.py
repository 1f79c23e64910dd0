"""The folders, the package, the links and the directions of the imports agree."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("datasets", "distribute", "engine", "layers", "optimizers")

# The rooms of the face that know nothing of layers: layers and optimizers stand on them.
BASE = {
    "activations",
    "bounding_boxes",
    "config",
    "constraints",
    "copying",
    "dtype_policies",
    "file_reading",
    "initializers",
    "naming",
    "ops",
    "quantizers",
    "random",
    "recorded",
    "registration",
    "regularizers",
    "serialization",
    "settings",
    "tree",
    "typing",
    "windows",
}
# Which rooms of the package each room may import; laminar's own rooms that are not here may import
# all.
MAY_IMPORT = {
    "engine": set[str](),
    "datasets": {"engine", *BASE},
    "optimizers": {"engine", *BASE},
    "layers": {"engine", *BASE},
    "distribute": {"engine", "optimizers", "layers", *BASE},
    "training": {
        "callbacks",
        "datasets",
        "distribute",
        "distribution",
        "engine",
        "layers",
        "losses",
        "metrics",
        "optimizers",
        "paths",
        "saving",
        "utils",
        *BASE,
    },
    **{room: {"engine", *BASE} for room in sorted(BASE)},
}
# The doors inside the engine.
ENGINE_MAY_IMPORT = {
    "graph": set[str](),
    "io": set[str](),
    "checkpoint": {"graph", "io"},
    "resources": {"io"},
    "ops": {"checkpoint", "graph", "io", "resources"},
    "cuda": {"graph", "ops"},
    "devices": {"cuda", "graph", "ops"},
    "gradients": {"graph", "ops"},
    "passes": {"devices", "graph", "ops"},
    "state": {"graph", "io", "ops", "resources"},
    "saving": {"checkpoint", "graph", "io", "ops", "state"},
    "runtime": {"devices", "graph", "io", "ops", "passes"},
    "compiler": {"graph", "io", "ops"},
    "summary": {"graph", "io", "ops", "resources", "runtime", "state"},
    "training": {
        "checkpoint",
        "graph",
        "io",
        "ops",
        "runtime",
        "saving",
        "state",
        "summary",
    },
    "functions": {"graph", "ops", "gradients", "passes", "runtime", "state"},
    "autograph": {"graph", "ops", "state", "functions"},
}
# The doors inside of distribute: to rooms, and to files beside them.
DISTRIBUTE_MAY_IMPORT = {"wire": set[str](), "cluster": {"cluster_spec", "proto", "wire"}}
# The rooms of the compiler: each may import those before it.
COMPILER_ROOMS = (
    *("target", "ir", "schedule", "codegen", "kernels", "lower", "plan", "native", "cuda"),
)
# The files that import each other, with the reason.
CIRCLES = {
    "a graph makes operations, which make tensors; each knows its graph": {
        "engine/graph/graph.py",
        "engine/graph/operation.py",
        "engine/graph/scopes.py",
        "engine/graph/tensor.py",
    },
    "a model saves itself to a file; what is in a file is made a model": {
        "laminar/distillation/__init__.py",
        "laminar/distillation/distiller.py",
        "laminar/models/__init__.py",
        "laminar/models/cloning.py",
        "laminar/models/model.py",
        "laminar/models/sequential.py",
        "laminar/saving/model.py",
        "laminar/saving/pickled.py",
        "laminar/saving/restore.py",
        "laminar/saving/state.py",
        "laminar/saving/whole.py",
    },
}
# Files longer than this are two files.
MOST_LINES = 500


def python_files(folder: Path) -> Iterator[Path]:
    return (p for p in sorted(folder.rglob("*.py")) if "__pycache__" not in p.parts)


@functools.cache
def import_statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """All of a file, those inside of functions too; of a late package, those of its stub."""
    stub = path.with_suffix(".pyi")
    tree = ast.parse((stub if stub.exists() else path).read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(path: Path, package: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The modules that a file imports, as paths from `laminar`, with their lines."""
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, tuple(alias.name.split("."))
        else:
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


def check_doors(home: Path, package: tuple[str, ...], doors: Mapping[str, Collection[str]]) -> None:
    """Each room of a package imports no other rooms of it than its doors lead to."""
    for room, allowed in doors.items():
        for path in python_files(home / room):
            for line, target in imports(path, package_of(path, home, package)):
                found = target[len(package)] if target[: len(package)] == package else room
                if found in doors and found != room:
                    where = f"{path.relative_to(ROOT)}:{line}"
                    assert found in allowed, f"{where} imports {found}"


def test_doors_of_the_engine() -> None:
    check_doors(ROOT / "engine", ("laminar", "engine"), ENGINE_MAY_IMPORT)


def test_doors_of_distribute() -> None:
    home = ROOT / "distribute"
    check_doors(home, ("laminar", "distribute"), DISTRIBUTE_MAY_IMPORT)
    files = {path.stem for path in home.glob("*.py")}
    for room, allowed in DISTRIBUTE_MAY_IMPORT.items():
        for path in python_files(home / room):
            for line, target in imports(path, package_of(path, home, ("laminar", "distribute"))):
                beside = target[:2] == ("laminar", "distribute") and target[2:3]
                where = f"{path.relative_to(ROOT)}:{line}"
                assert not (beside and beside[0] in files - allowed), f"{where} imports {beside}"


def test_doors_of_the_compiler() -> None:
    home = ROOT / "engine" / "compiler"
    assert {p.parent.name for p in home.glob("*/*.py")} == set(COMPILER_ROOMS)
    doors = {room: COMPILER_ROOMS[:i] for i, room in enumerate(COMPILER_ROOMS)}
    check_doors(home, ("laminar", "engine", "compiler"), doors)


def imported_files() -> dict[str, set[str]]:
    """For each file those that it imports anywhere in it: those that have the names that it takes.

    A late package itself imports nothing.
    """
    files: dict[tuple[str, ...], Path] = {}  # by module
    for path in (p for top in (*FOLDERS, "laminar") for p in python_files(ROOT / top)):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] in FOLDERS:
            parts = ("laminar", *parts)
        elif parts[1] in FOLDERS:
            continue
        files[parts[:-1] if parts[-1] == "__init__" else parts] = path
    homes = {
        (*package, target[-1]): target
        for package, path in files.items()
        if is_late(path)
        for _, target in imports(path, package)
    }

    def file_of(target: tuple[str, ...]) -> Path | None:
        while target in homes and homes[target] != target:
            target = homes[target]
        return files.get(target) or files.get(target[:-1])

    found = {}
    for module, path in files.items():
        package = module if path.name == "__init__.py" else module[:-1]
        near = () if is_late(path) else (file_of(t) for _, t in imports(path, package))
        found[_name(path)] = {_name(p) for p in near if p is not None and p != path}
    return found


def is_late(path: Path) -> bool:
    """Whether a file is a package whose names are loaded when they are asked for."""
    return path.with_suffix(".pyi").exists()


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def circles(graph: Mapping[str, Collection[str]]) -> list[set[str]]:
    """The largest sets of files each of which leads to each other one, by Tarjan's algorithm."""
    found: list[set[str]] = []
    lowest: dict[str, int] = {}  # the number of the first file on the stack that a file leads to
    stack: list[str] = []

    def visit(file: str) -> None:
        number, place = len(lowest), len(stack)
        lowest[file] = number
        stack.append(file)
        for other in graph[file]:
            if other not in lowest:
                visit(other)
            lowest[file] = min(lowest[file], lowest[other])
        if lowest[file] == number:
            circle = set(stack[place:])
            del stack[place:]
            lowest.update(dict.fromkeys(circle, len(graph)))
            if len(circle) > 1:
                found.append(circle)

    for file in graph:
        if file not in lowest:
            visit(file)
    return found


def test_no_circles_of_imports_but_those_explained() -> None:
    found = circles(imported_files())
    assert not [sorted(circle) for circle in found if circle not in CIRCLES.values()]
    assert len(found) == len(CIRCLES), "one that is explained is there no more"


@pytest.mark.parametrize("folder", ["compiler", "passes", "runtime"])
def test_files_are_short(folder: str) -> None:
    lines = {
        _name(p): len(p.read_text().splitlines()) for p in python_files(ROOT / "engine" / folder)
    }
    assert not {name: n for name, n in lines.items() if n > MOST_LINES}


def test_relative_inside_a_folder_absolute_across() -> None:
    for folder in FOLDERS:
        for path in python_files(ROOT / folder):
            if path.name.endswith("_pb2.py"):
                continue  # protoc writes absolute imports
            for node in import_statements(path):
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
