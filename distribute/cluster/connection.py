"""Functions, and what computes at once, on the devices of a cluster.

A process that is connected has a server of its own, the master of its functions: what a function
puts on a device of another task by `with device(...)` runs there, all else where it ran before.
Variables stay in the process; who uses one runs there, too.

`_current` is the connection of the process; guarded by `_lock`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from laminar.engine import forks
from laminar.engine.closing import Closing
from laminar.engine.devices import DeviceList
from laminar.engine.devices.registry import list_of
from laminar.engine.devices.scope import set_places_elsewhere
from laminar.engine.errors import AbortedError, AlreadyExistsError
from laminar.engine.graph import (
    DeviceSpec,
    EagerTensor,
    Graph,
    Operation,
    Tensor,
    as_dtype,
    resource,
)
from laminar.engine.ops.core.basic import placeholder_op
from laminar.engine.ops.core.dispatch import as_array, compute_on_host
from laminar.engine.ops.core.op_def import OpDef
from laminar.engine.passes import StepGraph
from laminar.engine.passes.inner_graphs import CONTROL_FLOW, inner_operations
from laminar.engine.runtime import (
    Machine,
    RunMetadata,
    RunOptions,
    SessionConfig,
    StepContext,
    default_machine,
)
from laminar.engine.runtime.partitioned import set_default_machine
from laminar.engine.runtime.recorded_steps import add_step
from laminar.engine.timeline import Recording, now

from .grpc_server import GrpcServer
from .master_session import MasterSession
from .peers import LocalCall

_lock = forks.lock()


class Connection(Closing):
    """The functions of this process on a cluster; see `laminar.distribute.connect_to_cluster`.

    `_session` is the session that functions run in now; another one is made when a task was
    restarted. Guarded by `_opening`.

    Args:
        server: of this process.
        owns_server: whether it is stopped with the connection.
    """

    def __init__(self, server: GrpcServer, *, owns_server: bool) -> None:
        self._server = server
        self._owns = owns_server
        self._opening = threading.Lock()
        self._session: tuple[str, MasterSession] | None = None
        self._places: dict[str, RemotePlace] = {}
        self.session()

    @property
    def target(self) -> str:
        """What `Session` takes to run on the same cluster."""
        return self._server.target

    def session(self) -> MasterSession:
        """The session, made anew where the last one was lost.

        Raises:
            UnavailableError: a task does not answer.
        """
        with self._opening:
            if self._session is not None and self._session[1].is_lost:
                self._server.master.drop(self._session[0])
                self._session = None
            if self._session is None:
                config = SessionConfig(allow_soft_placement=True)
                self._session = self._server.master.open_session(config, LocalCall())
            return self._session[1]

    def list_devices(self) -> DeviceList:
        """The devices that can be named: those of this process, then those of other tasks.

        Raises:
            UnavailableError: a task does not answer.
        """
        return list_of(self.session().devices)

    def is_elsewhere(self, spec: DeviceSpec) -> bool:
        """Whether a name is that of a device of another task."""
        if spec.job is None:
            return False
        own = DeviceSpec.from_string(self._server.task)
        return not own.is_compatible_with(DeviceSpec(job=spec.job, task=spec.task))

    def place(self, spec: DeviceSpec) -> RemotePlace | None:
        """The place of a device of another task, None for this process's.

        Raises:
            NotFoundError: there is no such device.
        """
        if not self.is_elsewhere(spec):
            return None
        name = self.session().devices.matching(spec)[0].name
        return self._places.setdefault(name, RemotePlace(self, name))

    def close(self) -> None:
        """Have functions run in this process alone again; does nothing the second time."""
        with _lock:
            if _current.connection is self:
                _current.connection = None
                set_places_elsewhere(None)
                set_default_machine(None)
        with self._opening:
            if self._session is not None:
                self._server.master.drop(self._session[0])
                self._session = None
        if self._owns:
            self._server.stop()


class _Current:
    connection: Connection | None = None


_current = _Current()


def connect(server: GrpcServer, *, owns_server: bool) -> Connection:
    """Have the functions of this process run on the cluster of a server of its.

    Raises:
        AlreadyExistsError: they are connected already.
    """
    with _lock:
        if _current.connection is not None:
            raise AlreadyExistsError(
                "this process is connected to a cluster already", remedy="close that connection"
            )
        made = Connection(server, owns_server=owns_server)
        _current.connection = made
        set_default_machine(_ConnectedMachine(made, default_machine()))
        set_places_elsewhere(made.place)
        return made


class _ConnectedMachine(Machine):
    """The devices of this process, and those of a cluster for steps that name them."""

    def __init__(self, connection: Connection, here: Machine) -> None:
        super().__init__(here.config, devices=here.devices)
        self._connection = connection
        self._here = here

    def plan(self, step: StepGraph, *, compiled: bool = False, optimize: bool = False) -> Any:
        """How to run a step; see `Machine.plan`."""
        if any(self._connection.is_elsewhere(spec) for spec in _specs_of(step.operations)):
            return _ConnectedPlan(self._connection, step, compiled=compiled, optimize=optimize)
        return self._here.plan(step, compiled=compiled, optimize=optimize)


def _specs_of(operations: Sequence[Operation]) -> list[DeviceSpec]:
    """The devices that operations name, and those inside of them."""
    names = {op.device for op in operations}
    for op in operations:
        if op.definition in CONTROL_FLOW:
            names |= {inner.device for inner in inner_operations(op)}
    return [DeviceSpec.from_string(name) for name in names]


class _ConnectedPlan:
    """How to run a step on a cluster, in whatever session there is."""

    records = False
    gains_by_compiling = False

    def __init__(
        self, connection: Connection, step: StepGraph, *, compiled: bool, optimize: bool
    ) -> None:
        self._connection = connection
        self._step = step
        self._how = {"compiled": compiled, "optimize": optimize}
        self._lock = threading.Lock()
        self._made: tuple[MasterSession, Any] | None = None

    def _plan(self, session: MasterSession) -> Any:
        with self._lock:
            if self._made is None or self._made[0] is not session:
                self._made = session, session.machine.plan(self._step, **self._how)
            return self._made[1]

    def run(
        self,
        feeds: Sequence[Any],
        context: StepContext,
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
    ) -> list[Any]:
        """Execute it on arrays, in the order of the feeds; gives host arrays."""
        session = self._connection.session()
        timeline, begin = Recording.active, now()
        if timeline is not None and metadata is None:
            options, metadata = replace(options or RunOptions(), trace=True), RunMetadata()
        try:
            found: list[Any] = self._plan(session).run(feeds, context, options, metadata)
            if timeline is not None and metadata is not None:
                add_step(timeline, metadata.step_stats, {}, (begin, now()))
        except AbortedError as error:  # a task has lost what it had: the next call begins anew
            session.lose(error)
            raise
        return found


class RemotePlace:
    """A device of another task, as what computes at once knows it.

    An op's inputs are sent there, and what it gives comes back: a value lies in this process, so
    each op is a step of its own. A function sends and fetches once for all of its ops.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self.spec = DeviceSpec.from_string(name)
        self._connection = connection
        self._plans: dict[Any, _ConnectedPlan] = {}
        self._context = StepContext()

    def get(self, value: Any) -> np.ndarray[Any, Any]:
        """Values lie on the host."""
        return np.asarray(value)

    def tensor(self, array: np.ndarray[Any, Any], dtype: Any) -> EagerTensor:
        """Values lie on the host."""
        return EagerTensor(array, dtype)

    def compute(
        self, op: OpDef, tensors: Sequence[Any], attrs: Mapping[str, Any]
    ) -> tuple[tuple[Tensor, ...], Mapping[str, Any]]:
        """The outputs of an op, computed there, and its attributes with defaults."""
        specs, full = op.infer([x.spec for x in tensors], attrs)
        has_state = any(x.dtype == resource for x in (*tensors, *specs))
        plan = None if has_state or not specs else self._plan(op, tensors, full)
        if plan is None:  # state is in this process
            return compute_on_host(op, tensors, attrs)
        found = plan.run([as_array(x.value) for x in tensors], self._context)
        outputs = zip(found, specs, strict=True)
        return tuple(EagerTensor(y, as_dtype(s.dtype)) for y, s in outputs), full

    def _plan(
        self, op: OpDef, tensors: Sequence[Any], attrs: Mapping[str, Any]
    ) -> _ConnectedPlan | None:
        """How to run an op on tensors of these specs; None if it is not known again by them."""
        key: Any = (op, tuple(x.spec for x in tensors), tuple(sorted(attrs.items())))
        try:
            known = self._plans.get(key)
        except TypeError:  # an attribute that is an array, or a list
            return None
        if known is not None:
            return known
        graph = Graph()
        with graph.as_default(), graph.device(self.spec):
            inputs = [
                graph.add(placeholder_op, (), {"shape": x.shape, "dtype": x.dtype}).outputs[0]
                for x in tensors
            ]
            made = graph.add(op, inputs, attrs)
        step = StepGraph(made.outputs, inputs)
        found = _ConnectedPlan(self._connection, step, compiled=False, optimize=False)
        self._plans[key] = found
        return found

    def __repr__(self) -> str:
        return f"<place {self.spec}>"
