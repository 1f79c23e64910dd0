"""A step of training that the workers of a parameter-server training make together."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from laminar.distribute.multi_worker import shares_of
from laminar.tree import map_structure

from .batches import size_of
from .compiled import Compiled
from .served_values import ServedValues
from .server_graph import WorkerGraph
from .server_step import number_of_step
from .server_workers import Workers, feeds_of
from .step import Step
from .step_on_servers import StepOnServers

# A share that is not there after so often the time of the first one, or of that of the step before
# while none is there, is given to a backup, too.
_SLOW: Final = 2.0
_LEAST_SECONDS: Final = 0.02


class SyncServerStep(StepOnServers):
    """A step on all workers: each computes the gradients of a share of the batch.

    What a share gives is accepted once in each step, and sums go by the numbers of the shares. So
    a share that is computed twice, as that of a worker that was lost or is slow, changes no bit.

    Args:
        model: see `StepOnServers`; so are the others.
        compiled: likewise.
        values: likewise.
        serial: likewise.
        native: likewise.
    """

    def __init__(
        self, model: Any, compiled: Compiled, values: ServedValues, serial: Step, *, native: bool
    ) -> None:
        self._count = count = values.strategy.num_shares
        super().__init__(model, compiled, values, "train", serial, shares=count, native=native)
        self._number = 0
        self._usual_seconds = 0.0  # after which the first share of a step is there; 0: not known

    def __call__(self, batch: Any) -> Mapping[str, Any]:
        """Train on a batch; gives what is to be reported."""
        self._begin(batch)
        try:
            return self._train(batch)
        except BaseException:
            self._has_failed = True
            raise

    def _begin(self, batch: Any) -> None:
        self.trace(batch)
        changed = self.values.changed(self._made, scalars=self._is_open)
        if changed:
            self._workers.run(self.values.push, changed)
        if not self._is_open:
            self._number = number_of_step(self._model)
            self._workers.run(_reset, self._number)
            self._is_open = True

    def _train(self, batch: Any) -> Mapping[str, Any]:
        made, number = self._made, self._number
        counts = shares_of(size_of(batch), self._count)
        parts = counts / counts.sum()
        state = {id(f.variable): f.variable.numpy() for f in made.fed}
        seeds = [v.numpy() for v in self.values.parts.seeds]
        feeds = [
            partial(
                feeds_of,
                batch=_rows(batch, int(counts[:r].sum()), int(counts[r])),
                state=state,
                seeds=seeds,
                number=number * self._count + r,
            )
            for r in range(self._count)
        ]
        shares = _Shares(feeds, parts, number)
        shares.ask(self._workers)
        while True:
            spare = self.values.strategy.num_replicas - self._count
            gathering = _Gathering(self._workers, shares, spare, self._usual_seconds)
            found = gathering.run()
            self._usual_seconds = gathering.first_seconds
            if self._workers.run(_Apply(number, self._count)):
                break
            # A worker was lost while it applied them: nothing has changed, and the sums are gone.
            self._workers.run(_reset, number)
        self._number += 1
        self._store(made, state, [after for _, after in found], parts)
        return self._report_to(batch, _merged([values for values, _ in found], counts))

    def _store(
        self,
        made: WorkerGraph,
        state: Mapping[int, Any],
        found: Sequence[Sequence[Any]],
        parts: Any,
    ) -> None:
        """Give what calls have updated the value for the whole batch."""
        sums = {id(v) for v in self.values.parts.state}
        updated = [f.variable for f in made.fed if f.after is not None]
        for v, *values in zip(updated, *found, strict=True):
            before = state[id(v)]
            if id(v) in sums:
                v.assign(before + sum(value - before for value in values))
            elif v.stored_dtype.is_floating:
                changes = zip(values, parts, strict=True)
                mean = sum((value - before) * np.asarray(p, before.dtype) for value, p in changes)
                v.assign(before + mean)
            else:
                v.assign(values[0])


class _Shares:
    """What the graphs of workers are fed with for the shares of a batch.

    Args:
        feeds: for each share, what its graph is fed with.
        parts: the part of the batch's examples that each has.
        number: of the step.
    """

    def __init__(
        self, feeds: Sequence[Callable[[WorkerGraph], dict[Any, Any]]], parts: Any, number: int
    ) -> None:
        self._feeds, self._parts, self._number = feeds, parts, number
        self._totals: list[Any] = []

    def __len__(self) -> int:
        return len(self._feeds)

    def feeds(self, made: WorkerGraph, share: int) -> dict[Any, Any]:
        """For a share."""
        assert made.share is not None, "the batch is divided"
        assert made.sums is not None, "it trains"
        part = float(self._parts[share])
        given = {
            made.share.fraction: part,
            made.share.inverse: 1 / part if part else 0.0,
            made.sums.step: self._number,
        }
        totals = zip(made.share.asked, self._totals, strict=False)
        return self._feeds[share](made) | given | {whole: total for (_, whole), total in totals}

    def ask(self, workers: Workers) -> None:
        """Have workers compute the sums over the whole batch that losses divide by."""
        assert workers.made is not None, "it is prepared"
        assert workers.made.share is not None, "the batch is divided"
        if not workers.made.share.asked:
            return

        def sums(worker: Any, share: int) -> Any:
            asked = [total for total, _ in worker.made.share.asked]
            return worker.run(asked, self.feeds(worker.made, share))

        there = [share for share in range(len(self)) if self._parts[share]]
        results = [workers.coordinator.schedule(sums, share) for share in there]
        found = [result.fetch() for result in results]
        self._totals = [sum(values) for values in zip(*found, strict=True)]


class _Gathering:
    """The shares of a step, each computed by a worker, or by several where one is slow.

    Args:
        workers: who compute them.
        shares: what they are fed with.
        spare: how many workers there are beyond one for each share.
        usual_seconds: after which the first share was there in the step before; 0: not known.

    Attributes:
        first_seconds: the same of this step, once it has been run.
    """

    def __init__(self, workers: Workers, shares: _Shares, spare: int, usual_seconds: float) -> None:
        self._workers, self._shares, self._spare = workers, shares, spare
        self._usual, self.first_seconds = usual_seconds, 0.0
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._found: dict[int, Any] = {}

    def run(self) -> list[Any]:
        """What came of the shares, in their order.

        Raises:
            LaminarError: one of them failed.
        """
        begin = time.monotonic()
        count = len(self._shares)
        for share in range(count):
            self._start(share)
        while len(self._found) < count:
            left, first = None, self.first_seconds or self._usual
            if first and self._spare:
                left = max(0.0, begin + _SLOW * first + _LEAST_SECONDS - time.monotonic())
            try:
                result = self._ended.get(timeout=left)
            except queue.Empty:
                self._help()
                continue
            result.fetch()
            self.first_seconds = self.first_seconds or time.monotonic() - begin
        return [self._found[share] for share in range(count)]

    def _start(self, share: int) -> None:
        result = self._workers.coordinator.schedule(self._give, share)
        result.when_ended(partial(self._ended.put, result))

    def _help(self) -> None:
        """Have workers that are free compute what is missing, too."""
        missing = [share for share in range(len(self._shares)) if share not in self._found]
        for share in missing[: self._spare]:
            self._spare -= 1
            self._start(share)

    def _give(self, worker: Any, share: int) -> None:
        """A worker computes a share, unless another one has."""
        if share in self._found:
            return
        made: WorkerGraph = worker.made
        assert made.sums is not None, "it trains"
        feeds = self._shares.feeds(made, share)
        found = worker.run((made.fetches, made.sums.gives[share]), feeds)[0]
        self._found.setdefault(share, found)


class _Apply:
    """Applies the gradients of a step; says whether that is done."""

    def __init__(self, number: int, count: int) -> None:
        self._number, self._count = number, count
        self._has_begun = False

    def __call__(self, worker: Any) -> bool:
        """Apply them once: a worker that was lost may have done it, or have lost them."""
        sums = worker.made.sums
        if self._has_begun:
            done, counts = worker.run((sums.done, sums.counts))
            if int(done) > self._number:
                return True
            if any(int(n) < self._count for n in counts):
                return False
        self._has_begun = True
        worker.run(sums.apply)
        return True


def _reset(worker: Any, number: int) -> None:
    sums = worker.made.sums
    worker.run(sums.reset, {sums.step: number})


def _rows(batch: Any, begin: int, count: int) -> Any:
    """Rows of a batch; for a share of none, one that has no weight."""
    if not count:
        begin, count = 0, 1
    return map_structure(
        lambda x: None if x is None else np.asarray(x)[begin : begin + count], batch
    )


def _merged(found: Sequence[Mapping[str, Any]], counts: Any) -> dict[str, Any]:
    """What workers found in the shares, as that of the whole batch."""
    parts = counts / counts.sum()

    def mean(*values: Any) -> Any:
        return sum(v * np.asarray(p, v.dtype) for v, p in zip(values, parts, strict=True))

    def joined(*values: Any) -> Any:
        return np.concatenate([v[:n] for v, n in zip(values, counts, strict=True)])

    losses = [np.asarray(f["loss"]) for f in found]
    return {
        "loss": joined(*losses) if losses[0].ndim else mean(*losses),
        "reports": [mean(*values) for values in zip(*(f["reports"] for f in found), strict=True)],
        "outputs": map_structure(joined, *(f["outputs"] for f in found)),
        "masks": [joined(*values) for values in zip(*(f["masks"] for f in found), strict=True)],
    }
