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

import logging
import threading
import time
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from laminar.engine import (
    ConditionalAccumulator,
    Coordinator,
    FIFOQueue,
    GraphKeys,
    IndexedSlices,
    QueueRunner,
    RunOptions,
    Session,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    SparseConditionalAccumulator,
    Variable,
    control_dependencies,
    get_default_graph,
    get_or_create_global_step,
    group,
    identity,
    no_op,
    scatter_update,
)
from laminar.engine.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
)
from laminar.engine.graph import DeviceSpec, Operation
from laminar.engine.state.update_placement import beside

_log = logging.getLogger("laminar")

_LOOK_SECONDS = 0.05  # between two looks whether the others have ended
_ANSWER_SECONDS = 10.0  # in which the servers must answer to that
_WATCH_SECONDS = 0.5  # between two looks why a step does not end


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
        self._parts: _Parts | None = None
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
        """`compute_gradients`, then `apply_gradients`."""
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
            parts = _Parts(self._name, pairs, step, self._replica, self._required, self._total)
            self._runner = parts.update(self._optimizer)
            self._parts = parts
            return group(parts.go_on(), name=name or "step")

    @property
    def local_step(self) -> Variable:
        """The step that this worker computes gradients for."""
        return self._built().local_step

    def _built(self) -> _Parts:
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
        return _SyncReplicasHook(
            self._built(), self.get_chief_queue_runner(), is_chief, self._timeout
        )

    def __repr__(self) -> str:
        return f"SyncReplicas({self._optimizer!r}, {self._required} of {self._total})"


class _Parts:
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
        self._accumulators = [_accumulator(name, g, v) for g, v in pairs]
        self._pairs = pairs
        self._given = [
            a.apply_grad(*_parts_of(g), self.local_step.value, replica=replica)
            for a, (g, _) in zip(self._accumulators, pairs, strict=True)
        ]
        own = queues[replica]
        wakes = [_operation(queue.enqueue(np.int64(0))) for queue in queues]
        self.wake, self.wake_own = group(*wakes, name="wake"), wakes[replica]
        self.wake_others = group(*wakes[:replica], *wakes[replica + 1 :]) if total > 1 else no_op()
        self.queue = own
        self.drain = own.dequeue_many(own.size())
        with control_dependencies(self._given):
            self.token = own.dequeue()
        now = step.value
        self.chief_init = group(
            *(a.reset(now) for a in self._accumulators),
            self.local_step.assign(now),
            self.settings.assign(np.array([*self.told, 0], np.int64)),
            name="chief_init",
        )
        self.refuse = _operation(
            scatter_update(self.settings, [3], np.array([replica + 1], np.int64))
        )
        self.look = (self.settings.value, step.value, self._accumulators[0].num_accumulated())
        self.local_init = _operation(self.local_step.assign(now))
        left = [a.leave(replica, total) for a in self._accumulators]
        with control_dependencies(left):
            self.leave = identity(left[0])

    def go_on(self) -> Operation:
        """This worker's step: once it has been woken, it is at the global step."""
        with control_dependencies([self.token]):
            return _operation(self.local_step.assign(self.step.read_value()))

    def update(self, optimizer: Any) -> QueueRunner:
        """The chief's share: take the means, apply them all together, count the step."""
        taken = [a.take_grad(self.required) for a in self._accumulators]
        means: list[Any] = []
        with control_dependencies([leaf for found in taken for leaf in _as_tuple(found)]):
            for found, (_, variable) in zip(taken, self._pairs, strict=True):
                with beside(variable):
                    parts = [identity(leaf) for leaf in _as_tuple(found)]
                means.append(
                    parts[0]
                    if len(parts) == 1
                    else IndexedSlices(parts[1], parts[0], variable.shape)
                )
        pairs = [(g, v) for g, (_, v) in zip(means, self._pairs, strict=True)]
        applied = optimizer.apply_gradients(pairs, global_step=self.step)
        return _ChiefRunner(applied, self)


class _ChiefRunner(QueueRunner):
    """Applies the steps of all, and wakes the workers after each."""

    def __init__(self, applied: Operation, parts: _Parts) -> None:
        self._wake = parts.wake
        # When the chief stops, its own step must not wait for a token any more.
        super().__init__(parts.queue, [applied], close_op=parts.wake_own, cancel_op=parts.wake_own)

    def run_once(self, sess: Any, enqueue_op: Operation) -> None:
        sess.run(enqueue_op)
        sess.run(self._wake)  # by itself: whoever is woken finds a step that holds


class _SyncReplicasHook(SessionRunHook):
    """Brings a session to the step of the others, and tells them when it ends.

    A thread looks why a step does not end: `_began` is when it began, None outside of steps, and
    `_error` what the thread has found, which ends the training.
    """

    def __init__(
        self, parts: _Parts, runner: QueueRunner, is_chief: bool, timeout_seconds: float
    ) -> None:
        self._parts, self._runner, self._is_chief = parts, runner, is_chief
        self._timeout = timeout_seconds
        self._began: float | None = None
        self._error: LaminarError | None = None

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        parts = self._parts
        # A step of this worker's that a failure has left waiting takes one token. What is drained
        # has been said by steps before the one that this worker then begins at.
        session.run(parts.wake_own)
        session.run(parts.drain)
        self._began = None
        if self._is_chief:
            session.run(parts.chief_init)
            session.run(parts.wake_others)
            self._runner.create_threads(session, coord, daemon=True, start=True)
        else:
            self._check_agreement(session)
            session.run(parts.local_init)
        thread = threading.Thread(
            target=self._watch, args=(session, coord), name="sync_replicas watch", daemon=True
        )
        coord.register_thread(thread)
        thread.start()

    def _check_agreement(self, session: Session) -> None:
        parts = self._parts
        end = time.monotonic() + self._timeout
        while True:
            required, total, checksum, _ = np.asarray(session.run(parts.settings)).tolist()
            if required:
                break
            if time.monotonic() > end:
                raise DeadlineExceededError(
                    f"SyncReplicas: worker {parts.replica} has waited {self._timeout:g} s for the "
                    "chief to begin",
                    remedy="look whether the chief runs, with make_session_run_hook(is_chief=True)",
                )
            time.sleep(_LOOK_SECONDS)
        if [required, total, checksum] == parts.told:
            return
        session.run(parts.refuse)
        if [required, total] != parts.told[:2]:
            raise FailedPreconditionError(
                f"SyncReplicas: worker {parts.replica} waits for {parts.required} of "
                f"{parts.total} gradients, the chief for {required} of {total}",
                remedy="give all workers the same numbers",
            )
        raise FailedPreconditionError(
            f"SyncReplicas: worker {parts.replica} gives other gradients than the chief waits for; "
            f"its own are of {parts.described}",
            remedy="run the same version of the program everywhere",
        )

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        self._began = time.monotonic()
        # The thread ends a step that takes too long, and knows why; unless a server does not answer
        seconds = self._timeout + 2 * _WATCH_SECONDS + _ANSWER_SECONDS
        return SessionRunArgs(options=RunOptions(timeout_in_ms=int(seconds * 1000)))

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self._began = None
        if self._error is not None:
            raise self._error

    def _watch(self, session: Session, coord: Coordinator) -> None:
        answer = RunOptions(timeout_in_ms=int(_ANSWER_SECONDS * 1000))
        while not coord.wait_for_stop(_WATCH_SECONDS):
            began = self._began
            if began is None or time.monotonic() - began < _WATCH_SECONDS:
                continue
            try:
                found = session.run(self._parts.look, options=answer)
                error = self._why(time.monotonic() - began, *found)
                if error is not None:
                    self._error = error
                    coord.request_stop(error)
                    session.run(self._parts.wake_own, options=answer)
            except LaminarError:
                continue  # what has become of the session, its own step tells

    def _why(self, seconds: float, settings: Any, step: Any, count: Any) -> LaminarError | None:
        """Why the step will not end; None if it may."""
        if settings[3]:
            return FailedPreconditionError(
                f"SyncReplicas: worker {settings[3] - 1} does not agree with the chief about what "
                "is trained",
                remedy="see the error of that worker; run the same program everywhere",
            )
        if seconds < self._timeout:
            return None
        return DeadlineExceededError(
            f"SyncReplicas: worker {self._parts.replica} has waited {self._timeout:g} s for step "
            f"{step} to end: {count} of {settings[0]} gradients have come",
            remedy="look whether all workers, and the chief, run, and for errors of theirs",
        )

    def end(self, session: Session) -> None:
        left = int(session.run(self._parts.leave))
        if self._is_chief and left < self._parts.total:
            _log.info("the chief has ended; it applies the gradients of the others until they do")
            self._wait_for_others(session)

    def _wait_for_others(self, session: Session) -> None:
        parts = self._parts
        last, since = -1, time.monotonic()
        while int(session.run(parts.leave)) < parts.total:
            now = int(session.run(parts.step))
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > self._timeout:
                _log.warning(
                    "SyncReplicas: no step for %g s while workers are left; the chief ends",
                    self._timeout,
                )
                return
            time.sleep(_LOOK_SECONDS)


def _described(pairs: Sequence[tuple[Any, Variable]]) -> str:
    """What gradients there are."""
    return ", ".join(
        f"{v.name!r} {v.dtype}{v.shape}{' by rows' * isinstance(g, IndexedSlices)}"
        for g, v in pairs
    )


def _accumulator(name: str, gradient: Any, variable: Variable) -> Any:
    shared = f"{name}/{variable.name}"
    with beside(variable):
        if isinstance(gradient, IndexedSlices):
            return SparseConditionalAccumulator(
                variable.dtype, variable.shape, shared, reduction_type="MEAN_OF_ALL"
            )
        return ConditionalAccumulator(variable.dtype, variable.shape, shared)


def _parts_of(gradient: Any) -> tuple[Any, ...]:
    if isinstance(gradient, IndexedSlices):
        return gradient.indices, gradient.values
    return (gradient,)


def _as_tuple(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def _operation(made: Any) -> Operation:
    """The operation of a tensor of a graph."""
    return made if isinstance(made, Operation) else made.op
