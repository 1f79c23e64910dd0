"""Cluster: a set of pure operations that runs as one.

Its reference kernel runs the operations one by one; a compiler that has registered itself (see
`set_compiler`) gives each body one native function instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ..graph import ANY, Array, Operation, TensorSpec
from .registry import HOST, OpDef, define, no_gradient


class Step(NamedTuple):
    """One operation of a body; `inputs` are numbers of values, `output` that of its result."""

    definition: OpDef
    inputs: tuple[int, ...]
    attrs: Mapping[str, Any]
    output: int


class Body:
    """The operations of a cluster, in order.

    Values are numbered: the inputs of the cluster first, then the result of each step.

    Attributes:
        steps: what is computed.
        specs: the spec of each value.
        num_inputs: how many values come from outside.
        outputs: the numbers of the values that go out.
        native: the compiled form, made when it is first run.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        specs: Sequence[TensorSpec],
        num_inputs: int,
        outputs: Sequence[int],
    ) -> None:
        self.steps = tuple(steps)
        self.specs = tuple(specs)
        self.num_inputs = num_inputs
        self.outputs = tuple(outputs)
        self.native: Callable[..., Any] | None = None


class Compiler(Protocol):
    """What a compiler offers for clusters."""

    def accepts(self, op: Operation) -> bool:
        """Whether it can make native code of an operation."""

    def build(self, body: Body) -> Callable[..., Sequence[Array]] | None:
        """A function of the input arrays that gives the output arrays; None if it cannot."""


class _Hook:
    compiler: Compiler | None = None


def set_compiler(compiler: Compiler) -> None:
    """Say who compiles clusters."""
    _Hook.compiler = compiler


def accepts(op: Operation) -> bool:
    """Whether an operation may be part of a cluster."""
    return _Hook.compiler is not None and _Hook.compiler.accepts(op)


@define("Cluster", dtypes={"inputs": ANY}, same_dtype=False)
def cluster_op(*inputs: TensorSpec, body: Body) -> tuple[TensorSpec, ...]:
    """The outputs of `body` for these inputs."""
    return tuple(body.specs[i] for i in body.outputs)


@cluster_op.reference
def run_steps(xp: Any, *arrays: Array, body: Body) -> Any:
    """The outputs of a body, one operation after the other."""
    values: list[Any] = [*arrays, *(None for _ in body.steps)]
    for step in body.steps:
        kernel = step.definition.bind("cpu", xp)
        values[step.output] = kernel(*(values[i] for i in step.inputs), **step.attrs)
    results = [values[i] for i in body.outputs]
    return results[0] if len(results) == 1 else results


@cluster_op.kernel("cpu")
def _run_native(*arrays: Array, body: Body) -> Any:
    native = body.native
    if native is None:
        made = None if _Hook.compiler is None else _Hook.compiler.build(body)
        native = body.native = made or functools.partial(run_steps, HOST, body=body)
    return native(*arrays)


cluster_op.grad(no_gradient)
