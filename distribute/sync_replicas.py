"""SyncReplicas: between-graph replicas whose gradients are averaged and applied as one step.

Every worker builds the same graph and runs the step of `apply_gradients`. It gives its gradients to
accumulators, which stand with the variables, under the number of the step that they were computed
for (`local_step`), and waits for a token. The chief has a thread that takes the means once enough
have come, applies them, counts the step, and then puts a token into the queue of each worker.

What makes this safe to interrupt at any point: an accumulator takes one gradient of a replica in a
step, and for its present step alone, so what is given again after a failure counts once; a token
only wakes, and what a worker goes on with is the step counter itself, so a token too many or too
few costs at most a gradient computed in vain; a chief that begins anew resets the accumulators to
the step that it has restored, and wakes everybody. Sums go by the numbers of the replicas. So a
training in which all replicas are waited for ends with the bits that it has without a failure, if
what a worker trains on depends on `local_step` (and its own number) alone.

No variable changes before all means of the step have been taken: what is accepted was computed with
the variables of its step.

Source: Chen et al., "Revisiting distributed synchronous SGD", 2016, arXiv:1604.00981, section 3
    (backup workers, algorithms 3 and 4); Abadi et al., "TensorFlow: a system for large-scale
    machine learning", OSDI 2016, section 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from laminar.engine import (
    QueueRunner,
    SessionRunHook,
    Variable,
    get_default_graph,
    get_or_create_global_step,
    group,
    no_op,
)
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.engine.graph import DeviceSpec, Operation

from .sync_hook import SyncReplicasHook
from .sync_parts import Parts


class SyncReplicas:
    """An optimizer whose step is that of all workers together.

        sync = SyncReplicas(optimizer, replicas_to_aggregate=3, total_num_replicas=4, replica=task)
        train = sync.minimize(loss, global_step=engine.get_or_create_global_step())
        hook = sync.make_session_run_hook(is_chief=task == 0)
        with engine.MonitoredTrainingSession(master, task == 0, folder, hooks=[hook]) as session:
            while not session.should_stop():
                session.run(train)

    The step is that of one process on the batches of all, up to the rounding of sums. With fewer
    replicas to aggregate than there are, the last ones are backup workers: a step ends when the
    gradients of so many have come, and what comes for it later is dropped. A worker whose data ends
    leaves (the end of its session): the others go on without it, and the chief ends last.

    Args:
        optimizer: what applies the means; any that has `compute_gradients` and `apply_gradients`.
        replicas_to_aggregate: how many gradients a step waits for.
        total_num_replicas: how many workers there are, by default as many.
        replica: the number of this worker, from 0; by default the task of the worker's device in
            the scope where the gradients are applied.
        name: of the queues and accumulators, by which the workers share them.
        timeout_seconds: how long a worker waits for a step to end before it gives up.

    Attributes:
        local_step: the step that this worker computes gradients for, int64; in a graph, once
            gradients have been applied.

    Raises:
        InvalidArgumentError: more replicas to aggregate than there are, or a replica out of range.

    Examples:
        >>> laminar.distribute.SyncReplicas(laminar.optimizers.SGD(0.1), 5, total_num_replicas=4)
        Traceback (most recent call last):
            ...
        laminar.engine.errors.InvalidArgumentError: SyncReplicas: a step would wait for ...
    """

    def __init__(
        self,
        optimizer: Any,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        replica: int | None = None,
        name: str = "sync_replicas",
        timeout_seconds: float = 600.0,
    ) -> None:
        total = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        for what, n in (
            ("replicas_to_aggregate", replicas_to_aggregate),
            ("total_num_replicas", total),
        ):
            if isinstance(n, bool) or not isinstance(n, int) or n < 1:
                raise InvalidArgumentError(
                    f"SyncReplicas: {what} must be a number from 1 on, got {n!r}"
                )
        if replicas_to_aggregate > total:
            raise InvalidArgumentError(
                f"SyncReplicas: a step would wait for {replicas_to_aggregate} gradients of "
                f"{total} workers, and never end",
                remedy="total_num_replicas is the number of all workers, backups among them",
            )
        self._optimizer = optimizer
        self._required = replicas_to_aggregate
        self._total = total
        self._replica = None if replica is None else self._checked_replica(replica)
        self._name = name
        if not timeout_seconds > 0:
            raise InvalidArgumentError(
                f"SyncReplicas: timeout_seconds must be above 0, got {timeout_seconds!r}"
            )
        self._timeout = timeout_seconds
        self._parts: Parts | None = None
        self._runner: QueueRunner | None = None

    def _checked_replica(self, replica: Any) -> int:
        is_number = isinstance(replica, int) and not isinstance(replica, bool)
        if not is_number or not 0 <= replica < self._total:
            raise InvalidArgumentError(
                f"SyncReplicas: the number of this worker must be from 0 to {self._total - 1}, "
                f"got {replica!r}",
                remedy="SyncReplicas(..., replica=task)",
            )
        return int(replica)

    # What an optimizer does

    def compute_gradients(self, *arguments: Any, **options: Any) -> Any:
        """That of the optimizer."""
        return self._optimizer.compute_gradients(*arguments, **options)

    def minimize(
        self,
        loss: Any,
        var_list: Any = None,
        *,
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """`compute_gradients`, then `apply_gradients`.

        Args:
            loss: a scalar tensor.
            var_list: by default all trainable variables.
            global_step: see `apply_gradients`.
            name: of the operation.
        """
        pairs = self.compute_gradients(loss, var_list=var_list)
        return self.apply_gradients(pairs, global_step, name)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Variable]],
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """The step of a worker: it gives its gradients, and waits until the step is done.

        Args:
            grads_and_vars: (gradient, variable) pairs; gradients of rows travel as such.
            global_step: counts the steps of all, by default that of the graph, made if need be.
            name: of the operation.

        Raises:
            FailedPreconditionError: gradients have been applied already.
            InvalidArgumentError: there are none, or the number of the worker is not known.
        """
        if self._parts is not None:
            raise FailedPreconditionError(
                "SyncReplicas: gradients are applied once in a graph",
                remedy="make another for other variables, under another name",
            )
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise InvalidArgumentError("SyncReplicas: there are no gradients")
        graph = get_default_graph()
        if self._replica is None:
            task = DeviceSpec.from_string(no_op().device).task
            self._replica = self._checked_replica(task)
        step = get_or_create_global_step(graph) if global_step is None else global_step
        with graph.name_scope(self._name):
            parts = Parts(self._name, pairs, step, self._replica, self._required, self._total)
            self._runner = parts.update(self._optimizer)
            self._parts = parts
            return group(parts.go_on(), name=name or "step")

    @property
    def local_step(self) -> Variable:
        """The step that this worker computes gradients for."""
        return self._built().local_step

    def _built(self) -> Parts:
        if self._parts is None:
            raise FailedPreconditionError(
                "SyncReplicas: there is no step yet", remedy="call minimize or apply_gradients"
            )
        return self._parts

    # What runs it

    def get_chief_queue_runner(self) -> QueueRunner:
        """What takes means, applies them and hands out tokens; its thread belongs to the chief."""
        self._built()
        assert self._runner is not None
        return self._runner

    def get_init_tokens_op(self) -> Operation:
        """Puts a token into the queue of each worker."""
        return self._built().wake

    @property
    def chief_init_op(self) -> Operation:
        """Has the accumulators, and the chief's own `local_step`, begin at the global step."""
        return self._built().chief_init

    @property
    def local_step_init_op(self) -> Operation:
        """Has this worker's `local_step` begin at the global step."""
        return self._built().local_init

    def make_session_run_hook(self, is_chief: bool) -> SessionRunHook:
        """The hook that each worker's monitored session needs.

        Args:
            is_chief: whether it is the chief's, as in `MonitoredTrainingSession`.
        """
        return SyncReplicasHook(
            self._built(), self.get_chief_queue_runner(), is_chief, self._timeout
        )

    def __repr__(self) -> str:
        return f"SyncReplicas({self._optimizer!r}, {self._required} of {self._total})"
