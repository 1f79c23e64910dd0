"""What a graph computes together with those of other processes.

Every process runs the same graph, on rows of its own. `counts` says how many of the rows of a batch
each process has; one without any computes on a row that stands in for them, and counts for nothing.
The operations are stateful, so they keep the order in which they were written, on all processes.

A value is either whole (the same everywhere) or of one process. What enters a computation of one
process's rows goes through `replicated` and `own_rows`, what leaves it through `gathered_rows` and
`summed`: each of these has the gradient that makes gradients of whole values whole.

Source: the pairs are those of Shoeybi et al., "Megatron-LM: training multi-billion parameter
    language models using model parallelism", 2019, arXiv:1909.08053, section 3 (f and g); the
    buckets those of Li et al., "PyTorch Distributed: experiences on accelerating data parallel
    training", 2020, arXiv:2006.15704, section 3.2.3.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from laminar.engine.errors import DTypeError, ShapeError
from laminar.engine.graph import ANY, INTEGER, OpView, Tensor, TensorSpec, int64
from laminar.engine.ops.core.op_def import Grads
from laminar.engine.ops.core.registry import define, no_gradient
from laminar.engine.ops.core.traits import Traits

from .group import Group

_NUMBERS = {"counts": INTEGER}


def _rows_of(who: str, x: TensorSpec) -> TensorSpec:
    if x.shape.rank == 0:
        raise ShapeError(f"{who}: expected rows, got {x}, which has no axis")
    return TensorSpec(None if x.shape.rank is None else (None, *x.shape[1:]), x.dtype)


@define("OwnRows", dtypes={"x": ANY, **_NUMBERS}, same_dtype=False)
def _own_rows(x: TensorSpec, counts: TensorSpec, *, group: Group, stand_in: bool) -> TensorSpec:
    """The rows of `x` that this process has, of all; where it has none, one that stands in.

    That is the first row of all (`stand_in`), or zeros.
    """
    return _rows_of("OwnRows", x)


@_own_rows.effect
def _own_rows_kernel(context: Any, x: Any, counts: Any, *, group: Group, stand_in: bool) -> Any:
    before, own = int(counts[: group.rank].sum()), int(counts[group.rank])
    if own:
        return x[before : before + own]
    return x[:1] if stand_in else np.zeros((1, *x.shape[1:]), x.dtype)


@_own_rows.grad
def _own_rows_grad(op: OpView, dy: Tensor) -> Grads:
    return gather_rows_op(dy, op.inputs[1], group=op.attrs["group"]), None


@define("GatherRows", dtypes={"x": ANY, **_NUMBERS}, same_dtype=False, stateful=True)
def gather_rows_op(x: TensorSpec, counts: TensorSpec, *, group: Group) -> TensorSpec:
    """The rows of all processes, those of process 0 first; the row of one without any is not."""
    return _rows_of("GatherRows", x)


@gather_rows_op.effect
def _gather_rows_kernel(context: Any, x: Any, counts: Any, *, group: Group) -> Any:
    numbers = counts.tolist()
    own = numbers[group.rank]
    if len(x) != max(own, 1):
        raise ShapeError(
            f"GatherRows: this worker has {own} examples, and {len(x)} rows were computed",
            remedy="give one row for each row of the batch",
        )
    return group.gather_rows(x[:own], numbers)


@gather_rows_op.grad
def _gather_rows_grad(op: OpView, dy: Tensor) -> Grads:
    return _own_rows(dy, op.inputs[1], group=op.attrs["group"], stand_in=False), None


@define("SumOverWorkers", dtypes={"xs": ANY}, stateful=True)
def _sum_over_workers(*xs: TensorSpec, group: Group) -> tuple[TensorSpec, ...]:
    """The sum of each over all processes; the same bits in each."""
    return xs


@_sum_over_workers.effect
def _sum_kernel(context: Any, *xs: Any, group: Group) -> Any:
    found = group.sum(xs)
    return found[0] if len(found) == 1 else found


@_sum_over_workers.grad
def _sum_grad(op: OpView, *dys: Tensor | None) -> Grads:
    return dys  # those of whole values are whole


# What waits for a sum that has been begun, by its number; numbers are those of this process.
_begun: dict[int, Callable[[], list[Any]]] = {}
_numbers = itertools.count()


@define("BeginSum", dtypes={"xs": ANY}, stateful=True, traits=Traits(begins=True))
def _begin_sum(*xs: TensorSpec, group: Group) -> TensorSpec:
    """The number of a sum over all processes, which goes on beside what follows."""
    return TensorSpec((), int64)


@_begin_sum.effect
def _begin_kernel(context: Any, *xs: Any, group: Group) -> Any:
    number = next(_numbers)
    _begun[number] = group.begin_sum(xs)
    return np.int64(number)


_begin_sum.grad(no_gradient)


@define("EndSum", dtypes={"number": {int64}, "xs": ANY}, same_dtype=False, stateful=True)
def _end_sum(number: TensorSpec, *xs: TensorSpec, group: Group) -> tuple[TensorSpec, ...]:
    """The sums of `xs` that BeginSum has begun; the same bits in each process."""
    return xs


@_end_sum.effect
def _end_kernel(context: Any, number: Any, *xs: Any, group: Group) -> Any:
    found = _begun.pop(int(number))()
    return found[0] if len(found) == 1 else found


@_end_sum.grad
def _end_grad(op: OpView, *dys: Tensor | None) -> Grads:
    return None, *dys  # those of whole values are whole


@define("OfFirstWorker", dtypes={"xs": ANY}, same_dtype=False, stateful=True)
def _of_first_worker(*xs: TensorSpec, group: Group) -> tuple[TensorSpec, ...]:
    """The values that process 0 has."""
    return xs


@_of_first_worker.effect
def _of_first_kernel(context: Any, *xs: Any, group: Group) -> Any:
    found = [np.array(x) for x in xs]
    group.broadcast(found)
    return found[0] if len(found) == 1 else found


_of_first_worker.grad(no_gradient)


@define("Replicated", dtypes={"xs": ANY}, same_dtype=False)
def _replicated(*xs: TensorSpec, group: Group, bucket_bytes: int) -> tuple[TensorSpec, ...]:
    """The inputs, as they are; of what each process makes of them, the gradients are summed."""
    return xs


@_replicated.reference
def _replicated_kernel(xp: Any, *xs: Any, group: Group, bucket_bytes: int) -> Any:
    return xs[0] if len(xs) == 1 else xs


@_replicated.grad
def _replicated_grad(op: OpView, *dys: Tensor | None) -> Grads:
    group, bucket_bytes = op.attrs["group"], op.attrs["bucket_bytes"]
    found: list[Tensor | None] = [None] * len(dys)
    places = [i for i in range(len(dys)) if dys[i] is not None]
    places.sort(key=lambda i: _made_at(dys[i], i))
    specs = [op.inputs[i].spec for i in places]
    given = [[places[k] for k in bucket] for bucket in buckets(specs, bucket_bytes)]
    if len(given) > 1:  # they go on while what the others are of is computed
        begun = [_begin_sum(*(dys[i] for i in part), group=group) for part in given]
        sums = [
            _end_sum.many(number, *(dys[i] for i in part), group=group)
            for number, part in zip(begun, given, strict=True)
        ]
    else:
        sums = [_sum_over_workers.many(*(dys[i] for i in p), group=group) for p in given]
    for part, totals in zip(given, sums, strict=True):
        for i, total in zip(part, totals, strict=True):
            found[i] = total
    return found


def _made_at(dy: Any, place: int) -> tuple[int, int]:
    """What orders gradients as they are there: what is used last has its own first."""
    made = getattr(dy, "op", None)
    return (0 if made is None else made.id, -place)


def buckets(specs: Sequence[TensorSpec], most_bytes: int) -> list[list[int]]:
    """Tensors of one element type together, in order, up to so many bytes; one may be larger.

    Args:
        specs: of the tensors.
        most_bytes: of the tensors of a bucket.
    """
    found: list[list[int]] = []
    room: dict[Any, int] = {}  # by element type, what is left in its last bucket
    last: dict[Any, list[int]] = {}
    for i, spec in enumerate(specs):
        sizes = [1 if n is None else n for n in spec.shape]
        needed = math.prod(sizes) * spec.dtype.numpy.itemsize
        if spec.dtype not in last or needed > room[spec.dtype]:
            last[spec.dtype] = []
            room[spec.dtype] = most_bytes
            found.append(last[spec.dtype])
        last[spec.dtype].append(i)
        room[spec.dtype] -= needed
    return found


def own_rows(x: Tensor, counts: Tensor, group: Group) -> Tensor:
    """The rows of `x`, which is whole, that this process computes with.

    What `gathered_rows` has put together is taken as it was.
    """
    made = getattr(x, "op", None)
    if made is not None and made.definition is gather_rows_op and made.inputs[1] is counts:
        rows: Tensor = made.inputs[0]
        return rows
    return _own_rows(x, counts, group=group, stand_in=True)


def gathered_rows(x: Tensor, counts: Tensor, group: Group) -> Tensor:
    """The rows of all processes."""
    return gather_rows_op(x, counts, group=group)


def summed(xs: Sequence[Tensor], group: Group) -> list[Tensor]:
    """The sum of each over all processes.

    Raises:
        DTypeError: they are of several element types.
    """
    if len({x.dtype for x in xs}) > 1:
        raise DTypeError(f"summed: expected one element type, got {', '.join(map(str, xs))}")
    return list(_sum_over_workers.many(*xs, group=group)) if xs else []


def of_first_worker(xs: Sequence[Tensor], group: Group) -> list[Tensor]:
    """The values of process 0."""
    return list(_of_first_worker.many(*xs, group=group)) if xs else []


def replicated(xs: Sequence[Tensor], group: Group, bucket_bytes: int) -> list[Tensor]:
    """Whole values for a computation of this process's rows, as they are.

    Args:
        xs: the values.
        group: the processes.
        bucket_bytes: how many bytes of gradients are summed at once.
    """
    if not xs:
        return []
    return list(_replicated.many(*xs, group=group, bucket_bytes=bucket_bytes))


COLLECTIVES = (gather_rows_op, _sum_over_workers, _begin_sum, _end_sum, _of_first_worker)
# What gives a process values of its own, and what makes whole ones of these.
enters_rows = (_own_rows, _replicated)
leaves_rows = (gather_rows_op, _sum_over_workers, _end_sum)
