"""FileWriter: event files in the user's hand.

State of a `FileWriter`, guarded by `_lock`:
    _events: the file, None while it is closed;
    _due: when what was written is handed to the system next;
    _tags: those of the statistics that were written.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import numpy as np

from ..closing import Closing
from ..errors import ArgumentTypeError, FailedPreconditionError, InvalidArgumentError
from ..graph import Graph, Tensor
from ..graph.graphdef import GraphDef
from ..io.events import Event, EventWriter, SessionLog
from ..io.places import local_path
from ..io.summaries import Summary
from ..ops.core.graphs import import_graph_def
from ..resources import summary_writing
from ..runtime import RunMetadata
from .graph_messages import graph_bytes, metadata_bytes, with_graph
from .settings import asking, in_trace


class FileWriter(Closing):
    """Writes summaries, graphs and what else TensorBoard shows to an event file of its own.

    What is added is buffered; all methods may be called from any thread. A `with` block closes it.

        with Session() as session, FileWriter("logs", session.graph) as writer:
            for step in range(100):
                _, message = session.run([train, merged])
                writer.add_summary(message, step)

    Args:
        logdir: the folder, made if it is not there.
        graph: is written at once.
        max_queue: taken for TensorFlow's sake: events do not wait for a thread.
        flush_secs: what is added after so many seconds, or later, takes what was added before along
            to the system, where TensorBoard sees it.
        filename_suffix: the end of the file's name.

    Attributes:
        path: of the file.

    Examples:
        >>> import os
        >>> writer = engine.summary.FileWriter("logs")
        >>> writer.add_summary(
        ...     engine.summary.Summary([engine.summary.SummaryValue("loss", 0.5)]), 1
        ... )
        >>> writer.close()
        >>> [event.step for event in engine.summary.read_events("logs/" + os.listdir("logs")[0])]
        [0, 1]
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        graph: Graph | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str | None = None,
    ) -> None:
        self._folder = local_path(logdir)
        self._suffix = filename_suffix or ""
        self._flush_secs = flush_secs
        self._lock = threading.Lock()
        self._tags: set[str] = set()
        self._events: EventWriter | None = None
        self._open()
        if graph is not None:
            self.add_graph(graph)

    def _open(self) -> None:
        self._events = EventWriter(self._folder, self._suffix)
        self._due = time.monotonic() + self._flush_secs
        self.path = os.fspath(self._events.path)
        weakref.finalize(self, self._events.close)  # also when the program ends

    def get_logdir(self) -> str:
        """The folder."""
        return self._folder

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Write a summary.

        Args:
            summary: the message that a summary operation gives, or a `Summary`.
            global_step: of which step it is; 0 by default.

        Raises:
            DataLossError: the bytes are no summary.
            FailedPreconditionError: the writer is closed.
        """
        if not isinstance(summary, Summary):
            summary = Summary.from_bytes(_as_bytes(summary))
        self.add_event(Event(time.time(), _as_step(global_step), summary=summary))

    def add_graph(self, graph: Graph, global_step: Any = None) -> None:
        """Write a graph, with the sizes of its tensors."""
        if not isinstance(graph, Graph):
            raise ArgumentTypeError(
                f"add_graph: expected a Graph, got {graph!r}", remedy="give session.graph"
            )
        data = graph_bytes(graph)
        self.add_event(Event(time.time(), _as_step(global_step), graph_def=data))

    def add_meta_graph(self, meta_graph: Any, global_step: Any = None) -> None:
        """Write a MetaGraph; where no graph was written, TensorBoard shows the one of it.

        Args:
            meta_graph: what `export_meta_graph` gives. A graph of laminar's own is written in
                TensorFlow's schema, with the sizes of its tensors.
            global_step: of which step it is; 0 by default.
        """
        found = getattr(meta_graph, "graph_def", None)
        if found is None or not hasattr(meta_graph, "to_bytes"):
            raise ArgumentTypeError(
                f"add_meta_graph: expected a MetaGraph, got {meta_graph!r:.80}",
                remedy="give what export_meta_graph() gives",
            )
        data = meta_graph.to_bytes()
        if isinstance(found, GraphDef):
            with Graph().as_default() as graph:
                import_graph_def(found, name="")
            data = with_graph(data, graph_bytes(graph))
        self.add_event(Event(time.time(), _as_step(global_step), meta_graph_def=data))

    def add_run_metadata(
        self, run_metadata: RunMetadata, tag: str, global_step: Any = None
    ) -> None:
        """Write what a run recorded of its operations, for the graph's page.

        Raises:
            InvalidArgumentError: something was written under that tag before.
        """
        with self._lock:
            if tag in self._tags:
                raise InvalidArgumentError(
                    f"add_run_metadata: the tag {tag!r} is taken", remedy="use one for each step"
                )
            self._tags.add(tag)
        tagged = (tag, metadata_bytes(run_metadata))
        self.add_event(Event(time.time(), _as_step(global_step), tagged_run_metadata=tagged))

    def add_session_log(self, session_log: SessionLog, global_step: Any = None) -> None:
        """Write that a session begins or ends, or that a checkpoint was saved."""
        self.add_event(Event(time.time(), _as_step(global_step), session_log=session_log))

    def add_event(self, event: Event) -> None:
        """Write an event.

        Raises:
            FailedPreconditionError: the writer is closed.
        """
        with self._lock:
            if self._events is None:
                raise FailedPreconditionError(
                    f"the event file {self.path!r} is closed", remedy="call reopen() first"
                )
            self._events.write(event)
            if time.monotonic() >= self._due:
                self._due = time.monotonic() + self._flush_secs
                self._events.flush()

    def flush(self) -> None:
        """Hand all that was added to the system, where TensorBoard sees it."""
        with self._lock:
            if self._events is not None:
                self._events.flush()

    def close(self) -> None:
        """Write what is left, and close the file; a second call does nothing."""
        with self._lock:
            events, self._events = self._events, None
            if events is not None:
                events.close()

    def reopen(self) -> None:
        """Go on, in another file of the folder, after `close`."""
        with self._lock:
            if self._events is None:
                self._open()

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator[FileWriter]:
        """A block whose summaries, in eager code and functions, are written here.

        Args:
            step: which step they are of, where they do not say it; see `set_step`.
        """
        with ExitStack() as blocks:
            blocks.enter_context(summary_writing.sink.block(self, in_trace(self)))
            if step is not None:
                blocks.enter_context(summary_writing.step.block(asking(step, int), in_trace(step)))
            yield self

    def set_as_default(self, step: Any = None) -> None:
        """Have summaries, in eager code and functions, written here wherever no block says else."""
        summary_writing.sink.set(self)
        if step is not None:
            summary_writing.step.set(asking(step, int))


def create_file_writer(
    logdir: str | os.PathLike[str],
    max_queue: int = 10,
    flush_millis: float = 120_000,
    filename_suffix: str | None = None,
) -> FileWriter:
    """A `FileWriter`, whose time is in milliseconds.

    Examples:
        >>> with engine.summary.create_file_writer("logs").as_default():
        ...     engine.summary.scalar("loss", 0.5, step=1)
        Tensor(True, shape=(), dtype=bool)
    """
    return FileWriter(logdir, None, max_queue, flush_millis / 1000, filename_suffix)


class FileWriterCache:
    """One writer for each folder, for all parts of a program that write there.

    Examples:
        >>> writer = engine.summary.FileWriterCache.get("logs")
        >>> writer is engine.summary.FileWriterCache.get("logs")
        True
        >>> engine.summary.FileWriterCache.clear()
    """

    # By folder; guarded by _lock.
    _writers: ClassVar[dict[str, FileWriter]] = {}
    _lock: ClassVar[threading.RLock] = threading.RLock()

    @staticmethod
    def get(logdir: str | os.PathLike[str]) -> FileWriter:
        """The writer of a folder, made when it is asked for first."""
        folder = local_path(logdir)
        with FileWriterCache._lock:
            found = FileWriterCache._writers.get(folder)
            if found is None:
                found = FileWriterCache._writers[folder] = FileWriter(folder)
            return found

    @staticmethod
    def clear() -> None:
        """Close all writers and forget them."""
        with FileWriterCache._lock:
            writers = list(FileWriterCache._writers.values())
            FileWriterCache._writers.clear()
        for writer in writers:
            writer.close()


def _as_bytes(summary: Any) -> bytes:
    if isinstance(summary, bytes):
        return summary
    value = summary.numpy() if isinstance(summary, Tensor) else summary
    found = np.asarray(value, object).item() if np.size(value) == 1 else None
    if not isinstance(found, bytes):
        raise ArgumentTypeError(
            f"add_summary: expected the message of a summary, got {type(summary).__name__}",
            remedy="give what session.run gives for a summary operation",
        )
    return found


def _as_step(step: Any) -> int:
    return 0 if step is None else int(np.asarray(step).item())
