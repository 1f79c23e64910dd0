"""The workers of a parameter-server training, with the graphs for one form of batches."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from laminar.tree import flatten, map_structure

from .served_values import ServedValues
from .server_graph import WorkerGraph, build_worker, specs_of

# Words that keys of random generators differ by: 2**32 over the golden ratio, and another odd one.
_KEY_WORDS: Final = (0x9E3779B9, 0x85EBCA6B)
_END_SECONDS: Final = 2.0  # for which a worker is waited for at the end


class Workers:
    """Workers with the graphs for one kind of batch after another.

    Args:
        values: what the servers keep.
        kind: "train" or "test".
        shares: into how many shares a batch is divided; 0 for asynchronous steps.
        native: whether to run native code where there is some.
    """

    def __init__(self, values: ServedValues, kind: str, shares: int, *, native: bool) -> None:
        self.values = values
        self._kind, self._shares, self._native = kind, shares, native
        self._spec: Any = None
        self.coordinator: Any = None
        self.made: WorkerGraph | None = None  # of the first worker: all are alike

    def prepare(self, batch: Any) -> None:
        """See to it that there are graphs for batches of this form; none of the workers runs.

        Where sizes differ from those before, the new graphs take any.
        """
        spec = specs_of(batch)
        if self.made is not None:
            if self.takes(batch):
                return
            spec = _widened(self._spec, spec)
        self.close()
        parts, strategy = self.values.parts, self.values.strategy
        graphs: list[WorkerGraph] = []

        def build(task: int) -> WorkerGraph:
            is_training = self._kind == "train"
            slots = strategy.num_replicas
            graphs.append(
                build_worker(parts, spec, training=is_training, shares=self._shares, slots=slots)
            )
            return graphs[-1]

        self.coordinator = strategy.coordinator(build, jit_compile=self._native)
        self._end = weakref.finalize(self, self.coordinator.close, _END_SECONDS)
        self._spec, self.made = spec, graphs[0]

    def takes(self, batch: Any) -> bool:
        """Whether the graphs are for batches of this form."""
        new, known = flatten(specs_of(batch)), flatten(self._spec)
        return len(new) == len(known) and all(
            a is b  # None
            or (a is not None and b is not None and a.dtype == b.dtype)
            and b.shape.is_compatible_with(a.shape)
            for a, b in zip(new, known, strict=True)
        )

    def run(self, step: Any, *arguments: Any) -> Any:
        """Have a worker do something; gives what it gives."""
        return self.coordinator.schedule(step, *arguments).fetch()

    def close(self) -> None:
        """Let go of the workers."""
        if self.coordinator is not None:
            self._end()

    def recover(self) -> None:
        """After an error: nothing of what was scheduled is left, and the servers may be others."""
        with contextlib.suppress(Exception):  # it has been told
            self.coordinator.join()
        self.values.forget()


def _widened(known: Any, new: Any) -> Any:
    """A structure of specs that both fit; the new one if they differ in more than sizes."""
    a, b = flatten(known), flatten(new)
    if len(a) != len(b) or any(
        (x is None) != (y is None)
        or (x is not None and (x.dtype != y.dtype or x.shape.rank != y.shape.rank))
        for x, y in zip(a, b, strict=True)
    ):
        return new
    return map_structure(
        lambda x, y: (
            None
            if x is None
            else type(x)(
                tuple(n if n == m else None for n, m in zip(x.shape, y.shape, strict=True)), x.dtype
            )
        ),
        known,
        new,
    )


def feeds_of(
    made: WorkerGraph, batch: Any, state: Mapping[int, Any], seeds: list[Any], number: int
) -> dict[Any, Any]:
    """What a worker's graph is fed with.

    Args:
        made: the graph.
        batch: a batch, or a share of one.
        state: values of variables, by their ids.
        seeds: the states of random generators.
        number: makes the random numbers of this batch, or share, other ones.
    """
    feeds = {
        place: np.asarray(x)
        for place, x in zip(flatten(made.batch), flatten(batch), strict=True)
        if place is not None
    }
    feeds |= {fed.before: state[id(fed.variable)] for fed in made.fed}
    key = np.zeros(4, np.uint32)
    key[:2] = [(number * word) & 0xFFFF_FFFF for word in _KEY_WORDS]
    feeds |= {place: value + key for place, value in zip(made.seeds, seeds, strict=True)}
    return feeds
