"""Cluster: a set of operations, pure but for the variables they read and write, that runs as one.

Its own kernel runs the operations one by one; the compiler of the device that it runs on, if that
has one, gives each body one native function instead.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ... import ops
from ...graph import ANY, Array, GraphTensor, Operation, TensorSpec
from ..state.variable import VariableStore, one_lock
from .dispatch import as_array
from .kernels import HOST
from .op_def import OpDef, PlanOptions
from .registry import define, definition_of, no_gradient


class ClusterOp(NamedTuple):
    """One operation of a body; values are numbers. `operation` is what an error names."""

    definition: OpDef
    inputs: tuple[int, ...]
    attrs: Mapping[str, Any]
    outputs: tuple[int, ...]
    operation: Operation | None = None

    @property
    def label(self) -> str:
        """What people call it."""
        op = self.operation
        if op is None:
            return ""
        within = op.layer and not op.name.startswith(op.layer)  # as operations of gradients
        return f"{op.layer}/{op.name}" if within else op.name


class Compiler(Protocol):
    """What a device type has its clusters compiled by (see `register_device`)."""

    def prepare(self) -> None:
        """Load what a first compilation needs."""

    def accepts(self, operations: Sequence[Operation]) -> list[bool]:
        """Of which operations it can make native code."""

    def build(self, body: ClusterBody) -> Callable[..., Any] | None:
        """A function of a kernel context and the inputs, as `run_steps`; None if it cannot.

        Inputs and outputs are arrays of `body.device`, variables come as their stores. It may have
        a method `prepare(calls)`: see `prepare_body`.
        """


class ClusterDevice(Protocol):
    """What a cluster asks of the device that it runs on (see engine/devices)."""

    @property
    def compiler(self) -> Compiler | None:
        """Who compiles what runs there."""

    @property
    def brings_inputs(self) -> bool:
        """Whether clusters get host arrays as they are, which they copy there themselves."""

    def put(self, array: Array) -> Any:
        """A host array copied there."""

    @property
    def is_plain(self) -> bool:
        """Whether the host's own kernels run there, as they are."""

    def bind(self, op: OpDef) -> Callable[..., Any]:
        """The kernel of an op there; one with effects takes a context first."""


class ClusterBody:
    """The operations of a cluster, in order.

    Values are numbered: the inputs of the cluster first, then the results of each step.

    Attributes:
        steps: what is computed.
        specs: the spec of each value.
        num_inputs: how many values come from outside.
        outputs: the numbers of the values that go out.
        name: of the cluster, to people.
        device: where it runs; None for the host's own kernels, operation by operation.
        native: the compiled form, made when it is first run.
    """

    def __init__(
        self,
        steps: Sequence[ClusterOp],
        specs: Sequence[TensorSpec],
        num_inputs: int,
        outputs: Sequence[int],
        name: str = "cluster",
        device: ClusterDevice | None = None,
    ) -> None:
        self.steps = tuple(steps)
        self.specs = tuple(specs)
        self.num_inputs = num_inputs
        self.outputs = tuple(outputs)
        self.name = name
        self.device = device
        self.native: Callable[..., Any] | None = None

    @classmethod
    def of(
        cls,
        operations: Sequence[Operation],
        inputs: Sequence[GraphTensor],
        outputs: Sequence[GraphTensor],
        name: str = "cluster",
        device: ClusterDevice | None = None,
    ) -> ClusterBody:
        """What operations, in an order in which they can run, make of the inputs of all of them."""
        number = {id(x): i for i, x in enumerate(inputs)}
        specs = [x.spec for x in inputs]
        steps = []
        for op in operations:
            first = len(specs)
            specs.extend(y.spec for y in op.outputs)
            number.update((id(y), first + i) for i, y in enumerate(op.outputs))
            taken = tuple(number[id(x)] for x in op.inputs)
            made = tuple(range(first, len(specs)))
            steps.append(ClusterOp(definition_of(op), taken, op.attrs, made, op))
        return cls(steps, specs, len(inputs), [number[id(y)] for y in outputs], name, device)

    def __repr__(self) -> str:
        return f"{len(self.steps)} operations"

    @functools.cached_property
    def drops(self) -> list[list[int]]:
        """For each step, the values that nothing takes after it."""
        last = {i: k for k, step in enumerate(self.steps) for i in (*step.outputs, *step.inputs)}
        found: list[list[int]] = [[] for _ in self.steps]
        for i in last.keys() - {*self.outputs}:
            found[last[i]].append(i)
        return found

    @functools.cached_property
    def kernels(self) -> list[tuple[Callable[..., Any], bool]]:
        """What runs each step on the device, and whether it takes a context first."""
        device = None if self.device is None or self.device.is_plain else self.device
        return [_kernel(step, device) for step in self.steps]


class _ThreadShare(threading.local):
    """What native code that this thread runs may use of the host's cores.

    Attributes:
        owner: whose share it is: each owner has threads of its own. None: all that there are.
        count: how many threads, this one among them.
    """

    owner: str | None = None
    count = 0


thread_share = _ThreadShare()


@define("Cluster", dtypes={"inputs": ANY}, same_dtype=False)
def cluster_op(*inputs: TensorSpec, body: ClusterBody) -> tuple[TensorSpec, ...]:
    """The outputs of `body` for these inputs."""
    return tuple(body.specs[i] for i in body.outputs)


def run_steps(context: Any, *inputs: Any, body: ClusterBody) -> list[Any]:
    """The outputs of a body, as arrays, one operation after the other.

    Variables change all together at the end, so a step that fails has changed nothing.
    """
    with np.errstate(all="ignore"):  # IEEE values are the result; nothing is printed
        return _run_steps(context, inputs, body)


def _run_steps(context: Any, inputs: Sequence[Any], body: ClusterBody) -> list[Any]:
    values: list[Any] = [None] * len(body.specs)
    shadows: dict[int, tuple[VariableStore, VariableStore]] = {}
    device = body.device
    for i, x in enumerate(inputs):
        if isinstance(x, VariableStore):
            x.check_owner()
            shadow = VariableStore(x.name, x.value_or_none())
            shadow.reshaped = x.reshaped
            _, x = shadows.setdefault(id(x), (x, shadow))
        elif device is not None and device.brings_inputs and isinstance(x, np.ndarray):
            x = device.put(x)  # once, not by each step that takes it
        values[i] = x
    rows = zip(body.steps, body.kernels, body.drops, strict=True)
    for step, (kernel, needs_context), drops in rows:
        arguments = [values[i] for i in step.inputs]
        try:
            results = kernel(context, *arguments) if needs_context else kernel(*arguments)
        except Exception as cause:
            if step.operation is None or getattr(cause, "operation", None) is not None:
                raise
            raise ops.failures.located(step.operation, arguments, cause) from cause
        if len(step.outputs) == 1:
            values[step.outputs[0]] = results
        else:
            for i, y in zip(step.outputs, results, strict=True):
                values[i] = y
        for i in drops:
            values[i] = None
    if context is not None and context.xp is not HOST:
        ops.late_checks.settle(context.xp)  # before anything changes
    with one_lock([store for store, _ in shadows.values()]):
        for store, shadow in shadows.values():
            store.value = shadow.value
    return [as_array(values[i]) for i in body.outputs]


def _kernel(step: ClusterOp, device: ClusterDevice | None) -> tuple[Callable[..., Any], bool]:
    """What runs a step on a device, or on the host, and whether it takes a context first."""
    op = step.definition
    if device is None:
        kernel = op.context_kernel or op.on_host()
    elif op.prepared is not None:  # the graphs inside of it run there too
        options = PlanOptions(device=device)
        return op.prepared(step.attrs, [True] * len(step.outputs), options), True
    else:
        kernel = device.bind(op)
        if step.operation is not None:
            kernel = ops.late_checks.named(step.operation, kernel)
    return functools.partial(kernel, **step.attrs), op.context_kernel is not None


@cluster_op.effect
def _run(context: Any, *inputs: Any, body: ClusterBody) -> Any:
    results = (body.native or _built(body))(context, *inputs)
    return results[0] if len(body.outputs) == 1 else results


def prepare_body(body: ClusterBody, calls: Sequence[Sequence[tuple[int, ...]]]) -> None:
    """Make what runs of a body on inputs of these shapes need, so that none waits for it."""
    prepare = getattr(body.native or _built(body), "prepare", None)
    if prepare is not None:
        prepare(calls)


def _built(body: ClusterBody) -> Callable[..., Any]:
    """The compiled form of a body, or what runs it without."""
    compiler = None if body.device is None else body.device.compiler
    native = None if compiler is None else compiler.build(body)

    def one_by_one(context: Any, *inputs: Any) -> list[Any]:
        return run_steps(context, *inputs, body=body)

    body.native = native or one_by_one
    return body.native


cluster_op.grad(no_gradient)
