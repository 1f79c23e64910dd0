"""Steps that workers of a parameter-server training run for the program that leads."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from laminar.distribute.asynchronous import AsyncStep
from laminar.distribute.staleness import Staleness
from laminar.engine.errors import AlreadyExistsError

from .compiled import Compiled
from .served_values import ServedValues
from .server_graph import WorkerGraph
from .server_workers import feeds_of
from .step import Step
from .step_on_servers import StepOnServers

_Found = tuple[Any, dict[int, Any], Any]  # a batch, the state it began with, what came of it


class ServerStep(StepOnServers, AsyncStep):
    """A step on whichever worker is free: of asynchronous training, or of a test.

    Args:
        model: see `StepOnServers`; so are the others.
        compiled: likewise.
        values: likewise.
        kind: likewise.
        serial: likewise.
        native: likewise.
    """

    def __init__(
        self,
        model: Any,
        compiled: Compiled,
        values: ServedValues,
        kind: str,
        serial: Step,
        *,
        native: bool,
    ) -> None:
        StepOnServers.__init__(self, model, compiled, values, kind, serial, shares=0, native=native)
        self._numbers = itertools.count(number_of_step(model))
        strategy = values.strategy
        AsyncStep.__init__(
            self,
            [partial(self._compute, slot) for slot in range(strategy.num_replicas)],
            self._report,
            strategy.staleness if self._trains else Staleness(),
            self._begin,
        )

    def close(self) -> None:
        """Return when all that was begun has been done; the weights are here then."""
        AsyncStep.close(self)
        StepOnServers.close(self)

    def _begin(self, batch: Any) -> None:
        """Before each batch: the servers have what has been changed here."""
        self.trace(batch)
        if not self._is_open and self._trains:
            first = next(self._numbers)
            self._numbers = itertools.count(first)
            self._workers.run(_begin_after, first - 1)
        changed = self.values.changed(self._made, scalars=self._is_open and self._trains)
        self._is_open = True
        if changed:
            self._workers.run(self.values.push, changed)

    def _compute(self, slot: int, batch: Any) -> _Found:
        """What a worker makes of a batch; in a thread for each that can be under way."""
        number = next(self._numbers)
        state = {id(f.variable): f.variable.numpy() for f in self._made.fed}
        seeds = [v.numpy() for v in self.values.parts.seeds]
        attempt = _Attempt(slot, number, partial(feeds_of, batch=batch, state=state, seeds=seeds))
        try:
            return batch, state, self._workers.run(attempt)
        except BaseException:
            self._has_failed = True
            raise

    def _report(self, found: _Found) -> Mapping[str, Any]:
        """Take over what a call has updated, and the metrics; one batch after the other."""
        batch, state, got = found
        if got is None:  # what came of it went with its worker
            results: Mapping[str, Any] = self._model.get_metrics_result()
            return results
        values, after = got
        updated = [f.variable for f in self._made.fed if f.after is not None]
        for v, value in zip(updated, after, strict=True):
            is_sum = v.stored_dtype.is_floating or v.stored_dtype.is_integer
            v.assign(v.numpy() + (value - state[id(v)]) if is_sum else value)
        return self._report_to(batch, values)


class _Attempt:
    """A batch on a worker; its update is made once, if the worker is lost and another one tries."""

    def __init__(self, slot: int, number: int, feeds: Any) -> None:
        self._slot, self._number, self._feeds = slot, number, feeds
        self._has_begun = False

    def __call__(self, worker: Any) -> Any:
        """What comes of it; None if the update had been made by a worker that was lost."""
        made: WorkerGraph = worker.made
        feeds = self._feeds(made, number=self._number)
        if made.once is None:
            return worker.run(made.fetches, feeds)
        begun, self._has_begun = self._has_begun, True
        feeds |= {made.once.slot: self._slot, made.once.number: self._number}
        try:
            return worker.run((made.fetches, made.once.update), feeds)[0]
        except AlreadyExistsError:
            if not begun:
                raise
            return None


def number_of_step(model: Any) -> int:
    """How many steps the optimizer has made: where the numbers of batches begin."""
    return 0 if model.optimizer is None else int(np.asarray(model.optimizer.iterations))


def _begin_after(worker: Any, number: int) -> None:
    once = worker.made.once
    worker.run(once.begin, {once.number: number})
