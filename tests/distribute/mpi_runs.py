"""Runs of several processes by mpirun, for tests; what needs it is skipped where MPI is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.distribute.collectives import mpi
from laminar.distribute.launch import mpi_command

ROOT = Path(__file__).resolve().parents[2]
WAIT = 120.0  # for all of a run, which takes some seconds

needs_mpi = pytest.mark.skipif(
    not mpi.is_installed(), reason="mpi4py and an MPI library: pip install 'laminar[mpi]'"
)


def run(count: int, *arguments: str, options: tuple[str, ...] = ()) -> Any:
    """Run a program of tests/distribute/ by so many workers; gives its exit code and its text."""
    program, *rest = arguments
    command = [*mpi_command(count), *options, sys.executable]
    with tempfile.TemporaryDirectory(prefix="mpi-") as folder:  # of sockets: the name is short
        process = subprocess.Popen(
            [*command, str(Path(__file__).parent / program), *rest],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(folder),
            start_new_session=True,
        )
        try:
            text, _ = process.communicate(timeout=WAIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, _ = process.communicate()
            pytest.fail(f"{program} {rest} hangs: {text[-3000:]}")
    return process.returncode, text


def environment(folder: str) -> dict[str, str]:
    """That of a run: mpirun leaves files, where it is killed, in a folder that goes."""
    return dict(os.environ, PYTHONPATH=str(ROOT), PYTHONFAULTHANDLER="1", TMPDIR=folder)


def found_by(folder: Path) -> list[dict[str, Any]]:
    """What the workers have written, by rank."""
    found = []
    for path in sorted(folder.glob("*.npz"), key=lambda p: int(p.stem)):
        with np.load(path) as file:
            found.append(dict(file))
    return found
