"""Hooks that go by the step counter: when to stop, how fast it runs, when to begin."""

from __future__ import annotations

import logging
import os
import time
from typing import Any

from ..errors import InvalidArgumentError
from ..io.summaries import scalar_value
from ..runtime import Session
from ..state import Coordinator, Variable
from ..summary import FileWriter, FileWriterCache, Summary
from .global_step import required_global_step
from .session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from .timers import SecondOrStepTimer

_log = logging.getLogger("laminar")


class StopAtStepHook(SessionRunHook):
    """Ends training at a step.

    Args:
        num_steps: after so many steps from where it begins.
        last_step: at this value of the step counter, also if training went on from a checkpoint.

    Raises:
        InvalidArgumentError: both are given, or neither.

    Examples:
        >>> with engine.Graph().as_default():
        ...     more = engine.get_or_create_global_step().assign_add(1)
        ...     with engine.MonitoredSession(hooks=[engine.StopAtStepHook(num_steps=2)]) as session:
        ...         while not session.should_stop():
        ...             value = session.run(more)
        >>> value
        np.int64(2)
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if (num_steps is None) == (last_step is None):
            raise InvalidArgumentError(
                f"StopAtStepHook: exactly one of num_steps and last_step must be given, "
                f"got {num_steps} and {last_step}"
            )
        self._num_steps = num_steps
        self._last_step = last_step

    def begin(self) -> None:
        self._counter = required_global_step("StopAtStepHook")

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = int(session.run(self._counter)) + self._num_steps

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._counter)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        assert self._last_step is not None
        if int(run_values.results) + 1 < self._last_step:
            return
        # The counter may have been read before it was counted up: look again where it matters.
        if int(run_context.session.run(self._counter)) >= self._last_step:
            run_context.request_stop()


class StepCounterHook(SessionRunHook):
    """Tells how many steps are done in a second, to the log and as a summary.

    Args:
        every_n_steps: after so many steps.
        every_n_secs: or after so many seconds.
        output_dir: where the summary "global_step/sec" is written.
        summary_writer: or what writes it.

    Examples:
        >>> hook = engine.StepCounterHook(every_n_steps=100, output_dir="run")
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        summary_writer: FileWriter | None = None,
    ) -> None:
        self._timer = SecondOrStepTimer(every_n_secs, every_n_steps)
        self._writer = summary_writer
        self._output_dir = output_dir
        self._last_step: int | None = None
        self._has_warned = False

    def begin(self) -> None:
        if self._writer is None and self._output_dir:
            self._writer = FileWriterCache.get(self._output_dir)
        self._counter: Variable = required_global_step("StepCounterHook")
        self._tag = f"{self._counter.name.removesuffix(':0')}/sec"

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._counter)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        stale = int(run_values.results)
        if self._timer.should_trigger_for_step(stale + 1):
            # The counter may have been read before it was counted up.
            step = int(run_context.session.run(self._counter))
            if self._timer.should_trigger_for_step(step):
                seconds, steps = self._timer.update_last_triggered_step(step)
                if seconds is not None and steps is not None and seconds > 0:
                    self._tell(steps / seconds, step)
        if stale == self._last_step and not self._has_warned:
            self._has_warned = True  # a program may well run other things between its steps
            _log.warning(
                "the global step stays at %d; does the training operation count it?", stale
            )
        self._last_step = stale

    def _tell(self, steps_per_sec: float, step: int) -> None:
        _log.info("%s: %g", self._tag, steps_per_sec)
        if self._writer is not None:
            self._writer.add_summary(Summary([scalar_value(self._tag, steps_per_sec)]), step)


class GlobalStepWaiterHook(SessionRunHook):
    """Waits, before the first run, until the step counter has come to a value.

    So workers can begin one after the other.

    Args:
        wait_until_step: the value.

    Examples:
        >>> hook = engine.GlobalStepWaiterHook(wait_until_step=100)
    """

    def __init__(self, wait_until_step: int) -> None:
        self._wait_until_step = wait_until_step
        self._is_over = False

    def begin(self) -> None:
        self._counter = required_global_step("GlobalStepWaiterHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        if self._is_over or self._wait_until_step <= 0:
            return None
        _log.info("waiting for the global step to reach %d", self._wait_until_step)
        told: Any = None
        while (step := int(run_context.session.run(self._counter))) < self._wait_until_step:
            if told is None or step > told + 1000:
                _log.info("the global step is %d", step)
                told = step
            time.sleep(0.5)
        self._is_over = True
        return None
