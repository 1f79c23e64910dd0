"""Workers as seen by the process that starts them: their interpreters, environment and replies."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from .cases import ROOT
from .isa import restricted

# Variables that force OpenBLAS to kernels other than those it would choose for this processor.
FORCED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
# Variables that say how many threads a library starts. JAX reads NPROC, NumPy its BLAS's.
THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "BLIS_NUM_THREADS", "NPROC"),
    *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
)


class WorkerError(RuntimeError):
    """A worker ended before it replied; the message holds the end of what it printed."""


@dataclass(frozen=True)
class Framework:
    """A framework that was found: where it is, what it has, the instruction set it is kept to.

    `root` is the checkout that its worker runs from: this one, or an older one of laminar.
    """

    name: str
    python: str
    workloads: frozenset[str]
    versions: Mapping[str, str]
    isa: str | None = None
    root: Path = ROOT


def find(name: str, python: str, isa: str | None = None, root: Path = ROOT) -> Framework:
    """Ask the interpreter `python` for a framework.

    Args:
        name: of the framework; laminar in another checkout than this one is called by its folder.
        python: the interpreter that has it.
        isa: the instruction set to keep to.
        root: the checkout to run from.

    Raises:
        WorkerError: it cannot be imported there.
    """
    with Worker(name, python, isa=isa, root=root) as worker:
        about = worker.receive()
    shown = name if root == ROOT else f"{name} in {root.name}"
    return Framework(shown, python, frozenset(about["workloads"]), about["versions"], isa, root)


def environment(
    threads: int, framework: str = "laminar", isa: str | None = None, root: Path = ROOT
) -> dict[str, str]:
    """The environment of a worker: this one's, without what would favour or hinder a library."""
    variables = {name: value for name, value in os.environ.items() if name not in FORCED}
    variables |= dict.fromkeys(THREADS, str(threads))
    variables["KERAS_BACKEND"] = "tensorflow" if framework.endswith("tensorflow") else "jax"
    if variables.pop("PYTHONDONTWRITEBYTECODE", ""):  # or each process would compile all modules
        variables.setdefault("PYTHONPYCACHEPREFIX", byte_code_folder())
    variables["TF_CPP_MIN_LOG_LEVEL"] = "3"
    variables["JAX_PLATFORMS"] = "cpu"
    variables["CUDA_VISIBLE_DEVICES"] = ""
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables["PYTHONPATH"] = os.pathsep.join(paths)
    if threads == 1:
        flags = [os.environ.get("XLA_FLAGS", ""), "--xla_cpu_multi_thread_eigen=false"]
        variables["XLA_FLAGS"] = " ".join(flags).strip()
    return restricted(variables, isa)


@functools.cache
def byte_code_folder() -> str:
    """Where modules are kept once compiled, as long as this process lives."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class Worker:
    """A worker process; used in a `with` statement, which ends it."""

    def __init__(
        self,
        framework: str,
        python: str = sys.executable,
        workload: str | None = None,
        cores: Sequence[int] = (),
        *,
        tiny: bool = False,
        isa: str | None = None,
        root: Path = ROOT,
        explains: bool = False,
    ) -> None:
        framework = framework.split()[0]  # laminar in another folder is laminar
        command = [python, "-m", f"{__package__}.worker", framework]
        if workload is not None:
            command += [workload, *map(str, cores), *(["--tiny"] if tiny else [])]
            command += ["--explain"] if explains else []
        self.framework = framework
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  closed by __exit__
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=root,
            env=environment(max(1, len(cores)), framework, isa, root),
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._process.kill()
        self._process.communicate()
        self._errors.close()

    def measure(self, seconds: float) -> dict[str, Any]:
        """Time a block."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the worker is gone: `receive` tells why
            print(json.dumps({"seconds": seconds}), file=self._process.stdin, flush=True)
        return self.receive()

    def receive(self) -> dict[str, Any]:
        """Wait for the next reply.

        Raises:
            WorkerError: there is none.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise WorkerError("".join(self._errors.readlines()[-12:]).strip())
        reply: dict[str, Any] = json.loads(line)
        return reply
