"""Hooks: what is called around each run of a session.

The calls, in this order: `begin` once, while the graph can still be built on; each time that a
session is made, `after_create_session`; around each run `before_run` and `after_run`; `end`, if
training comes to its end without an error.

Source: TensorFlow 1, tf.train.SessionRunHook.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..runtime import RunMetadata, RunOptions, Session
from ..state import Coordinator


class SessionRunArgs(NamedTuple):
    """What a run computes, or what a hook wants of it besides.

    Attributes:
        fetches: a tensor, an operation, a name or a structure of them.
        feed_dict: values for tensors.
        options: how it runs.

    Examples:
        >>> engine.SessionRunArgs("loss:0").fetches
        'loss:0'
    """

    fetches: Any = None
    feed_dict: Mapping[Any, Any] | None = None
    options: RunOptions | None = None


class SessionRunValues(NamedTuple):
    """What a run has given to a hook.

    Attributes:
        results: in the structure that the hook has asked for; None if it has asked for nothing.
        options: how it ran.
        run_metadata: what it recorded.

    Examples:
        >>> engine.SessionRunValues(results=0.5, options=None, run_metadata=None).results
        0.5
    """

    results: Any
    options: RunOptions | None
    run_metadata: RunMetadata


class SessionRunContext:
    """A run, for hooks.

    Attributes:
        original_args: what the caller asks for.
        session: what runs it.
        stop_requested: whether a hook has asked for training to end.

    Examples:
        >>> class Once(engine.SessionRunHook):
        ...     def after_run(self, run_context, run_values):
        ...         run_context.request_stop()
        >>> with engine.Graph().as_default():
        ...     x = engine.constant(0.5)
        ...     with engine.MonitoredSession(hooks=[Once()]) as session:
        ...         _ = session.run(x)
        ...         session.should_stop()
        True
    """

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self.original_args = original_args
        self.session = session
        self.stop_requested = False

    def request_stop(self) -> None:
        """Have training end after this run: `should_stop()` is True from then on."""
        self.stop_requested = True


class SessionRunHook:
    """Derive from it, and define what is wanted; by default nothing happens.

    Examples:
        >>> class Shout(engine.SessionRunHook):
        ...     def after_run(self, run_context, run_values):
        ...         print(run_values.results)
        ...
        ...     def before_run(self, run_context):
        ...         return engine.SessionRunArgs(loss)
        >>> with engine.Graph().as_default():
        ...     loss = engine.constant(0.5)
        ...     double = 2 * loss
        ...     with engine.MonitoredSession(hooks=[Shout()]) as session:
        ...         _ = session.run(double)
        0.5
    """

    def begin(self) -> None:
        """Called once, before the graph is finalized: operations may be added."""

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Called when a session is ready: at the start, and again after each recovery.

        Args:
            session: runs steps without hooks.
            coord: ends the threads of this session.
        """

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each run; gives what is to be fetched and fed besides, or None."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each run that raised nothing."""

    def end(self, session: Session) -> None:
        """Called at the end, if there was no error; the end of the input is none."""
