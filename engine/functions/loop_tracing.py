"""What all loops share: variables as flat tensors, and a body traced until its shapes hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..errors import InvalidArgumentError, ShapeError
from ..graph import Graph, GraphTensor, Tensor, TensorShape, TensorSpec
from ..ops.core.convert import convert_to_tensor
from ..tree import flatten, map_structure
from .func_graph import FuncGraph
from .subgraph import (
    as_output,
    covers,
    matched,
    names_of,
    same_structure,
    trace,
)


class Leaves(NamedTuple):
    """The tensors of a structure; leaves that are None stay None."""

    structure: Any
    tensors: list[Tensor]
    names: list[str]
    all_names: list[str]

    @staticmethod
    def of(structure: Any, root: str) -> Leaves:
        names = names_of(structure, root)
        pairs = [
            (convert_to_tensor(leaf), name)
            for leaf, name in zip(flatten(structure), names, strict=True)
            if leaf is not None
        ]
        return Leaves(structure, [t for t, _ in pairs], [n for _, n in pairs], names)

    @property
    def specs(self) -> list[TensorSpec]:
        return [t.spec for t in self.tensors]

    def pack(self, tensors: Sequence[Any]) -> Any:
        """The structure with other tensors."""
        return pack_leaves(self.structure, tensors)


def as_value(leaf: Any) -> Any:
    """A leaf as a tensor; None stays."""
    return None if leaf is None else convert_to_tensor(leaf)


def pack_leaves(structure: Any, tensors: Sequence[Any]) -> Any:
    """The structure with these tensors; None stays."""
    left = iter(tensors)
    return map_structure(lambda leaf: None if leaf is None else next(left), structure)


def argument_names(names: Sequence[str]) -> list[str]:
    """Names of variables, such as "state['x']", as names of arguments."""
    return [name.replace("[", "_").replace("]", "").replace("'", "") for name in names]


class TracedBody(NamedTuple):
    """The body of a loop, traced for variables of these specs."""

    graph: FuncGraph
    specs: list[TensorSpec]
    outputs: list[GraphTensor]
    extra: Any


def trace_body(
    who: str,
    outer: Graph,
    variables: Leaves,
    step: Callable[[FuncGraph, list[GraphTensor]], tuple[Any, Any]],
    declared: Sequence[TensorShape | None],
    more: Sequence[tuple[str, TensorSpec]] = (),
) -> TracedBody:
    """Trace `step`, again for more general shapes until what it gives fits what it takes.

    `step(graph, arguments)` returns the next variables, and anything besides; `more` are arguments
    after the variables.
    """
    specs = [
        s if shape is None else TensorSpec(shape, s.dtype)
        for s, shape in zip(variables.specs, declared, strict=True)
    ]
    for name, first, spec in zip(variables.names, variables.specs, specs, strict=True):
        if not covers(spec.shape, first.shape):
            raise ShapeError(
                f"{who}: the loop variable {name} starts as {first}, "
                f"which the shape invariant {spec.shape} does not cover",
                remedy="declare None for each size that changes",
            )
    while True:
        graph = FuncGraph(f"{who}_body", outer=outer)
        arguments = [*zip(argument_names(variables.names), specs, strict=True), *more]
        extra: list[Any] = []

        def body(*tensors: GraphTensor, graph: FuncGraph = graph, extra: list[Any] = extra) -> Any:
            found, rest = step(graph, list(tensors))
            extra.append(rest)
            return found

        found = trace(graph, body, [s for _, s in arguments], [n for n, _ in arguments])
        said = f"{who}: what the body returns does not match the loop variables"
        leaves = same_structure(variables.structure, found, said)
        outputs: list[GraphTensor] = []
        for leaf, expected, name in zip(
            leaves, flatten(variables.structure), variables.all_names, strict=True
        ):
            if (leaf is None) != (expected is None):
                raise InvalidArgumentError(
                    f"{said}: {name} is None in one of the two, and a tensor in the other"
                )
            if leaf is not None:
                place = variables.names[len(outputs)]
                dtype = specs[len(outputs)].dtype
                outputs.append(as_output(graph, leaf, dtype, f"{who}: the loop variable {place}"))
        found_specs = [
            matched(who, name, spec, y.spec, shape is not None)
            for name, spec, y, shape in zip(variables.names, specs, outputs, declared, strict=True)
        ]
        if found_specs == specs:
            return TracedBody(graph, specs, outputs, extra[0])
        specs = found_specs
