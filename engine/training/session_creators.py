"""What makes the sessions of a monitored training."""

from __future__ import annotations

from typing import Protocol

from ..runtime import Session, SessionConfig
from .scaffold import Scaffold
from .session_manager import SessionManager


class SessionCreator(Protocol):
    """Makes a session: at the start, and again after each failure that can be recovered from."""

    def create_session(self) -> Session:
        """A session that is ready."""


class ChiefSessionCreator:
    """Makes sessions for the process that restores and initialises.

    Args:
        scaffold: the operations for that; by default made as `Scaffold` does.
        master: the target.
        config: of the sessions.
        checkpoint_dir: a folder, whose newest checkpoint is restored.
        checkpoint_filename_with_path: or the checkpoint.

    Examples:
        >>> with engine.Graph().as_default():
        ...     w = engine.Variable(1.0)
        ...     with engine.MonitoredSession(engine.ChiefSessionCreator()) as session:
        ...         value = session.run(w)
        >>> value
        np.float32(1.0)
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: SessionConfig | None = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_path = checkpoint_filename_with_path
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._manager: SessionManager | None = None

    def create_session(self) -> Session:
        """A session that is restored, or initialised."""
        scaffold = self._scaffold.finalize()
        self._manager = self._manager or manager_of(scaffold)
        return self._manager.prepare_session(
            self._master,
            saver=scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_path,
            config=self._config,
            init_op=scaffold.init_op,
            init_feed_dict=scaffold.init_feed_dict,
            init_fn=scaffold.init_fn,
        )


class WorkerSessionCreator:
    """Makes sessions for a process whose model another one, the chief, initialises.

    Args:
        scaffold: the operations that tell whether it is ready.
        master: the target.
        config: of the sessions.
        max_wait_secs: how long the chief may take.

    Examples:
        >>> creator = engine.WorkerSessionCreator(master="grpc://host:2222", max_wait_secs=60)
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: SessionConfig | None = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._max_wait_secs = max_wait_secs
        self._manager: SessionManager | None = None

    def create_session(self) -> Session:
        """A session, as soon as the chief has made the model ready."""
        self._manager = self._manager or manager_of(self._scaffold.finalize())
        return self._manager.wait_for_session(self._master, self._config, self._max_wait_secs)


# How often a worker looks whether the model is ready.
_RECOVERY_WAIT_SECS = 1.0


def manager_of(scaffold: Scaffold) -> SessionManager:
    """What makes sessions of a scaffold that is finalized."""
    return SessionManager(
        local_init_op=scaffold.local_init_op,
        local_init_feed_dict=scaffold.local_init_feed_dict,
        ready_op=scaffold.ready_op,
        ready_for_local_init_op=scaffold.ready_for_local_init_op,
        recovery_wait_secs=_RECOVERY_WAIT_SECS,
    )
