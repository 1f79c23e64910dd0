"""Loop nests: which steps of a body run in one loop, over which axes, on which memory.

Steps with one shape run in one nest; a value that another nest or the outside needs goes through
memory. Nests are numbered in an order in which producers stand before consumers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..ops.cluster import Body

Shape = tuple[int, ...]


@dataclass
class Nest:
    """A loop over `shape` that runs `steps`.

    Attributes:
        steps: numbers of the steps of the body, in order.
        reads: values that come from memory.
        writes: values that go to memory.
    """

    shape: Shape
    steps: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Loops:
    """The axes of a nest after neighbours have been joined wherever all its memory allows it.

    Attributes:
        sizes: of the loops, outermost first; empty for a single element.
        strides: for each value read, its step in elements along each loop; 0 where it is repeated.
    """

    sizes: Shape
    strides: tuple[Shape, ...]

    @property
    def pattern(self) -> tuple[int, tuple[tuple[bool, ...], ...]]:
        """What the code of the loops depends on."""
        return len(self.sizes), tuple(tuple(s != 0 for s in strides) for strides in self.strides)


def shapes_of(body: Body, inputs: Sequence[Shape]) -> list[Shape]:
    """The shape of each value of a body for inputs of given shapes."""
    shapes: list[Shape] = list(inputs)
    for step in body.steps:
        own = step.attrs.get("shape") if step.definition.type == "BroadcastTo" else None
        if own is not None:
            shapes.append(tuple(own))
        elif step.definition.type == "Const":
            shapes.append(())
        else:
            shapes.append(np.broadcast_shapes(*(shapes[i] for i in step.inputs)))
    return shapes


def make_nests(body: Body, shapes: Sequence[Shape]) -> list[Nest]:
    """The nests of a body whose values have given shapes."""
    nests: list[Nest] = []
    home: dict[int, int] = {}  # value -> its nest
    constants = {s.output for s in body.steps if s.definition.type == "Const"}
    for i, step in enumerate(body.steps):
        if step.definition.type == "Const":
            continue  # written where it is used
        shape = shapes[step.output]
        least = max((home[v] for v in step.inputs if v in home), default=0)
        place = next(
            (k for k in range(len(nests) - 1, least - 1, -1) if nests[k].shape == shape), None
        )
        if place is None:
            place = len(nests)
            nests.append(Nest(shape))
        nests[place].steps.append(i)
        home[step.output] = place
    stored = set(body.outputs)
    for k, nest in enumerate(nests):
        reads: dict[int, None] = {}
        for i in nest.steps:
            for v in body.steps[i].inputs:
                if home.get(v) != k and v not in constants:
                    reads[v] = None
                    if v in home:
                        stored.add(v)
        nest.reads = list(reads)
    for nest in nests:
        nest.writes = [body.steps[i].output for i in nest.steps if body.steps[i].output in stored]
    return nests


def make_loops(nest: Nest, shapes: Sequence[Shape]) -> Loops:
    """The loops of a nest: axes of size 1 dropped, neighbours joined."""
    rank = len(nest.shape)
    axes = [a for a in range(rank) if nest.shape[a] != 1]
    sizes = [nest.shape[a] for a in axes]
    strides = [_strides(shapes[v], rank) for v in nest.reads]
    kept = [[s[a] for a in axes] for s in strides]
    a = len(sizes) - 2
    while a >= 0:
        # Two axes are one when every value steps over both as over one, or repeats along both.
        if all(s[a] == s[a + 1] * sizes[a + 1] for s in kept):
            sizes[a : a + 2] = [sizes[a] * sizes[a + 1]]
            for s in kept:
                s[a : a + 2] = [s[a + 1]]
        a -= 1
    return Loops(tuple(sizes), tuple(map(tuple, kept)))


def _strides(shape: Shape, rank: int) -> list[int]:
    """The steps of a contiguous array of `shape` along the axes of a nest of `rank` axes."""
    padded = (1,) * (rank - len(shape)) + shape
    return [0 if n == 1 else math.prod(padded[i + 1 :]) for i, n in enumerate(padded)]
