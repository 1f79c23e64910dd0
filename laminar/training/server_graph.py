"""The graph of one worker of a training by parameter servers.

The model is called as it stands, with other values for its variables: weights are read from the
servers, what a call itself updates (moving averages, metrics of layers) and the states of random
generators are fed, and what they become is fetched. The optimizer is a copy whose variables are
those on the servers, so its updates are computed there.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laminar import ops
from laminar.distribute.gradient_sums import (
    accumulator_for,
    held_back,
    operation,
    parts_of,
    taken_means,
)
from laminar.engine import (
    Variable,
    control_dependencies,
    gradients,
    group,
    placeholder,
)
from laminar.engine.functions import converted_in_graph
from laminar.engine.graph import Operation, TensorSpec
from laminar.engine.ops.state.variable_scatter import raise_number
from laminar.engine.state import StatelessScope
from laminar.engine.state.update_placement import beside
from laminar.layers.masking import get_mask
from laminar.losses.batch_part import computed_on
from laminar.tree import flatten, map_structure

from .data import unpack_x_y_sample_weight


@dataclass
class ModelParts:
    """What the graphs of all workers are built from.

    Attributes:
        model: the model.
        name: of the training, by which all graphs mean the same variables.
        weights: its variables that servers keep.
        slots: those of the optimizer that they keep; none where nothing is trained.
        state: what else a call may read or update: it is fed where it is used.
        seeds: the states of random generators.
        has_metrics: whether somebody asks for the outputs.
    """

    model: Any
    name: str
    weights: list[Variable]
    slots: list[Variable]
    state: list[Variable]
    seeds: list[Variable]
    has_metrics: bool


@dataclass
class Fed:
    """A variable of the model whose value is fed: `before` is where, `after` what it becomes."""

    variable: Variable
    before: Any
    after: Any


class ShareOfBatch:
    """A share of the examples of a batch; see losses/batch_part.py.

    Attributes:
        fraction: is fed with the part of the examples that the share has.
        inverse: is fed with its inverse, 0 for a share of none.
        asked: for each sum that losses divide by, that over the share, and where the sum over the
            whole batch is fed.
    """

    def __init__(self) -> None:
        self.fraction = placeholder("float32", [])
        self.inverse = placeholder("float32", [])
        self.asked: list[tuple[Any, Any]] = []

    def stands_for(self, total: Any) -> Any:
        """What has the sum `total` over these examples as its share of the mean."""
        return total * ops.cast(self.inverse, total.dtype)

    def shared(self, total: Any) -> Any:
        """This part of the sum over the whole batch; `total` is that over these examples."""
        whole = placeholder(total.dtype, total.shape)
        self.asked.append((total, whole))
        return whole * ops.cast(self.fraction, total.dtype)


@dataclass
class Sums:
    """The gradients of the shares of a batch.

    Attributes:
        step: is fed with the number of the step.
        gives: for each share, what adds its gradients to the sums.
        apply: takes the means, applies them, and counts the step.
        done: how many steps have been done; `counts` how many shares have come.
        reset: has the sums begin at the step.
    """

    step: Any
    gives: list[Operation]
    apply: Operation
    done: Any
    counts: list[Any]
    reset: Operation


@dataclass
class Once:
    """An update that is marked, so that it is made once.

    Attributes:
        slot: is fed with whose it is; one update of a slot is made after the other.
        number: is fed with a number of its own, above those before it.
        begin: has all slots go on above the number.
        update: applies the gradients; AlreadyExists if that was done for the slot's number, or for
            a later one.
    """

    slot: Any
    number: Any
    begin: Operation
    update: Operation


@dataclass
class WorkerGraph:
    """What a worker runs.

    Attributes:
        batch: placeholders for a batch.
        seeds: placeholders for the states of random generators.
        share: what of the batch it computes, where that is a share of it.
        fed: variables that are fed and fetched, and those that are read only.
        found: what is fetched: the loss, the outputs, their masks, what layers report.
        masked: for each output whether it has a mask.
        is_by_example: whether the loss has a value for each example.
        reporters: the numbers of the layers that report, and under which names.
        pushes: for each variable on a server, where its value is fed, and what assigns it.
        values: what reads them.
        once: the update of asynchronous training; `sums`: that of synchronous training.
    """

    batch: Any
    seeds: list[Any]
    share: ShareOfBatch | None
    fed: list[Fed]
    found: dict[str, Any]
    masked: list[bool]
    is_by_example: bool
    reporters: list[tuple[int, str]]
    pushes: list[tuple[Any, Operation]]
    values: list[Any]
    once: Once | None = None
    sums: Sums | None = None

    @property
    def fetches(self) -> Any:
        """What each step fetches."""
        return self.found, [f.after for f in self.fed if f.after is not None]


def build_worker(
    parts: ModelParts, spec: Any, *, training: bool, shares: int, slots: int
) -> WorkerGraph:
    """Build a worker's graph in the graph, and under the device rule, of the scope.

    Args:
        parts: of the training.
        spec: the structure of a batch, with a `TensorSpec` for each tensor.
        training: whether it trains, or tests.
        shares: into how many shares a batch is divided; 0 for asynchronous updates.
        slots: how many asynchronous updates there are at a time.
    """
    weights = [_mirror(f"{parts.name}/{i}", v) for i, v in enumerate(parts.weights)]
    served = {id(v): m for v, m in zip(parts.weights, weights, strict=True)}
    mirrors = list(weights)
    if training:
        mirrors += _mirror_slots(parts, served)
    batch = map_structure(_placeholder, spec)
    share = ShareOfBatch() if shares else None
    seeds = [placeholder(v.dtype, v.shape) for v in parts.seeds]
    state = [placeholder(v.stored_dtype, v.shape) for v in parts.state]
    held = [
        *zip(parts.weights, [m.value for m in weights], strict=True),
        *zip(parts.state, state, strict=True),
        *zip(parts.seeds, seeds, strict=True),
    ]
    optimizer = None
    if training:  # of variables it is given those of the graph, so it copies none
        kept = zip([*parts.weights, *parts.slots], mirrors, strict=True)
        optimizer = copy.deepcopy(parts.model.optimizer, {id(v): m for v, m in kept})
    with StatelessScope(held) as scope:
        with computed_on(share):
            call = _called(parts, batch, optimizer, training=training)
        fed = list(_fed([*parts.weights, *parts.state], held, scope))
    pushes = []
    for mirror in mirrors:
        with beside(mirror):
            value = placeholder(mirror.dtype, mirror.shape)
            pushes.append((value, operation(mirror.assign(value))))
    values = [m.value for m in mirrors]
    made = WorkerGraph(
        batch,
        seeds,
        share,
        fed,
        call.found,
        call.masked,
        call.is_by_example,
        call.reporters,
        pushes,
        values,
    )
    if training:
        variables = [served[id(v)] for v in parts.model.trainable_weights]
        loss = ops.sum(call.scaled)  # of a loss for each example, all of them
        if share is not None:
            loss = share.stands_for(loss) if call.is_by_example else loss
            loss = loss * (share.fraction * shares)
        pairs = [
            (g, v)
            for g, v in zip(gradients(loss, variables), variables, strict=True)
            if g is not None
        ]
        if shares:
            made.sums = _sums(parts.name, pairs, optimizer, shares)
        else:
            made.once = _once(parts.name, pairs, optimizer, slots)
    return made


def _mirror(name: str, variable: Variable) -> Variable:
    """A variable of the graph for one of the model, or of its optimizer."""
    made = Variable(
        "zeros",
        shape=variable.shape,
        dtype=variable.stored_dtype,
        trainable=variable.trainable,
        autocast=False,
        name=name,
    )
    made.path = variable.path
    made.constraint = variable.constraint
    made.overwrite_with_gradient = variable.overwrite_with_gradient
    return made


def _mirror_slots(parts: ModelParts, served: dict[int, Variable]) -> Iterator[Variable]:
    """The optimizer's variables; slots where that is which they belong to."""
    owners = {
        id(slot): served[owner]
        for optimizer in _optimizers(parts.model.optimizer)
        for owner, slots in optimizer._laminar_slots_beside.items()
        if owner in served
        for slot in slots
    }
    for i, v in enumerate(parts.slots):
        name = f"{parts.name}/optimizer/{i}"
        if id(v) in owners:
            with beside(owners[id(v)]):
                yield _mirror(name, v)
        else:
            yield _mirror(name, v)


def _optimizers(optimizer: Any) -> Iterator[Any]:
    """An optimizer, and those inside of it."""
    yield optimizer
    inner = getattr(optimizer, "inner_optimizer", None)
    for part in [
        *([inner] if inner is not None else []),
        *getattr(optimizer, "_laminar_parts", ()),
    ]:
        yield from _optimizers(part)


def _placeholder(spec: TensorSpec | None) -> Any:
    return None if spec is None else placeholder(spec.dtype, spec.shape)


@dataclass
class _Call:
    """What comes of a batch: see `WorkerGraph`; and the loss as the optimizer wants it scaled."""

    found: dict[str, Any]
    masked: list[bool]
    reporters: list[tuple[int, str]]
    scaled: Any

    @property
    def is_by_example(self) -> bool:
        """Whether the loss has a value for each example, not one for all."""
        return bool(self.scaled.shape.rank)


def _called(parts: ModelParts, batch: Any, optimizer: Any, *, training: bool) -> _Call:
    model = parts.model
    reports: list[tuple[int, str, Any]] = []

    def call(given: Any) -> Any:
        x, y, sample_weight = unpack_x_y_sample_weight(given)
        y_pred = model(x, training=training)
        loss = model.compute_loss(x, y, y_pred, sample_weight, training)
        for i, layer in enumerate(model._laminar_flatten_layers()):
            reports.extend((i, name, ops.mean(v)) for name, v in layer._laminar_reports)
        return y_pred, loss

    try:
        y_pred, loss = converted_in_graph(call)(batch)
    finally:
        model._clear_losses()  # symbols of the graph
    outputs = y_pred if parts.has_metrics else None
    masks = [get_mask(y) for y in flatten(outputs)]
    found = {
        "loss": loss,
        "outputs": [] if outputs is None else outputs,
        "masks": [mask for mask in masks if mask is not None],
        "reports": [value for _, _, value in reports],
    }
    return _Call(
        found,
        [mask is not None for mask in masks],
        [(i, name) for i, name, _ in reports],
        loss if optimizer is None else optimizer.scale_loss(loss),
    )


def _fed(
    variables: Sequence[Variable], held: Sequence[tuple[Variable, Any]], scope: StatelessScope
) -> Iterator[Fed]:
    """What must be fed: what a call has updated, and what no server keeps but it reads."""
    given: dict[int, Any] = {id(v): value for v, value in held}
    for v in variables:
        before: Any = given[id(v)]
        after: Any = scope.get_current_value(v)
        if after is not before:
            yield Fed(v, before, after)
        elif before.op.type == "Placeholder" and before.graph.consumers_of(before):
            yield Fed(v, before, None)


def _sums(name: str, pairs: Sequence[tuple[Any, Variable]], optimizer: Any, shares: int) -> Sums:
    step = placeholder("int64", [])
    done = Variable(np.int64(0), trainable=False, name=f"{name}/done")
    sums = [accumulator_for(f"{name}/sum", g, v) for g, v in pairs]
    gives = [
        group(
            *(
                operation(a.apply_grad(*parts_of(g), step, replica=r))
                for a, (g, _) in zip(sums, pairs, strict=True)
            )
        )
        for r in range(shares)
    ]
    variables = [v for _, v in pairs]
    means = taken_means(sums, variables, shares)
    apply = optimizer.apply_gradients(zip(means, variables, strict=True), global_step=done)
    reset = group(*(a.reset(step) for a in sums), done.assign(step))
    return Sums(step, gives, apply, done.value, [a.num_accumulated() for a in sums], reset)


def _once(name: str, pairs: Sequence[tuple[Any, Variable]], optimizer: Any, slots: int) -> Once:
    """The update: once its gradients are where the variables are, the number is marked.

    What follows needs no gradient of the worker any more, and nothing of it comes before.
    """
    slot, number = placeholder("int64", []), placeholder("int64", [])
    marks = Variable(np.full(slots, -1, np.int64), trainable=False, name=f"{name}/marks")
    variables = [v for _, v in pairs]
    # (values, rows) of slices, as IndexedSlices takes them
    leaves = [parts_of(g)[::-1] for g, _ in pairs]
    there = [parts_of(g)[::-1] for g in held_back(leaves, variables, ())]
    with control_dependencies([leaf for found in there for leaf in found]), beside(marks):
        marked = operation(raise_number(marks.handle, slot, number, dtype="int64"))
    ready = held_back(there, variables, [marked])
    update = optimizer.apply_gradients(zip(ready, variables, strict=True))
    with beside(marks):
        begin = operation(marks.assign(ops.broadcast_to(number, (slots,))))
    return Once(slot, number, begin, group(update, marked))


def specs_of(batch: Any) -> Any:
    """The structure of batches like this one, of any number of examples."""
    return map_structure(
        lambda x: None if x is None else TensorSpec((None, *x.shape[1:]), x.dtype), batch
    )
