"""A model called by several processes, each on its rows of a batch, as if it were called on all.

What the others do (replicas.py) on the devices of one process happens here on all processes at
once: outputs are gathered, so that losses and metrics see the whole batch and are the same in each
process, and so are gradients, which are summed where they leave the rows of one process.

Weights that layers update become the mean over the processes, by their rows; what metrics of layers
add up is added up over all. Each process draws random numbers of its own, and its generators go on
as if it had been alone; other state is that of process 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from laminar import ops
from laminar.engine.graph import Graph, GraphTensor, Operation, Tensor
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.state import StatelessScope, Variable
from laminar.random.seeds import SeedGenerator, global_seed_generator
from laminar.tree import flatten

from .collectives.group import Group
from .collectives.ops import (
    COLLECTIVES,
    gather_rows_op,
    gathered_rows,
    of_first_worker,
    own_rows,
    replicated,
    summed,
)
from .replicas import alone, give_losses, joined, take_losses, with_rows_of


class WorkerShares:
    """The processes of a group, while a step is traced.

    Args:
        group: the processes.
        bucket_bytes: how many bytes of gradients are summed at once.
        counts: the numbers of rows of the processes, a tensor (processes,).
        share: the part of all rows that this process has, a scalar tensor.
        key: what tells this process's random numbers from those of others, uint32[4].
    """

    least = 1

    def __init__(
        self, group: Group, bucket_bytes: int, counts: Tensor, share: Tensor, key: Tensor
    ) -> None:
        self._group = group
        self._bucket_bytes = bucket_bytes
        self._counts = counts
        self._fraction = share
        self._key = key

    def call(
        self,
        layer: Any,
        first: GraphTensor,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        group, counts = self._group, self._counts
        trained = layer.trainable_weights
        weights = replicated([v.read_value() for v in trained], group, self._bucket_bytes)
        state = _State(layer)
        begun = [
            value + self._key if id(v) in state.seeds else value
            for v, value in zip(state.variables, state.before, strict=True)
        ]
        earlier = take_losses(layer)
        given = with_rows_of(first, (args, kwargs), lambda x: own_rows(x, counts, group))
        held = [*zip(trained, weights, strict=True), *zip(state.variables, begun, strict=True)]
        with StatelessScope(held) as scope:
            outputs = alone(call, *given)
        self._store(state, begun, [scope.get_current_value(v) for v in state.variables])
        give_losses(layer, earlier, [take_losses(layer)], lambda values: self._mean(values)[0])
        return joined(layer, [outputs], lambda parts: gathered_rows(parts[0], counts, group))

    def _mean(self, values: Sequence[Any]) -> list[Tensor]:
        """The mean of each over the processes, by their rows."""
        return summed([v * ops.cast(self._fraction, v.dtype) for v in values], self._group)

    def _store(self, state: _State, begun: Sequence[Any], after: Sequence[Any]) -> None:
        """Give the variables that a call has updated their values for the whole batch."""
        by_kind: dict[Any, list[tuple[Variable, Any, Any]]] = {}
        rows = zip(state.variables, state.before, begun, after, strict=True)
        for v, before, first, value in rows:
            if value is first:
                continue
            if id(v) in state.seeds:
                v.assign(value - self._key)
            else:
                kind = "metric" if id(v) in state.metrics else "weight"
                by_kind.setdefault((kind, v.dtype), []).append((v, before, value))
        for (kind, dtype), updated in by_kind.items():
            values = [value for _, _, value in updated]
            if kind == "metric":
                added = summed([y - x for _, x, y in updated], self._group)
                found = [x + d for (_, x, _), d in zip(updated, added, strict=True)]
            elif dtype.is_floating:
                found = self._mean(values)
            else:
                found = of_first_worker(values, self._group)
            for (v, _, _), value in zip(updated, found, strict=True):
                v.assign(value)


class _State:
    """What a call of a layer may update besides being trained.

    Attributes:
        variables: all of it; `before` are their values.
        seeds: the ids of those that are states of random generators; `metrics`: of those in which
            metrics add up.
    """

    def __init__(self, layer: Any) -> None:
        layers = layer._laminar_flatten_layers()
        generators: list[SeedGenerator] = [global_seed_generator()]
        generators += [s for part in layers for s in part._laminar_own_seeds]
        metrics = layer.metrics_variables
        trained = {id(v) for v in layer.trainable_weights}
        every = [*layer.variables, *metrics, *(s.state for s in generators)]
        self.seeds = {id(s.state) for s in generators}
        self.metrics = {id(v) for v in metrics}
        self.variables = list({id(v): v for v in every if id(v) not in trained}.values())
        self.before = [v.read_value() for v in self.variables]


def drop_unused(graph: Graph, results: Any) -> None:
    """Have a traced step tell the others only what it uses of their answers.

    Operations on all processes run though nothing takes their results, as all of them must; in one
    and the same graph everywhere, all can leave the same ones out.
    """
    uses: dict[int, list[Operation | None]] = {id(y): [None] for y in flatten(results)}
    for op in graph.operations:
        for x in op.inputs:
            uses.setdefault(id(x), []).append(op)
    _ask_one_for_sizes(graph, uses)
    for op in reversed(list(graph.operations)):
        if op.definition in COLLECTIVES and not any(uses.get(id(y)) for y in op.outputs):
            graph.effects.remove(op)  # type: ignore[attr-defined]  # of a function's graph
            for x in op.inputs:
                uses[id(x)].remove(op)
            for other in graph.operations:
                if op in other.control_inputs:
                    other.control_inputs.remove(op)
                    for before in op.control_inputs:
                        other.add_control_input(before)


def _ask_one_for_sizes(graph: Graph, uses: dict[int, list[Operation | None]]) -> None:
    """Have one of several gathered tensors say how many rows all have, not those used for no more.

    Args:
        graph: of the step.
        uses: by the id of a tensor, who takes it; it is kept.
    """
    gathered = [op for op in graph.operations if op.definition is gather_rows_op]
    for op in gathered:
        takers = uses.get(id(op.outputs[0]), [])
        if not takers or not all(map(_asks_for_rows, takers)):
            continue
        first = min(taker.id for taker in takers if taker is not None)
        for other in gathered:
            others = uses.get(id(other.outputs[0]), [])
            is_same = other.inputs[1] is op.inputs[1] and other is not op and other.id < first
            if is_same and not all(map(_asks_for_rows, others)):
                for taker in takers:
                    assert taker is not None, "it asks"
                    taker.inputs = (other.outputs[0],)
                others.extend(takers)
                takers.clear()
                break


def _asks_for_rows(taker: Operation | None) -> bool:
    return taker is not None and taker.definition is dim_of and taker.attrs["axis"] == 0
