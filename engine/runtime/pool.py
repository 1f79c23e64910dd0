"""Threads that run operations side by side, for those who ask for them.

One operation at a time, each with all cores (the native code and the matrix library use threads of
their own), is the fastest for most graphs, and the default. `_pool` is replaced as a whole under
`_lock`.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from ..errors import InvalidArgumentError
from ..late import later

_share_cores = later("laminar.engine.blas", "share_cores")

# What a step has of its own: threads, or none besides its own; None for those of the process.
InterOpThreads: TypeAlias = tuple[ThreadPoolExecutor | None] | None

_lock = threading.Lock()


def inter_op_threads(count: int) -> ThreadPoolExecutor | None:
    """Threads that let `count` operations run at a time; the one that runs the step is one of them.

    Raises:
        InvalidArgumentError: `count` is less than 1.
    """
    if count < 1:
        raise InvalidArgumentError(f"at least one operation must run at a time, got {count}")
    if count == 1:
        return None
    _share_cores()
    return ThreadPoolExecutor(count - 1, "laminar-inter-op")


_pool: list[ThreadPoolExecutor | None] = [None]


def set_inter_op_threads(count: int) -> None:
    """Say how many operations of one step may run at the same time, 1 by default.

    That holds for functions, and for sessions without threads of their own
    (`SessionConfig.inter_op_threads`). Whether iterations of loops overlap is settled when a
    function or a session first runs a step, by the number at that time.

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


def has_inter_op_threads() -> bool:
    """Whether a step without threads of its own may run several operations at a time."""
    return _pool[0] is not None
