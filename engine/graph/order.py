"""The one topological order: what waits for others comes after them, else as it stands."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence


def topological(sources: Sequence[Collection[int]]) -> list[int]:
    """The numbers of things, each after its sources; of those that can come, the least is next.

    Args:
        sources: by the number of a thing, the numbers of those that it waits for.

    Returns:
        All numbers; without those that wait for each other, and what waits for these.
    """
    if all(j < i for i, found in enumerate(sources) for j in found):
        return list(range(len(sources)))
    consumers: list[list[int]] = [[] for _ in sources]
    left = [len(found) for found in sources]
    for i, found in enumerate(sources):
        for j in found:
            consumers[j].append(i)
    ready = [i for i, count in enumerate(left) if not count]
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for j in consumers[i]:
            left[j] -= 1
            if not left[j]:
                heapq.heappush(ready, j)
    return order
