"""SessionManager: sessions that are ready to train, restored, initialised or waited for.

    prepare_session (the chief):  a checkpoint is restored, if there is one; else init_op runs, and
                                  init_fn; then local_init_op, once ready_for_local_init_op gives no
                                  name; at the end ready_op must give none.
    wait_for_session (workers):   looks again and again, each time in a new session, whether that is
                                  so.

Source: TensorFlow 1, tf.train.SessionManager.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..checkpoint import get_checkpoint_state
from ..errors import DeadlineExceededError, FailedPreconditionError
from ..graph import Graph, Operation, Tensor, get_default_graph
from ..runtime import RunOptions, Session, SessionConfig
from ..saving import Saver

_log = logging.getLogger("laminar")


class SessionManager:
    """Makes sessions of a graph that are ready.

    Args:
        local_init_op: initialises what no checkpoint has, each time.
        ready_op: gives the names of what is not initialised.
        ready_for_local_init_op: the same of what `local_init_op` needs.
        graph: by default the default graph.
        recovery_wait_secs: from one look to the next.
        local_init_run_options: how `local_init_op` runs.
        local_init_feed_dict: what it is fed.

    Examples:
        >>> with engine.Graph().as_default():
        ...     w = engine.Variable(1.0)
        ...     init = engine.global_variables_initializer()
        ...     with engine.SessionManager().prepare_session("", init_op=init) as session:
        ...         session.run(w)
        np.float32(1.0)
    """

    def __init__(
        self,
        local_init_op: Operation | Tensor | None = None,
        ready_op: Tensor | None = None,
        ready_for_local_init_op: Tensor | None = None,
        graph: Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: RunOptions | None = None,
        local_init_feed_dict: Mapping[Any, Any] | None = None,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise FailedPreconditionError(
                "SessionManager: ready_for_local_init_op is given without a local_init_op"
            )
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = graph or get_default_graph()
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict

    def prepare_session(
        self,
        master: str = "",
        init_op: Operation | Tensor | None = None,
        saver: Saver | None = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: SessionConfig | None = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Callable[[Session], Any] | None = None,
    ) -> Session:
        """A session that is restored from a checkpoint, or initialised.

        Args:
            master: the target of the session.
            init_op: initialises, where there is no checkpoint.
            saver: restores.
            checkpoint_dir: a folder, whose newest checkpoint is taken.
            checkpoint_filename_with_path: or the checkpoint.
            wait_for_checkpoint: whether to wait until there is one.
            max_wait_secs: for so long at most.
            config: of the session.
            init_feed_dict: what `init_op` is fed.
            init_fn: is called with the session after `init_op`.

        Raises:
            FailedPreconditionError: nothing says how to initialise, or something is not initialised
                in the end; it is named.
        """
        session, is_loaded = self._restored(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        try:
            if not is_loaded:
                if init_op is None and init_fn is None and self._local_init_op is None:
                    raise FailedPreconditionError(
                        "prepare_session: the model is not initialized: there is no checkpoint, "
                        "no init_op, no init_fn and no local_init_op",
                        remedy="give init_op=global_variables_initializer()",
                    )
                if init_op is not None:
                    session.run(init_op, init_feed_dict)
                if init_fn is not None:
                    init_fn(session)
            what = f"init_op {_name(init_op)}, init_fn {init_fn}"
            missing = self._initialize_locally(session)
            if missing is not None:
                raise FailedPreconditionError(
                    f"prepare_session: {what} did not make the model ready for the local "
                    f"initialization: {missing}"
                )
            missing = self._missing(session, self._ready_op)
            if missing is not None:
                raise FailedPreconditionError(
                    f"prepare_session: {what}, local_init_op {_name(self._local_init_op)} did not "
                    f"make the model ready: {missing}",
                    remedy="initialize these, too",
                )
        except BaseException:
            session.close()
            raise
        return session

    def recover_session(
        self,
        master: str = "",
        saver: Saver | None = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: SessionConfig | None = None,
    ) -> tuple[Session, bool]:
        """A session, restored if there is a checkpoint; and whether it is ready.

        The arguments are those of `prepare_session`.
        """
        session, is_loaded = self._restored(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        missing = self._initialize_locally(session)
        if missing is None:
            missing = self._missing(session, self._ready_op)
        if missing is not None:
            _log.info("the model is not ready: %s", missing)
            return session, False
        if is_loaded:
            _log.info("restored the model from a checkpoint")
        return session, is_loaded

    def wait_for_session(
        self,
        master: str = "",
        config: SessionConfig | None = None,
        max_wait_secs: float = float("inf"),
    ) -> Session:
        """A session whose model another process has made ready.

        Args:
            master: the target of the session.
            config: of the session.
            max_wait_secs: for so long at most.

        Raises:
            DeadlineExceededError: it was not ready in that time.
        """
        end = time.monotonic() + max_wait_secs
        while True:
            session = Session(master, self._graph, config)
            missing: str | None
            try:
                missing = self._initialize_locally(session)
                if missing is None:
                    missing = self._missing(session, self._ready_op)
            except BaseException:
                session.close()
                raise
            if missing is None:
                return session
            session.close()
            left = end - time.monotonic()
            if left < self._recovery_wait_secs:
                time.sleep(max(left, 0))
                raise DeadlineExceededError(
                    f"wait_for_session: the model was not ready after {max_wait_secs} seconds: "
                    f"{missing}",
                    remedy="look whether the chief runs, and initializes these",
                )
            _log.info("waiting for the model to be ready: %s", missing)
            time.sleep(self._recovery_wait_secs)

    def _restored(
        self,
        master: str,
        saver: Saver | None,
        checkpoint_dir: str | None,
        checkpoint_path: str | None,
        wait_for_checkpoint: bool,
        max_wait_secs: float,
        config: SessionConfig | None,
    ) -> tuple[Session, bool]:
        """A session, and whether a checkpoint was restored."""
        if checkpoint_dir and checkpoint_path:
            raise FailedPreconditionError(
                "give checkpoint_dir or checkpoint_filename_with_path, not both"
            )
        session = Session(master, self._graph, config)
        try:
            if saver is None or not (checkpoint_dir or checkpoint_path):
                return session, False
            if checkpoint_path:
                saver.restore(session, checkpoint_path)
                return session, True
            assert checkpoint_dir is not None
            state = self._checkpoint_state(checkpoint_dir, wait_for_checkpoint, max_wait_secs)
            if state is None:
                return session, False
            saver.restore(session, state.model_checkpoint_path)
            saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        except BaseException:
            session.close()
            raise
        return session, True

    def _checkpoint_state(self, folder: str, waits: bool, max_wait_secs: float) -> Any:
        end = time.monotonic() + max_wait_secs
        while True:
            state = get_checkpoint_state(folder)
            if state is not None and state.model_checkpoint_path:
                return state
            if not waits or time.monotonic() + self._recovery_wait_secs > end:
                return None
            _log.info("waiting for a checkpoint in %s", folder)
            time.sleep(self._recovery_wait_secs)

    def _initialize_locally(self, session: Session) -> str | None:
        """Run `local_init_op`, once what it needs is there; what is missing, None if nothing."""
        if self._local_init_op is None:
            return None
        missing = self._missing(session, self._ready_for_local_init_op)
        if missing is None:
            session.run(
                self._local_init_op, self._local_init_feed_dict, self._local_init_run_options
            )
        return missing

    @staticmethod
    def _missing(session: Session, op: Any) -> str | None:
        """What an operation says that is not initialised; None if nothing."""
        if op is None:
            return None
        try:
            found = session.run(op)
        except FailedPreconditionError as error:
            return error.message
        names = np.asarray([] if found is None else found, object).reshape(-1)
        texts = [n.decode() if isinstance(n, bytes) else str(n) for n in names]
        return f"not initialized: {', '.join(texts)}" if texts else None


def _name(op: Any) -> str:
    return str(getattr(op, "name", op))
