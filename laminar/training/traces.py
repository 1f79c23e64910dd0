"""The graphs of a step: which of them runs batches of which sizes.

The number of examples is unknown in all of them. Other sizes (the length of sequences) are those of
the first batch, until one comes that has others: where they differ, they are unknown in one more
graph, which from then on runs all such batches. So nobody whose sizes stay the same pays for it.
Where that cannot be traced, or where native code serves it less well than known sizes
(convolutions), each set of sizes has a graph of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from laminar.engine.functions import ConcreteFunction

_log = logging.getLogger(__name__)

# The sizes of the tensors of a batch but for the number of examples, None where they differ.
Sizes: TypeAlias = tuple[tuple[int | None, ...], ...]


class _Seen:
    """What was seen of batches of a kind.

    Attributes:
        sizes: those that they have had.
        graph: what runs all batches of `sizes`; None once each set of sizes has its own.
    """

    def __init__(self, sizes: Sizes, graph: ConcreteFunction) -> None:
        self.sizes = sizes
        self.graph: ConcreteFunction | None = graph


class Traces:
    """The graphs by what batches are, made when there is none for a batch.

    Args:
        native: whether they run native code where there is some.
    """

    def __init__(self, *, native: bool) -> None:
        self._native = native
        self._seen: dict[Any, _Seen] = {}

    def graph_for(
        self, kind: Any, sizes: Sizes, trace: Callable[[Sizes], ConcreteFunction]
    ) -> ConcreteFunction:
        """The graph that runs a batch.

        Args:
            kind: what the batch is besides its sizes.
            sizes: those of its tensors.
            trace: makes the graph for sizes.

        Raises:
            LaminarError: what the trace for these very sizes raises.
        """
        seen = self._seen.get(kind)
        if seen is None:
            graph = trace(sizes)
            self._seen[kind] = _Seen(sizes, graph)
            return graph
        if seen.graph is None:
            return trace(sizes)
        common = _common(seen.sizes, sizes)
        if common == seen.sizes:
            return seen.graph
        exact = trace(sizes)  # which tells what is wrong with them, if anything is
        seen.sizes, seen.graph = common, self._wide(common, exact, trace)
        return seen.graph or exact

    def _wide(
        self, sizes: Sizes, exact: ConcreteFunction, trace: Callable[[Sizes], ConcreteFunction]
    ) -> ConcreteFunction | None:
        """The graph for sizes some of which are unknown, if it does as well as an exact one."""
        try:
            graph = trace(sizes)
            splits = self._native and graph.num_calls > exact.num_calls
        except Exception as error:  # of whatever asks for the number
            _log.debug("each set of sizes has a graph of its own: %s", error)
            return None
        return None if splits else graph


def _common(these: Sequence[Sequence[int | None]], those: Sequence[Sequence[int | None]]) -> Sizes:
    """Sizes with None where two differ."""
    return tuple(
        tuple(m if m == n else None for m, n in zip(a, b, strict=True))
        for a, b in zip(these, those, strict=True)
    )
