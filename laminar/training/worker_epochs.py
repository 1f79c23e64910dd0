"""The batches of a loop that several processes run together: they agree before each step."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

from laminar.distribute import MultiWorker
from laminar.distribute.collectives.group import WorkerLostError
from laminar.distribute.multi_worker import Turn
from laminar.engine.source import warn
from laminar.tree import map_structure

from .batches import Batch, size_of
from .data import Data, Epochs
from .streams import Walked
from .training_state import variables_of
from .worker_step import content_of, form_of

# What ends a loop of this kind early.
_STOPS = {"train": "stop_training", "test": "stop_evaluating", "predict": "stop_predicting"}


class WorkerEpochs(Epochs):
    """As `Epochs`, where all workers of a strategy have as many steps.

    A worker whose data is over before that of others goes on with them, with a row of its last
    batch that counts for nothing. Who leaves a loop takes all others with it.

    Args:
        data: what to walk over.
        steps: see `Epochs`.
        kind: "train", "test" or "predict".
        model: whose loop it is.
        strategy: the workers.
    """

    def __init__(
        self, data: Data, steps: int | None, *, kind: str, model: Any, strategy: MultiWorker
    ) -> None:
        by = strategy.auto_shard
        is_dealt = by in ("element", "file") and isinstance(data, Walked) and kind != "predict"
        if is_dealt:
            assert isinstance(data, Walked), "it is dealt"
            data = data.dealt_out(by, strategy.num_replicas, strategy.rank)
        super().__init__(data, steps)
        self._is_own = is_dealt or by == "off"
        self._kind = kind
        self._model = model
        self._strategy = strategy
        self._stand_in: Batch | None = None
        self._has_failed = False
        self._has_told = not strategy.is_first  # that some data is over
        data.seed = int(strategy.of_first(data.seed))
        if not self._is_own:
            sizes = " or ".join(map(str, data.batch_sizes)) or "any number of"
            said = f"{kind}, {data.num_batches} batches of {sizes} examples"
            strategy.check_same("what they do", said if steps is None else f"{said}, {steps} steps")

    def epoch(self) -> Iterator[Batch]:
        """The batches of the next epoch."""
        strategy, batches = self._strategy, super().epoch()
        done, is_open = 0, False
        try:
            while True:
                batch = next(batches, None)
                turn = self._meet(batch, is_new=not done)
                if turn.is_over:
                    if turn.stops:
                        setattr(self._model, _STOPS[self._kind], True)
                    return
                if turn.ended and not self._has_told:
                    self._has_told = True
                    numbers = ", ".join(map(str, turn.ended))
                    warn(
                        f"the data of worker {numbers} ended after {done} batches, others have "
                        f"more; it goes on without examples of its own"
                    )
                if batch is None:
                    batch = self._stand_in
                else:
                    self._keep_stand_in(batch)
                done += 1
                strategy.hold(batch, turn)
                is_open = True
                yield batch
                is_open = False
        finally:
            batches.close()  # type: ignore[attr-defined]  # it is a generator
            if is_open and not self._has_failed and strategy.broken is None:
                strategy.meet(self._kind, None, stops=True)

    def step_is_made(self, step: Any, batch: Batch) -> None:
        """See to it that all workers begin with the same values."""
        step.trace(batch)
        if self._kind == "train":
            self._strategy.align(variables_of(self._model))
        else:
            self._strategy.check_equal(self._model.variables)

    def epoch_is_told(self) -> None:
        """See that all workers have come to the same weights, and whether one wants to end."""
        self._strategy.check_equal(self._model.variables)
        self._model.stop_training = self._strategy.agree(bool(self._model.stop_training))

    def _meet(self, batch: Batch | None, *, is_new: bool) -> Turn:
        """Agree on a step; without those that died, if the workers may."""
        strategy = self._strategy
        rows = None if batch is None else size_of(batch)
        form = "" if batch is None else form_of(batch)
        given: dict[str, Any] = {"is_own": self._is_own}
        given["is_empty"] = batch is None and self._stand_in is None
        if batch is not None and is_new and not self._is_own:
            given["content"] = content_of(batch)
        while True:
            try:
                return strategy.meet(self._kind, rows, form, **given)
            except WorkerLostError as lost:
                strategy.recover(lost, variables_of(self._model))
                given.pop("content", None)

    def _keep_stand_in(self, batch: Batch) -> None:
        """Keep a row for when the data is over; that of the first batch will do."""
        if self._stand_in is None:
            self._stand_in = map_structure(lambda x: None if x is None else x[:1], batch)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        if error is not None:
            self._has_failed = True
            self._strategy.fail(error)
        super().__exit__(kind, error, trace)
