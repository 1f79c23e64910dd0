"""Conditions and loops as operations whose attributes are graphs: Case, While, Scan.

Their first input decides (which branch, at most how many iterations, how many iterations); the
others are passed to the graphs, which take nothing else from outside. Outputs that nobody needs are
not kept: a kernel is made for each plan, by the rule's `prepare`.

Source: "Implementation of Control Flow in TensorFlow", 2017, and Yu et al., "Dynamic Control Flow
    in Large-Scale Machine Learning", 2018, arXiv:1805.01772, for what gradients keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from ...errors import InternalError, ShapeError
from ...graph import GraphTensor, Operation, TensorShape, TensorSpec, as_dtype, int32, resource
from ...graph.operation import GraphBody
from ...late import later
from ..core.dispatch import as_array
from ..core.op_def import OpDef, PlanOptions
from ..core.registry import define, no_gradient

Run = Callable[[Any, Sequence[Any]], list[Any]]
Kernel = Callable[..., Any]


class Body(GraphBody, Protocol):
    """A graph as an attribute: a branch, a condition, or the body of a loop."""

    @property
    def input_specs(self) -> Sequence[TensorSpec]:
        """What it takes."""

    @property
    def output_specs(self) -> Sequence[TensorSpec | None]:
        """What it gives; None for an output of another branch, which this one does not have."""

    def bind(self, outputs: Sequence[int], options: PlanOptions) -> Run:
        """A function `(context, arrays)` that gives the arrays of some of its outputs."""

    def inputs_for(self, outputs: Sequence[int]) -> set[int]:
        """The numbers of the inputs that some outputs, and the effects, depend on."""

    def operations_for(self, outputs: Sequence[GraphTensor]) -> list[Operation]:
        """What computes some of its tensors, in order."""

    def rebuilt(
        self,
        inputs: Sequence[GraphTensor],
        outputs: Sequence[GraphTensor | None],
        effects: Sequence[Operation],
    ) -> Body:
        """The same with other operations, of a graph that was made of its own."""


class Ragged(list[Any]):
    """Values of the iterations of a loop, by their number, whose shapes differ.

    Gradients of the loop take them one by one; they are no array.
    """

    def __getattr__(self, name: str) -> NoReturn:
        shapes = ", ".join(str(list(np.shape(v))) for v in self[:4])
        raise AttributeError(
            f"the iterations of a loop gave tensors of shapes {shapes}"
            f"{', ...' if len(self) > 4 else ''}, which make no one tensor"
        )


def stack_values(values: list[Any], spec: TensorSpec) -> Any:
    """The values of all iterations, along a new first axis; `spec` is that of one."""
    if not values:
        dims = () if spec.shape.rank is None else spec.shape
        return np.zeros((0, *(d or 0 for d in dims)), spec.dtype.numpy)
    if len({np.shape(v) for v in values}) > 1:
        return Ragged(values)
    return np.stack(values)


def relaxed(specs: Sequence[TensorSpec | None]) -> TensorSpec:
    """What specs of one dtype have in common; None stands for a value that does not matter."""
    known = [s for s in specs if s is not None]
    first = known[0]
    shapes = [s.shape for s in known]
    if any(s.rank != first.shape.rank or s.rank is None for s in shapes):
        return TensorSpec(None, first.dtype)
    if len(known) < len(specs):
        return TensorSpec([None] * len(first.shape), first.dtype)
    dims = [d[0] if len(set(d)) == 1 else None for d in zip(*shapes, strict=True)]
    return TensorSpec(dims, first.dtype)


def stacked_spec(spec: TensorSpec, size: int | None = None) -> TensorSpec:
    """The spec of `size` values along a new first axis."""
    return TensorSpec(None if spec.shape.rank is None else [size, *spec.shape], spec.dtype)


def _check_inputs(who: str, inputs: Sequence[TensorSpec], bodies: Sequence[Body]) -> None:
    for body in bodies:
        expected = body.input_specs
        if len(expected) != len(inputs) or any(
            e.dtype != given.dtype or not e.shape.is_compatible_with(given.shape)
            for e, given in zip(expected, inputs, strict=True)
        ):
            raise ShapeError(
                f"{who}: a graph takes ({', '.join(map(str, expected))}), "
                f"got ({', '.join(map(str, inputs))})"
            )


def _only(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _wanted(live: Sequence[bool], first: int = 0) -> list[int]:
    return [i for i, wanted in enumerate(live) if wanted and i >= first]


def needed_carries(
    body: Body, count: int, live: Sequence[bool], kept: Sequence[int], also: set[int]
) -> list[int]:
    """The variables of a loop that matter: those somebody takes, and what those depend on.

    The others, such as sums of gradients that nobody asked for, are not computed.
    """
    needed = {i for i in range(count) if live[i] or i in also}
    while True:
        more = {i for i in body.inputs_for([*needed, *kept]) if i < count} - needed
        if not more:
            return sorted(needed)
        needed |= more


# Case


def _case_rule(
    index: TensorSpec, *inputs: TensorSpec, branches: tuple[Body, ...]
) -> tuple[TensorSpec, ...]:
    """The outputs of branches[index], false and true standing for 0 and 1; else of the last."""
    _check_inputs("Case", inputs, branches)
    columns = zip(*(b.output_specs for b in branches), strict=True)
    return tuple(relaxed(column) for column in columns)


def _prepare_case(attrs: Mapping[str, Any], live: Sequence[bool], options: PlanOptions) -> Kernel:
    branches: Sequence[Body] = attrs["branches"]
    runs: list[tuple[Run, list[int]]] = []
    for branch in branches:
        specs = branch.output_specs
        places = [i for i in _wanted(live) if specs[i] is not None]
        runs.append((branch.bind(places, options), places))
    # What a branch does not have is never read; it has the right type all the same.
    blank: list[Any] = []
    for column in zip(*(b.output_specs for b in branches), strict=True):
        spec = relaxed(column)
        rank = spec.shape.rank or 0
        blank.append(np.zeros((0,) * rank, spec.dtype.numpy) if None in column else None)
    last = len(branches) - 1

    def run(context: Any, index: Any, *arrays: Any) -> Any:
        place = int(index)
        function, places = runs[place if 0 <= place < last else last]
        values = blank.copy()
        for i, value in zip(places, function(context, arrays), strict=True):
            values[i] = value
        return _only(values)

    return run


# While


def _while_rule(
    limit: TensorSpec,
    *inputs: TensorSpec,
    condition: Body,
    body: Body,
    variables: int,
    parallel_iterations: int = 1,
) -> tuple[TensorSpec, ...]:
    """Apply `body` to the first `variables` inputs while `condition` holds for them.

    Both graphs also take the inputs after those, which stay as they are. There are at most `limit`
    iterations, any number for a negative one. Outputs: the variables, the number of iterations, and
    of each further output of `body` the values of all iterations, stacked.
    """
    _check_inputs("While", inputs, (condition, body))
    kept = [s for s in body.output_specs[variables:] if s is not None]
    return (
        *body.input_specs[:variables],
        TensorSpec((), int32),
        *(stacked_spec(s) for s in kept),
    )


def _prepare_while(attrs: Mapping[str, Any], live: Sequence[bool], options: PlanOptions) -> Kernel:
    count: int = attrs["variables"]
    body: Body = attrs["body"]
    kept = [i - 1 for i in _wanted(live, count + 1)]  # outputs of the body
    condition: Body = attrs["condition"]
    carried = needed_carries(body, count, live, kept, condition.inputs_for([0]))
    test = condition.bind([0], options)
    step = body.bind([*carried, *kept], options)
    specs = [_spec_of(body, i) for i in kept]
    blank: list[Any] = [None] * (len(live) - count - 1)

    def run(context: Any, limit: Any, *arrays: Any) -> Any:
        most = int(limit)
        values, rest = list(arrays[:count]), arrays[count:]
        columns: list[list[Any]] = [[] for _ in kept]
        done = 0
        while done != most and test(context, (*values, *rest))[0]:
            found = step(context, (*values, *rest))
            for i, value in zip(carried, found, strict=False):
                values[i] = value
            for column, value in zip(columns, found[len(carried) :], strict=True):
                column.append(value)
            done += 1
            if context.cancelled is not None:
                raise context.cancelled
        stacks = blank.copy()
        for i, column, spec in zip(kept, columns, specs, strict=True):
            stacks[i - count] = stack_values(column, spec)
        return _only([*values, np.asarray(done, np.int32), *stacks])

    return run


# Scan


def _scan_rule(
    length: TensorSpec,
    *inputs: TensorSpec,
    body: Body,
    carries: int,
    slices: int,
    reverse: bool = False,
    size: int | None = None,
) -> tuple[TensorSpec, ...]:
    """`length` times: (carry, y) = body(carry, x, constants), where x is the next slice of xs.

    The inputs are the first values of the `carries`, then the `slices` xs, which are sliced along
    their first axis, then what stays as it is. Outputs: the last carries, and the stacked y, both
    in the order of xs, which is iterated over from the end if `reverse`. `size` is `length` if it
    is known.
    """
    item = [
        TensorSpec(None if s.shape.rank is None else s.shape[1:], s.dtype)
        for s in inputs[carries : carries + slices]
    ]
    taken = [*inputs[:carries], *item, *inputs[carries + slices :]]
    _check_inputs("Scan", taken, (body,))
    ys = [s for s in body.output_specs[carries:] if s is not None]
    return (*body.input_specs[:carries], *(stacked_spec(s, size) for s in ys))


def _prepare_scan(attrs: Mapping[str, Any], live: Sequence[bool], options: PlanOptions) -> Kernel:
    carries, slices = attrs["carries"], attrs["slices"]
    body: Body = attrs["body"]
    reverse: bool = attrs["reverse"]
    kept = _wanted(live, carries)
    carried = needed_carries(body, carries, live, kept, set())
    step = body.bind([*carried, *kept], options)
    specs = [_spec_of(body, i) for i in kept]
    blank: list[Any] = [None] * (len(live) - carries)

    def run(context: Any, length: Any, *arrays: Any) -> Any:
        total = int(length)
        values = list(arrays[:carries])
        xs, rest = arrays[carries : carries + slices], arrays[carries + slices :]
        for x in xs:
            if len(x) != total:
                raise ShapeError(
                    f"Scan: there are {total} iterations, and {len(x)} slices to go through",
                    remedy="give sequences of one length",
                )
        columns: list[list[Any]] = [[None] * total for _ in kept]
        for i in range(total - 1, -1, -1) if reverse else range(total):
            found = step(context, (*values, *(as_array(x[i]) for x in xs), *rest))
            for k, value in zip(carried, found, strict=False):
                values[k] = value
            for column, value in zip(columns, found[len(carried) :], strict=True):
                column[i] = value
            if context.cancelled is not None:
                raise context.cancelled
        stacks = blank.copy()
        shapes: Sequence[TensorSpec] = specs
        if not total and kept and not body.effects:
            shapes = _sizes_of_one(step, context, (values, xs, rest), specs)
        for i, column, spec in zip(kept, columns, shapes, strict=True):
            stacks[i - carries] = stack_values(column, spec)
        return _only([*values, *stacks])

    return run


def _sizes_of_one(
    step: Run, context: Any, given: tuple[Sequence[Any], ...], specs: Sequence[TensorSpec]
) -> Sequence[TensorSpec]:
    """The specs of the y of one iteration where there is none: those of an iteration on zeros."""
    if all(spec.shape.is_fully_defined for spec in specs):
        return specs
    values, xs, rest = given
    try:
        zeros = [np.zeros(x.shape[1:], x.dtype) for x in xs]
        found = step(context, (*values, *zeros, *rest))[-len(specs) :]
    except Exception:  # it may not take zeros: the sizes stay unknown
        return specs
    return [TensorSpec(np.shape(y), spec.dtype) for y, spec in zip(found, specs, strict=True)]


def _spec_of(body: Body, output: int) -> TensorSpec:
    spec = body.output_specs[output]
    if spec is None:
        raise InternalError("a loop's body lacks an output")
    return spec


# The ops: each also as one that has effects besides those on its inputs


def _define(
    type: str, rule: Callable[..., Any], prepare: Callable[..., Kernel], wired: Callable[..., Any]
) -> tuple[OpDef, OpDef]:
    made = []
    for stateful in (False, True):
        op = define(f"Stateful{type}" if stateful else type, dtypes={}, stateful=stateful)(rule)
        op.prepare(prepare)
        op.effect(wired)
        made.append(op)
    return made[0], made[1]


def _all(count: int) -> tuple[bool, ...]:
    return (True,) * count


def _case_kernel(context: Any, index: Any, *arrays: Any, branches: tuple[Body, ...]) -> Any:
    live = _all(len(branches[0].output_specs))
    return _prepare_case({"branches": branches}, live, PlanOptions())(context, index, *arrays)


def _while_kernel(
    context: Any,
    limit: Any,
    *arrays: Any,
    condition: Body,
    body: Body,
    variables: int,
    parallel_iterations: int,
) -> Any:
    attrs = {"condition": condition, "body": body, "variables": variables}
    kernel = _prepare_while(attrs, _all(len(body.output_specs) + 1), PlanOptions())
    return kernel(context, limit, *arrays)


def _scan_kernel(
    context: Any,
    length: Any,
    *arrays: Any,
    body: Body,
    carries: int,
    slices: int,
    reverse: bool,
    size: int | None,
) -> Any:
    attrs = {"body": body, "carries": carries, "slices": slices, "reverse": reverse}
    kernel = _prepare_scan(attrs, _all(len(body.output_specs)), PlanOptions())
    return kernel(context, length, *arrays)


CASE = _define("Case", _case_rule, _prepare_case, _case_kernel)
WHILE = _define("While", _while_rule, _prepare_while, _while_kernel)
SCAN = _define("Scan", _scan_rule, _prepare_scan, _scan_kernel)

# Their gradients are graphs, which functions make.
for _op in CASE:
    _op.grad(later("laminar.engine.functions.condition_gradients", "condition_gradient"))
    _op.inner_rows(later("laminar.engine.functions.condition_gradients", "condition_rows"))
for _op in (*WHILE, *SCAN):
    _op.grad(later("laminar.engine.functions.loop_gradients", "loop_gradient"))
    _op.inner_rows(later("laminar.engine.functions.loop_gradients", "loop_rows"))


# What loops do with the values of their iterations, as operations of a loop written as dataflow


@define("StackNew")
def stack_new() -> TensorSpec:
    """A stack for the values of a loop's iterations."""
    return TensorSpec((), resource)


@stack_new.reference
def _stack_new_kernel(xp: Any) -> Any:
    return []


@define("StackPush", dtypes={"stack": frozenset({resource})}, same_dtype=False)
def stack_push(stack: TensorSpec, value: TensorSpec) -> TensorSpec:
    """The stack with one more value: the same one, which has no other owner."""
    return stack


@stack_push.reference
def _stack_push_kernel(xp: Any, stack: list[Any], value: Any) -> Any:
    stack.append(value)
    return stack


@define("StackValues", dtypes={"stack": frozenset({resource})}, same_dtype=False)
def stack_all(
    stack: TensorSpec, *, shape: TensorShape, dtype: str, reverse: bool = False
) -> TensorSpec:
    """The values of a stack along a new first axis, the last one first if `reverse`."""
    return stacked_spec(TensorSpec(shape, as_dtype(dtype)))


@stack_all.reference
def _stack_all_kernel(
    xp: Any, stack: list[Any], *, shape: TensorShape, dtype: str, reverse: bool
) -> Any:
    values = stack[::-1] if reverse else stack
    return stack_values(values, TensorSpec(shape, as_dtype(dtype)))


@define("StackItem", dtypes={})
def stack_item(values: TensorSpec, index: TensorSpec) -> TensorSpec:
    """The slice of `values` along the first axis."""
    shape = values.shape
    return TensorSpec(None if shape.rank is None else shape[1:], values.dtype)


@stack_item.reference
def _stack_item_kernel(xp: Any, values: Any, index: Any) -> Any:
    return values[int(index)]


for _op in (stack_new, stack_push, stack_all, stack_item):
    _op.grad(no_gradient)
