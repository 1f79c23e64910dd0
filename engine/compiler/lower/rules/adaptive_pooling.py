"""Pooling to a given number of windows, which may differ in size and overlap.

All windows are taken to be of the size of the largest: a smaller one has its last cell repeated,
which changes no maximum, nor where it first is.
"""

from __future__ import annotations

import numpy as np

from ....graph import int32
from ...ir.builder import Builder, as_it_is
from ...ir.not_lowered import NotLoweredError
from ...ir.program import IndirectLoad, Operand, View
from ...ir.sizes import is_known
from .indexing import as_view
from .table import Lowered, lowers


class _Windows:
    """The windows along an axis: their cells, with the axis moved to the front."""

    def __init__(self, b: Builder, step: Lowered, x: Operand) -> None:
        axis, size = step.attrs["axis"], step.attrs["size"]
        rank = len(b.shape(x))
        self.order = [axis % rank, *(a for a in range(rank) if a != axis % rank)]
        self.cells = b.transpose(as_view(b, x), self.order)
        dim, *self.rest = self.cells.shape
        if not is_known(dim):
            raise NotLoweredError(f"windows of {dim} cells")
        self.size, self._b = size, b
        self.first = np.array([i * dim // size for i in range(size)], np.int32)
        last = np.array([-(-(i + 1) * dim // size) - 1 for i in range(size)], np.int32)
        width = int((last - self.first).max()) + 1
        self.places = np.minimum(self.first[:, None] + np.arange(width), last[:, None])

    def along(self, numbers: np.ndarray[tuple[int, ...], np.dtype[np.int32]]) -> View:
        """Constants of the windows, with axes for all that they have in common."""
        table = self._b.array(numbers.astype(np.int32), int32)
        return self._b.reshape(table, (*numbers.shape, *[1] * len(self.rest)))

    def at(self, x: View, places: View) -> View:
        """The elements of `x`, the windowed axis first, at places along that."""
        b, shape = self._b, (*places.shape[: -len(self.rest) or None], *self.rest)
        lead = len(shape) - len(self.rest)
        start = x._replace(shape=shape, strides=(*[0] * lead, *x.strides[1:]))
        found = IndirectLoad(start, (b.broadcast(places, shape),), x.strides[:1], x.shape[:1])
        return b.map(as_it_is, [found], b.dtype(x), shape)

    def place_of_maximum(self) -> View:
        """Where along the axis each window has its first maximum: (size, *rest)."""
        b = self._b
        within = b.reduce("argmax", self.at(self.cells, self.along(self.places)), [1])
        last = b.array(self.places[:, -1].astype(np.int32), int32)
        ends = b.reshape(last, (self.size, *[1] * len(self.rest)))
        return b.compute(
            lambda s, t, first, end: s.min(t + first, end), within, self.along(self.first), ends
        )

    def back(self, y: View) -> View:
        """The axis where it was."""
        return self._b.transpose(y, sorted(range(len(self.order)), key=self.order.__getitem__))


@lowers("AdaptiveMaxPool")
def _adaptive_max(b: Builder, step: Lowered, x: Operand) -> Operand:
    windows = _Windows(b, step, x)
    return windows.back(
        b.reduce("max", windows.at(windows.cells, windows.along(windows.places)), [1])
    )


@lowers("AdaptiveMaxPoolGrad")
def _adaptive_max_grad(b: Builder, step: Lowered, x: Operand, dy: Operand) -> Operand:
    windows = _Windows(b, step, x)
    places = windows.place_of_maximum()
    given = b.transpose(as_view(b, dy), windows.order)
    # Each cell adds up what the windows give that have their maximum there.
    shape = (windows.size, *windows.cells.shape)
    each, from_each = (b.reshape(v, (windows.size, 1, *windows.rest)) for v in (places, given))
    found = b.compute(
        lambda s, place, i, d: s.where(place == i, d, 0),
        each,
        b.iota(shape, 1, int32),
        from_each,
        dtype=b.dtype(dy),
    )
    return windows.back(b.reduce("sum", found, [0]))


@lowers("AdaptiveMaxPoolPick")
def _adaptive_max_pick(b: Builder, step: Lowered, x: Operand, v: Operand) -> Operand:
    windows = _Windows(b, step, x)
    values = b.transpose(as_view(b, v), windows.order)
    return windows.back(windows.at(values, windows.place_of_maximum()))
