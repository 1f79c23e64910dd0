"""Collectives for programs: all_reduce, all_gather, reduce_scatter, broadcast, barrier.

Each process of a group calls the same ones in the same order, eagerly or in a graph, with values of
its own; gradients are those of the sum of the losses of all processes. Before values are exchanged
the processes compare what they are about to do, so that a disagreement is one error on each of
them, after which the group can be used as before.

Source: the definitions are those of the MPI standard 4.1, chapter 6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import (
    DENSE,
    FLOATING,
    NUMERIC,
    REAL,
    Operation,
    OpView,
    Tensor,
    TensorSpec,
    int32,
)
from laminar.engine.ops.array.axes import expand_dims
from laminar.engine.ops.array.index import get_item
from laminar.engine.ops.array.join import concat
from laminar.engine.ops.core.basic import zeros_like
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.core.effects import perform
from laminar.engine.ops.core.op_def import Grads
from laminar.engine.ops.core.registry import define, no_gradient
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import equal
from laminar.engine.ops.math.reduce import reduce_prod
from laminar.typing import TensorLike

from .group import Group
from .mpi import world

_TYPES: Final = {"sum": NUMERIC, "mean": FLOATING, "prod": NUMERIC, "max": REAL, "min": REAL}
_COMBINED: Final[dict[str, Callable[..., Any]]] = {"prod": np.prod, "max": np.max, "min": np.min}


def _agree(group: Group, call: str) -> None:
    """InvalidArgumentError, on each process, unless all are about to do the same."""
    calls = [text.decode() for text in group.gather(call.encode())]
    if len(set(calls)) > 1:
        told = "; ".join(f"worker {rank}: {text}" for rank, text in enumerate(calls))
        raise InvalidArgumentError(
            f"the workers do not call the same collective with values of one form: {told}",
            remedy="call the same collectives in the same order on all of them",
        )


def _form(x: Any) -> str:
    return f"{x.dtype}{list(x.shape)}"


@define("AllReduce", dtypes={"x": NUMERIC}, stateful=True)
def _all_reduce(x: TensorSpec, *, group: Group, how: str) -> TensorSpec:
    """The sum, mean, product, maximum or minimum of the values of all processes."""
    return x


@_all_reduce.effect
def _all_reduce_kernel(context: Any, x: Any, *, group: Group, how: str) -> Any:
    _agree(group, f"all_reduce {how} of {_form(x)}")
    if how in ("sum", "mean"):
        (total,) = group.sum([x])
        return total if how == "sum" else (total / group.size).astype(x.dtype, copy=False)
    every = group.gather_rows(x[None], [1] * group.size)
    return _COMBINED[how](every, axis=0).astype(x.dtype, copy=False)


@_all_reduce.grad
def _all_reduce_grad(op: OpView, dy: Tensor) -> Grads:
    group, how = op.attrs["group"], op.attrs["how"]
    if how in ("sum", "mean"):
        return (_all_reduce(dy, group=group, how=how),)
    total = _all_reduce(dy, group=group, how="sum")
    if how == "prod":  # the others' product: y / x has no value where x is 0
        every, _ = _all_gather.many(expand_dims(op.inputs[0], 0), group=group)
        others = [get_item(every, slice(group.rank)), get_item(every, slice(group.rank + 1, None))]
        return (total * reduce_prod(concat(others), axis=0),)
    # The processes that have the extreme value share its gradient.
    has = cast(equal(op.inputs[0], op.outputs[0]), dy.dtype)
    return (total * has / _all_reduce(has, group=group, how="sum"),)


@define("AllGather", dtypes={"x": DENSE}, stateful=True)
def _all_gather(x: TensorSpec, *, group: Group) -> tuple[TensorSpec, TensorSpec]:
    """The rows of all processes, those of process 0 first; and how many each has."""
    if x.shape.rank == 0:
        raise ShapeError(f"AllGather: expected rows, got {x}, which has no axis")
    shape = None if x.shape.rank is None else (None, *x.shape[1:])
    return TensorSpec(shape, x.dtype), TensorSpec((group.size,), int32)


@_all_gather.effect
def _all_gather_kernel(context: Any, x: Any, *, group: Group) -> Any:
    _agree(group, f"all_gather of {x.dtype} rows {list(x.shape[1:])}")
    counts = [int.from_bytes(n, "little") for n in group.exchange(len(x).to_bytes(8, "little"))]
    return group.gather_rows(x, counts), np.array(counts, np.int32)


@_all_gather.grad
def _all_gather_grad(op: OpView, dy: Tensor, _: Tensor | None) -> Grads:
    group = op.attrs["group"]
    total = _all_reduce(dy, group=group, how="sum")
    counts = op.outputs[1]
    begin = convert_to_tensor(0, int32)
    for rank in range(group.rank):
        begin = begin + get_item(counts, rank)
    return (get_item(total, slice(begin, begin + get_item(counts, group.rank))),)


@define("BroadcastFrom", dtypes={"x": DENSE}, stateful=True)
def _broadcast(x: TensorSpec, *, group: Group, root: int) -> TensorSpec:
    """The value that process `root` has."""
    return x


@_broadcast.effect
def _broadcast_kernel(context: Any, x: Any, *, group: Group, root: int) -> Any:
    _agree(group, f"broadcast from {root} of {_form(x)}")
    found = np.array(x)
    group.broadcast([found], root)
    return found


@_broadcast.grad
def _broadcast_grad(op: OpView, dy: Tensor) -> Grads:
    group = op.attrs["group"]
    total = _all_reduce(dy, group=group, how="sum")
    return (total if group.rank == op.attrs["root"] else zeros_like(total),)


@define("WaitForWorkers", stateful=True)
def _wait(*, group: Group) -> tuple[()]:
    """Nothing, when all processes have come here."""
    return ()


@_wait.effect
def _wait_kernel(context: Any, *, group: Group) -> tuple[()]:
    _agree(group, "barrier")
    return ()


_wait.grad(no_gradient)


def all_reduce(x: TensorLike, op: str = "sum", *, group: Group | None = None) -> Tensor:
    """The sum of the values of all processes, with the same bits in each; or another reduction.

    Args:
        x: the value of this process, of one shape and element type everywhere.
        op: "sum", "mean" (of floats), "prod", "max" or "min" (of real numbers).
        group: the processes, by default those that were started together, as by `laminar launch` or
            `mpirun`; one that was started by itself is alone.

    Returns:
        A tensor of the shape and element type of `x`. Its gradient by `x` is the sum of the
        gradients on all processes (for "mean", their mean; where several have the greatest value,
        they share it).

    Raises:
        InvalidArgumentError: `op` is unknown; or the processes call different collectives, or with
            values of different forms, which each of them is told.
        DTypeError: the element type has no such reduction.
        AbortedError, DeadlineExceededError: another process failed, or does not come.

    Examples:
        >>> laminar.distribute.all_reduce([1.0, 2.0])  # of a process that is alone
        Tensor([1., 2.], shape=(2,), dtype=float32)
    """
    if op not in _TYPES:
        raise InvalidArgumentError(f"all_reduce: op must be one of {', '.join(_TYPES)}, got {op!r}")
    x = convert_to_tensor(x)
    if x.dtype not in _TYPES[op]:
        raise DTypeError(f"all_reduce: {x.dtype} has no {op}, got {x.spec}")
    return _all_reduce(x, group=group or world(), how=op)


def all_gather(x: TensorLike, *, group: Group | None = None) -> Tensor:
    """The rows of all processes one after the other, those of process 0 first.

    Args:
        x: rows of this process, (n, ...); numbers of rows may differ.
        group: see `all_reduce`.

    Returns:
        (sum of all n, ...), the same everywhere. The gradient by `x` is the sum over all processes
        of the gradients of its rows.

    Raises:
        ShapeError: `x` has no axis.
        InvalidArgumentError: the rows differ in shape or element type; and see `all_reduce`.

    Examples:
        >>> laminar.distribute.all_gather([[1, 2]])
        Tensor([[1, 2]], shape=(1, 2), dtype=int32)
    """
    rows, _ = _all_gather.many(convert_to_tensor(x), group=group or world())
    return rows


def reduce_scatter(x: TensorLike, op: str = "sum", *, group: Group | None = None) -> Tensor:
    """This process's share of the rows of `all_reduce(x, op)`: as many as every other has.

    Args:
        x: the value of this process, (n, ...), with n a multiple of the number of processes.
        op: see `all_reduce`.
        group: likewise.

    Returns:
        (n / processes, ...): process 0 has the first rows.

    Raises:
        ShapeError: n is unknown, or cannot be shared evenly; and see `all_reduce`.

    Examples:
        >>> laminar.distribute.reduce_scatter([1.0, 2.0])
        Tensor([1., 2.], shape=(2,), dtype=float32)
    """
    x, group = convert_to_tensor(x), group or world()
    n = x.shape[0] if x.shape.rank else None
    if n is None or n % group.size:
        raise ShapeError(
            f"reduce_scatter: {group.size} workers cannot share the rows of {x.spec} evenly"
        )
    own = n // group.size
    return get_item(all_reduce(x, op, group=group), slice(group.rank * own, (group.rank + 1) * own))


def broadcast(x: TensorLike, root: int = 0, *, group: Group | None = None) -> Tensor:
    """The value that process `root` has.

    Args:
        x: the value of this process, of one shape and element type everywhere.
        root: whose value all get.
        group: see `all_reduce`.

    Returns:
        A tensor like `x`. The gradient by the value of `root` is the sum of those of all processes,
        that by the others' is 0.

    Raises:
        InvalidArgumentError: there is no such process; and see `all_reduce`.

    Examples:
        >>> laminar.distribute.broadcast(3.0)
        Tensor(3., shape=(), dtype=float32)
    """
    group = group or world()
    if not 0 <= root < group.size:
        raise InvalidArgumentError(
            f"broadcast: root must be one of {group.size} workers, got {root!r}"
        )
    return _broadcast(convert_to_tensor(x), group=group, root=root)


def barrier(*, group: Group | None = None) -> Operation | None:
    """Return when all processes have called it.

    Args:
        group: see `all_reduce`.

    Returns:
        In the graph of a Session, the operation that waits; else None.

    Examples:
        >>> laminar.distribute.barrier()
    """
    return perform(_wait, [], {"group": group or world()})
