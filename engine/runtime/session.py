"""Session: run any part of a graph, with any tensor fed and any fetched.

A `Session` knows names, structures, feeds and defaults; its engine (targets.py) runs the steps.
State of a `Session`:
    _engine: runs steps, None once the session is closed;
    _sent: how many operations of the graph the engine has been given; changed under `_lock`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from .. import forks
from ..devices import DeviceList, MemoryStats
from ..errors import (
    ArgumentTypeError,
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    ShapeError,
)
from ..graph import (
    EagerTensor,
    Graph,
    GraphTensor,
    Operation,
    get_default_graph,
    resource,
)
from ..graph.graph import stack as graphs
from ..graph.graphdef import GraphDef
from ..late import later
from ..ops.core.arrays import can_stand_for, to_array
from ..ops.core.entries import check_number
from ..ops.core.graphs import extend_graph
from ..ops.state.variable import read_variable, var_handle
from ..tree import flatten, is_nested, pack_sequence_as
from .config import SessionConfig
from .cost import Cost
from .default_session import AsDefault, innermost, remove_last
from .direct import DirectSession, fetched
from .options import RunMetadata, RunOptions
from .placement import Placement
from .targets import PartialStep, SessionEngine, make_engine, register_session_target, reset_target

register_session_target("", DirectSession, DirectSession.reset)
_CLUSTERS = "laminar.distribute.cluster.session_engine"
register_session_target("grpc", later(_CLUSTERS, "GrpcSession"), later(_CLUSTERS, "reset"))


def _under_own_names(config: Any) -> Any:
    """The settings of a session, where they come under other names (`session_config()`)."""
    return config.session_config() if hasattr(config, "session_config") else config


def _as_options(options: Any) -> RunOptions:
    """RunOptions, of which some go by other names."""
    if not hasattr(options, "run_options"):
        raise ArgumentTypeError(
            f"Session.run: options must be RunOptions, got {type(options).__name__}",
            remedy="RunOptions(trace=True, timeout_in_ms=1000)",
        )
    found: RunOptions = options.run_options()
    return found


def get_default_session() -> Session | None:
    """The session whose block this thread is in, or None.

    Examples:
        >>> engine.get_default_session() is None
        True
    """
    found: Session | None = innermost()
    return found


class Session:
    """Runs the operations of a graph, and keeps the values of its variables between runs.

    Args:
        target: where it runs; "" is this process, "scheme://..." what was registered for it.
        graph: by default the default graph.
        config: its devices, how operations are placed on them, limits.

    Raises:
        InvalidArgumentError: `graph` is no Graph.
        NotFoundError: nothing serves the target.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     x = engine.placeholder("float32", [])
        ...     session.run({"double": 2 * x, "square": x * x}, {x: 3.0})
        {'double': np.float32(6.0), 'square': np.float32(9.0)}
    """

    def __init__(
        self, target: str = "", graph: Graph | None = None, config: SessionConfig | None = None
    ) -> None:
        if graph is not None and not isinstance(graph, Graph):
            raise ArgumentTypeError(
                f"Session: graph must be a Graph, got {graph!r}", remedy="Session(graph=graph)"
            )
        config = _under_own_names(config)
        if config is not None and not isinstance(config, SessionConfig):
            raise ArgumentTypeError(
                f"Session: config must be a SessionConfig, got {type(config).__name__}",
                remedy="SessionConfig(device_count={'cpu': 2}, ...)",
            )
        self.graph = graph or get_default_graph()
        self._engine: SessionEngine | None
        self._engine = make_engine(target, self.graph, config or SessionConfig())
        self._sent = 0
        self._lock = forks.lock()
        self._entered: list[AbstractContextManager[Any]] = []

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """One step: compute `fetches` from `feed_dict`. A step that fails changes no variable.

        Args:
            fetches: a tensor, an operation, a name ("a:0" for a tensor, "a" for an operation; that
                of a variable stands for its value), a variable, or a nested structure of these. An
                eager tensor gives the value that it has.
            feed_dict: values for any tensors of the graph; what computes them does not run. A
                variable has the value in all of the step, where it is read; what is stored stays,
                and updates go on from that.
            options: a time limit, and what to tell about the run.
            run_metadata: filled with what `options` ask for.

        Returns:
            NumPy values in the structure of `fetches`; None for an operation.

        Raises:
            CancelledError: the session was closed meanwhile.
            DeadlineExceededError: the step took longer than allowed.
            FailedPreconditionError: the session is closed, or a variable is not initialised.
            InvalidArgumentError: a placeholder that is needed is not fed, or a feed does not fit.
            NotFoundError: a name that the graph does not have.
        """
        if options is not None and not isinstance(options, RunOptions):
            options = _as_options(options)
        leaves = flatten(fetches)
        try:
            elements = self._fetched(leaves)
        except ArgumentTypeError:
            if not any(isinstance(leaf, EagerTensor) for leaf in leaves):
                raise
            rest = [leaf for leaf in leaves if not isinstance(leaf, EagerTensor)]
            found = iter(self.run(rest, feed_dict, options, run_metadata))
            results = [
                fetched(x, x.value) if isinstance(x, EagerTensor) else next(found) for x in leaves
            ]
            return pack_sequence_as(fetches, results) if is_nested(fetches) else results[0]
        feed_dict = _as_mapping(feed_dict)
        feeds = self._feeds(feed_dict)
        values = [_fed(t, v) for t, v in zip(feeds, feed_dict.values(), strict=True)]
        results = self._ready().run(elements, feeds, values, options, run_metadata)
        if not is_nested(fetches):
            return results[0]
        return pack_sequence_as(fetches, results)

    def make_callable(self, fetches: Any, feed_list: Sequence[Any] = ()) -> Callable[..., Any]:
        """A function of the values of `feed_list` that runs `fetches`, for cheap repeated runs."""
        elements = self._fetched(flatten(fetches))
        tensors = self._feeds(feed_list)

        def call(*values: Any) -> Any:
            if len(values) != len(tensors):
                raise InvalidArgumentError(
                    f"the callable takes {len(tensors)} values, got {len(values)}",
                    remedy=f"give one for each of {', '.join(t.name for t in tensors)}",
                )
            arrays = [_fed(t, v) for t, v in zip(tensors, values, strict=True)]
            results = self._ready().run(elements, tensors, arrays, None, None)
            return pack_sequence_as(fetches, results) if is_nested(fetches) else results[0]

        return call

    def _fetched(self, leaves: Iterable[Any]) -> list[GraphTensor | Operation]:
        """What is asked for, which the graph may refuse."""
        elements = [self._element(leaf) for leaf in leaves]
        self.graph.check_step((), elements)
        return elements

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
        self.graph.check_step(feeds, ())
        return feeds

    def _element(self, value: Any) -> GraphTensor | Operation:
        if isinstance(value, GraphTensor | Operation) and value.graph is self.graph:
            return value
        element = self.graph.as_graph_element(value)
        if isinstance(value, str):  # the name of a variable is that of its handle
            op = element.op if isinstance(element, GraphTensor) else element
            if op.definition is var_handle and (read := _value_read(op)) is not None:
                return read
        return element

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] = ()) -> PartialRun:
        """Begin one step that is fed and fetched bit by bit.

        Each operation runs at most once in it, as soon as what it needs is there.

        Args:
            fetches: all that is going to be fetched, in any structure.
            feeds: all tensors that are going to be fed.

        Returns:
            What to give to `partial_run`. When it is dropped, what still waits is cancelled.
        """
        elements = self._fetched(flatten(fetches))
        return PartialRun(self, self._ready().partial(elements, self._feeds(feeds)))

    def partial_run(
        self, handle: PartialRun, fetches: Any, feed_dict: Mapping[Any, Any] | None = None
    ) -> Any:
        """Go on with a step: give it some feeds, and wait for some fetches.

        Args:
            handle: of `partial_run_setup`.
            fetches: of those that were set up, in any structure; each can be fetched once.
            feed_dict: of those that were set up; each can be fed once.

        Raises:
            InvalidArgumentError: a feed or fetch was not set up, is given a second time, or needs
                a feed that has not come yet.
            FailedPreconditionError: the session is closed.
        """
        if not isinstance(handle, PartialRun):
            raise ArgumentTypeError(
                f"Session.partial_run: expected a handle, got {handle!r}",
                remedy="handle = session.partial_run_setup(fetches, feeds)",
            )
        if handle.session is not self:
            raise InvalidArgumentError("the partial run belongs to another session")
        self._ready()
        elements = self._fetched(flatten(fetches))
        feed_dict = _as_mapping(feed_dict)
        feeds = self._feeds(feed_dict)
        values = [_fed(t, v) for t, v in zip(feeds, feed_dict.values(), strict=True)]
        results = handle.step.run(elements, feeds, values)
        return pack_sequence_as(fetches, results) if is_nested(fetches) else results[0]

    def extend(self, graph_def: GraphDef) -> None:
        """Add nodes to the session's graph.

        Args:
            graph_def: new nodes only; their inputs may be nodes that the graph has already. State
                stays as it is.

        Raises:
            InvalidArgumentError: the graph has a node of that name, or a node is not well formed.
            FailedPreconditionError: the session is closed, or the graph finalized.
        """
        self._ready()
        extend_graph(self.graph, graph_def)

    def _ready(self) -> SessionEngine:
        """The engine, which knows the whole graph: what is new is sent to it."""
        engine = self._engine
        if engine is None:
            raise FailedPreconditionError("the session is closed", remedy="make another Session")
        if self.graph.version != self._sent:
            with self._lock:
                new = self.graph.operations[self._sent :]
                if new:
                    engine.extend(new)
                    self._sent += len(new)
        return engine

    @property
    def graph_def(self) -> GraphDef:
        """Its graph as data."""
        return self.graph.as_graph_def()

    def list_devices(self) -> DeviceList:
        """The devices of this session, and why there are none of some types."""
        return self._ready().list_devices()

    @property
    def placement(self) -> Placement | None:
        """Where the operations of the signature that was new last are, and why.

        None while all that ran went to the one CPU that there is.
        """
        return self._ready().placement

    def memory_stats(self) -> dict[str, MemoryStats]:
        """By the name of a device, the bytes in use there, and their peak since the last call.

        They are counted on GPUs, and on CPUs with a limit (`SessionConfig.memory_limit_bytes`).
        """
        return self._ready().memory_stats()

    def cost(self, operation: Any, device: str = "cpu:0") -> Cost:
        """What placement takes an operation, or that of a tensor or name, to cost on a device.

        That is an estimate from its shapes, until steps that were traced have measured it.
        """
        element = self.graph.as_graph_element(operation)
        op = element.op if isinstance(element, GraphTensor) else element
        return self._ready().cost(op, device)

    def close(self) -> None:
        """Free the session's state; a second call does nothing. Steps that run are cancelled."""
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    @staticmethod
    def reset(target: str = "", containers: Sequence[str] | None = None) -> None:
        """Empty the named containers that sessions of this process share (all, without names).

        Raises:
            InvalidArgumentError: `containers` is one name rather than a list.
            NotFoundError: nothing serves the target, or what does has no containers.
        """
        if isinstance(containers, str):
            raise ArgumentTypeError(
                f"Session.reset: containers must be a list of names, got {containers!r}",
                remedy=f"write Session.reset(containers=[{containers!r}])",
            )
        reset_target(target, containers)

    def as_default(self) -> AbstractContextManager[Session]:
        """A block in which this is the session of `eval()` and `run()`; it stays open after."""
        return AsDefault(self)

    def __enter__(self) -> Session:
        if self._entered:
            raise FailedPreconditionError(
                "Session: its block is entered already",
                remedy="with session.as_default(): can be entered again, and does not close it",
            )
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


class PartialRun:
    """A step of `session` that is under way; see `Session.partial_run_setup`."""

    def __init__(self, session: Session, step: PartialStep) -> None:
        self.session = session
        self.step = step


class InteractiveSession(Session):
    """A session that is the default from its construction until it is closed.

    Examples:
        >>> with engine.Graph().as_default():
        ...     session = engine.InteractiveSession()
        ...     engine.get_default_session() is session
        ...     session.close()
        True
    """

    def __init__(
        self,
        target: str = "",
        graph: Graph | None = None,
        config: SessionConfig | None = None,
    ) -> None:
        super().__init__(target, graph, config)
        graphs.push(self.graph)
        self._default = AsDefault(self, nested=False)
        self._default.__enter__()

    def close(self) -> None:
        """Free the session's state, and stop being the default."""
        if self._engine is not None:
            self._default.__exit__(None, None, None)
            remove_last(graphs.items, self.graph)
        super().close()


def _value_read(handle: Operation) -> GraphTensor | None:
    """The tensor that stands for the value of a variable, None where the graph never reads it."""
    users = handle.graph.consumers_of(handle.outputs[0])
    reads = [op for op in users if op.definition is read_variable and not op.control_inputs]
    own = [op for op in reads if op.name == f"{handle.name}/read"] or reads
    return own[0].outputs[0] if own else None


def _as_mapping(feed_dict: Mapping[Any, Any] | None) -> Mapping[Any, Any]:
    if feed_dict is None:
        return {}
    if not isinstance(feed_dict, Mapping):
        raise ArgumentTypeError(
            f"Session: feed_dict must map tensors to values, got {type(feed_dict).__name__}",
            remedy="write {tensor: value, ...}",
        )
    if any(isinstance(key, tuple) for key in feed_dict):
        return dict(_each_part(feed_dict))
    return feed_dict


def _each_part(feed_dict: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """A tuple that is fed, such as SparseValues, by its parts."""
    for key, value in feed_dict.items():
        if not isinstance(key, tuple):
            yield key, value
        elif not isinstance(value, tuple | list) or len(value) != len(key):
            raise InvalidArgumentError(
                f"Session: {len(key)} values are expected for {key!r}, got {value!r}"
            )
        else:
            yield from _each_part(dict(zip(key, value, strict=True)))


def _fed(tensor: GraphTensor, value: Any) -> Any:
    """The array that is fed for `tensor`, checked against what the graph knows of it."""
    if isinstance(value, GraphTensor):
        raise ArgumentTypeError(
            f"the value fed for {tensor.name} is symbolic ({value!r})", remedy="feed a value"
        )
    if isinstance(value, EagerTensor):
        array, dtype = value.value, value.dtype
        fits = dtype == tensor.dtype
    elif tensor.dtype == resource:
        return value
    else:
        array, dtype = to_array(value, copy=False)
        fits = can_stand_for(dtype, tensor.dtype) or not array.size
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
            remedy="reshape it, or give the placeholder None where sizes differ",
        )
    if tensor.graph.numbers:
        check_number(tensor, array)
    return array
