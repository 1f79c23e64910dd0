"""MultiWorker: one copy of a model per process, trained together; all copies stay the same."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

from laminar.engine.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    LaminarError,
)
from laminar.engine.graph import building
from laminar.engine.source import warn
from laminar.engine.state import Variable
from laminar.tree import map_structure

from .collectives import mpi
from .collectives.group import Group
from .collectives.ops import gathered_rows
from .replicas import sharing
from .worker_share import WorkerShares, drop_unused

_SHARDS = ("batch", "element", "file", "off")
# Sums of fewer bytes take less time than what splits the backward pass for them.
_BUCKET_BYTES: Final = 4 << 20
_WIRE: Final = 1  # the version of `_RECORD`
_ENDED, _STOP, _EMPTY = 1, 2, 4
# What each process says of itself before each step.
_RECORD: Final = np.dtype(
    [
        ("wire", "<u4"),
        ("kind", "<u4"),
        ("number", "<u8"),
        ("rows", "<i8"),
        ("form", "<u4"),
        ("content", "<u4"),
        ("flags", "<u4"),
    ]
)
_KINDS = ("train", "test", "predict")
# Words that keys of random generators differ by: 2**32 over the golden ratio, and another odd one.
_KEY_WORDS: Final = (0x9E3779B9, 0x85EBCA6B)


class Turn(NamedTuple):
    """What the processes have agreed on for a step.

    Attributes:
        counts: how many rows of the batch each process has.
        is_over: no process has a batch left.
        stops: a process wants to end the loop.
        ended: the processes whose data is over, while others have some.
        is_own: whether each has a batch of its own, and the step's is all of them together.
    """

    counts: Any
    is_over: bool
    stops: bool
    ended: tuple[int, ...]
    is_own: bool


class MultiWorker:
    """Several processes share the work on each batch: `compile(strategy=MultiWorker())`.

    They are those that `laminar launch -n 4 train.py` or `mpirun -n 4 python train.py` started.
    Each runs the same program. A step computes each process's rows there, and the loss, the
    metrics and the update are those of the whole batch: training is that of one process, up to the
    rounding of sums, also for a short last batch, with sample weights, for any loss, and in a
    `train_step` of the user's; it is the calls of models in it that are shared. The weights begin
    as those of worker 0, and have the same bits in all workers after each step.
    BatchNormalization has the statistics of each worker's rows, and its moving ones are their mean;
    with `synchronized=True` they are those of the whole batch, and such layers are computed by all.

    Worker 0 shows progress and writes checkpoints; `fit(resume=...)` reads them there for all.

    Args:
        auto_shard: how data is dealt out.
            "batch": all workers have the same data, and each takes its rows of each batch.
            "element": of a Dataset, each takes every n-th element before it is mapped, and makes
            batches of its part of the batch size.
            "file": of a Dataset of files, each reads files of its own.
            "off": the data is each worker's own already, and a step's batch is all of theirs
            together; `batch_size` is what one worker takes.
        bucket_bytes: how many bytes of gradients are summed at once. Sums begin while the gradients
            of the next ones are computed.
        timeout_seconds: how long a worker waits for the others before it gives up.
        elastic: whether workers that are left go on without one that died, with the whole batch.
            It takes an MPI with fault tolerance (Open MPI: `mpirun --with-ft ulfm`).

    Raises:
        InvalidArgumentError: an argument out of range.
        FailedPreconditionError: mpi4py is missing, or the workers run other versions of laminar.

    Examples:
        >>> model = laminar.Sequential([layers.Input((4,)), layers.Dense(1)])
        >>> strategy = (
        ...     laminar.distribute.MultiWorker()
        ... )  # of one process, unless `laminar launch` runs more
        >>> model.compile("sgd", "mse", strategy=strategy)
        >>> history = model.fit(np.ones((8, 4)), np.ones((8, 1)), verbose=0)
    """

    is_async = False
    # Whether each process has pieces of the variables, where others have whole ones.
    keeps_pieces = False

    def __init__(
        self,
        *,
        auto_shard: str = "batch",
        bucket_bytes: int = _BUCKET_BYTES,
        timeout_seconds: float = 600.0,
        elastic: bool = False,
    ) -> None:
        if auto_shard not in _SHARDS:
            raise InvalidArgumentError(
                f"MultiWorker: auto_shard must be one of {', '.join(_SHARDS)}, got {auto_shard!r}"
            )
        for name, value in (("bucket_bytes", bucket_bytes), ("timeout_seconds", timeout_seconds)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InvalidArgumentError(
                    f"MultiWorker: {name} must be a number above 0, got {value!r}"
                )
        self.auto_shard = auto_shard
        self.bucket_bytes = int(bucket_bytes)
        self.elastic = bool(elastic)
        self.group: Group = mpi.world()
        self.group.timeout_seconds = float(timeout_seconds)
        self._number = 0
        self._done = 0  # steps
        self._held: tuple[Any, Turn] | None = None
        self._check_versions()

    @property
    def rank(self) -> int:
        """The number of this worker, from 0."""
        return self.group.rank

    @property
    def rows_group(self) -> Group:
        """The workers that share the rows of a batch."""
        return self.group

    @property
    def num_replicas(self) -> int:
        """How many workers share the rows of a batch."""
        return self.rows_group.size

    @property
    def is_first(self) -> bool:
        """Whether this is the worker that shows progress and writes files."""
        return self.group.rank == 0

    @property
    def shares_batches(self) -> bool:
        """Whether each batch is computed by several workers."""
        return self.group.size > 1

    @property
    def has_same_data(self) -> bool:
        """Whether all workers are given the same batches."""
        return self.auto_shard == "batch"

    def __repr__(self) -> str:
        return f"MultiWorker(worker {self.rank} of {self.num_replicas})"

    # A step

    def shared(self, step: Callable[[Any], Any], *, is_own: bool) -> Callable[[Any], Any]:
        """`step` as a function of (batch, counts, share, key), to be traced.

        Args:
            step: what a batch goes through.
            is_own: whether `batch` is this worker's part of it.
        """

        def run(given: Any) -> Any:
            batch, counts, share, key = given
            group = self.rows_group
            if is_own:
                batch = map_structure(
                    lambda x: None if x is None else gathered_rows(x, counts, group), batch
                )
            among = WorkerShares(group, self.bucket_bytes, counts, share[0], key[0])
            with sharing(among if group.size > 1 else None):
                results = step(batch)
            graph = building()
            assert graph is not None, "it is traced"
            drop_unused(graph, results)
            return results

        return run

    def alone(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`step` as it is traced where no rows are shared."""
        return step

    def step_begins(self) -> None:
        """Make room for a step, which has been traced."""

    def inputs_for(self, counts: Any) -> tuple[Any, Any, Any]:
        """`counts`, `share` and `key` for a step, as arrays with a first axis."""
        rank = self.rows_group.rank
        share = np.array([counts[rank] / counts.sum()], np.float32)
        key = np.zeros((1, 4), np.uint32)
        key[0, :2] = [(rank * word) & 0xFFFF_FFFF for word in _KEY_WORDS]
        return counts, share, key

    # What the workers agree on

    def meet(
        self,
        kind: str,
        rows: int | None,
        form: str = "",
        *,
        content: int = 0,
        stops: bool = False,
        is_empty: bool = False,
        is_own: bool = False,
    ) -> Turn:
        """Agree on a step: all workers call it before each.

        Args:
            kind: "train", "test" or "predict".
            rows: how many examples this worker has for it; None when its data is over.
            form: the structure, inner shapes and types of its batch, as text.
            content: a number made of its values, 0 for any.
            stops: whether this worker leaves the loop.
            is_empty: whether it has never had a batch.
            is_own: whether each worker has batches of its own.

        Raises:
            FailedPreconditionError: what the workers are doing is not the same thing.
            InvalidArgumentError: their batches differ, or one has no data at all.
        """
        flags = _ENDED * (rows is None) | _STOP * stops | _EMPTY * is_empty
        number = _KINDS.index(kind)
        crc = zlib.crc32(form.encode())
        own = np.array([(_WIRE, number, self._number, rows or 0, crc, content, flags)], _RECORD)
        self._number += 1
        found = np.frombuffer(b"".join(self.group.exchange(own.tobytes())), _RECORD)
        if (found["kind"] != number).any() or (found["number"] != own["number"]).any():
            raise agreed_error(
                FailedPreconditionError,
                "the workers are not at the same place of the program: "
                + _each(found, lambda r: f"{_KINDS[int(r['kind'])]} step {r['number']}"),
                "call fit, evaluate and predict on all workers, with the same arguments",
            )
        has_ended = (found["flags"] & _ENDED) > 0
        if (found["flags"] & _STOP).any():
            return Turn(None, is_over=True, stops=True, ended=(), is_own=is_own)
        if has_ended.all():
            return Turn(None, is_over=True, stops=False, ended=(), is_own=is_own)
        self._check_batches(found, has_ended, form, is_own=is_own)
        told = found["rows"]
        counts = told.astype(np.int64) if is_own else shares_of(int(told[0]), self.num_replicas)
        return Turn(counts, False, False, tuple(np.flatnonzero(has_ended).tolist()), is_own)

    def _check_batches(self, found: Any, has_ended: Any, form: str, *, is_own: bool) -> None:
        if (found["flags"] & _EMPTY).any():
            raise agreed_error(
                InvalidArgumentError,
                "a worker has no data: "
                + _each(found, lambda r: "none" if r["flags"] & _EMPTY else "some"),
                "use no more workers than there are files or batches, or auto_shard='batch'",
            )
        there = found[~has_ended]
        if not is_own and (has_ended.any() or (there["rows"] != there["rows"][0]).any()):
            raise agreed_error(
                InvalidArgumentError,
                "the workers' data differ: this step's batch has "
                + _each(found, lambda r: f"{r['rows']} examples"),
                "give all workers the same data, or use MultiWorker(auto_shard='off') for "
                "data that each has of its own",
            )
        if (there["form"] != there["form"][0]).any():
            raise agreed_error(
                InvalidArgumentError,
                "the workers' batches differ in structure, shapes or types: "
                + self._said_by_each(form),
                "give all workers data of one form; sequences of several lengths, filled up to one",
            )
        if not is_own and (there["content"] != there["content"][0]).any():
            raise agreed_error(
                InvalidArgumentError,
                "the workers' data differ: the first batches have the same shapes and other values",
                "shuffle with the same seed in all workers (laminar.set_random_seed(0) sets "
                "those of NumPy and Python, too), or use MultiWorker(auto_shard='off')",
            )

    def hold(self, batch: Any, turn: Turn) -> None:
        """Keep what has been agreed on for a batch, for the step that is called with it."""
        self._held = batch, turn

    def held_for(self, batch: Any) -> Turn | None:
        """What has been agreed on for a batch; None if nothing has."""
        held, self._held = self._held, None
        return held[1] if held is not None and held[0] is batch else None

    def step_is_done(self) -> None:
        """Count a step that this worker has done."""
        self._done += 1

    def recover(self, lost: LaminarError, variables: Sequence[Variable]) -> bool:
        """Go on without the workers that died.

        Where one of those that are left has done a step that others have not, they take its values.

        Args:
            lost: how this worker learned of it.
            variables: all that a step may change.

        Returns:
            Whether the step that this worker was in is done now.

        Raises:
            WorkerLostError: `lost`, if the workers are not elastic.
            FailedPreconditionError: their MPI cannot, or worker 0 died, which writes the files.
        """
        if not self.elastic:
            raise lost
        before = self.num_replicas
        left = self.group.recover()
        gone = sorted(set(range(before)) - set(left))
        if 0 in gone:
            self.group.broken = lost
            self.group.refuse_recovery()
        place = self._done.to_bytes(8, "little") + self._number.to_bytes(8, "little")
        places = np.frombuffer(b"".join(self.group.exchange(place)), "<u8").reshape(-1, 2)
        most = int(places[:, 0].max())
        if (places[:, 0] < most).any():
            self._broadcast(variables, int(places[:, 0].argmax()))
        was_done = self._done < most
        self._done, self._number = most, int(places[:, 1].max())
        if self.is_first:
            numbers = ", ".join(map(str, gone))
            warn(f"worker {numbers} of {before} died; the {len(left)} that are left go on")
        return was_done

    def of_first(self, value: int) -> int:
        """A whole number as worker 0 has it."""
        return int.from_bytes(self.group.exchange(value.to_bytes(8, "little"))[0], "little")

    def message_of_first(self, message: bytes) -> bytes:
        """The message of worker 0."""
        found = np.zeros(self.of_first(len(message)), np.uint8)
        if self.is_first:
            found[:] = np.frombuffer(message, np.uint8)
        self.group.broadcast([found])
        return found.tobytes()

    def agree(self, value: bool) -> bool:
        """Whether it is so in any worker."""
        return any(said != b"\0" for said in self.group.exchange(bytes([value])))

    def check_same(self, what: str, text: str) -> None:
        """FailedPreconditionError unless `text` is the same in all workers."""
        crc = zlib.crc32(text.encode())
        if len(set(self.group.exchange(crc.to_bytes(4, "little")))) > 1:
            raise agreed_error(
                FailedPreconditionError,
                f"the workers differ in {what}: {self._said_by_each(text)}",
                "run the same program, of the same version, in all workers",
            )

    def _said_by_each(self, text: str) -> str:
        """What each worker has to say; all of them call it."""
        found = self.group.gather(text.encode())
        return "; ".join(f"worker {i}: {t.decode(errors='replace')}" for i, t in enumerate(found))

    def _check_versions(self) -> None:
        from laminar import __version__  # laminar's own face loads this package

        self.check_same("the version of laminar", f"{__version__}, wire {_WIRE}")
        self.check_same("auto_shard", self.auto_shard)

    # Values

    def align(self, variables: Sequence[Variable]) -> None:
        """Give the variables of all workers the values that those of worker 0 have.

        Raises:
            FailedPreconditionError: the workers have other variables.
        """
        specs = ", ".join(f"{v.path} {v.spec}" for v in variables)
        self.check_same("their variables", _short(specs))
        if self._have_same_bits(variables):
            return
        self._broadcast(variables, 0)

    def _broadcast(self, variables: Sequence[Variable], root: int) -> None:
        values = [np.array(v.numpy()) for v in variables]
        self.group.broadcast(values, root)
        for v, value in zip(variables, values, strict=True):
            v.assign(value)

    def check_equal(self, variables: Iterable[Variable]) -> None:
        """InternalError unless the variables have the same bits in all workers."""
        if not self._have_same_bits(list(variables)):
            raise agreed_error(*apart)

    def gather(self, variables: Iterable[Variable]) -> None:
        """Have the whole values of variables in each worker; all call it."""

    @contextmanager
    def writing(self, variables: Iterable[Variable]) -> Iterator[bool]:
        """While a file with variables is written; gives whether this worker is to write it."""
        yield True

    def _have_same_bits(self, variables: Sequence[Variable]) -> bool:
        crc = 0
        for v in variables:
            crc = zlib.crc32(v.numpy().tobytes(), crc)
        return len(set(self.group.exchange(crc.to_bytes(4, "little")))) == 1

    def fail(self, error: BaseException) -> None:
        """Tell the other workers that this one cannot go on, unless all of them have the error."""
        if not getattr(error, "is_agreed", False):
            self.group.fail(error)

    @property
    def broken(self) -> LaminarError | None:
        """Why the workers cannot go on, None while they can."""
        return self.group.broken


apart = (
    InternalError,
    "the workers' weights have come apart",
    "keep what changes weights or draws random numbers the same in all workers, callbacks and "
    "train_step included",
)


class _Default:
    """The strategy of models that are compiled without one, None for none."""

    strategy: MultiWorker | None = None


def use_by_default(strategy: MultiWorker | None) -> None:
    """Have models that are compiled from now on, without a strategy, use this one."""
    _Default.strategy = strategy


def default_strategy() -> MultiWorker | None:
    """The strategy of models that are compiled without one."""
    return _Default.strategy


def shares_of(rows: int, size: int) -> Any:
    """How many rows each of `size` workers has: numbers that differ by one at most."""
    ends = rows * np.arange(size + 1, dtype=np.int64) // size
    return np.diff(ends)


def agreed_error(kind: type[LaminarError], message: str, remedy: str) -> LaminarError:
    """An error that all workers raise at one place: they can go on together."""
    error = kind(message, remedy=remedy)
    error.is_agreed = True  # type: ignore[attr-defined]  # of this error alone
    return error


def _each(found: Any, said: Callable[[Any], str]) -> str:
    return ", ".join(f"worker {i}: {said(record)}" for i, record in enumerate(found))


def _short(text: str) -> str:
    """A text that tells which of two long ones differ, and where they begin."""
    most = 200
    if len(text) <= most:
        return text
    return f"{text[:most]}... ({len(text)} characters, crc {zlib.crc32(text.encode()):08x})"
