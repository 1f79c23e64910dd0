"""What a caller may ask of one run, and what the run tells about itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import InvalidArgumentError

if TYPE_CHECKING:
    from ..graph.graphdef import GraphDef


@dataclass(frozen=True)
class RunOptions:
    """How one run of a session, or one call of a function, goes.

    Attributes:
        timeout_in_ms: after so long the step is cancelled and the run raises
            DeadlineExceededError; 0 takes what the session's config says.
        trace: whether each operation is timed, for `RunMetadata.step_stats` and `cost_graph`. A
            traced step is slower, for operations run one by one, not as native code for many of
            them; its results are the same to rounding.
        output_partition_graphs: whether `RunMetadata.partition_graphs` is filled.
        inter_op_pool: which of the session's pools of threads runs the step (see
            `SessionConfig.inter_op_threads`).

    Raises:
        InvalidArgumentError: the timeout is negative.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     session.run(engine.constant(1.0) + 1, options=engine.RunOptions(timeout_in_ms=1000))
        np.float32(2.0)
    """

    timeout_in_ms: float = 0
    trace: bool = False
    output_partition_graphs: bool = False
    inter_op_pool: int = 0

    def __post_init__(self) -> None:
        check_timeout("timeout_in_ms", self.timeout_in_ms)

    @property
    def tells(self) -> bool:
        """Whether operations are recorded, so that they run one by one."""
        return self.trace or self.output_partition_graphs


def check_timeout(name: str, milliseconds: float) -> None:
    """InvalidArgumentError for what is no time to wait."""
    if not milliseconds >= 0:
        raise InvalidArgumentError(f"{name} must not be negative, got {milliseconds}")


@dataclass(frozen=True)
class NodeStats:
    """One execution of an operation.

    Attributes:
        name: of the operation; inside of a condition or a loop "graph/operation".
        type: of the op.
        start_us: when it began, in microseconds of the system's clock.
        duration_us: how long it took; for an operation that waits, until it had its result.
        output_bytes: of the values that it gave.
        thread: the identifier of the thread that began it.
    """

    name: str
    type: str
    start_us: float
    duration_us: float
    output_bytes: int
    thread: int


@dataclass
class DeviceStats:
    """What a device did in a step, in the order in which it ended."""

    device: str
    nodes: list[NodeStats] = field(default_factory=list)


@dataclass(frozen=True)
class CostNode:
    """An operation of a step with what it cost: all its executions together.

    Attributes:
        name: of the operation.
        device: where it ran.
        inputs: the names of the tensors that it took.
        control_inputs: the names of the operations that it waited for.
        seconds: what it took.
        output_bytes: of what it gave, each time.
        executions: how often it ran.
    """

    name: str
    device: str
    inputs: tuple[str, ...]
    control_inputs: tuple[str, ...]
    seconds: float
    output_bytes: int
    executions: int


@dataclass
class RunMetadata:
    """What a run tells about itself; give an empty one to `Session.run`, or `with_options`.

    Attributes:
        step_stats: what each device did, with `RunOptions(trace=True)`.
        cost_graph: what each operation cost, with `RunOptions(trace=True)`.
        partition_graphs: what each device was given to do, with
            `RunOptions(output_partition_graphs=True)`.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     metadata = engine.RunMetadata()
        ...     _ = session.run(
        ...         engine.constant(1.0) + 1,
        ...         options=engine.RunOptions(trace=True),
        ...         run_metadata=metadata,
        ...     )
        >>> metadata.step_stats is None
        False
    """

    step_stats: list[DeviceStats] = field(default_factory=list)
    cost_graph: list[CostNode] = field(default_factory=list)
    partition_graphs: list[GraphDef] = field(default_factory=list)

    def HasField(self, field_name: str) -> bool:  # noqa: N802  # a message's name for it
        """Whether a run has filled a field."""
        return bool(getattr(self, field_name))
