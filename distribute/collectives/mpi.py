"""The processes that `mpirun` started, by mpi4py: the one module that uses it.

Only the calls on buffers are used: nothing is pickled. All of them are non-blocking, and this
process looks whether they have ended, so that a deadline can pass, Ctrl-C comes through, and what
another process says about its end is heard.

State of an `MPIGroup`:
    _world: the communicator for results; `_alarms`: a copy of it, on which a process that fails
        tells the others why;
    _sums: by size and element type, the buffer of the last sum, used again when nobody holds it;
    _ended: which processes have come to their end, and when this one heard of it.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, NoReturn

import numpy as np

from laminar.engine import forks
from laminar.engine.errors import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    LaminarError,
)

from .group import Group, SingleGroup, WorkerLostError

# One of these is in the environment of what mpirun, mpiexec or srun starts.
_STARTED: Final = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}
_TAG: Final = 77
_MOST_BYTES: Final = 4096  # of an alarm
_WAITED: Final = "\1"  # at the beginning of an alarm: its time has run out
_LOOKS: Final = 64  # at a request, between two looks at the clock
_SPIN_SECONDS: Final = 1e-3  # after so long, this process lets others have its core
_PAUSE_SECONDS: Final = 1e-4
_LONGEST_PAUSE_SECONDS: Final = 1e-3
_PAUSE_SHARE: Final = 0.01  # of the time that it has waited: by so much it may come late
_FAREWELL_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 1.0  # how much later another worker's time runs out
_PART: Final = 1 << 28  # elements in one call: counts of MPI have 31 bits

_lock = forks.lock()


def is_installed() -> bool:
    """Whether mpi4py and an MPI library can be loaded."""
    try:
        _module()
    except FailedPreconditionError:
        return False
    return True


def _module() -> Any:
    """mpi4py.MPI, which does not begin by itself.

    Raises:
        FailedPreconditionError: it is not installed, or does not load.
    """
    try:
        import mpi4py

        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as cause:
        raise FailedPreconditionError(
            f"training over processes needs mpi4py and an MPI library: {cause}",
            remedy="pip install 'laminar[mpi]'",
        ) from cause
    return MPI


@functools.cache
def _library() -> Any:
    """mpi4py.MPI, begun: for one thread at a time."""
    mpi = _module()
    if not mpi.Is_initialized():
        mpi.Init_thread(mpi.THREAD_SERIALIZED)
    return mpi


_world: list[Group] = []


def world() -> Group:
    """All processes that were started together; one of its own for a process that was not.

    Raises:
        FailedPreconditionError: the process was started with others, and mpi4py or its MPI library
            is missing.
    """
    with _lock:
        if not _world:
            _world.append(_begun() if _STARTED & os.environ.keys() else SingleGroup())
        return _world[0]


def _begun() -> Group:
    communicator = _library().COMM_WORLD
    group = MPIGroup(communicator) if communicator.size > 1 else SingleGroup()
    atexit.register(_leave, group)
    return group


def _leave(group: Group) -> None:
    """At the end of the process: tell the others, and end MPI if all is well.

    MPI_Finalize waits for all processes, so one that fails leaves without it.
    """
    mpi = _library()
    if isinstance(group, MPIGroup) and not group.say_goodbye(getattr(sys, "last_value", None)):
        return
    if not mpi.Is_finalized():
        mpi.Finalize()


class MPIGroup(Group):
    """The processes of an MPI communicator.

    Args:
        communicator: of mpi4py; it is copied.

    Attributes:
        has_recovered: whether it has gone on without some that died.
    """

    has_recovered = False

    def __init__(self, communicator: Any) -> None:
        self._take(communicator)
        self._sums: dict[Any, Any] = {}
        self._ended: dict[int, float] = {}

    def _take(self, communicator: Any) -> None:
        mpi = _library()
        self._world, self._alarms = communicator.Dup(), communicator.Dup()
        for own in (self._world, self._alarms):
            own.Set_errhandler(mpi.ERRORS_RETURN)
        self.rank, self.size = communicator.rank, communicator.size
        self.broken = None

    def __repr__(self) -> str:
        return f"worker {self.rank} of {self.size}"

    # What is told

    def sum(self, arrays: Sequence[Any]) -> list[Any]:
        return self.begin_sum(arrays)()

    def begin_sum(self, arrays: Sequence[Any]) -> Callable[[], list[Any]]:
        self.check()
        dtype = arrays[0].dtype
        total = sum(a.size for a in arrays)
        whole = self._free(total, _summed_as(dtype))
        found, at = [], 0
        for a in arrays:
            part = whole[at : at + a.size].reshape(a.shape)
            part[...] = a
            found.append(part)
            at += a.size
        mpi = _library()
        parts = [whole[begin : begin + _PART] for begin in range(0, total, _PART)]
        requests = [self._begin("a sum", "Iallreduce", mpi.IN_PLACE, p, mpi.SUM) for p in parts]

        def end() -> list[Any]:
            self.check()
            for request in requests:
                self._end(request, "a sum")
            return [part.astype(dtype, copy=False) for part in found]

        return end

    def _free(self, size: int, dtype: Any) -> Any:
        """Memory that no result of an earlier sum lies in. Fresh pages cost more than a copy."""
        found = self._sums.get((size, dtype))
        # Held by the dict, by `found` and by the call; one that is not over is held by its end.
        if found is None or sys.getrefcount(found) > 3:
            found = self._sums[size, dtype] = np.empty(size, dtype)
        return found

    def gather_rows(self, rows: Any, counts: Sequence[int]) -> Any:
        inner = rows.shape[1:]
        whole = np.empty((sum(counts), *inner), rows.dtype)
        each = int(np.prod(inner, dtype=np.int64)) * rows.dtype.itemsize
        sizes = [n * each for n in counts]
        if sum(sizes) >= 1 << 31:
            raise FailedPreconditionError(
                f"rows of {rows.dtype}{list(inner)}: {sum(counts)} of them are more than the 2 GB "
                f"that workers can tell each other at once",
                remedy="use smaller batches, or reduce what the model gives for each example",
            )
        mpi = _library()
        sent = np.ascontiguousarray(rows).reshape(-1).view(np.uint8)
        received = whole.reshape(-1).view(np.uint8)
        offsets = [sum(sizes[:i]) for i in range(self.size)]
        into = [received, sizes, offsets, mpi.BYTE]
        self._run("rows", "Iallgatherv", [sent, mpi.BYTE], into)
        return whole

    def exchange(self, record: bytes) -> list[bytes]:
        mpi = _library()
        n = len(record)
        sent = np.frombuffer(record, np.uint8)
        received = np.empty(n * self.size, np.uint8)
        self._run("a record", "Iallgather", [sent, mpi.BYTE], [received, mpi.BYTE])
        whole = received.tobytes()
        return [whole[i : i + n] for i in range(0, len(whole), n)]

    def broadcast(self, arrays: Sequence[Any], root: int = 0) -> None:
        mpi = _library()
        for a in arrays:
            flat = a.reshape(-1).view(np.uint8)
            for begin in range(0, flat.size, _PART):
                part = flat[begin : begin + _PART]
                self._run("values", "Ibcast", [part, mpi.BYTE], root)

    def part(self, ranks: Sequence[int]) -> Group:
        self.check()
        mpi = _library()
        try:
            split = partial(self._world.Split, min(ranks), list(ranks).index(self.rank))
            return _Part(self, _within(self.timeout_seconds, split))
        except mpi.Exception as cause:
            self._raise(cause, "a part of the workers")

    # How it is waited for

    def _run(self, what: str, method: str, *args: Any) -> None:
        """Begin a call, and wait for its end."""
        self.check()
        self._end(self._begin(what, method, *args), what)

    def _begin(self, what: str, method: str, *args: Any) -> Any:
        mpi = _library()
        try:
            # MPI goes on with calls that have begun whenever it is called.
            return getattr(self._world, method)(*args)
        except mpi.Exception as cause:
            self._raise(cause, what)

    def _end(self, request: Any, what: str) -> None:
        mpi = _library()
        try:
            self._wait(request, what)
        except mpi.Exception as cause:
            self._raise(cause, what)

    def _wait(self, request: Any, what: str) -> None:
        looks = 0
        begin = now = 0.0
        while not request.Test():
            looks += 1
            if looks % _LOOKS and now - begin < _SPIN_SECONDS:
                continue
            now = time.monotonic()
            begin = begin or now
            self._hear(now, begin, what)
            if now - begin > self.timeout_seconds:
                self._give_up_waiting(what)
            if now - begin > _SPIN_SECONDS:
                pause = max(_PAUSE_SECONDS, _PAUSE_SHARE * (now - begin))
                time.sleep(min(pause, _LONGEST_PAUSE_SECONDS))

    def _hear(self, now: float, begin: float, what: str) -> None:
        """Raise an error if another process has failed, has given up waiting, or ended."""
        said = self._alarm()
        if said is not None:
            other, text = said
            if text.startswith(_WAITED):
                if now - begin > self.timeout_seconds / 2:  # for the same one that this one lacks
                    self._give_up_waiting(what, {other})
                self._give_up(f"{text.removeprefix(_WAITED)}, and this one comes too late")
            if text:
                self._give_up(f"worker {other} of {self.size} failed: {text}")
            self._ended[other] = now
        for other, since in self._ended.items():
            # What it had sent before may still be on its way.
            if now - since > _FAREWELL_SECONDS:
                self._give_up(f"worker {other} of {self.size} has ended, and this one waits for it")

    def _alarm(self) -> tuple[int, str] | None:
        """An alarm that has come, and whose it is."""
        mpi = _library()
        status = mpi.Status()
        if not self._alarms.Iprobe(mpi.ANY_SOURCE, _TAG, status):
            return None
        text, other = np.zeros(_MOST_BYTES, np.uint8), status.Get_source()
        self._alarms.Recv([text, mpi.BYTE], other, _TAG)
        return other, text.tobytes().rstrip(b"\0").decode(errors="replace")

    def _give_up_waiting(self, what: str, others: Collection[int] = ()) -> NoReturn:
        """Raise DeadlineExceededError, after those who wait, too, have had time to say so.

        Args:
            what: is waited for.
            others: those who have said so already.
        """
        waiting = f"worker {self.rank} of {self.size} has waited {self.timeout_seconds:g} s"
        self._tell(f"{_WAITED}{waiting}")
        missing = set(range(self.size)) - {self.rank, *others}
        end = time.monotonic() + _PATIENCE_SECONDS
        while missing and time.monotonic() < end:
            said = self._alarm()
            missing -= {said[0]} if said is not None else set()
            time.sleep(_PAUSE_SECONDS)
        who = f"worker {', '.join(map(str, sorted(missing)))}" if missing else "the others"
        self.broken = DeadlineExceededError(
            f"{waiting} for {what} of {who}",
            remedy="see the log of that worker; MultiWorker(timeout_seconds=...) waits longer",
        )
        raise self.broken

    def _give_up(self, why: str) -> NoReturn:
        self.broken = AbortedError(why, remedy="see the log of that worker")
        raise self.broken

    def _raise(self, cause: Any, what: str) -> NoReturn:
        """Raise what an error of MPI means."""
        mpi = _library()
        lost = {getattr(mpi, name, None) for name in ("ERR_PROC_FAILED", "ERR_REVOKED")}
        error: LaminarError
        if cause.Get_error_class() in lost - {None}:
            error = WorkerLostError(
                f"worker {self.rank} of {self.size}: another worker died during {what}"
                f"{self._dead()}",
                remedy="see the log of that worker",
            )
            self._world.Revoke()
        else:
            error = InternalError(f"worker {self.rank} of {self.size}: {what}: {cause}")
        self.broken = error
        raise error from cause

    def _dead(self) -> str:
        """Which processes have died, as far as this one knows."""
        try:
            gone = self._world.Get_failed()
            own = self._world.Get_group()
            numbers = gone.Translate_ranks(None, own)
        except Exception:  # of an MPI that does not know
            return ""
        return f" (worker {', '.join(map(str, numbers))})" if numbers else ""

    def fail(self, error: BaseException) -> None:
        if self.broken is not None:
            return
        text = f"{type(error).__name__}: {error}".partition("\n")[0]
        self.broken = AbortedError(f"this worker failed: {text}")
        self._tell(text)

    def _tell(self, text: str) -> None:
        """Send all others an alarm; an empty one says that this process ends."""
        mpi = _library()
        message = np.frombuffer(text.encode()[:_MOST_BYTES], np.uint8)
        try:
            sent = [
                self._alarms.Isend([message, mpi.BYTE], other, _TAG)
                for other in range(self.size)
                if other != self.rank
            ]
            _test_until(sent, _FAREWELL_SECONDS)
        except mpi.Exception:
            return  # they are gone

    def say_goodbye(self, error: BaseException | None) -> bool:
        """Tell the others that the process ends, by `error` or because it is done.

        Returns:
            Whether MPI can be ended, which would wait for ever for those that died. If not, the
            others have had time to come to their end, too: what started them may kill all when the
            first one has left.
        """
        mpi = _library()
        if error is not None:
            self.fail(error)
        if self.broken is None:
            self._tell("")
        is_well = self.broken is None and not self.has_recovered
        if not is_well and not isinstance(self.broken, WorkerLostError):
            try:
                _test_until([self._alarms.Ibarrier()], _FAREWELL_SECONDS)
            except mpi.Exception:
                return False
        return is_well

    def recover(self) -> list[int]:
        if not isinstance(self.broken, WorkerLostError):
            self.refuse_recovery()
        mpi = _library()
        before, lost = self._world, self.broken
        try:
            smaller = _within(self.timeout_seconds, before.Shrink)
            left = smaller.Get_group().Translate_ranks(None, before.Get_group())
            self._take(smaller)
            self.has_recovered = True
        except (mpi.Exception, NotImplementedError) as cause:
            self.broken = WorkerLostError(f"{lost.message}; {cause}")
            self.refuse_recovery()
        return [int(r) for r in left]


class _Part(MPIGroup):
    """Some of the processes of a group; their alarms are those of the whole.

    Args:
        whole: the group.
        communicator: that of the part.
    """

    def __init__(self, whole: MPIGroup, communicator: Any) -> None:
        self._whole, self._world = whole, communicator
        self._world.Set_errhandler(_library().ERRORS_RETURN)
        self.rank, self.size = communicator.rank, communicator.size
        self._sums: dict[Any, Any] = {}

    @property
    def broken(self) -> LaminarError | None:  # type: ignore[override]  # it is that of the whole
        return self._whole.broken

    @property
    def timeout_seconds(self) -> float:  # type: ignore[override]  # likewise
        return self._whole.timeout_seconds

    def _hear(self, now: float, begin: float, what: str) -> None:
        self._whole._hear(now, begin, what)

    def _give_up_waiting(self, what: str, others: Collection[int] = ()) -> NoReturn:
        self._whole._give_up_waiting(what, others)

    def _raise(self, cause: Any, what: str) -> NoReturn:
        self._whole._raise(cause, what)

    def fail(self, error: BaseException) -> None:
        self._whole.fail(error)

    def recover(self) -> list[int]:
        self._whole.refuse_recovery()


def _within(seconds: float, call: Callable[[], Any]) -> Any:
    """The result of a call that MPI has in a blocking form alone (Open MPI's Ishrink fails).

    Raises:
        DeadlineExceededError: it takes longer.
    """
    found: list[Any] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            found.append(call())
        except Exception as error:  # it is raised where it is waited for
            errors.append(error)

    thread = threading.Thread(target=run, name="laminar-shrink", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not found:
        raise DeadlineExceededError(f"the workers that are left did not agree in {seconds:g} s")
    return found[0]


def _test_until(requests: Sequence[Any], seconds: float) -> None:
    """Help requests along until they have ended, or for so long."""
    end = time.monotonic() + seconds
    left = list(requests)
    while time.monotonic() < end and (left := [r for r in left if not r.Test()]):
        time.sleep(_PAUSE_SECONDS)


def _summed_as(dtype: Any) -> Any:
    """The element type that sums are computed in: halves have none in MPI, and are few bits."""
    if dtype.kind in "iufc" and dtype.itemsize >= (4 if dtype.kind == "f" else 1):
        return dtype
    return np.dtype(np.float32)
