"""`tf.distribute` in one process with one replica, and where a process stands in a cluster.

A strategy says where variables are and what each replica computes. Here there is one replica, so a
program that is written for several computes the same, on one device. `laminar.distribute` trains on
several.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

from laminar import engine
from laminar.engine.errors import UnimplementedError
from laminar.engine.tree import map_structure

from .adapting import in_graph
from .maths import reduce_mean, reduce_sum
from .pipelines import Dataset
from .values import symbol


class ReduceOp(enum.Enum):
    """How values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"


class InputReplicationMode(enum.Enum):
    """How inputs are made."""

    PER_WORKER = "PER_WORKER"


class InputContext(NamedTuple):
    """What a function that makes a data set is told of the workers.

    Attributes:
        num_input_pipelines: how many data sets are made.
        input_pipeline_id: which of them this is.
        num_replicas_in_sync: for how many replicas in all.
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The batch of a replica; ValueError where it is no whole number."""
        if global_batch_size % self.num_replicas_in_sync:
            replicas = self.num_replicas_in_sync
            raise ValueError(f"a batch of {global_batch_size} is not to be divided by {replicas}")
        return global_batch_size // self.num_replicas_in_sync


class _State(threading.local):
    """Of each thread: the strategies whose scopes it is in, and whether a replica computes."""

    def __init__(self) -> None:
        self.strategies: list[Strategy] = []
        self.in_replica = False


class Strategy:
    """One replica, on the devices that are chosen as without a strategy.

    Args:
        device: where it computes; chosen for each operation by default.
    """

    def __init__(self, device: str | None = None) -> None:
        self._device = device

    @property
    def num_replicas_in_sync(self) -> int:
        """1."""
        return 1

    @property
    def extended(self) -> Strategy:
        """Itself."""
        return self

    @contextmanager
    def scope(self) -> Iterator[Strategy]:
        """A block in which this is the strategy."""
        _state.strategies.append(self)
        try:
            with self._on_device():
                yield self
        finally:
            _state.strategies.pop()

    def _on_device(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._device is None else engine.device(self._device)

    def experimental_run_v2(
        self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None
    ) -> Any:
        """What the replica gives: fn(*args, **kwargs)."""
        before = _state.in_replica
        _state.in_replica = True
        try:
            with self.scope(), in_graph():
                return fn(*args, **(kwargs or {}))
        finally:
            _state.in_replica = before

    run = experimental_run_v2

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """The value of the one replica; with `axis`, its sum or mean along that.

        Args:
            reduce_op: a `ReduceOp`, or its name.
            value: tensors.
            axis: the axis of examples.
        """
        kind = reduce_op.value if isinstance(reduce_op, ReduceOp) else str(reduce_op).upper()
        if kind not in ("SUM", "MEAN"):
            raise ValueError(f"reduce: expected SUM or MEAN, got {reduce_op!r}")
        if axis is None:
            return value
        reduction = reduce_sum if kind == "SUM" else reduce_mean
        return map_structure(lambda x: reduction(symbol(x), axis), value)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of the replicas: the one."""
        return (value,)

    def unwrap(self, value: Any) -> list[Any]:
        """Likewise, a list."""
        return [value]

    def experimental_distribute_dataset(self, dataset: Any) -> Any:
        """The data set: the replica gets all of it."""
        return dataset

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """The rows of arrays as a data set."""
        return Dataset.from_tensor_slices(numpy_input)

    def make_dataset_iterator(self, dataset: Any) -> Any:
        """An iterator that is to be initialised."""
        return dataset.make_initializable_iterator()

    def make_input_fn_iterator(
        self, input_fn: Callable[..., Any], replication_mode: Any = None
    ) -> Any:
        """An iterator of the data set that a function makes of an `InputContext`."""
        return input_fn(InputContext()).make_initializable_iterator()

    def update_config_proto(self, config_proto: Any) -> Any:
        """The settings as they are."""
        return config_proto

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: one replica on {self._device or 'any device'}>"


class OneDeviceStrategy(Strategy):
    """One replica, on a device.

    Args:
        device: its name, such as "/gpu:0".
    """

    def __init__(self, device: str) -> None:
        super().__init__(device)


class MirroredStrategy(Strategy):
    """One replica on one device.

    Args:
        devices: the names of the devices; one.
        cross_device_ops: accepted.

    Raises:
        UnimplementedError: there are several.
    """

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None) -> None:
        given = list(devices or [])
        if len(given) > 1:
            raise UnimplementedError(
                f"MirroredStrategy: one device, got {given}",
                remedy="train on several with laminar.distribute.DataParallel",
            )
        super().__init__(given[0] if given else None)


class ReplicaContext:
    """What a replica knows of itself."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """1."""
        return 1

    @property
    def replica_id_in_sync_group(self) -> Any:
        """Its number, 0."""
        with in_graph():
            return symbol(0)

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """The value: there are no others."""
        return self.strategy.reduce(reduce_op, value)

    def merge_call(self, merge_fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """merge_fn(strategy, *args), outside of the replica."""
        before = _state.in_replica
        _state.in_replica = False
        try:
            return merge_fn(self.strategy, *args, **(kwargs or {}))
        finally:
            _state.in_replica = before


_state = _State()
_default = Strategy()


def get_strategy() -> Strategy:
    """The strategy of the block that the thread is in; without one, that of one replica."""
    return _state.strategies[-1] if _state.strategies else _default


def has_strategy() -> bool:
    """Whether the thread is in the scope of a strategy."""
    return bool(_state.strategies)


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Have the thread stay in the scope of a strategy; None ends it.

    Raises:
        RuntimeError: it is in a block of one.
    """
    if len(_state.strategies) > 1:
        raise RuntimeError("experimental_set_strategy: not inside of `with strategy.scope()`")
    _state.strategies = [] if strategy is None else [strategy]


def in_cross_replica_context() -> bool:
    """Whether what is built is not that of a replica, but in the scope of a strategy."""
    return has_strategy() and not _state.in_replica


def get_replica_context() -> ReplicaContext | None:
    """What the replica knows that computes; None outside of replicas."""
    return None if in_cross_replica_context() else ReplicaContext(get_strategy())


def get_loss_reduction() -> ReduceOp:
    """How losses of replicas are to become one: their mean."""
    return ReduceOp.MEAN
