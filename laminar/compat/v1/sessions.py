"""Sessions that take ConfigProto and RunOptions, and give scalars as NumPy's scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from laminar import engine
from laminar.engine.errors import InvalidArgumentError, LaminarError
from laminar.engine.runtime.session import PartialRun
from laminar.engine.tree import map_structure


def _scalars(found: Any) -> Any:
    """Results as TensorFlow gives them: what has no axes is a scalar."""
    return map_structure(lambda x: x[()] if isinstance(x, np.ndarray) and not x.shape else x, found)


class _Results:
    """What a session of these names does otherwise."""

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: engine.RunMetadata | None = None,
    ) -> Any:
        """One step; see `laminar.engine.Session.run`."""
        try:
            found = super().run(fetches, feed_dict, options, run_metadata)  # type: ignore[misc]  # a session's
        except LaminarError as error:
            self._tell_operation(error)
            raise
        return _scalars(found)

    def _tell_operation(self, error: LaminarError) -> None:
        """Let an error of a kernel have the operation, where it is one of the graph."""
        graph: engine.Graph = self.graph  # type: ignore[attr-defined]  # a session's
        if error.operation is not None and error.operation in graph:
            error.op = graph.get_operation_by_name(error.operation)
            with suppress(InvalidArgumentError):  # of what holds a Python function there is none
                error.node_def = error.op.node_def

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Any:
        """A function of the values of `feed_list` that runs `fetches`.

        With `accept_options` it takes `options` and `run_metadata` by keyword.
        """
        feeds = list(feed_list or ())
        if accept_options:

            def run(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
                fed = dict(zip(feeds, values, strict=True))
                return self.run(fetches, fed, options, run_metadata)

            return run
        call: Callable[..., Any] = super().make_callable(fetches, feeds)  # type: ignore[misc]  # a session's
        return lambda *values: _scalars(call(*values))

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] | None = None) -> PartialRun:
        """Begin a step that is fed and fetched bit by bit."""
        found: PartialRun = super().partial_run_setup(fetches, feeds or ())  # type: ignore[misc]  # a session's
        return found

    def partial_run(
        self, handle: PartialRun, fetches: Any, feed_dict: Mapping[Any, Any] | None = None
    ) -> Any:
        """Go on with such a step."""
        return _scalars(super().partial_run(handle, fetches, feed_dict))  # type: ignore[misc]  # a session's


class Session(_Results, engine.Session):
    """See `laminar.engine.Session`."""

    def __init__(
        self, target: str = "", graph: engine.Graph | None = None, config: Any = None
    ) -> None:
        super().__init__(target, graph, config)


class InteractiveSession(_Results, engine.InteractiveSession):
    """See `laminar.engine.InteractiveSession`."""

    def __init__(
        self, target: str = "", graph: engine.Graph | None = None, config: Any = None
    ) -> None:
        super().__init__(target, graph, config)
