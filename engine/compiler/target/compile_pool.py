"""Many modules compiled at once, where cores are free: by this process, and by helpers.

llvmlite lets one thread of a process at a time into LLVM, so helpers are processes; they know LLVM
alone (see llvm_worker.py). Each is fed by a thread, and each takes the next module when it is
done with one. A helper that cannot be started, or that fails, is one less: its module is made by
somebody else, in the end by this process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TypeAlias

from . import llvm, llvm_worker

# A helper starts in the time that about this many modules take; it is not worth it for fewer.
_MODULES_OF_HELPER = 12
_MOST_HELPERS = 3
_PATIENCE_SECONDS = 10.0  # with helpers that have a module
_LOAD = Path("/proc/loadavg")  # on Linux: among others how many threads run or could, of how many

Compile: TypeAlias = Callable[[str, int, str], bytes]


class Helper:
    """A process that compiles; used in a `with` statement, which ends it.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self) -> None:
        if not _is_python(sys.executable):
            raise FileNotFoundError("the interpreter is part of another program")
        folder = Path(sys.modules["llvmlite"].__file__ or "").parents[1]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", llvm_worker.__file__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the keyboard is for this process
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests: IO[bytes] = self._process.stdin
        self._replies: IO[bytes] = self._process.stdout

    def __enter__(self) -> Helper:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._replies.close()
        try:
            self._requests.close()
        except OSError:  # it holds a part of a request
            return

    def is_ready(self) -> bool:
        """Wait until it is; False if it makes other code than this process."""
        return self._replies.readline().decode().strip() == llvm_worker.version()

    def compile_object(self, text: str, vector: int, suffix: str) -> bytes:
        """Object code; see `llvm.compile_object`.

        Raises:
            OSError, ValueError, EOFError: it failed.
        """
        content = text.encode()
        request = {"size": len(content), "features": llvm.features(vector), "suffix": suffix}
        self._requests.write(json.dumps(request).encode() + b"\n" + content)
        self._requests.flush()
        size = int(self._replies.readline())
        found = self._replies.read(size)
        if len(found) < size:
            raise EOFError("the helper has ended")
        return found


def compile_all(keys: Sequence[str], make: Callable[[str, Compile], None]) -> None:
    """Make what belongs to each key, several at once.

    Args:
        keys: all different.
        make: called for each of them with what compiles; on threads besides this one, too.

    Raises:
        Exception: what `make` raises on this thread.
    """
    waiting, done = deque(keys), set[str]()
    changed = threading.Condition()

    def work(to_object: Compile) -> None:
        while True:
            try:
                key = waiting.popleft()
            except IndexError:
                return
            try:
                make(key, to_object)
            except BaseException:
                with changed:
                    waiting.append(key)
                    changed.notify()
                raise
            with changed:
                done.add(key)
                changed.notify()

    def help_out() -> None:
        try:
            with Helper() as helper:
                if helper.is_ready():
                    work(helper.compile_object)
        except Exception:
            return  # what is missing is made by the thread that waits, which may raise the same

    for _ in range(_num_helpers(len(keys))):
        threading.Thread(target=help_out, name="laminar-compile", daemon=True).start()
    try:
        while len(done) < len(keys):
            work(llvm.compile_object)
            with changed:
                if not changed.wait_for(
                    lambda: waiting or len(done) == len(keys), _PATIENCE_SECONDS
                ):
                    waiting.extend(key for key in keys if key not in done)
    finally:
        waiting.clear()


def _num_helpers(num_modules: int) -> int:
    """How many helpers there are to be for so many modules."""
    most = min(num_modules // _MODULES_OF_HELPER, _MOST_HELPERS)
    return max(min(most, _free_cores()), 0) if most else 0


def _free_cores() -> int:
    """How many of this process's cores nobody uses at the moment, besides the one it runs on."""
    cores = all_cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    try:
        running = int(_LOAD.read_text().split()[3].partition("/")[0])
    except OSError:
        running = 1
    return cores - 1 - round((running - 1) * cores / max(all_cores, cores))


def _is_python(executable: str | None) -> bool:
    """Whether a program is an interpreter: in programs that embed one it is the program itself."""
    name = Path(executable or "").name.lower()
    return name.startswith(("python", "pypy")) and not hasattr(sys, "frozen")
