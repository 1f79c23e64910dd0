"""The geometry of a convolution: what a point of the result takes from its operand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from ....errors import InvalidArgumentError


@dataclass(frozen=True)
class Convolution:
    """A convolution of images whose channels come last, of one to three axes.

        y[n, o, g * M + m] = sum over k, c of
            x[n, o * strides + k * dilation - padding, g * C + c] * filters[k, c, g * M + m]

    The filters have shape (*window, channels / groups, filters).

    images: the number of images.
    size: of x along each axis.
    channels: of x.
    filters: channels of y.
    window: size of the filters along each axis.
    strides, dilation: along each axis.
    padding: zeros before and after, along each axis.
    groups: channels of x and y are this many separate convolutions.
    """

    images: int
    size: tuple[int, ...]
    channels: int
    filters: int
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    groups: int = 1

    def __post_init__(self) -> None:
        rank = len(self.size)
        lengths = {len(f) for f in (self.window, self.strides, self.dilation, self.padding)}
        if not 1 <= rank <= 3 or lengths != {rank}:
            raise InvalidArgumentError(f"Convolution: one to three axes, all alike, got {self}")
        if min(*self.window, *self.strides, *self.dilation, self.groups) < 1:
            raise InvalidArgumentError(f"Convolution: sizes and steps are at least 1, got {self}")
        if min(p for pair in self.padding for p in pair) < 0:
            raise InvalidArgumentError(f"Convolution: padding is not negative, got {self}")
        if self.channels % self.groups or self.filters % self.groups:
            raise InvalidArgumentError(
                f"Convolution: {self.groups} groups divide neither {self.channels} channels "
                f"nor {self.filters} filters"
            )

    @property
    def axes(self) -> tuple[Axis, Axis, Axis]:
        """Depth, height and width; axes that are not there have size 1."""
        rows = zip(self.size, self.window, self.strides, self.dilation, self.padding, strict=True)
        found = [Axis(*row) for row in rows]
        one = Axis(1, 1, 1, 1, (0, 0))
        # A single axis is the width.
        depth, height, width = [one] * (3 - len(found)) + found
        return depth, height, width

    @property
    def output(self) -> tuple[int, ...]:
        """The size of y."""
        return tuple(a.output for a in self.axes[3 - len(self.size) :])


class Axis(NamedTuple):
    """One axis of a convolution."""

    size: int
    window: int
    stride: int
    dilation: int
    padding: tuple[int, int]

    @property
    def output(self) -> int:
        """The number of places of the window."""
        reach = (self.window - 1) * self.dilation + 1
        return max(0, (self.size + sum(self.padding) - reach) // self.stride + 1)


@dataclass(frozen=True)
class Phase:
    """Points first, first + every, ... of the result; `taps`: offset in the operand, window index.

    Point i of a phase takes element i * step + offset of the operand for each tap.
    """

    first: int
    every: int
    count: int
    step: int
    taps: tuple[tuple[int, int], ...]


def forward_phases(axis: Axis) -> list[Phase]:
    """How y takes x."""
    taps = tuple((k * axis.dilation - axis.padding[0], k) for k in range(axis.window))
    return [Phase(0, 1, axis.output, axis.stride, taps)]


def gradient_phases(axis: Axis) -> list[Phase]:
    """How dx takes dy: x[i] reached y[o] where i = o * stride + k * dilation - padding."""
    found = []
    for first in range(min(axis.stride, axis.size)):
        taps = []
        for k in range(axis.window):
            offset, rest = divmod(first + axis.padding[0] - k * axis.dilation, axis.stride)
            if not rest:
                taps.append((offset, k))
        count = -(-(axis.size - first) // axis.stride)
        found.append(Phase(first, axis.stride, count, 1, tuple(sorted(taps))))
    return found


class Reach(NamedTuple):
    """What all phases of an axis take: `first` for point 0, `span` elements for a point."""

    first: int
    span: int

    @classmethod
    def of(cls, phases: list[Phase]) -> Reach:
        """The reach of the taps of all phases."""
        offsets = [offset for phase in phases for offset, _ in phase.taps] or [0]
        return cls(min(offsets), max(offsets) - min(offsets) + 1)


def combined(phases: tuple[list[Phase], list[Phase], list[Phase]]) -> Iterator[tuple[Phase, ...]]:
    """Each phase of depth with each one of height and of width."""
    return product(*phases)
