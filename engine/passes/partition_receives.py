"""Hold receives back until shortly before they are needed, so that what arrives waits less.

Left alone, every Recv of a part starts with the step, and all that is sent lies in the receiver's
memory until its turn comes. From the times of a simulated step, each Recv of a large tensor gets a
control edge from the last operation of its part that is done when the transfer must begin for the
first user to start in time. So the simulated step gets no longer; and since every edge leads
from an operation to one that starts later, no cycle can arise. Where transfers keep one order (see
`partition`), the edge comes from an operation that waits for none of the transfers after this one.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, section 5.2.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping

from ..graph import GraphTensor, Operation
from ..ops.core.transfer import from_upper_half
from .order import in_order
from .partition import Part

LEAST_BYTES = 1 << 16  # what is smaller is not worth an edge
LEAST_SECONDS = 1e-3  # nor is what would be held back for less


def delay_receives(
    parts: Iterable[Part],
    times: Mapping[int, tuple[float, float]],
    transfer_seconds: Callable[[GraphTensor, str], float],
    nbytes: Callable[[GraphTensor], int],
    *,
    ordered: bool = False,
) -> list[tuple[Operation, Operation]]:
    """Add the control edges.

    Args:
        parts: the parts of a graph.
        times: of the operations of the whole graph by id, (start, finish) in a simulated step.
        transfer_seconds: how long a tensor takes to a location.
        nbytes: the size of a tensor.
        ordered: whether transfers keep one order across all parts.

    Returns:
        The edges, as (operation, the Recv that waits for it).
    """
    edges: list[tuple[Operation, Operation]] = []
    for part in parts:
        done = sorted(
            (times[origin.id][1], i)
            for i, origin in part.origins.items()
            if origin.id in times and origin.inputs
        )
        by_id = {op.id: op for op in part.graph.operations}
        finishes = [finish for finish, _ in done]
        latest = _latest_crossings(part) if ordered else {}
        for i, x in part.receives.items():
            came = by_id[i]
            if nbytes(x) < LEAST_BYTES:
                continue
            starts = [
                times[part.origins[user.id].id][0]
                for user in _users(came)
                if user.id in part.origins and part.origins[user.id].id in times
            ]
            if not starts:
                continue
            needed = min(starts)
            begins = needed - transfer_seconds(x, part.location)
            if begins < LEAST_SECONDS:
                continue
            last = bisect.bisect_right(finishes, begins) - 1
            while last >= 0 and latest.get(done[last][1], -1) >= part.crossings[i]:
                last -= 1
            if last >= 0 and finishes[last] < needed:
                edges.append((by_id[done[last][1]], came))
                part.late.add(i)
    for op, came in edges:
        came.control_inputs.append(op)
    return edges


def _latest_crossings(part: Part) -> dict[int, int]:
    """By the id of an operation, the last transfer that it waits for, -1 for none."""
    latest: dict[int, int] = {}
    for op in in_order(part.graph.operations):
        sources = [x.op.id for x in op.inputs] + [c.id for c in op.control_inputs]
        before = max((latest[i] for i in sources), default=-1)
        latest[op.id] = max(before, part.crossings.get(op.id, -1))
    return latest


def _users(came: Operation) -> list[Operation]:
    """The operations that take what a Recv gives, past the one that widens it again."""
    users = came.outputs[0].consumers()
    if len(users) == 1 and users[0].definition is from_upper_half:
        return users[0].outputs[0].consumers()
    return users
