"""Sessions around sessions: with hooks, with threads to stop, made again where they are lost.

A monitored session is Recoverable(Coordinated(Hooked(session))).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import AbortedError, FailedPreconditionError, InvalidArgumentError, UnavailableError
from ..graph import Graph
from ..runtime import RunMetadata, RunOptions
from ..state import Coordinator
from .session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

_log = logging.getLogger("laminar")

# What another process that went away, or began anew, makes of a step.
LOST = (AbortedError, UnavailableError)


class WrappedSession:
    """A session that hands all on to another one, until that is closed."""

    def __init__(self, sess: Any) -> None:
        self._sess = sess

    @property
    def graph(self) -> Graph:
        """The graph that it runs."""
        graph: Graph = self._sess.graph
        return graph

    def should_stop(self) -> bool:
        """Whether there is nothing more to do; an error that shows is raised by `run`."""
        if self._sess is None:
            return True
        if self._check_stop():
            return True
        inner = getattr(self._sess, "should_stop", None)
        return inner is not None and bool(inner())

    def _check_stop(self) -> bool:
        return False

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """As `Session.run`."""
        return self._sess.run(fetches, feed_dict, options, run_metadata)

    def close(self) -> None:
        """Close the session inside; a second call does nothing."""
        session, self._sess = self._sess, None
        if session is not None:
            try:
                session.close()
            except LOST as error:
                _log.info("the session was lost while it was closed: %s", error)


class HookedSession(WrappedSession):
    """Calls hooks around each run.

    Args:
        sess: the session.
        hooks: in the order in which they are called.
    """

    def __init__(self, sess: Any, hooks: Sequence[SessionRunHook]) -> None:
        super().__init__(sess)
        self._hooks = list(hooks)
        self._should_stop = False

    def _check_stop(self) -> bool:
        return self._should_stop

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """As `Session.run`, with the hooks.

        Raises:
            InvalidArgumentError: two hooks, or a hook and the caller, feed one tensor.
        """
        if self._should_stop:
            raise FailedPreconditionError(
                "run: a hook has ended the training", remedy="write `while not s.should_stop()`"
            )
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._sess)
        wanted: list[Any] = []
        places: dict[int, int] = {}
        feeds = feed_dict
        by_hooks: list[Any] = []
        for i, hook in enumerate(self._hooks):
            asked = hook.before_run(context)
            if asked is None:
                continue
            if asked.fetches is not None:
                places[i] = len(wanted)
                wanted.append(asked.fetches)
            if asked.feed_dict:
                feeds = _joined(feeds, asked.feed_dict, feed_dict, by_hooks)
            if asked.options is not None:
                options = _merged(options, asked.options)
        if run_metadata is None:
            run_metadata = RunMetadata()
        if wanted:
            result, *found = self._sess.run([fetches, *wanted], feeds, options, run_metadata)
        else:
            result, found = self._sess.run(fetches, feeds, options, run_metadata), []
        for i, hook in enumerate(self._hooks):
            value = found[places[i]] if i in places else None
            hook.after_run(context, SessionRunValues(value, options, run_metadata))
        self._should_stop = self._should_stop or context.stop_requested
        return result


def _joined(
    feeds: Mapping[Any, Any] | None,
    more: Mapping[Any, Any],
    of_caller: Mapping[Any, Any] | None,
    by_hooks: list[Any],
) -> dict[Any, Any]:
    for tensor in more:
        if any(tensor is other for other in (*by_hooks, *(of_caller or ()))):
            who = "two hooks feed" if any(tensor is o for o in by_hooks) else "a hook feeds"
            raise InvalidArgumentError(
                f"run: {who} {getattr(tensor, 'name', tensor)}, which is fed already"
            )
        by_hooks.append(tensor)
    return {**(feeds or {}), **more}


def _merged(a: RunOptions | None, b: RunOptions) -> RunOptions:
    """What both ask for: the longer time, and all that either wants recorded."""
    if a is None:
        return b
    return RunOptions(
        timeout_in_ms=max(a.timeout_in_ms, b.timeout_in_ms),
        trace=a.trace or b.trace,
        output_partition_graphs=a.output_partition_graphs or b.output_partition_graphs,
        inter_op_pool=b.inter_op_pool or a.inter_op_pool,
    )


class CoordinatedSession(WrappedSession):
    """Stops with its threads, and tells what they failed with.

    Args:
        sess: the session.
        coord: of the threads.
        stop_grace_period_secs: how long they may take to end when it is closed.
    """

    def __init__(self, sess: Any, coord: Coordinator, stop_grace_period_secs: float = 120) -> None:
        super().__init__(sess)
        self._coord = coord
        self._grace = stop_grace_period_secs

    def _check_stop(self) -> bool:
        # A thread that lost its session makes the session begin anew: that is raised at once.
        # Other errors are raised by `run` and `close`.
        try:
            self._coord.raise_requested_exception()
        except LOST:
            raise
        except Exception:
            return True
        return self._coord.should_stop()

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """As `Session.run`; where a thread failed first, that is the error."""
        try:
            return super().run(fetches, feed_dict, options, run_metadata)
        except LOST:
            raise
        except Exception:
            self._coord.raise_requested_exception()
            raise

    def close(self) -> None:
        """Stop the threads, wait for them, and close the session, whatever they failed with."""
        self._coord.request_stop()
        try:
            self._coord.join(stop_grace_period_secs=self._grace, ignore_live_threads=True)
        finally:
            super().close()


class RecoverableSession(WrappedSession):
    """Makes its session again where it is lost, and runs the step there.

    Args:
        creator: makes sessions.
    """

    def __init__(self, creator: Any) -> None:
        self._creator = creator
        super().__init__(self._created())

    def _created(self) -> Any:
        while True:
            try:
                return self._creator.create_session()
            except LOST as error:
                _log.info("a session could not be made, trying again: %s", error)

    def should_stop(self) -> bool:
        """Whether there is nothing more to do."""
        if self._sess is None:
            return True
        try:
            return bool(self._sess.should_stop())
        except LOST as error:
            self._lose(error)
            return False

    def _lose(self, error: Exception) -> None:
        """Close what was lost, and make another."""
        _log.info("the session was lost and is made again: %s", error)
        self.close()
        self._sess = self._created()

    def run_step(self, step: Callable[[Any], Any]) -> Any:
        """What `step(session)` gives; where the session is lost, that of all of it in a new one."""
        while True:
            try:
                return step(self._sess)
            except LOST as error:
                self._lose(error)

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """As `Session.run`, in a new session where this one is lost."""
        return self.run_step(lambda sess: sess.run(fetches, feed_dict, options, run_metadata))
