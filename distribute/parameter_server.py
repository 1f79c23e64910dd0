"""ParameterServer: servers keep the weights of a model, workers compute gradients for them."""

from __future__ import annotations

import os
import sys
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from laminar.engine.errors import InvalidArgumentError, UnavailableError
from laminar.engine.late import later

from .staleness import Staleness

if TYPE_CHECKING:
    from laminar.engine import SessionConfig

    from .cluster_spec import ClusterSpec
    from .coordinator import Coordinator
    from .replica_device_setter import Strategy

# They load sessions and what they need: for processes that are part of a cluster.
_cluster_spec = later("laminar.distribute.cluster_spec", "ClusterSpec")
_check_tasks = later("laminar.distribute.known_tasks", "check_tasks")
_coordinator = later("laminar.distribute.coordinator", "Coordinator")
_server = later("laminar.distribute.servers", "Server")
_session_config = later("laminar.engine.runtime.config", "SessionConfig")
_tf_config = later("laminar.distribute.resolvers.tf_config", "TFConfigResolver")
_answers = later("laminar.distribute.serving_tasks", "answers")
_beats = later("laminar.distribute.serving_tasks", "Beats")
_end_tasks = later("laminar.distribute.serving_tasks", "end_tasks")
_serve_until_end = later("laminar.distribute.serving_tasks", "serve_until_end")

# What ends the tasks that the strategies of this process lead.
_leading: list[weakref.finalize[..., ParameterServer]] = []

_CHIEFS: Final = ("chief", "master")
_AGAIN_SECONDS: Final = 0.2
_MOST_BEAT_SECONDS: Final = 20.0  # between two signs of life of the program that leads


class ParameterServer:
    """Servers keep the weights of a model, and workers train it: `compile(strategy=...)`.

        strategy = laminar.distribute.ParameterServer()  # what TF_CONFIG says; else this process
        model.compile("adam", "mse", strategy=strategy)
        model.fit(x, y, epochs=5)

    One program leads: it has the data, the metrics, the callbacks and the checkpoints, and hands
    batches to the workers. They read the weights from the servers, and send gradients there, those
    of embeddings as rows; the servers apply them, with their share of the optimizer's slots.

    Asynchronously, each worker trains on batches of its own, and no worker waits for another:
    gradients are those of the weights at the time when it began with its batch. A batch of a worker
    that is lost goes to another one; its gradient is applied at most once.

    With `synchronous=True` a batch is divided among the workers, and the step is that of one
    process on the whole batch, up to the rounding of sums, whatever the reduction of the loss; what
    layers and a loss of one's own class add counts as a mean over examples. Workers beyond
    `replicas_to_aggregate` are backups: what a slow one has not done in time is given to them, too,
    and what comes first counts. A worker that is lost changes no bit.

    The weights of the model are there, up to date, whenever an epoch has ended, and where `fit`
    saves them. Under TF_CONFIG all tasks run the same program: in those of servers, and of workers
    that do not lead, this call does not return; they serve, and end with the program that leads:
    the job "chief", or, where there is none, the first worker. Without TF_CONFIG, and with no
    cluster, the program trains by itself, as without a strategy.

    Args:
        cluster: a ClusterSpec, or what one is made of, whose tasks run
            `python -m laminar.distribute.server`; or a ClusterResolver, as under TF_CONFIG.
        synchronous: whether each batch is divided among the workers.
        replicas_to_aggregate: into how many shares; by default as many as there are workers.
        ps_strategy: makes what chooses among servers, `RoundRobin` by default.
        timeout_seconds: how long it waits for the tasks to be there; and they, to hear of it.
        patience_seconds: how long a worker may be away before it is left out.
        credentials: by which the tasks know each other (`laminar.distribute.Credentials`).
        server_options: what else the `Server` of this task takes.

    Attributes:
        staleness: of asynchronous gradients: how many batches of others were done meanwhile.

    Raises:
        InvalidArgumentError: the cluster has no servers or no workers, an argument is out of
            range, or TF_CONFIG is malformed.
        SystemExit: in a task that does not lead, when the program that leads has ended.
        UnavailableError: in such a task, when nothing has been heard of that for so long.

    Examples:
        >>> model = laminar.Sequential([layers.Input((4,)), layers.Dense(1)])
        >>> model.compile("sgd", "mse", strategy=laminar.distribute.ParameterServer())
        >>> history = model.fit(np.ones((8, 4)), np.ones((8, 1)), batch_size=4, verbose=0)
    """

    def __init__(
        self,
        cluster: Any = None,
        *,
        synchronous: bool = False,
        replicas_to_aggregate: int | None = None,
        ps_strategy: Callable[[int], Strategy] | None = None,
        timeout_seconds: float = 300.0,
        patience_seconds: float = 60.0,
        credentials: Any = None,
        **server_options: Any,
    ) -> None:
        for name, value in (("timeout", timeout_seconds), ("patience", patience_seconds)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InvalidArgumentError(
                    f"ParameterServer: {name}_seconds must be a number above 0, got {value!r}"
                )
        resolver = None
        if cluster is None and "TF_CONFIG" in os.environ:
            cluster = _tf_config()
        if hasattr(cluster, "cluster_spec"):
            resolver, cluster = cluster, cluster.cluster_spec()
        self.synchronous = bool(synchronous)
        self.staleness = Staleness()
        self._timeout, self._patience = float(timeout_seconds), float(patience_seconds)
        self._credentials = credentials
        self._ps_strategy = ps_strategy
        self._server: Any = None
        self._is_there = False
        self._spec = None if cluster is None else _checked(_cluster_spec(cluster))
        if self._spec is None:
            self._shares = _checked_shares(replicas_to_aggregate, 1)
            return
        workers = self._spec.num_tasks("worker")
        self._shares = _checked_shares(replicas_to_aggregate, workers)
        if resolver is not None:
            self._take_part(resolver.task_type, resolver.task_id, server_options)
        elif server_options:
            raise InvalidArgumentError(
                f"ParameterServer: {', '.join(server_options)} is for a server of this process, "
                "and it has none",
                remedy="give it to the servers of the cluster",
            )

    def _take_part(self, job: str, task: int, options: dict[str, Any]) -> None:
        """Be a task of the cluster; returns in the one that leads."""
        spec = self._spec
        assert spec is not None, "it has tasks"
        if job not in (*_CHIEFS, "ps", "worker"):
            raise InvalidArgumentError(
                f"ParameterServer: there is nothing to do for /job:{job}/task:{task}",
                remedy="its jobs are ps, worker and chief; evaluation is fit's validation_data",
            )
        has_chief = any(name in spec.jobs for name in _CHIEFS)
        leads = job in _CHIEFS if has_chief else (job, task) == ("worker", 0)
        if job not in _CHIEFS:
            self._server = _server(spec, job, task, credentials=self._credentials, **options)
            if not leads:
                try:
                    code = _serve_until_end(self._server, self._credentials, self._timeout)
                finally:
                    self._server.stop()
                sys.exit(code)
        own = None if job in _CHIEFS else (job, task)
        beats = _beats(spec, own, min(_MOST_BEAT_SECONDS, self._timeout / 5), self._credentials)
        end = weakref.finalize(self, _end, spec, own, self._server, self._credentials, beats)
        _leading.append(end)

    @property
    def num_replicas(self) -> int:
        """How many workers there are."""
        return 1 if self._spec is None else self._spec.num_tasks("worker")

    @property
    def num_shares(self) -> int:
        """Into how many shares a batch of a synchronous training is divided."""
        return self._shares

    @property
    def is_async(self) -> bool:
        """Whether workers train without waiting for each other."""
        return not self.synchronous and not self.is_alone

    @property
    def is_alone(self) -> bool:
        """Whether there is no cluster: the program trains by itself."""
        return self._spec is None

    def coordinator(self, build: Callable[[int], Any], *, jit_compile: Any = "auto") -> Coordinator:
        """A `Coordinator` on this cluster, for a training loop of one's own.

        Args:
            build: see `Coordinator`.
            jit_compile: see `SessionConfig`.

        Raises:
            UnavailableError: a task does not answer within `timeout_seconds`.
            InvalidArgumentError: there is no cluster, or its tasks have another one.
        """
        if self._spec is None:
            raise InvalidArgumentError(
                "ParameterServer: there is no cluster whose workers run steps",
                remedy="set TF_CONFIG, or give a cluster",
            )
        config = _session_config(
            operation_timeout_in_ms=0, jit_compile=jit_compile, credentials=self._credentials
        )
        self._wait_for_tasks(config)
        servers, made = self._spec.num_tasks("ps"), self._ps_strategy
        found: Coordinator = _coordinator(
            self._spec,
            build,
            ps_strategy=None if made is None else lambda: made(servers),
            config=config,
            patience_seconds=self._patience,
        )
        return found

    def _wait_for_tasks(self, config: SessionConfig) -> None:
        """Return when all tasks answer."""
        if self._is_there:
            return
        assert self._spec is not None, "there are some"
        end = time.monotonic() + self._timeout
        for job in ("ps", "worker"):
            for task in self._spec.task_indices(job):
                name = f"/job:{job}/task:{task}"
                where = self._spec.task_address(job, task)
                own = replace(config, device_filters=[name])
                while not _answers(where, own):
                    if time.monotonic() > end:
                        raise UnavailableError(
                            f"ParameterServer: {name} at {where} has not answered for "
                            f"{self._timeout:g} s",
                            remedy="start all tasks of the cluster",
                        )
                    time.sleep(_AGAIN_SECONDS)
        _check_tasks(self._spec, config)
        self._is_there = True

    def __repr__(self) -> str:
        kind = "synchronous" if self.synchronous else "asynchronous"
        if self._spec is None:
            return f"ParameterServer({kind}, this process alone)"
        servers = self._spec.num_tasks("ps")
        return f"ParameterServer({kind}, {servers} servers, {self.num_replicas} workers)"


def _checked(spec: ClusterSpec) -> ClusterSpec:
    for job in ("ps", "worker"):
        if job not in spec.jobs or not spec.num_tasks(job):
            raise InvalidArgumentError(
                f"ParameterServer: the cluster has no job {job!r} with tasks: {spec}",
                remedy='name servers and workers: {"ps": ["host0:2222"], "worker": [...]}',
            )
    return spec


def _checked_shares(given: Any, workers: int) -> int:
    if given is None:
        return workers
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= workers:
        raise InvalidArgumentError(
            f"ParameterServer: replicas_to_aggregate must be a number from 1 to {workers}, which "
            f"is how many workers there are, got {given!r}"
        )
    return given


def _end(
    spec: ClusterSpec, own: tuple[str, int] | None, server: Any, credentials: Any, beats: Any
) -> None:
    """The program that leads ends: have the other tasks end, too."""
    beats.stop()
    failed = getattr(sys, "last_value", None) is not None  # an error that nobody has caught
    _end_tasks(spec, own, int(failed), credentials)
    if server is not None:
        server.stop()


def end_what_is_led() -> None:
    """End the tasks that this process leads, where it goes on itself: as its end would."""
    while _leading:
        _leading.pop()()
