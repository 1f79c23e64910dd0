"""Serving an exported file loads what running needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from laminar.engine import Variable
from laminar.engine.graph import TensorSpec
from laminar.export import ExportArchive

SERVES = """
import sys
import laminar
served = laminar.export.load(sys.argv[1])
loaded = {name.split(".")[1] for name in sys.modules if name.startswith("laminar.")}
assert loaded == {"engine", "export", "saving"}, loaded
heavy = {"llvmlite", "h5py", "jax", "laminar.engine.autograph", "laminar.engine.compiler"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert served([[1.0, 2.0]]).tolist() == [[2.0, 4.0]]
"""


def test_reading_loads_neither_layers_nor_the_compiler(tmp_path: Path) -> None:
    scale = Variable(2.0)
    archive = ExportArchive()
    archive.track(scale)
    archive.add_endpoint("serve", lambda x: x * scale, [TensorSpec([None, 2])])
    archive.write_out(tmp_path / "file.laminar", verbose=False)
    command = [sys.executable, "-c", SERVES, str(tmp_path / "file.laminar")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert not done.returncode, done.stderr
