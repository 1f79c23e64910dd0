"""Threads that run operations side by side, for those who ask for them.

One operation at a time, each with all cores (the native code and the matrix library use threads of
their own), is the fastest for most graphs, and the default. `_pool` is replaced as a whole under
`_lock`.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from ..errors import InvalidArgumentError
from ..graph import GraphTensor, Operation
from ..ops.core.registry import definition_of
from ..ops.core.traits import Work

# What a step has of its own: threads, or none besides its own; None for those of the process.
InterOpThreads: TypeAlias = tuple[ThreadPoolExecutor | None] | None

# An operation on fewer elements than this is over before another thread has begun.
_FEW_ELEMENTS = 1 << 14

_lock = threading.Lock()


def inter_op_threads(count: int) -> ThreadPoolExecutor | None:
    """Threads that let `count` operations run at a time; the one that runs the step is one of them.

    Raises:
        InvalidArgumentError: `count` is less than 1.
    """
    if count < 1:
        raise InvalidArgumentError(f"at least one operation must run at a time, got {count}")
    return ThreadPoolExecutor(count - 1, "laminar-inter-op") if count > 1 else None


_pool: list[ThreadPoolExecutor | None] = [None]


def set_inter_op_threads(count: int) -> None:
    """Say how many operations of one step may run at the same time, 1 by default.

    That holds for functions, and for sessions without threads of their own
    (`SessionConfig.inter_op_threads`).

    Raises:
        InvalidArgumentError: `count` is less than 1.
    """
    made = inter_op_threads(count)
    with _lock:
        before, _pool[0] = _pool[0], made
    if before is not None:
        before.shutdown(wait=False)


def inter_op_pool(context: Any) -> ThreadPoolExecutor | None:
    """The threads besides the one that runs a step of `context`, None when there are none."""
    own: InterOpThreads = getattr(context, "inter_op", None)
    return _pool[0] if own is None else own[0]


def is_expensive(op: Operation) -> bool:
    """Whether running an operation in another thread can be worth the handing over."""
    definition = definition_of(op)
    if definition.traits.work is Work.NONE:
        return False
    if definition.scalar is None:
        return True
    return any(_elements(y) >= _FEW_ELEMENTS for y in op.outputs)


def _elements(tensor: GraphTensor) -> int:
    if tensor.shape.rank is None:
        return _FEW_ELEMENTS
    count = 1
    for d in tensor.shape:
        count *= 64 if d is None else d  # a batch, as a guess
    return count


def is_worth_threads(operations: Sequence[Operation], fed: Collection[int]) -> bool:
    """Whether at least two expensive operations do not wait for each other, roughly.

    That holds for two at the same depth, the depth of an operation being the largest number of
    expensive ones on a way to it. `operations` stand in an order in which they can run.
    """
    depth: dict[int, int] = {}
    seen: set[int] = set()
    for op in operations:
        before = [depth.get(x.op.id, 0) for x in op.inputs if id(x) not in fed]
        before += [depth.get(c.id, 0) for c in op.control_inputs]
        own = max(before, default=0)
        if is_expensive(op):
            if own in seen:
                return True
            seen.add(own)
            own += 1
        depth[op.id] = own
    return False
