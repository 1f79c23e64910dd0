"""Coordinator: one program that hands steps to workers, which share variables on servers.

State of a `Coordinator`, guarded by `_changed`:
    _waiting: what no worker has begun with; _num_running: how much they are at;
    _error: why all that waits was given up, until `join` or `schedule` raises it;
    _reachable: the workers that have not been given up;
    _losses: how often a server was lost; a session from before one is of no use;
    _is_closing: no more is begun.
Each worker has a thread, and its `CoordinatedWorker` belongs to that.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from laminar.engine import (
    Graph,
    Saver,
    Session,
    SessionConfig,
    device,
    global_variables,
    global_variables_initializer,
)
from laminar.engine.errors import (
    AbortedError,
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
    UnavailableError,
)
from laminar.tree import map_structure

from .cluster_spec import ClusterSpec
from .replica_device_setter import Strategy, replica_device_setter

_log = logging.getLogger("laminar")

_LOST = (AbortedError, UnavailableError)
_AGAIN_SECONDS = 0.2
_MOST_ATTEMPTS = 10


class CoordinatedWorker:
    """What a step is given: a worker with a session of its own.

    Attributes:
        task: its number.
        address: of its server.
        graph: what `build` has built for it.
        made: what `build` gave: tensors and operations to run, an iterator of its own data, ...
        variables: what it has made of global variables: by their names, what they are.
    """

    def __init__(
        self, task: int, address: str, config: SessionConfig, rule: Any, build: Callable[[int], Any]
    ) -> None:
        self.task, self.address, self._config = task, address, config
        self.graph = Graph()
        with self.graph.as_default(), device(rule):
            self.made = build(task)
            self._init = global_variables_initializer()
            made: Any = global_variables()
            self._saver = Saver() if made else None
        self.variables = {v.name: _described(v) for v in made}
        self.graph.finalize()
        self._session: Session | None = None

    def run(self, fetches: Any, feed_dict: Any = None) -> Any:
        """As `Session.run`, on this worker."""
        if self._session is None:
            self._session = Session(f"grpc://{self.address}", self.graph, self._config)
        return self._session.run(fetches, feed_dict)

    def initialize(self, checkpoint: str | None = None) -> None:
        """Give all variables their initial values, or those of a checkpoint."""
        if checkpoint is None or self._saver is None:
            self.run(self._init)
            return
        self.run(())
        self._saver.restore(self._session, checkpoint)

    def save(self, path: str) -> str:
        """Save all variables; gives the path of the checkpoint."""
        if self._saver is None:
            raise FailedPreconditionError("Coordinator: there are no variables to save")
        self.run(())
        return str(self._saver.save(self._session, path))

    def drop_session(self) -> None:
        """Another session is made by the next run."""
        session, self._session = self._session, None
        if session is not None:
            try:
                session.close()
            except LaminarError:
                return  # it is lost


class RemoteResult:
    """What a step gives, once it has been run."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._value: Any = None
        self._error: BaseException | None = None
        self._tell: Callable[[], None] | None = None

    def when_ended(self, tell: Callable[[], None]) -> None:
        """Call `tell` once it has been run, or given up; at once if that has been so."""
        self._tell = tell
        if self._ended.is_set():
            tell()

    def fetch(self) -> Any:
        """Wait for it; raises what the step has failed with."""
        self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def _end(self, value: Any, error: BaseException | None = None) -> None:
        self._value, self._error = value, error
        self._ended.set()
        if self._tell is not None:
            self._tell()


class _Closure:
    def __init__(self, step: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.step, self.arguments = step, arguments
        self.result = RemoteResult()
        self.attempts = 0


class _Losses:
    """What a worker's thread knows of losses.

    Attributes:
        servers: how often a server had been lost when its session was made.
        silent_since: when the worker did not answer first; None if it has since.
    """

    servers = 0
    silent_since: float | None = None


class Coordinator:
    """Runs steps on whichever worker is free: for training loops of one's own.

        def build(task):
            w = engine.Variable(0.0, name="w")
            x = engine.placeholder("float32", [])
            return x, w.assign_add(x)

        def step(worker, i):
            x, add = worker.made
            return worker.run(add, {x: i})

        with Coordinator(cluster, build) as coordinator:
            coordinator.initialize()
            results = [coordinator.schedule(step, i) for i in range(100)]
            coordinator.join()
            print(coordinator.fetch(results))

    A step that is under way on a worker that is lost is run again on another; what the lost one had
    applied by then stays (so a step can count twice, never half: a step that fails changes no
    variable). A server that is lost is an error for all: `initialize(checkpoint)` goes on.

    Args:
        cluster: a ClusterSpec, or what one is made of, whose tasks are up.
        build: `build(task)` builds the graph of a worker, under a rule that puts variables on
            servers; all must make the same variables. What it gives is `worker.made`.
        ps_strategy: chooses among servers, `RoundRobin` by default.
        config: of the sessions.
        patience_seconds: for so long a worker is tried that does not answer; then it is left out.

    Raises:
        InvalidArgumentError: the cluster has no workers, or `build` makes other variables for one.

    Examples:
        >>> from laminar.distribute import Coordinator, Server
        >>> with Server({"worker": ["localhost:0"]}) as server:
        ...     cluster = {"worker": [server.target.removeprefix("grpc://")]}
        ...     with Coordinator(cluster, lambda task: engine.constant(task + 1.0)) as coordinator:
        ...         result = coordinator.schedule(lambda worker: worker.run(worker.made))
        ...         coordinator.join()
        >>> result.fetch()
        np.float32(1.0)
    """

    def __init__(
        self,
        cluster: Any,
        build: Callable[[int], Any],
        *,
        ps_strategy: Callable[[], Strategy] | None = None,
        config: SessionConfig | None = None,
        patience_seconds: float = 60.0,
    ) -> None:
        spec = ClusterSpec(cluster)
        if "worker" not in spec.jobs or not spec.num_tasks("worker"):
            raise InvalidArgumentError(
                f"Coordinator: the cluster has no job 'worker' with tasks: {spec}",
                remedy='name the workers: {"worker": ["host1:2222", "host2:2222"], ...}',
            )
        self._patience = patience_seconds
        base = config or SessionConfig(operation_timeout_in_ms=0)
        self._workers = []
        for task in spec.task_indices("worker"):
            where = f"/job:worker/task:{task}"
            rule = replica_device_setter(
                cluster=spec,
                worker_device=where,
                ps_strategy=None if ps_strategy is None else ps_strategy(),
            )
            seen = ["/job:ps", where] if "ps" in spec.jobs else [where]
            own = replace(base, device_filters=seen)
            address = spec.task_address("worker", task)
            self._workers.append(CoordinatedWorker(task, address, own, rule or where, build))
            _check_alike(self._workers[0], self._workers[-1])
        self._changed = threading.Condition()
        self._waiting: deque[_Closure] = deque()
        self._num_running = 0
        self._error: BaseException | None = None
        self._reachable = {worker.task for worker in self._workers}
        self._losses = 0
        self._is_closing = False
        self._threads = [
            threading.Thread(
                target=self._work, args=(w,), name=f"coordinator-{w.task}", daemon=True
            )
            for w in self._workers
        ]
        for thread in self._threads:
            thread.start()

    @property
    def num_workers(self) -> int:
        """How many workers there are, those that are left out not counted."""
        with self._changed:
            return len(self._reachable)

    # Steps

    def schedule(self, step: Callable[..., Any], *arguments: Any) -> RemoteResult:
        """Have `step(worker, *arguments)` run by a worker; gives what will come of it.

        Args:
            step: called in a thread of this process, with a worker whose devices it may use; again,
                with another one, where a worker is lost meanwhile.
            arguments: passed on.

        Raises:
            LaminarError: an earlier step has failed; that is told once.
            FailedPreconditionError: the coordinator is closed.
        """
        closure = _Closure(step, arguments)
        with self._changed:
            self._raise_error()
            if self._is_closing:
                raise FailedPreconditionError("the coordinator is closed")
            self._waiting.append(closure)
            self._changed.notify_all()
        return closure.result

    def join(self) -> None:
        """Wait until all that was scheduled has been run.

        Raises:
            LaminarError: what a step has failed with; those that waited then are given up.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: not self._num_running and (self._error is not None or not self._waiting)
            )
            self._raise_error()

    def fetch(self, results: Any) -> Any:
        """The values of results in any structure."""
        return map_structure(lambda r: r.fetch() if isinstance(r, RemoteResult) else r, results)

    def initialize(self, checkpoint: str | None = None) -> None:
        """Give all variables their initial values, or those of a checkpoint."""
        self.schedule(CoordinatedWorker.initialize, checkpoint).fetch()

    def save(self, path: str) -> str:
        """Save all variables, between steps; gives the path of the checkpoint."""
        self.join()
        return str(self.schedule(CoordinatedWorker.save, path).fetch())

    def close(self, timeout_seconds: float | None = None) -> None:
        """End when what runs has been run; the rest is given up.

        Args:
            timeout_seconds: how long it waits for each worker; one that does not answer is left.
        """
        with self._changed:
            self._is_closing = True
            self._give_up(CancelledError("the coordinator was closed"))
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(timeout_seconds)

    def __enter__(self) -> Coordinator:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _give_up(self, error: BaseException) -> None:
        """Nothing of what waits will be run; under the lock."""
        for closure in self._waiting:
            closure.result._end(None, error)
        self._waiting.clear()

    # A worker's thread

    def _work(self, worker: CoordinatedWorker) -> None:
        losses = _Losses()
        # What was run is forgotten before the next is waited for: it may hold what ends this.
        while self._work_once(worker, losses):
            pass
        worker.drop_session()

    def _work_once(self, worker: CoordinatedWorker, losses: _Losses) -> bool:
        """Run a step, once there is one; False when there will be no more for the worker."""
        closure = self._take()
        if closure is None:
            return False
        closure.attempts += 1
        if losses.servers != self._losses:
            losses.servers = self._losses
            worker.drop_session()
        try:
            value = closure.step(worker, *closure.arguments)
        except _LOST as error:
            worker.drop_session()
            if not self._is_of(worker, error) or closure.attempts >= _MOST_ATTEMPTS:
                with self._changed:
                    self._losses += 1
                self._ended(closure, None, _of_all(error))
                return True
            now = time.monotonic()
            losses.silent_since = losses.silent_since or now
            self._put_back(closure)
            if now - losses.silent_since > self._patience:
                self._leave_out(worker, error)
                return False
            time.sleep(_AGAIN_SECONDS)
            return True
        except BaseException as error:  # it is raised where results are read
            self._ended(closure, None, error)
        else:
            self._ended(closure, value, None)
        losses.silent_since = None
        return True

    def _take(self) -> _Closure | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closing)
            if not self._waiting:
                return None
            self._num_running += 1
            return self._waiting.popleft()

    def _put_back(self, closure: _Closure) -> None:
        with self._changed:
            self._num_running -= 1
            if self._is_closing:
                closure.result._end(None, CancelledError("the coordinator was closed"))
            else:
                self._waiting.appendleft(closure)
            self._changed.notify_all()

    def _ended(self, closure: _Closure, value: Any, error: BaseException | None) -> None:
        closure.result._end(value, error)
        with self._changed:
            self._num_running -= 1
            if error is not None:
                self._error = self._error or error
                self._give_up(error)
            self._changed.notify_all()

    def _leave_out(self, worker: CoordinatedWorker, cause: LaminarError) -> None:
        _log.warning(
            "Coordinator: worker %d has not answered for %g s and is left out: %s",
            worker.task,
            self._patience,
            cause.message,
        )
        with self._changed:
            self._reachable.discard(worker.task)
            if not self._reachable:
                self._error = UnavailableError(f"no worker is left: {cause.message}")
                self._give_up(self._error)
            self._changed.notify_all()

    @staticmethod
    def _is_of(worker: CoordinatedWorker, error: LaminarError) -> bool:
        """Whether it is the worker that was lost, not a server."""
        text = str(error)
        own = (f"/job:worker/task:{worker.task}", worker.address)
        return any(name in text for name in own) and "/job:ps" not in text


def _described(variable: Any) -> str:
    """What a variable is, and where, if a server keeps it."""
    where = variable.op.device
    kept = f" on {where}" if "/job:ps" in where else ""
    return f"{variable.dtype}{variable.shape}{kept}"


def _check_alike(first: CoordinatedWorker, other: CoordinatedWorker) -> None:
    """InvalidArgumentError where two workers would not share all variables."""
    for name in sorted({*first.variables, *other.variables}):
        a, b = (w.variables.get(name, "none") for w in (first, other))
        if a != b:
            raise InvalidArgumentError(
                f"Coordinator: variable {name!r} is {b} for worker {other.task}, and {a} for "
                f"worker {first.task}",
                remedy="build the same variables, in the same order, for each task",
            )


def _of_all(error: LaminarError) -> LaminarError:
    """The loss of a server, for all who wait."""
    found = UnavailableError(
        f"a parameter server was lost: {error.message}",
        remedy="start it again, and coordinator.initialize(checkpoint)",
    )
    found.__cause__ = error
    return found
