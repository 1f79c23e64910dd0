"""Supervisor: a session that is initialised or restored, with threads that save and summarise.

    supervisor = Supervisor(logdir="folder")
    with supervisor.managed_session() as session:
        while not supervisor.should_stop():
            session.run(train_op)

`MonitoredTrainingSession` does the same by hooks, and recovers; this is for programs that have it.

Source: TensorFlow 1, tf.train.Supervisor.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from ..graph import Graph, get_default_graph
from ..io.places import local_path
from ..io.summaries import scalar_value
from ..runtime import Session, SessionConfig
from ..saving import Saver
from ..state import (
    Coordinator,
    GraphKeys,
    LooperThread,
    get_global_step,
    global_variables,
    global_variables_initializer,
    report_uninitialized_variables,
    start_queue_runners,
)
from ..summary import FileWriter, SessionLog, Summary, merge_all
from .defaults import USE_DEFAULT
from .scaffold import Scaffold
from .session_manager import SessionManager

_log = logging.getLogger("laminar")


class Supervisor:
    """Makes sessions of a graph, and saves and summarises while they run.

    Args:
        graph: by default the default graph; it is finalized.
        ready_op: gives the names of what is not initialised; None for no such look.
        ready_for_local_init_op: the same of what `local_init_op` needs.
        is_chief: whether this process initialises, saves and summarises; others wait for it.
        init_op: initialises, where there is no checkpoint.
        init_feed_dict: what it is fed.
        local_init_op: initialises what is not saved.
        logdir: the folder of checkpoints and summaries; None for neither.
        summary_op: the message of all summaries, None for no summaries by a thread.
        saver: what saves; None for no checkpoints.
        global_step: the step counter.
        save_summaries_secs: summaries are written after so many seconds; 0 for never.
        save_model_secs: a checkpoint is saved after so many seconds; 0 for never.
        recovery_wait_secs: from one look to the next whether the model is ready.
        stop_grace_secs: how long threads may take to end.
        checkpoint_basename: how the names of the files begin.
        session_manager: makes the sessions.
        summary_writer: writes; None for no writer.
        init_fn: is called with the session after `init_op`.

    Examples:
        >>> with engine.Graph().as_default():
        ...     w = engine.Variable(1.0)
        ...     supervisor = engine.Supervisor(logdir="run")
        ...     with supervisor.managed_session() as session:
        ...         value = session.run(w)
        >>> value
        np.float32(1.0)
    """

    USE_DEFAULT = USE_DEFAULT

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Any = USE_DEFAULT,
        ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = USE_DEFAULT,
        init_feed_dict: Mapping[Any, Any] | None = None,
        local_init_op: Any = USE_DEFAULT,
        logdir: str | os.PathLike[str] | None = None,
        summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT,
        global_step: Any = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: Any = USE_DEFAULT,
        init_fn: Callable[[Session], Any] | None = None,
    ) -> None:
        self._graph = graph or get_default_graph()
        self._is_chief = is_chief
        self._coord = Coordinator()
        self._logdir = None if logdir is None or not is_chief else local_path(logdir)
        self._save_path = self._logdir and os.path.join(self._logdir, checkpoint_basename)
        self._save_summaries_secs = save_summaries_secs
        self._save_model_secs = save_model_secs
        self._stop_grace_secs = stop_grace_secs
        self._init_feed_dict = init_feed_dict
        self._init_fn = init_fn
        with self._graph.as_default():
            self._init_op = self._found(init_op, GraphKeys.INIT_OP, global_variables_initializer)
            self._ready_op = self._found(
                ready_op, GraphKeys.READY_OP, report_uninitialized_variables
            )
            self._local_init_op = self._found(
                local_init_op, GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op
            )
            self._ready_for_local_init_op = self._found(
                ready_for_local_init_op,
                GraphKeys.READY_FOR_LOCAL_INIT_OP,
                lambda: report_uninitialized_variables(global_variables()),
            )
            self._summary_op = self._found(summary_op, GraphKeys.SUMMARY_OP, merge_all)
            self._saver: Saver | None = self._found(saver, GraphKeys.SAVERS, self._default_saver)
            self._global_step = self._found(global_step, GraphKeys.GLOBAL_STEP, get_global_step)
        self._writer: FileWriter | None = summary_writer
        if summary_writer is USE_DEFAULT:
            self._writer = FileWriter(self._logdir) if self._logdir else None
        self._manager = session_manager or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self._ready_op,
            ready_for_local_init_op=self._ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
        )
        if not is_chief:
            _check_devices(self._graph)
        self._graph.finalize()

    def _found(self, given: Any, key: str, make: Callable[[], Any]) -> Any:
        """What is given, else the first of a collection, else what is made and listed there."""
        if given is not USE_DEFAULT:
            return given
        listed = self._graph.get_collection(key)
        if listed:
            return listed[0]
        made = make()
        if made is not None:
            self._graph.add_to_collection(key, made)
        return made

    @staticmethod
    def _default_saver() -> Saver | None:
        return Saver() if global_variables() else None

    # What it is made of

    @property
    def is_chief(self) -> bool:
        """Whether this process initialises and saves."""
        return self._is_chief

    @property
    def session_manager(self) -> SessionManager:
        """What makes the sessions."""
        return self._manager

    @property
    def coord(self) -> Coordinator:
        """What ends the threads."""
        return self._coord

    @property
    def init_op(self) -> Any:
        """What initialises."""
        return self._init_op

    @property
    def init_feed_dict(self) -> Mapping[Any, Any] | None:
        """What `init_op` is fed."""
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        """What gives the names of what is not initialised."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """The same of what `local_init_op` needs."""
        return self._ready_for_local_init_op

    @property
    def summary_op(self) -> Any:
        """The message of all summaries."""
        return self._summary_op

    @property
    def summary_writer(self) -> FileWriter | None:
        """What writes summaries."""
        return self._writer

    @property
    def saver(self) -> Saver | None:
        """What saves."""
        return self._saver

    @property
    def global_step(self) -> Any:
        """The step counter, None if there is none."""
        return self._global_step

    @property
    def save_path(self) -> str | None:
        """How the paths of checkpoints begin."""
        return self._save_path

    @property
    def save_summaries_secs(self) -> float:
        """From one summary to the next."""
        return self._save_summaries_secs

    @property
    def save_model_secs(self) -> float:
        """From one checkpoint to the next."""
        return self._save_model_secs

    # Sessions

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: SessionConfig | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Session:
        """A session that is ready, whose queue runners run.

        Args:
            master: the target.
            config: of the session.
            wait_for_checkpoint: whether the chief waits until there is a checkpoint.
            max_wait_secs: for so long at most.
            start_standard_services: whether the chief's threads save and summarise.
        """
        self._coord.clear_stop()
        if self._writer is not None:
            self._writer.reopen()
        if self._is_chief:
            session = self._manager.prepare_session(
                master,
                init_op=self._init_op,
                saver=self._saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self._init_feed_dict,
                init_fn=self._init_fn,
            )
            self._write_graph()
            if start_standard_services:
                _log.info("starting standard services")
                self.start_standard_services(session)
        else:
            session = self._manager.wait_for_session(master, config, max_wait_secs)
        if start_standard_services:
            _log.info("starting queue runners")
        self.start_queue_runners(session)
        return session

    @contextmanager
    def managed_session(
        self,
        master: str = "",
        config: SessionConfig | None = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Session]:
        """A block with a session that is ready; at its end threads stop and the session is closed.

        OutOfRangeError, the end of the input, ends it without an error; other errors, also those
        of threads, are raised.
        """
        session: Session | None = None
        try:
            session = self.prepare_or_wait_for_session(
                master, config, start_standard_services=start_standard_services
            )
            yield session
        except Exception as error:
            self.request_stop(error)
        finally:
            try:
                # What the threads failed with is raised here, unless the block failed first.
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if session is not None:
                    session.close()

    def _write_graph(self) -> None:
        if self._writer is not None and self._is_chief:
            self._writer.add_graph(self._graph)

    def start_standard_services(self, sess: Session) -> list[LooperThread]:
        """Start the threads that write summaries and steps per second, and save checkpoints.

        Raises:
            FailedPreconditionError: this process is not the chief.
        """
        if not self._is_chief:
            raise FailedPreconditionError("only the chief starts the standard services")
        if not self._logdir:
            _log.warning("there is no logdir: nothing is saved or summarised")
            return []
        if self._global_step is not None and self._writer is not None:
            step = int(sess.run(self._global_step))
            self._writer.add_session_log(SessionLog(SessionLog.START), step)
        threads: list[LooperThread] = []
        if self._save_summaries_secs and self._writer is not None:
            if self._summary_op is not None:
                threads.append(_SummaryThread(self, sess))
            if self._global_step is not None:
                threads.append(_StepCounterThread(self, sess))
        if self._saver is not None and self._save_model_secs:
            threads.append(_CheckpointThread(self, sess))
        for thread in threads:
            thread.start()
        return threads

    def start_queue_runners(
        self, sess: Session, queue_runners: Sequence[Any] | None = None
    ) -> list[Any]:
        """Start the threads of queue runners, by default all of the graph."""
        if queue_runners is None:
            return list(start_queue_runners(sess, self._coord))
        threads: list[Any] = []
        for runner in queue_runners:
            threads += runner.create_threads(sess, self._coord, daemon=True, start=True)
        return threads

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> LooperThread:
        """Start a thread that calls `target(*args, **kwargs)` until this stops."""
        return LooperThread.loop(self._coord, timer_interval_secs, target, args, kwargs)

    # The end

    def stop(
        self,
        threads: Sequence[Any] | None = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Stop the threads and wait for them; raise what they failed with."""
        self._coord.request_stop()
        try:
            self._coord.join(
                threads,
                stop_grace_period_secs=self._stop_grace_secs,
                ignore_live_threads=ignore_live_threads,
            )
        finally:
            if close_summary_writer and self._writer is not None:
                self._writer.add_session_log(SessionLog(SessionLog.STOP))
                self._writer.close()

    def request_stop(self, ex: Any = None) -> None:
        """Have the threads stop."""
        self._coord.request_stop(ex)

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._coord.should_stop()

    def stop_on_exception(self) -> Any:
        """A block whose errors become a stop."""
        return self._coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Wait until a stop is requested."""
        self._coord.wait_for_stop()

    def summary_computed(self, sess: Session, summary: Any, global_step: Any = None) -> None:
        """Write a summary.

        Args:
            sess: gives the step, if it is not given.
            summary: the message.
            global_step: of which step it is.

        Raises:
            FailedPreconditionError: there is no writer.
        """
        if self._writer is None:
            raise FailedPreconditionError(
                "summary_computed: there is no summary writer",
                remedy="give the Supervisor a logdir",
            )
        if global_step is None and self._global_step is not None:
            global_step = sess.run(self._global_step)
        self._writer.add_summary(summary, global_step)


def _check_devices(graph: Graph) -> None:
    """Raise where a process that is not the chief would have variables of its own."""
    alone = [v.path for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if not v.device]
    if alone:
        raise InvalidArgumentError(
            f"Supervisor: who is not the chief shares the variables of others, but "
            f"{', '.join(alone)} must have their device set",
            remedy="make them in a block `with device('/job:ps/task:0')`",
        )


class _SummaryThread(LooperThread):
    """Writes the summaries."""

    def __init__(self, supervisor: Supervisor, session: Session) -> None:
        super().__init__(supervisor.coord, supervisor.save_summaries_secs)
        self._supervisor, self._session = supervisor, session

    def run_loop(self) -> None:
        """One call."""
        supervisor = self._supervisor
        try:
            message = self._session.run(supervisor.summary_op)
        except OutOfRangeError:
            return  # the input that they need is at its end
        supervisor.summary_computed(self._session, message)


class _StepCounterThread(LooperThread):
    """Writes how many steps are done in a second."""

    def __init__(self, supervisor: Supervisor, session: Session) -> None:
        super().__init__(supervisor.coord, supervisor.save_summaries_secs)
        self._supervisor, self._session = supervisor, session
        self._tag = f"{supervisor.global_step.name.removesuffix(':0')}/sec"

    def start_loop(self) -> None:
        """Called before the first call."""
        self._last = time.monotonic(), int(self._session.run(self._supervisor.global_step))

    def run_loop(self) -> None:
        """One call."""
        before, first = self._last
        now, step = time.monotonic(), int(self._session.run(self._supervisor.global_step))
        self._last = now, step
        writer = self._supervisor.summary_writer
        if now > before and writer is not None:
            speed = (step - first) / (now - before)
            writer.add_summary(Summary([scalar_value(self._tag, speed)]), step)
            _log.info("%s: %g", self._tag, speed)


class _CheckpointThread(LooperThread):
    """Saves checkpoints."""

    def __init__(self, supervisor: Supervisor, session: Session) -> None:
        super().__init__(supervisor.coord, supervisor.save_model_secs)
        self._supervisor, self._session = supervisor, session

    def run_loop(self) -> None:
        """One call."""
        supervisor = self._supervisor
        saver, path = supervisor.saver, supervisor.save_path
        assert saver is not None
        assert path is not None
        saver.save(self._session, path, global_step=supervisor.global_step)
        if supervisor.summary_writer is not None and supervisor.global_step is not None:
            step = int(self._session.run(supervisor.global_step))
            log = SessionLog(SessionLog.CHECKPOINT, path)
            supervisor.summary_writer.add_session_log(log, step)
