"""A step that several processes run together: the graph of each, for its rows of the batch."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from laminar.distribute import MultiWorker
from laminar.distribute.collectives.group import WorkerLostError
from laminar.distribute.multi_worker import Turn
from laminar.engine.errors import UnimplementedError
from laminar.engine.functions import ConcreteFunction
from laminar.engine.graph import EagerTensor
from laminar.tree import flatten

from .batches import Batch, size_of
from .step import Step
from .training_state import variables_of


class WorkerStep:
    """`step(batch)` by all workers of a strategy; all of them call it, in the same order.

    Args:
        model: whose step it is.
        step: what a batch goes through.
        kind: "train", "test" or "predict".
        strategy: the workers.
        native: whether to run native code where there is some.
    """

    def __init__(
        self,
        model: Any,
        step: Callable[[Any], Any],
        kind: str,
        strategy: MultiWorker,
        *,
        native: bool,
    ) -> None:
        self._model = model
        self._kind = kind
        self._strategy = strategy
        # By whether the batch of a step is those of the workers together, or one that all have.
        self._shared = {
            is_own: Step(strategy.shared(step, is_own=is_own), eager=False, native=native)
            for is_own in (False, True)
        }
        # For batches of fewer examples than workers, where all have the same ones.
        self._alone = Step(strategy.alone(step), eager=False, native=native)
        self._traced: set[int] = set()

    def __call__(self, batch: Batch) -> Any:
        """Run the step."""
        strategy = self._strategy
        turn = strategy.held_for(batch)
        if turn is None:
            is_own = strategy.auto_shard == "off"
            turn = strategy.meet(self._kind, size_of(batch), form_of(batch), is_own=is_own)
        has_rows = strategy.rank not in turn.ended
        while True:
            try:
                results = self._run(batch, turn)
                strategy.step_is_done()
                return results
            except WorkerLostError as lost:
                # Nothing has changed here; another worker may have done the step.
                self._traced.clear()
                if not strategy.recover(lost, variables_of(self._model)):
                    rows = size_of(batch) if has_rows else None
                    turn = strategy.meet(self._kind, rows, form_of(batch), is_own=turn.is_own)
                    if not turn.is_over:
                        continue
                return self._model.get_metrics_result()

    def _run(self, batch: Batch, turn: Turn) -> Any:
        strategy = self._strategy
        if not turn.is_own and turn.counts.sum() < strategy.num_replicas:
            step, given = self._alone, batch
        else:
            step, given = self._shared[turn.is_own], self._given(batch, turn.counts)
        self._check_graph(step.trace(given))
        strategy.step_begins()
        return step(given)

    def _given(self, batch: Batch, counts: Any) -> Any:
        return batch, *(EagerTensor(a) for a in self._strategy.inputs_for(counts))

    def _check_graph(self, concrete: ConcreteFunction | None) -> None:
        """See that a graph that is new is the same in all workers."""
        if concrete is not None and id(concrete) not in self._traced:
            self._traced.add(id(concrete))
            self._strategy.check_same("the graph of a step", _digest(concrete))

    def trace(self, batch: Batch) -> ConcreteFunction | None:
        """The graph for batches of this form."""
        counts = np.ones(self._strategy.num_replicas, np.int64)
        step = self._shared[not self._strategy.has_same_data]
        return step.trace(self._given(batch, counts))

    def settle(self) -> None:
        """Have the whole values of all variables here; all workers call it."""
        self._strategy.gather(variables_of(self._model))

    def traced(self) -> Step:
        """What looks at every value of a step cannot look into other processes."""
        raise UnimplementedError(
            "fit: check='nan' looks at one process, and several train together",
            remedy="run the program in one process with check='nan'",
        )

    @property
    def _all(self) -> list[Step]:
        return [*self._shared.values(), self._alone]

    @property
    def compiles(self) -> list[Any]:
        """As those of a `Step`."""
        return [event for step in self._all for event in step.compiles]

    @property
    def kernels(self) -> list[Any]:
        """As those of a `Step`."""
        return [kernel for step in self._all for kernel in step.kernels]


def form_of(batch: Batch) -> str:
    """The structure of a batch, with the inner shapes and the types of its parts."""
    if isinstance(batch, dict):
        return f"{{{', '.join(f'{k!r}: {form_of(batch[k])}' for k in sorted(batch))}}}"
    if isinstance(batch, list | tuple):
        return f"({', '.join(map(form_of, batch))})"
    return "None" if batch is None else f"{batch.dtype}{['n', *batch.shape[1:]]}".replace("'", "")


def content_of(batch: Batch) -> int:
    """A number for the values of a batch, other than 0."""
    crc = 0
    for x in flatten(batch):
        if x is not None:
            array = np.asarray(x)
            data = repr(array.tolist()).encode() if array.dtype.kind == "O" else array.tobytes()
            crc = zlib.crc32(data, crc)
    return crc or 1


def _digest(concrete: ConcreteFunction) -> str:
    """What a graph computes, briefly: it differs where the programs do."""
    crc, operations = 0, concrete.graph.operations
    for op in operations:
        line = f"{op.type}({len(op.inputs)}) -> {[str(y.spec) for y in op.outputs]}\n"
        crc = zlib.crc32(line.encode(), crc)
    return f"{len(operations)} operations, crc {crc:08x}"
