"""The table that says which module declares which ops is what the modules do."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys

import pytest

from laminar import engine
from laminar.engine import ops
from laminar.engine.errors import AlreadyExistsError
from laminar.engine.late import read_stub
from laminar.engine.ops import names

# Tells for each op the module that was being loaded when it was defined.
PROGRAM = """
import importlib, json, pkgutil, sys
from laminar import engine
from laminar.engine.ops.core import registry

def register(op, register=registry.register):
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>" or not frame.f_globals["__name__"].startswith("lam"):
        frame = frame.f_back
    found[op.type] = frame.f_globals["__name__"]
    return register(op)

found, registry.register = {}, register
for room in ("ops", "functions", "state"):
    package = importlib.import_module(f"laminar.engine.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
print(json.dumps(found))
"""


def test_each_op_is_in_the_line_of_its_module() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    wrong = {t: module for t, module in found.items() if names.module_of(t) != module}
    assert not wrong, "say in engine/ops/names.py that these modules declare these ops"
    assert set(names.declared_names()) == set(found), "engine/ops/names.py names what is not there"


def test_looking_an_op_up_loads_what_declares_it() -> None:
    program = (
        "import sys; from laminar.engine import lookup; lookup('Cholesky'); "
        "assert 'laminar.engine.ops.linalg.decompositions' in sys.modules; "
        "assert 'laminar.engine.ops.linalg.einsum' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_name_of_an_op_that_is_not_loaded_is_taken() -> None:
    program = (
        "from laminar.engine import define\n"
        "try: define('Cholesky')(lambda x: x)\n"
        "except Exception as error: print(type(error).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == AlreadyExistsError.__name__, done.stderr


def test_unknown_names_get_near_ones_of_all_ops() -> None:
    with pytest.raises(engine.errors.NotFoundError, match="Cholesky"):
        engine.lookup("Cholesk")


def test_each_file_of_a_room_is_a_name() -> None:
    files = {
        file.name
        for room in pkgutil.iter_modules(ops.__path__)
        if room.ispkg
        for file in pkgutil.iter_modules([f"{folder}/{room.name}" for folder in ops.__path__])
    }
    assert read_stub(f"{ops.__file__}i").keys() == files, "engine/ops/__init__.pyi"
