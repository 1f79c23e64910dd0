"""Variables on parameter servers, all else on a worker: a rule for `with device(...)`.

    with engine.device(laminar.distribute.replica_device_setter(cluster=cluster)):
        ...  # the model, as for one process

Every worker of a between-graph training builds the same graph under the same rule, so that all of
them mean the same variables. What takes a variable stays with it, so that servers apply updates,
and so does what looks up rows of it, so that rows alone travel.

Source: Abadi et al., "TensorFlow: large-scale machine learning on heterogeneous distributed
    systems", 2016, arXiv:1603.04467, section 7: parameters are state of the graph, placed by
    devices alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, Final

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import DeviceSpec, Operation, TensorShape, as_dtype, resource
from laminar.engine.ops.core.basic import const_op
from laminar.engine.ops.core.registry import definition_of

from .cluster_spec import ClusterSpec

# Gives the number of the server for what an operation makes.
Strategy = Callable[[Operation], int]

VARIABLE_OPS: Final = frozenset({"VarHandle"})


class RoundRobin:
    """One server after the other, in the order in which variables are made.

    Args:
        num_tasks: how many servers there are.

    Examples:
        >>> strategy = laminar.distribute.RoundRobin(2)
        >>> [strategy(None) for _ in range(4)]
        [0, 1, 0, 1]
    """

    def __init__(self, num_tasks: int) -> None:
        self._num_tasks = _checked(num_tasks)
        self._next = 0

    def __call__(self, op: Operation) -> int:
        """The number of the server for what `op` makes."""
        task = self._next
        self._next = (task + 1) % self._num_tasks
        return task


class GreedyLoadBalancing:
    """The server that has least until now; of several, the first.

    Parts of a partitioned variable are variables, so a large one can be spread over all.

    Args:
        num_tasks: how many servers there are.
        load_of: how much what an operation makes adds to its server; its bytes by default.

    Attributes:
        loads: of the servers until now.

    Examples:
        >>> strategy = laminar.distribute.GreedyLoadBalancing(2, load_of=lambda op: 1.0)
        >>> [strategy(None) for _ in range(4)]
        [0, 1, 0, 1]
    """

    def __init__(self, num_tasks: int, load_of: Callable[[Operation], float] | None = None) -> None:
        self._load_of = num_bytes if load_of is None else load_of
        self.loads = [0.0] * _checked(num_tasks)

    def __call__(self, op: Operation) -> int:
        """The number of the server for what `op` makes."""
        load = self._load_of(op)
        if not load >= 0:
            raise InvalidArgumentError(
                f"GreedyLoadBalancing: load_of({op.name!r}) must be at least 0, got {load!r}"
            )
        task = self.loads.index(min(self.loads))
        self.loads[task] += load
        return task


def num_bytes(op: Operation) -> float:
    """How many bytes the variable that `op` makes has.

    Raises:
        InvalidArgumentError: its shape is not known.
    """
    shape, dtype = TensorShape(op.attrs["shape"]), as_dtype(op.attrs["dtype"])
    if not shape.is_fully_defined:
        raise InvalidArgumentError(
            f"variable {op.name!r} has the shape {shape}, and so no known number of bytes",
            remedy="give it a full shape, or use RoundRobin",
        )
    return float(math.prod(n or 0 for n in shape) * dtype.numpy.itemsize)


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Collection[str] | None = None,
    ps_strategy: Strategy | None = None,
) -> Callable[[Operation], DeviceSpec | None] | None:
    """A rule that puts variables on parameter servers, and all else on a worker.

    Args:
        ps_tasks: how many servers there are; without `cluster`.
        ps_device: their job, and what else is the same for all; without a job, no server is
            chosen, nor for what an inner scope gives to another job.
        worker_device: where all else goes; this worker is "/job:worker/task:1".
        merge_devices: whether what inner scopes name is completed by the rule, part by part;
            else, the rule is only for operations for which they name nothing.
        cluster: a ClusterSpec, or what one is made of; it says how many servers there are, none
            where it has no such job.
        ps_ops: the types of the operations that make what is on servers.
        ps_strategy: chooses among the servers, `RoundRobin` by default.

    Returns:
        What `device(...)` takes; None where there are no servers, which changes nothing.

    Raises:
        InvalidArgumentError: a device is none, or (while the graph is built) a strategy names a
            server that is none.

    Examples:
        >>> with engine.Graph().as_default():
        ...     with engine.device(laminar.distribute.replica_device_setter(ps_tasks=2)):
        ...         v = engine.Variable(1.0, name="v")
        ...         w = engine.Variable(2.0, name="w")
        ...         y = v + w
        >>> str(v.device), str(w.device), str(y.device)
        ('/job:ps/task:0', '/job:ps/task:1', '/job:worker')
    """
    ps, worker = DeviceSpec.from_string(ps_device), DeviceSpec.from_string(worker_device)
    if cluster is not None:
        spec = ClusterSpec(cluster)
        ps_tasks = spec.num_tasks(ps.job) if ps.job in spec.jobs else 0
    if isinstance(ps_tasks, bool) or not isinstance(ps_tasks, int) or ps_tasks < 0:
        raise InvalidArgumentError(
            f"replica_device_setter: ps_tasks must be a number of servers, got {ps_tasks!r}"
        )
    if not ps_tasks:
        return None
    choose = RoundRobin(ps_tasks) if ps_strategy is None else ps_strategy
    if not callable(choose):
        raise InvalidArgumentError(
            f"replica_device_setter: ps_strategy must be a function of an operation, got {choose!r}"
        )
    types = VARIABLE_OPS if ps_ops is None else frozenset(ps_ops)
    return _Rule(ps, worker, ps_tasks, types, choose, merges=bool(merge_devices))


class _Rule:
    """Where each operation goes."""

    def __init__(
        self,
        ps: DeviceSpec,
        worker: DeviceSpec,
        ps_tasks: int,
        ps_ops: Collection[str],
        choose: Strategy,
        *,
        merges: bool,
    ) -> None:
        self._ps = ps
        self._worker = worker
        self._ps_tasks = ps_tasks
        self._ps_ops = ps_ops
        self._choose = choose
        self._merges = merges

    def __call__(self, op: Operation) -> DeviceSpec | None:
        """Where an operation goes that is being made."""
        if op.device and not self._merges:
            return None
        held = next((x.op for x in op.inputs if x.dtype == resource), None)
        if held is not None and not op.definition.read_only:
            return DeviceSpec.from_string(held.device)  # an update, such as an initializer
        if op.colocation:
            return None
        if op.type in self._ps_ops:
            return self._server_for(op)
        if op.definition is const_op or held is not None:
            return None  # it stays with what takes it, or with what it takes
        table = _table_of(op)
        if table is not None:
            return DeviceSpec(colocated_with=table.name)
        return self._worker

    def _server_for(self, op: Operation) -> DeviceSpec:
        inner, job = DeviceSpec.from_string(op.device), self._ps.job
        if job is None or inner.job not in (None, job):
            return self._ps
        if self._ps.task is not None or inner.task is not None:
            return self._ps
        task = self._choose(op)
        if isinstance(task, bool) or not isinstance(task, int) or not 0 <= task < self._ps_tasks:
            raise InvalidArgumentError(
                f"replica_device_setter: ps_strategy chose server {task!r} for {op.name!r}, "
                f"there are {self._ps_tasks}"
            )
        return replace(self._ps, task=task)


def _table_of(op: Operation) -> Operation | None:
    """The variable whose rows an operation looks up, or whose values it hands on: those travel."""
    while definition_of(op).row_gradient is not None and op.inputs:
        op = op.inputs[0].op
        if op.definition.read_only and op.inputs and op.inputs[0].dtype == resource:
            return op.inputs[0].op
    return None


def _checked(num_tasks: int) -> int:
    if isinstance(num_tasks, bool) or not isinstance(num_tasks, int) or num_tasks < 1:
        raise InvalidArgumentError(
            f"num_tasks must be a number of servers from 1 on, got {num_tasks!r}"
        )
    return num_tasks
