"""The server of a task: master, worker and its tensors on one port, and links beside it.

    NEW --start--> STARTED --stop--> STOPPED
    NEW --stop, join--> STOPPED

It has its port from the beginning, and answers from `start` on. Starting twice does nothing; one
that was stopped cannot start again. `_state` is guarded by `_changed`.
"""

from __future__ import annotations

import enum
import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from laminar.engine.devices import task_devices
from laminar.engine.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    Origin,
)
from laminar.engine.runtime import ServerDef, SessionConfig

from ..cluster_spec import ClusterSpec
from ..wire import Channels, Credentials, Keepalive, Limits, RateLimit, make_server, with_origin
from .master import Master
from .peers import handlers
from .roots import Roots
from .servers_here import add_master, remove_master
from .session_engine import SCHEME
from .tasks import addresses, task_name
from .worker import Worker

_log = logging.getLogger("laminar.distribute")

_SESSIONS = 1000, 60.0  # that somebody may begin, in how many seconds


@dataclass(frozen=True)
class Settings:
    """What a server takes besides its place in a cluster.

    Attributes:
        credentials: by which the servers and clients of the cluster know each other; None for
            those of this machine alone.
        allow_insecure_network: whether it may be reached by other machines without credentials.
        lease_seconds: how long a session lives of whose client, or master, nothing is heard.
        limits: what it takes on at a time.
        roots: folders in which graphs may read and write files; none: nowhere.
        keepalive: how soon it is noticed that another task, or a client, is cut off.
    """

    credentials: Credentials | None = None
    allow_insecure_network: bool = False
    lease_seconds: float = 60.0
    limits: Limits | None = None
    roots: Sequence[str | os.PathLike[str]] = ()
    keepalive: Keepalive = field(default_factory=Keepalive)

    def __post_init__(self) -> None:
        if not self.lease_seconds > 0:
            raise InvalidArgumentError(
                f"lease_seconds must be more than 0, got {self.lease_seconds}"
            )
        if not isinstance(self.keepalive, Keepalive):
            raise InvalidArgumentError(
                f"keepalive must be a Keepalive, got {self.keepalive!r}",
                remedy="Server(..., keepalive=laminar.distribute.Keepalive(time_seconds=10.0))",
            )


class _State(enum.Enum):
    NEW = "new"
    STARTED = "started"
    STOPPED = "stopped"


class GrpcServer:
    """See the head of this file, and `laminar.distribute.Server`."""

    def __init__(self, definition: ServerDef) -> None:
        settings: Settings = definition.settings or Settings()
        config = definition.config or SessionConfig()
        cluster = ClusterSpec(definition.cluster)
        self._task = task_name(definition.job_name, definition.task_index)
        places = addresses(cluster)
        self._changed = threading.Condition()
        self._state = _State.NEW
        self._watcher: threading.Thread | None = None
        self._channels = Channels(
            settings.credentials,
            names={address: name for name, address in places.items()},
            keepalive=settings.keepalive,
            allow_insecure_network=settings.allow_insecure_network,
            has_links=True,
        )
        devices = task_devices(
            definition.job_name,
            definition.task_index,
            config.device_count,
            config.memory_limit_bytes,
        )
        roots = Roots(settings.roots, self._task)
        self._worker = Worker(self._task, devices, self._channels, roots)
        self._lease = settings.lease_seconds
        self._master = Master(self._worker, places, self._channels, config, self._lease)
        self._server = make_server(
            {
                **handlers("laminar.MasterService", self._master.service),
                **handlers("laminar.WorkerService", self._worker.service),
            },
            places[self._task],
            settings.credentials,
            limits=settings.limits or Limits(),
            rates={"laminar.MasterService/CreateSession": RateLimit(*_SESSIONS, "sessions")},
            services=(self._worker.tensors,),
            task=self._task,
            keepalive=settings.keepalive,
            allow_insecure_network=settings.allow_insecure_network,
        )
        places[self._task] = self._server.address  # with its port, where any was asked for

    @property
    def target(self) -> str:
        """What `Session` takes to run there."""
        return f"{SCHEME}://{self._server.address}"

    @property
    def task(self) -> str:
        """The name of its task."""
        return self._task

    @property
    def master(self) -> Master:
        """The master."""
        return self._master

    @property
    def worker(self) -> Worker:
        """The worker."""
        return self._worker

    def start(self) -> None:
        """Begin to answer."""
        with self._changed:
            if self._state is _State.STOPPED:
                raise FailedPreconditionError(
                    f"the server of {self._task} was stopped", remedy="make another Server"
                )
            if self._state is _State.STARTED:
                _log.info("the server of %s has started already", self._task)
                return
            self._server.start()
            add_master(self._server.address, self._master.service)
            self._state = _State.STARTED
            self._watcher = threading.Thread(target=self._watch, name="laminar-leases", daemon=True)
            self._watcher.start()

    def _watch(self) -> None:
        """Look after leases until the server is stopped."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._state is _State.STOPPED, self._lease / 4)
                if self._state is _State.STOPPED:
                    return
            self._master.sweep()
            self._worker.sweep()

    def join(self) -> None:
        """Wait until it has been stopped; one that was never started is stopped."""
        with self._changed:
            if self._state is _State.STARTED:
                self._changed.wait_for(lambda: self._state is _State.STOPPED)
                return
        self.stop()

    def stop(self) -> None:
        """Answer no more; cancel what runs; give up the port."""
        with self._changed:
            if self._state is _State.STOPPED:
                return
            self._state = _State.STOPPED
            self._changed.notify_all()
        remove_master(self._server.address)
        stopped = with_origin(
            AbortedError(f"the server of {self._task} was stopped"), Origin(self._task)
        )
        self._master.close(stopped)
        self._worker.close(stopped)
        self._server.stop()
        self._channels.close()
        if self._watcher is not None:
            self._watcher.join()
