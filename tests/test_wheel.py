"""The source distribution, and the wheel that is built from it, have all of laminar."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.test_layout import ROOT

_BUILD = "from setuptools import build_meta; print(build_meta.build_{}({!r}))"
_TOP = ("laminar", "layers", "optimizers", "datasets", "distribute", "engine")
_USE = """
import numpy as np, laminar
from laminar import datasets, distribute, engine, layers, optimizers, utils

assert laminar.__file__.startswith({!r}), laminar.__file__
model = laminar.Sequential([layers.Input((64,)), layers.Dense(10)])
x, y = datasets.digits.load_data()[0]
model.compile("sgd", laminar.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x[:64].reshape(-1, 64).astype("float32"), y[:64], verbose=0)
utils.view_graph(model, "page.html")
"""


def _built(kind: str, source: Path, to: Path) -> Path:
    to.mkdir()
    command = [sys.executable, "-c", _BUILD.format(kind, str(to))]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=120)
    (made,) = to.iterdir()
    return made


@pytest.mark.slow  # builds both
def test_the_wheel_of_the_source_distribution_is_whole(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("README.md", "LICENSE", "pyproject.toml"):
        shutil.copy(ROOT / name, source)
    for name in _TOP:  # links stay links
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=ignored)
    with tarfile.open(_built("sdist", source, tmp_path / "sdist")) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 has it
        archive.extractall(tmp_path / "unpacked")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    wheel = zipfile.ZipFile(_built("wheel", unpacked, tmp_path / "wheel"))
    with wheel:
        found = {name for name in wheel.namelist() if ".dist-info/" not in name}
        home = tmp_path / "installed"
        wheel.extractall(home)
    expected = set()
    for top in _TOP:
        for path in (ROOT / top).rglob("*"):
            inside = path.relative_to(ROOT / top)
            is_linked = any(parent.is_symlink() for parent in path.parents) or path.is_symlink()
            if path.is_file() and not is_linked and path.suffix != ".pyc":
                expected.add(str(Path("laminar") / (inside if top == "laminar" else top / inside)))
    assert found == expected
    command = [sys.executable, "-P", "-c", _USE.format(str(home))]
    environment = {"PYTHONPATH": str(home), "PATH": "", "HOME": str(tmp_path)}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=120)
