"""Session: run any part of a graph, with any tensor fed and any fetched.

State of a `Session`:
    _plans[key]: the plan of a set of fetches and feeds, made at its first run (and again when an
        operation has been changed, or the graph has captured more);
    _resources: the containers that hold the values of variables.
Both are guarded by `_lock`; a plan, once made, is run by any number of threads at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import numpy as np

from ..cancellation import CancellationManager
from ..errors import (
    CancelledError,
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ShapeError,
)
from ..graph import (
    DType,
    EagerTensor,
    Graph,
    GraphTensor,
    Operation,
    get_default_graph,
    resource,
    string,
)
from ..graph.default import stack as graphs
from ..ops.convert import to_array
from ..tree import flatten, is_nested, pack_sequence_as
from .config import SessionConfig
from .devices import DeviceList, list_devices
from .executor import Plan
from .partitioned import Machine, PartitionedPlan
from .placement import Placement
from .resources import SHARED, SessionResources
from .step import StepContext


class _Defaults(threading.local):
    def __init__(self) -> None:
        self.sessions: list[Session] = []


_defaults = _Defaults()


def get_default_session() -> Session | None:
    """The session whose block this thread is in, or None."""
    return _defaults.sessions[-1] if _defaults.sessions else None


class Session:
    """Runs the operations of a graph, and keeps the values of its variables between runs.

    Args:
        target: where it runs; "" is this process.
        graph: by default the default graph.
        config: its devices, and how operations are placed on them.

    Raises:
        NotFoundError: nothing serves the target.
    """

    def __init__(
        self,
        target: str = "",
        graph: Graph | None = None,
        config: SessionConfig | None = None,
    ) -> None:
        if target:
            raise NotFoundError(
                f"no session serves the target {target!r}",
                remedy='use "" for this process',
            )
        self.graph = graph or get_default_graph()
        self._resources = SessionResources()
        self._context = StepContext(self._resources.get, CancellationManager())
        self._machine = Machine(config)
        self._plans: dict[Any, Plan | PartitionedPlan] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._entered: list[AbstractContextManager[Any]] = []

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """One step: compute `fetches` from `feed_dict`.

        Args:
            fetches: a tensor, an operation, a name ("a:0" for a tensor, "a" for an operation), a
                variable, or a nested structure of these.
            feed_dict: values for any tensors of the graph; what computes them does not run.

        Returns:
            NumPy values in the structure of `fetches`; None for an operation.

        Raises:
            FailedPreconditionError: the session is closed, or a variable is not initialised.
            InvalidArgumentError: a placeholder that is needed is not fed, or a feed does not fit.
            NotFoundError: a name that the graph does not have.
        """
        leaves = flatten(fetches)
        elements = [self._element(leaf) for leaf in leaves]
        feed_dict = feed_dict or {}
        feeds = self._feeds(feed_dict)
        values = [_fed(t, v) for t, v in zip(feeds, feed_dict.values(), strict=True)]
        results = self._run(elements, feeds, values)
        if not is_nested(fetches):
            return results[0]
        return pack_sequence_as(fetches, results)

    def make_callable(self, fetches: Any, feed_list: Sequence[Any] = ()) -> Callable[..., Any]:
        """A function of the values of `feed_list` that runs `fetches`, for cheap repeated runs."""
        elements = [self._element(leaf) for leaf in flatten(fetches)]
        tensors = self._feeds(feed_list)

        def call(*values: Any) -> Any:
            if len(values) != len(tensors):
                raise InvalidArgumentError(
                    f"the callable takes {len(tensors)} values, got {len(values)}"
                )
            arrays = [_fed(t, v) for t, v in zip(tensors, values, strict=True)]
            results = self._run(elements, tensors, arrays)
            return pack_sequence_as(fetches, results) if is_nested(fetches) else results[0]

        return call

    def _feeds(self, keys: Iterable[Any]) -> list[GraphTensor]:
        """The tensors that are fed; an operation, and one tensor twice, are refused."""
        feeds: list[GraphTensor] = []
        for key in keys:
            tensor = self._element(key)
            if not isinstance(tensor, GraphTensor):
                raise InvalidArgumentError(
                    f"an operation cannot be fed: {tensor!r}",
                    remedy=f'feed its output: "{tensor.name}:0"',
                )
            if any(tensor is other for other in feeds):
                raise InvalidArgumentError(f"{tensor.name} is fed twice")
            feeds.append(tensor)
        return feeds

    def _element(self, value: Any) -> GraphTensor | Operation:
        if isinstance(value, GraphTensor | Operation) and value.graph is self.graph:
            return value
        return self.graph.as_graph_element(value)

    def _run(
        self,
        elements: Sequence[GraphTensor | Operation],
        feeds: Sequence[GraphTensor],
        values: Sequence[Any],
    ) -> list[Any]:
        if self._closed:
            raise FailedPreconditionError("the session is closed", remedy="make another Session")
        captured = list(self.graph.captures.values())
        key = (tuple(map(id, elements)), tuple(map(id, feeds)), len(captured), self.graph.edits)
        plan = self._plans.get(key)
        if plan is None:
            with self._lock:
                plan = self._plans.get(key)
                if plan is None:
                    tensors = [e for e in elements if isinstance(e, GraphTensor)]
                    targets = [e for e in elements if isinstance(e, Operation)]
                    taken = [*feeds, *(inner for _, inner in captured)]
                    plan = self._machine.plan(tensors, taken, targets)
                    self._plans[key] = plan
        outer = [t.value for t, _ in captured if isinstance(t, EagerTensor)]
        found = iter(plan.run([*values, *outer], self._context))
        return [_fetched(e, next(found)) if isinstance(e, GraphTensor) else None for e in elements]

    def list_devices(self) -> DeviceList:
        """The devices of this session, and why there are none of some types."""
        return list_devices(self._machine.config.device_count)

    @property
    def placement(self) -> Placement | None:
        """Where the operations of the signature that was new last are, and why.

        None while all that ran went to the one CPU that there is.
        """
        return self._machine.placement

    def close(self) -> None:
        """Free the session's state; a second call does nothing. Steps that run are cancelled."""
        self._closed = True
        self._context.cancellation.cancel(CancelledError("the session was closed"))
        self._resources.clear()
        with self._lock:
            self._plans.clear()

    @staticmethod
    def reset(target: str = "", containers: Sequence[str] | None = None) -> None:
        """Empty the named containers that sessions of this process share (all, without names)."""
        if target:
            raise NotFoundError(f"no session serves the target {target!r}")
        SHARED.reset(containers)

    def as_default(self) -> AbstractContextManager[Session]:
        """A block in which this is the session of `eval()` and `run()`; it stays open after."""
        return _AsDefault(self)

    def __enter__(self) -> Session:
        for block in (self.graph.as_default(), self.as_default()):
            block.__enter__()
            self._entered.append(block)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for block in (self._entered.pop(), self._entered.pop()):
            block.__exit__(kind, error, trace)
        self.close()


class _AsDefault(AbstractContextManager["Session"]):
    """Pushes a session on the stack of its thread, and on that of its graph."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __enter__(self) -> Session:
        for stack in (_defaults.sessions, self.session.graph.sessions):
            stack.append(self.session)
        return self.session

    def __exit__(self, *error: Any) -> None:
        for stack in (_defaults.sessions, self.session.graph.sessions):
            _remove_last(stack, self.session)


def _remove_last(stack: list[Any], item: Any) -> None:
    """Take the uppermost `item` off: interactive sessions need not be closed in order."""
    for i in range(len(stack) - 1, -1, -1):
        if stack[i] is item:
            del stack[i]
            return


class InteractiveSession(Session):
    """A session that is the default from its construction until it is closed."""

    def __init__(
        self,
        target: str = "",
        graph: Graph | None = None,
        config: SessionConfig | None = None,
    ) -> None:
        super().__init__(target, graph, config)
        graphs.push(self.graph)
        self._default = self.as_default()
        self._default.__enter__()

    def close(self) -> None:
        """Free the session's state, and stop being the default."""
        if not self._closed:
            self._default.__exit__(None, None, None)
            _remove_last(graphs.items, self.graph)
        super().close()


def _fed(tensor: GraphTensor, value: Any) -> Any:
    """The array that is fed for `tensor`, checked against what the graph knows of it."""
    if isinstance(value, GraphTensor):
        raise InvalidArgumentError(
            f"the value fed for {tensor.name} is symbolic ({value!r})", remedy="feed a value"
        )
    if isinstance(value, EagerTensor):
        array, dtype = value.value, value.dtype
        fits = dtype == tensor.dtype
    elif tensor.dtype == resource:
        return value
    else:
        array, dtype = to_array(value, copy=False)
        fits = _kind(dtype) <= _kind(tensor.dtype) or not array.size
    if not fits:
        raise DTypeError(
            f"the value fed for {tensor.name} must be {tensor.dtype}, got {dtype}",
            remedy="cast it first",
        )
    if not isinstance(value, EagerTensor):
        array, _ = to_array(value, tensor.dtype)  # a copy: a variable may come to hold it
    if tensor.dtype != resource and not tensor.shape.is_compatible_with(array.shape):
        raise ShapeError(
            f"the value fed for {tensor.name} must have shape {tensor.shape}, "
            f"got {list(array.shape)}",
        )
    return array


def _kind(dtype: DType) -> int:
    """Numbers can be fed for numbers of the same or of a later kind."""
    if dtype == string:
        return 9
    return 3 if dtype.is_complex else 2 if dtype.is_floating else 1 if dtype.is_integer else 0


def _fetched(tensor: GraphTensor, value: Any) -> Any:
    """A fetched value as the user gets it: an array that no later step changes, or a scalar."""
    if tensor.dtype == resource:
        return value
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return value.item() if tensor.dtype == string else value[()]
        return value.copy()  # a variable may hold the array itself
    return value
