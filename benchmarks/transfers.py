"""Tensors that one process gets from another: sizes, ways, and how fast they are to be."""

from __future__ import annotations

from typing import NamedTuple


class Way(NamedTuple):
    """How a tensor comes.

    Attributes:
        title: of the workload.
        num_bytes: of the tensor.
        shares_memory: whether the two processes know that they are on one host.
        goal_seconds: in which it is to come.
    """

    title: str
    num_bytes: int
    shares_memory: bool
    goal_seconds: float


KB, MB = 1 << 10, 1 << 20
WAYS = {
    "transfer-1kb": Way("1 KiB from another process, by TCP", KB, False, 250e-6),
    "transfer-1kb-host": Way("1 KiB from another process of the host", KB, True, 250e-6),
    "transfer-64mb": Way("64 MiB from another process, by TCP", 64 * MB, False, 64 * MB / 1e9),
    "transfer-64mb-host": Way(
        "64 MiB from another process of the host", 64 * MB, True, 64 * MB / 8e9
    ),
}
CALL = "transfer-call"
CALL_TITLE = "call of another process, 1 KiB each way, by TCP"
NAMES = (*WAYS, CALL)
ECHO = "benchmarks.Task/Echo"
