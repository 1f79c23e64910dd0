"""What the step of `SyncReplicas` consists of, in the graph of one worker."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from laminar.engine import (
    FIFOQueue,
    GraphKeys,
    IndexedSlices,
    QueueRunner,
    Variable,
    control_dependencies,
    group,
    identity,
    no_op,
    scatter_update,
)
from laminar.engine.graph import Operation
from laminar.engine.state.update_placement import beside

from .gradient_sums import accumulator_for, operation, parts_of, taken_means


class Parts:
    """What the step of a graph consists of.

    Attributes:
        replica, total, required: the number of this worker, of all, and of those waited for.
        local_step: the step that this worker computes gradients for.
        step: the global step.
        settings: what the chief waits for: (required, total, a checksum of what gradients there
            are), zeros before it has begun; and 1 and the number of a worker that found that it
            does not agree, or 0.
        told: these numbers of this worker, without the last one.
        described: what gradients this worker gives.
        refuse: tells all that this worker does not agree.
        look: `settings`, the step, and how many gradients have come for it.
        queue: the tokens of this worker.
        token: what it has when it has been woken.
        wake, wake_own, wake_others: put a token into the queue of each worker, of this one, of all
            others.
        drain: empties the queue of this worker.
        chief_init, local_init: see `SyncReplicas`.
        leave: tells that this worker has ended; gives how many have.
    """

    def __init__(
        self,
        name: str,
        pairs: Sequence[tuple[Any, Variable]],
        step: Variable,
        replica: int,
        required: int,
        total: int,
    ) -> None:
        graph = step.op.graph
        self.replica, self.required, self.total, self.step = replica, required, total, step
        where = no_op().device  # of this worker
        with graph.device(None), graph.device(where):
            self.local_step = Variable(
                np.int64(0),
                trainable=False,
                name=f"local_step_{replica}",
                collections=[GraphKeys.LOCAL_VARIABLES],
            )
        self.described = _described(pairs)
        self.told = [required, total, zlib.crc32(self.described.encode())]
        with beside(step):
            self.settings = Variable(np.zeros(4, np.int64), trainable=False, name="settings")
            queues = [
                FIFOQueue(-1, np.int64, shapes=[()], shared_name=f"{name}/token_{i}")
                for i in range(total)
            ]
        self._accumulators = [accumulator_for(name, g, v) for g, v in pairs]
        self._pairs = pairs
        self._given = [
            a.apply_grad(*parts_of(g), self.local_step.as_tensor(), replica=replica)
            for a, (g, _) in zip(self._accumulators, pairs, strict=True)
        ]
        own = queues[replica]
        wakes = [operation(queue.enqueue(np.int64(0))) for queue in queues]
        self.wake, self.wake_own = group(*wakes, name="wake"), wakes[replica]
        self.wake_others = group(*wakes[:replica], *wakes[replica + 1 :]) if total > 1 else no_op()
        self.queue = own
        self.drain = own.dequeue_many(own.size())
        with control_dependencies(self._given):
            self.token = own.dequeue()
        now = step.as_tensor()
        self.chief_init = group(
            *(a.reset(now) for a in self._accumulators),
            self.local_step.assign(now),
            self.settings.assign(np.array([*self.told, 0], np.int64)),
            name="chief_init",
        )
        self.refuse = operation(
            scatter_update(self.settings, [3], np.array([replica + 1], np.int64))
        )
        self.look = (
            self.settings.as_tensor(),
            step.as_tensor(),
            self._accumulators[0].num_accumulated(),
        )
        self.local_init = operation(self.local_step.assign(now))
        left = [a.leave(replica, total) for a in self._accumulators]
        with control_dependencies(left):
            self.leave = identity(left[0])

    def go_on(self) -> Operation:
        """This worker's step: once it has been woken, it is at the global step."""
        with control_dependencies([self.token]):
            return operation(self.local_step.assign(self.step.read_value()))

    def update(self, optimizer: Any) -> QueueRunner:
        """The chief's share: take the means, apply them all together, count the step."""
        variables = [v for _, v in self._pairs]
        means = taken_means(self._accumulators, variables, self.required)
        applied = optimizer.apply_gradients(
            zip(means, variables, strict=True), global_step=self.step
        )
        return ChiefRunner(applied, self)


class ChiefRunner(QueueRunner):
    """Applies the steps of all, and wakes the workers after each."""

    def __init__(self, applied: Operation, parts: Parts) -> None:
        self._wake = parts.wake
        # When the chief stops, its own step must not wait for a token any more.
        super().__init__(parts.queue, [applied], close_op=parts.wake_own, cancel_op=parts.wake_own)

    def run_once(self, sess: Any, enqueue_op: Operation) -> None:
        sess.run(enqueue_op)
        sess.run(self._wake)  # by itself: whoever is woken finds a step that holds


def _described(pairs: Sequence[tuple[Any, Variable]]) -> str:
    """What gradients there are."""
    return ", ".join(
        f"{v.name!r} {v.dtype}{v.shape}{' by rows' * isinstance(g, IndexedSlices)}"
        for g, v in pairs
    )
