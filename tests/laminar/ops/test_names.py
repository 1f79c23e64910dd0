"""The names of `laminar.ops`, and what the first of them loads."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys

from laminar import ops
from laminar.engine.late import read_stub

# The modules whose public names are those of `laminar.ops`; those of `image` are its own.
MODULES = ("control", "core", "linalg", "math", "nn", "numpy", "rearrangement", "signal")


def test_all_names_that_files_list_are_there() -> None:
    homes = read_stub(f"{ops.__file__}i")
    for file in MODULES:
        module = importlib.import_module(f"laminar.ops.{file}")
        names = [name for name, value in vars(module).items() if inspect.isfunction(value)]
        names = getattr(module, "__all__", names)
        missing = {*names} - homes.keys()
        assert not missing, "these have no line in laminar/ops/__init__.pyi"
        for name in names:
            assert getattr(ops, name) is getattr(module, name), homes[name]


def test_a_new_file_has_its_lines() -> None:
    homes = read_stub(f"{ops.__file__}i")
    for file in pkgutil.iter_modules(ops.__path__):
        module = importlib.import_module(f"laminar.ops.{file.name}")
        missing = {*getattr(module, "__all__", ())} - homes.keys() - vars(ops.image).keys()
        assert not missing, f"names of {file.name}.py without a line in laminar/ops/__init__.pyi"


PROGRAM = """
import sys, laminar
assert float(laminar.ops.add(1.0, 2.0)) == 3.0
loaded = sorted(name for name in sys.modules if name.split(".")[0] == "laminar")
assert len(loaded) <= 57, (len(loaded), loaded)
"""


def test_the_first_op_loads_what_it_needs() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
