"""Hooks that write: checkpoints, summaries, traces."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import FailedPreconditionError, InvalidArgumentError
from ..graph import get_default_graph
from ..io.places import local_path, make_folder
from ..runtime import RunMetadata, RunOptions, Session
from ..saving import Saver
from ..state import Coordinator, GraphKeys
from ..summary import FileWriter, FileWriterCache, SessionLog
from .global_step import required_global_step
from .scaffold import Scaffold
from .session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from .timers import SecondOrStepTimer

_log = logging.getLogger("laminar")


class CheckpointSaverListener:
    """Is notified of the checkpoints that a `CheckpointSaverHook` saves; derive from it.

    Examples:
        >>> class Shout(engine.CheckpointSaverListener):
        ...     def after_save(self, session, global_step_value):
        ...         print("saved at step", global_step_value)
        >>> with engine.Graph().as_default():
        ...     more = engine.get_or_create_global_step().assign_add(1)
        ...     hook = engine.CheckpointSaverHook(".", save_steps=100, listeners=[Shout()])
        ...     with engine.MonitoredSession(hooks=[hook]) as session:
        ...         _ = session.run(more)
        saved at step 0
        saved at step 1
    """

    def begin(self) -> None:
        """Called once, before the graph is finalized."""

    def before_save(self, session: Session, global_step_value: int) -> None:
        """Called before each checkpoint.

        Args:
            session: that trains.
            global_step_value: the number of steps so far.
        """

    def after_save(self, session: Session, global_step_value: int) -> bool | None:
        """Called after each checkpoint; arguments as in `before_save`.

        Returns:
            True to end training.
        """

    def end(self, session: Session, global_step_value: int) -> None:
        """Called at the end, after the last checkpoint; arguments as in `before_save`."""


class CheckpointSaverHook(SessionRunHook):
    """Saves checkpoints: at the start, every so many steps or seconds, and at the end.

    Args:
        checkpoint_dir: the folder.
        save_secs: after so many seconds.
        save_steps: or after so many steps.
        saver: what saves; by default that of `scaffold`, or the one that the graph lists.
        checkpoint_basename: how the names of the files begin.
        scaffold: has the saver.
        listeners: are notified of each checkpoint.
        save_graph_def: whether the graph is written, too, as graph.txt and for TensorBoard.

    Raises:
        InvalidArgumentError: not exactly one of `save_secs` and `save_steps`, or both `saver` and
            `scaffold` are given.

    Examples:
        >>> hook = engine.CheckpointSaverHook("run", save_steps=100)
    """

    def __init__(
        self,
        checkpoint_dir: str | os.PathLike[str],
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Saver | None = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Scaffold | None = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
        save_graph_def: bool = True,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise InvalidArgumentError("CheckpointSaverHook: give a saver or a scaffold, not both")
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._folder = local_path(checkpoint_dir)
        self._path = os.path.join(self._folder, checkpoint_basename)
        self._saver = saver
        self._scaffold = scaffold
        self._listeners = list(listeners or ())
        self._writes_graph = save_graph_def

    def begin(self) -> None:
        self._writer = FileWriterCache.get(self._folder)
        self._counter = required_global_step("CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        step = int(session.run(self._counter))
        if self._writes_graph:
            self._writer.add_graph(session.graph)
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._counter)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if not self._timer.should_trigger_for_step(int(run_values.results) + 1):
            return
        # The counter may have been read before it was counted up.
        step = int(run_context.session.run(self._counter))
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Session) -> None:
        step = int(session.run(self._counter))
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Session, step: int) -> bool:
        """Save a checkpoint; whether a listener wants training to end."""
        _log.info("saving a checkpoint of step %d to %s", step, self._path)
        for listener in self._listeners:
            listener.before_save(session, step)
        written = self._found_saver().save(session, self._path, global_step=step)
        log = SessionLog(SessionLog.CHECKPOINT, str(written))
        self._writer.add_session_log(log, step)
        wishes = [listener.after_save(session, step) for listener in self._listeners]
        return any(wishes)

    def _found_saver(self) -> Saver:
        if self._saver is None and self._scaffold is not None:
            self._saver = self._scaffold.saver
        if self._saver is None:
            savers = get_default_graph().get_collection(GraphKeys.SAVERS)
            if len(savers) != 1:
                raise FailedPreconditionError(
                    f"CheckpointSaverHook: the graph lists {len(savers)} savers, expected one",
                    remedy="give saver= or scaffold=",
                )
            (self._saver,) = savers
        assert self._saver is not None
        return self._saver


class SummarySaverHook(SessionRunHook):
    """Writes summaries every so many steps or seconds, those of the first run among them.

    Args:
        save_steps: after so many steps.
        save_secs: or after so many seconds.
        output_dir: where they are written.
        summary_writer: or what writes them.
        scaffold: has the summaries.
        summary_op: or the message, or a list of messages.

    Raises:
        InvalidArgumentError: not exactly one of `save_steps` and `save_secs`, or of `scaffold` and
            `summary_op` is given.

    Examples:
        >>> hook = engine.SummarySaverHook(save_steps=100, output_dir="run", summary_op="summary:0")
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        summary_writer: FileWriter | None = None,
        scaffold: Scaffold | None = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise InvalidArgumentError(
                "SummarySaverHook: exactly one of scaffold and summary_op must be given"
            )
        self._summary_op = summary_op
        self._writer = summary_writer
        self._output_dir = output_dir
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(save_secs, save_steps)

    def begin(self) -> None:
        if self._writer is None and self._output_dir:
            self._writer = FileWriterCache.get(self._output_dir)
        self._next_step: int | None = None
        self._counter = required_global_step("SummarySaverHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        self._is_due = self._next_step is None or self._timer.should_trigger_for_step(
            self._next_step
        )
        wanted: dict[str, Any] = {"global_step": self._counter}
        messages = self._messages() if self._is_due else []
        if messages:
            wanted["summary"] = messages
        return SessionRunArgs(wanted)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._writer is None:
            return
        step = int(run_values.results["global_step"]) + 1
        if self._next_step is None or self._is_due:
            step = int(run_context.session.run(self._counter))
        if self._next_step is None:
            self._writer.add_session_log(SessionLog(SessionLog.START), step)
        if self._is_due:
            self._timer.update_last_triggered_step(step)
            for message in run_values.results.get("summary", ()):
                self._writer.add_summary(message, step)
        self._next_step = step + 1

    def end(self, session: Session) -> None:
        if self._writer is not None:
            self._writer.flush()

    def _messages(self) -> list[Any]:
        found = self._summary_op
        if found is None:
            assert self._scaffold is not None
            found = self._scaffold.summary_op
        if found is None:
            return []
        return list(found) if isinstance(found, list | tuple) else [found]


class ProfilerHook(SessionRunHook):
    """Traces a run every so many steps or seconds, and writes what it did when.

    The files are `timeline-<step>.json`, in the format of trace events, for Perfetto and
    chrome://tracing; TensorBoard shows the same in its graph.

    Args:
        save_steps: after so many steps.
        save_secs: or after so many seconds.
        output_dir: the folder.
        show_dataflow: taken for TensorFlow's sake.
        show_memory: whether the bytes that operations gave are among what is written.

    Examples:
        >>> hook = engine.ProfilerHook(save_steps=100, output_dir="run")
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | os.PathLike[str] = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._folder = Path(output_dir)
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._shows_memory = show_memory

    def begin(self) -> None:
        self._next_step: int | None = None
        self._counter = required_global_step("ProfilerHook")
        self._writer = FileWriterCache.get(self._folder)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        self._is_due = self._next_step is not None and self._timer.should_trigger_for_step(
            self._next_step
        )
        options = RunOptions(trace=True) if self._is_due else None
        return SessionRunArgs(self._counter, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        stale = int(run_values.results)
        if self._next_step is None:
            self._timer.update_last_triggered_step(stale)
        step = stale + 1
        if self._is_due:
            step = int(run_context.session.run(self._counter))
            self._timer.update_last_triggered_step(step)
            self._write(step, run_values.run_metadata)
        self._next_step = step + 1

    def _write(self, step: int, metadata: RunMetadata) -> None:
        path = make_folder(self._folder, "ProfilerHook") / f"timeline-{step}.json"
        path.write_text(json.dumps({"traceEvents": trace_events(metadata, self._shows_memory)}))
        self._writer.add_run_metadata(metadata, f"step_{step}", step)


def trace_events(metadata: RunMetadata, shows_memory: bool = False) -> list[dict[str, Any]]:
    """What a run recorded of its operations, as trace events: one process for each device."""
    events: list[dict[str, Any]] = []
    for pid, device in enumerate(metadata.step_stats):
        name = {"name": device.device}
        events.append({"ph": "M", "name": "process_name", "pid": pid, "args": name})
        for node in device.nodes:
            arguments: dict[str, Any] = {"name": node.name, "op": node.type}
            if shows_memory:
                arguments["output_bytes"] = node.output_bytes
            events.append(
                {
                    "ph": "X",
                    "cat": "Op",
                    "name": node.type,
                    "pid": pid,
                    "tid": node.thread,
                    "ts": node.start_us,
                    "dur": node.duration_us,
                    "args": arguments,
                }
            )
    return events
