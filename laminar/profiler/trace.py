"""`trace`: a timeline of what a program does, as a block, a callback, or a hook."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from laminar.callbacks.timeline_events import TimelineEvents
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.engine.io.atomic import atomic_write
from laminar.engine.io.places import make_folder
from laminar.engine.runtime.recorded_steps import add_step
from laminar.engine.runtime.tracing import Tracer
from laminar.engine.timeline import Recording, Timeline, now
from laminar.engine.training import SessionRunHook

from .joining import joined_path, place, write_part
from .report import TraceReport, kernel_totals, seconds_by_category
from .roofline import roofline
from .trace_events import all_events, trace_events
from .xplane import xspace


class trace(TimelineEvents, SessionRunHook):  # noqa: N801  # used as a function is
    """Records what happens when, and writes it for Perfetto (ui.perfetto.dev) or chrome://tracing.

        with laminar.profiler.trace("logs"):
            step(x, y)
        model.fit(x, y, callbacks=[laminar.profiler.trace("logs", steps=(10, 30))])
        MonitoredTrainingSession(hooks=[laminar.profiler.trace("logs", steps=(10, 30))], ...)

    The timeline has the steps and epochs of `fit`, the making of batches, the operations of what
    runs one by one, transfers between devices, the runs of native code, and in these each kernel by
    thread, with sizes, flops and bytes. Nothing is recorded, and nothing costs anything, before and
    after. Eager operations are not recorded by themselves: `annotate` gives a block a name.

    Of processes that MPI or `laminar launch` has started together each records itself; the last to
    end joins all timelines in one file, if they write to one folder. The worker processes of a data
    set and the tasks of a cluster, in whose clocks' time the difference to this one's is known, are
    in the timeline of the process that they work for.

    Args:
        folder: made if it is not there; the file is `trace-1.json`, or the next number. Beside it,
            in `plugins/profile`, is the same for `tensorboard --logdir folder`, which shows it with
            its plugin tensorboard-plugin-profile.
        steps: as a callback or a hook: the first step that is recorded, and the first that is not
            any more, counted from 0 over all epochs; by default all.
        show: whether to print the ten most expensive kernels at the end.

    Attributes:
        report: what was found, a `TraceReport`; None before the end.

    Raises:
        InvalidArgumentError: `steps` are no such numbers.
        FailedPreconditionError: by the beginning, where another trace is being recorded.

    Examples:
        >>> with laminar.profiler.trace("folder", show=False) as trace:
        ...     y = ops.ones((3,)) + 1
        >>> trace.report.path
        PosixPath('folder/trace-1.json')
    """

    report: TraceReport | None

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        steps: tuple[int, int] | None = None,
        show: bool = True,
    ) -> None:
        super().__init__()
        if steps is not None and not 0 <= steps[0] < steps[1]:
            raise InvalidArgumentError(f"trace: steps are (first, last + 1), got {steps!r}")
        self._folder = Path(folder)
        self._steps = steps
        self._shows = show
        self._timeline: Timeline | None = None
        self._thread = 0
        self._done = 0  # steps, of a callback or a hook
        self._is_callback = False
        self.report = None
        if steps is not None:  # else nothing is to be done at each batch
            vars(self)["on_train_batch_begin"] = self._step_begins
            vars(self)["on_train_batch_end"] = self._step_ends

    # Beginning and end

    def start(self) -> None:
        """Begin to record."""
        make_folder(self._folder, "trace")
        timeline = Timeline(_run_plan, has_steps=self._steps is not None)
        with Recording.lock:
            if Recording.active is not None:
                raise FailedPreconditionError(
                    "trace: another trace is being recorded", remedy="end that one first"
                )
            Recording.active = timeline
        self._timeline, self._thread = timeline, threading.get_ident()
        timeline.name_thread()
        # Also where an error has ended what was to be traced, and nobody has this object any more.
        self._abandoned = weakref.finalize(self, _release, timeline)

    def stop(self) -> TraceReport | None:
        """End, and write what was recorded; gives the report, None where nothing was recorded."""
        timeline, self._timeline = self._timeline, None
        if timeline is None:
            return self.report
        self._abandoned()
        timeline.finish()
        path = self._write(timeline)
        categories, accounted = seconds_by_category(timeline, self._thread)
        kernels = kernel_totals(timeline, roofline() if timeline.runs else None)
        seconds = (timeline.end - timeline.start) * 1e-9
        self.report = TraceReport(path, seconds, kernels, categories, accounted)
        if self._shows:
            self.report.show()
        return self.report

    def _write(self, timeline: Timeline) -> Path:
        """Write the timeline, as trace events and as a profile."""
        events = all_events(timeline)
        written = trace_events(timeline, events)
        host, here = socket.gethostname(), place(os.environ)
        if here is None:
            path = _next_path(self._folder)
            with atomic_write(path) as file:
                file.write(json.dumps({"traceEvents": written}, default=str).encode())
        else:
            path, host = joined_path(self._folder, here), f"{host}-{here.rank}"
            write_part(path, here, written, timeline.start)
        folder = make_folder(self._folder / "plugins" / "profile" / path.stem, "trace")
        with atomic_write(folder / f"{host}.xplane.pb") as file:
            file.write(xspace(events, timeline.threads, time.time_ns() - now(), host))
        return path

    def __enter__(self) -> trace:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # As a callback

    def on_train_begin(self, logs: Any = None) -> None:
        self._done, self._is_callback = 0, True
        self._begin_if_due()

    def _step_begins(self, batch: int, logs: Any = None) -> None:
        self._begin_if_due()
        self.note("next batch", "data")

    def _step_ends(self, batch: int, logs: Any = None) -> None:
        self.note(f"step {batch}")
        self._step_done()

    def on_train_end(self, logs: Any = None) -> None:
        self.note("after the epochs")
        self.stop()

    def break_off(self) -> None:
        """The loop has ended, perhaps by an error: what was recorded is written."""
        if self._is_callback:
            self.stop()

    # As a hook

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._begin_if_due()

    def before_run(self, run_context: Any) -> None:
        self._begin_if_due()
        self.note("between runs")

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.note(f"run {self._done}")
        self._step_done()

    def end(self, session: Any) -> None:
        self.stop()

    def _begin_if_due(self) -> None:
        first = 0 if self._steps is None else self._steps[0]
        if self._timeline is None and self.report is None and self._done >= first:
            self.start()

    def _step_done(self) -> None:
        self._done += 1
        if self._steps is not None and self._done >= self._steps[1]:
            self.stop()


@contextmanager
def annotate(name: str, **arguments: Any) -> Iterator[None]:
    """A block that a trace shows under a name, with what else is said of it.

    Examples:
        >>> with laminar.profiler.annotate("my part", size=3):
        ...     y = ops.ones((3,)) + 1
    """
    timeline = Recording.active
    if timeline is None:
        yield
        return
    with timeline.span(name, "python", **arguments):
        yield


def _release(timeline: Timeline) -> None:
    with Recording.lock:
        if Recording.active is timeline:
            Recording.active = None


def _next_path(folder: Path) -> Path:
    number = 1
    while (path := folder / f"trace-{number}.json").exists():
        number += 1
    return path


def _run_plan(plan: Any, context: Any, feeds: Sequence[Any]) -> list[Any]:
    """Run a plan, and tell of each of its operations."""
    timeline = Recording.active
    tracer = Tracer("")
    try:
        return tracer.run(plan, context, feeds)
    finally:
        if timeline is not None:
            moved = {
                node.op.name: str(node.op.attrs["tensor_name"])
                for node in plan.nodes
                if "tensor_name" in node.op.attrs
            }
            add_step(timeline, tracer.step_stats, moved)
