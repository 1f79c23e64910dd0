"""MonitoredSession: a session that is initialised, watched by hooks, and recovered.

    with MonitoredTrainingSession(checkpoint_dir="folder", hooks=[StopAtStepHook(last_step=1000)]) \
            as session:
        while not session.should_stop():
            session.run(train_op)

The order of what happens: hooks' `begin`; the scaffold is finalized, which freezes the graph; the
session is made, and its queue runners started; hooks' `after_create_session`; runs, with hooks'
`before_run` and `after_run`; where a session is lost (AbortedError, UnavailableError) it is made
again, and hooks are notified; at the end hooks' `end`, then threads are stopped and the session
closed. Leaving the block by OutOfRangeError or StopIteration is a normal end; by any other error
`end` is not called.

Source: TensorFlow 1, tf.train.MonitoredSession.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from ..errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from ..graph import Graph, get_default_graph
from ..io.places import local_path
from ..runtime import RunMetadata, RunOptions, Session, SessionConfig
from ..state import Coordinator, start_queue_runners
from .defaults import USE_DEFAULT
from .saving_hooks import CheckpointSaverHook, SummarySaverHook
from .scaffold import Scaffold
from .session_creators import ChiefSessionCreator, SessionCreator, WorkerSessionCreator
from .session_run_hook import SessionRunHook
from .session_wrappers import CoordinatedSession, HookedSession, RecoverableSession
from .step_hooks import StepCounterHook

_SAVE_SECS, _SUMMARY_STEPS = 600, 100


class _CoordinatedCreator:
    """Makes sessions with threads and hooks.

    Attributes:
        session: the last one that was made, without any wrapper.
        coord: of its threads.
    """

    def __init__(
        self, creator: SessionCreator, hooks: Sequence[SessionRunHook], grace: float
    ) -> None:
        self._creator = creator
        self._hooks = hooks
        self._grace = grace
        self.session: Session | None = None
        self.coord: Coordinator | None = None

    def create_session(self) -> CoordinatedSession:
        """Another session."""
        session = self.session = self._creator.create_session()
        # The end of the input is reported, too: only the main thread knows whether it is the end.
        coord = self.coord = Coordinator(clean_stop_exception_types=[])
        start_queue_runners(session, coord)
        made = CoordinatedSession(HookedSession(session, self._hooks), coord, self._grace)
        try:
            for hook in self._hooks:
                hook.after_create_session(session, coord)
        except BaseException:
            made.close()
            raise
        return made


class StepContext:
    """What a step function is given (see `MonitoredSession.run_step_fn`).

    Attributes:
        session: runs without hooks.
        run_with_hooks: as `MonitoredSession.run`.
    """

    def __init__(self, session: Session, run_with_hooks: Callable[..., Any]) -> None:
        self.session = session
        self.run_with_hooks = run_with_hooks

    def request_stop(self) -> None:
        """End the training, by StopIteration."""
        raise StopIteration("step_fn has requested the iterations to stop")


class _MonitoredSession:
    """What both kinds have in common."""

    StepContext = StepContext

    def __init__(
        self,
        session_creator: SessionCreator | None,
        hooks: Sequence[SessionRunHook] | None,
        should_recover: bool,
        stop_grace_period_secs: float = 120,
    ) -> None:
        self._graph_was_finalized = get_default_graph().finalized
        self._graph = get_default_graph()
        self._hooks = list(hooks or ())
        with self._graph.as_default():
            for hook in self._hooks:
                hook.begin()
        self._creator = _CoordinatedCreator(
            session_creator or ChiefSessionCreator(), self._hooks, stop_grace_period_secs
        )
        self._sess: RecoverableSession | CoordinatedSession | None = (
            RecoverableSession(self._creator) if should_recover else self._creator.create_session()
        )

    @property
    def graph(self) -> Graph:
        """The graph that it runs."""
        return self._graph

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """As `Session.run`, with the hooks.

        Raises:
            FailedPreconditionError: it is closed.
        """
        return self._open().run(fetches, feed_dict, options, run_metadata)

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """Call a function that runs parts of a step by itself.

        Where the session is lost on the way, it is called again, in a new one.

        Args:
            step_fn: takes `step_context`, a `StepContext`: `step_context.session.run(...)` runs
                without hooks, `step_context.run_with_hooks(...)` with them.

        Returns:
            What it gives.

        Raises:
            InvalidArgumentError: it takes other arguments.
        """
        names = list(inspect.signature(step_fn).parameters) if callable(step_fn) else []
        if names not in (["step_context"], ["self", "step_context"]):
            raise InvalidArgumentError(
                f"run_step_fn: expected a function of step_context, got {step_fn!r} of {names}",
                remedy="def step_fn(step_context): ...",
            )
        wrapped = self._open()

        def step(sess: Any) -> Any:
            session = self._creator.session
            assert session is not None
            return step_fn(StepContext(session, sess.run))

        return wrapped.run_step(step) if isinstance(wrapped, RecoverableSession) else step(wrapped)

    def should_stop(self) -> bool:
        """Whether a hook or a thread has ended the training, or it is closed."""
        return self._sess is None or self._sess.should_stop()

    def _open(self) -> RecoverableSession | CoordinatedSession:
        if self._sess is None:
            raise FailedPreconditionError("the session is closed")
        return self._sess

    def close(self) -> None:
        """Call the hooks' `end`, stop the threads, and close the session.

        Raises:
            FailedPreconditionError: it is closed already.
        """
        self._close(is_normal=True)

    def _close(self, *, is_normal: bool) -> None:
        try:
            if is_normal:
                self._open()
                session = self._creator.session
                assert session is not None
                for hook in self._hooks:
                    hook.end(session)
        finally:
            wrapped, self._sess = self._sess, None
            self._creator.session = self._creator.coord = None
            try:
                if wrapped is not None:
                    wrapped.close()
            finally:
                if not self._graph_was_finalized:
                    self._graph.unfinalize()

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        is_normal = kind is None or issubclass(kind, OutOfRangeError | StopIteration)
        try:
            self._close(is_normal=is_normal)
        except OutOfRangeError:
            # A thread has come to the end of the input, too.
            if kind is None or not is_normal:
                raise
        return is_normal


class MonitoredSession(_MonitoredSession):
    """A session that is initialised, watched by hooks, and made again where it is lost.

    Args:
        session_creator: makes sessions; by default `ChiefSessionCreator()`.
        hooks: are called around each run.
        stop_grace_period_secs: how long threads may take to end.

    Examples:
        >>> with engine.Graph().as_default():
        ...     step = engine.get_or_create_global_step()
        ...     more = step.assign_add(1)
        ...     with engine.MonitoredSession(hooks=[engine.StopAtStepHook(last_step=3)]) as session:
        ...         while not session.should_stop():
        ...             value = session.run(more)
        >>> value
        np.int64(3)
    """

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """As `MonitoredSession`, but what is lost is an error: for one process.

    Args:
        hooks: are called around each run.
        scaffold: the operations that initialise.
        master: the target.
        config: of the session.
        checkpoint_dir: a folder, whose newest checkpoint is restored.
        stop_grace_period_secs: how long threads may take to end.
        checkpoint_filename_with_path: or the checkpoint.

    Examples:
        >>> with engine.Graph().as_default():
        ...     more = engine.get_or_create_global_step().assign_add(1)
        ...     with engine.SingularMonitoredSession() as session:
        ...         value = session.run(more)
        >>> value
        np.int64(1)
    """

    def __init__(
        self,
        hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: SessionConfig | None = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(
            scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path
        )
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Session:
        """The session itself, without hooks."""
        self._open()
        session = self._creator.session
        assert session is not None
        return session


def MonitoredTrainingSession(  # noqa: N802  # the field's name: it makes a session
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: float | None = USE_DEFAULT,
    save_summaries_steps: int | None = USE_DEFAULT,
    save_summaries_secs: float | None = USE_DEFAULT,
    config: SessionConfig | None = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: int | None = USE_DEFAULT,
    summary_dir: str | os.PathLike[str] | None = None,
) -> MonitoredSession:
    """A `MonitoredSession` for training: the chief restores, saves and writes summaries.

    Args:
        master: the target.
        is_chief: whether this process initialises and saves; others wait for it.
        checkpoint_dir: where checkpoints are, of which the newest is restored.
        scaffold: the operations that initialise, save and summarise.
        hooks: are called around each run.
        chief_only_hooks: the same, for the chief alone.
        save_checkpoint_secs: a checkpoint is saved after so many seconds, by default 600; None for
            none.
        save_summaries_steps: summaries are written after so many steps, by default 100; None for
            none.
        save_summaries_secs: or after so many seconds.
        config: of the session.
        stop_grace_period_secs: how long threads may take to end.
        log_step_count_steps: after so many steps their number in a second is logged; None: never.
        max_wait_secs: how long the chief may take.
        save_checkpoint_steps: or after so many steps.
        summary_dir: where summaries are written, by default `checkpoint_dir`.

    Examples:
        >>> with engine.Graph().as_default():
        ...     more = engine.get_or_create_global_step().assign_add(1)
        ...     hooks = [engine.StopAtStepHook(last_step=3)]
        ...     with engine.MonitoredTrainingSession(checkpoint_dir="run", hooks=hooks) as session:
        ...         while not session.should_stop():
        ...             value = session.run(more)
        >>> engine.latest_checkpoint("run")
        'run/model.ckpt-3'
    """
    if save_summaries_steps is USE_DEFAULT and save_summaries_secs is USE_DEFAULT:
        save_summaries_steps, save_summaries_secs = _SUMMARY_STEPS, None
    summary_steps = None if save_summaries_steps is USE_DEFAULT else save_summaries_steps
    summary_secs = None if save_summaries_secs is USE_DEFAULT else save_summaries_secs
    if save_checkpoint_secs is USE_DEFAULT and save_checkpoint_steps is USE_DEFAULT:
        save_checkpoint_secs, save_checkpoint_steps = _SAVE_SECS, None
    checkpoint_steps = None if save_checkpoint_steps is USE_DEFAULT else save_checkpoint_steps
    checkpoint_secs = None if save_checkpoint_secs is USE_DEFAULT else save_checkpoint_secs
    scaffold = scaffold or Scaffold()
    if not is_chief:
        worker = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(worker, hooks, stop_grace_period_secs)
    folder = None if checkpoint_dir is None else local_path(checkpoint_dir)
    summary_folder = folder if summary_dir is None else local_path(summary_dir)
    all_hooks = list(chief_only_hooks or ())
    if summary_folder:
        if log_step_count_steps and log_step_count_steps > 0:
            all_hooks.append(StepCounterHook(log_step_count_steps, output_dir=summary_folder))
        if (summary_steps and summary_steps > 0) or (summary_secs and summary_secs > 0):
            all_hooks.append(
                SummarySaverHook(
                    summary_steps, summary_secs, output_dir=summary_folder, scaffold=scaffold
                )
            )
    if folder and ((checkpoint_secs or 0) > 0 or (checkpoint_steps or 0) > 0):
        all_hooks.append(
            CheckpointSaverHook(folder, checkpoint_secs, checkpoint_steps, scaffold=scaffold)
        )
    chief = ChiefSessionCreator(scaffold, master, config, folder)
    return MonitoredSession(chief, [*all_hooks, *(hooks or ())], stop_grace_period_secs)
