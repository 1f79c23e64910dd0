"""The kernel that copies bfloat16 images so that the pixels of a row follow each other.

    to[n, d, h, c, s, i] = x[n, d - before, h - before, i * step + s - before, c]

with zeros where that is beyond x, for s = 0 ... step - 1: a window that moves by `step` finds the
pixels of one tap next to each other, so two of them are a pair (see pairs.py).
"""

from __future__ import annotations

from functools import partial

from ....graph import uint16, uint32
from ...codegen.control import loop, when
from ...codegen.conversions import convert
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes
from ...target.code import Code
from ..addressing import Words, function, load, minimum, quotient, share, store
from ..gemm.pack import transposed

SYMBOL = "pixel_rows"

# Strides in bytes; sizes are those of x, then those of `to`.
WORDS = (
    *("x", "x_image", "x_plane", "x_row", "x_pixel"),
    *("depth", "height", "width", "channels"),
    *("before_d", "before_h", "before_w"),
    *("to", "images", "to_depth", "to_height", "to_pixels"),  # to_pixels: of each s; even
    "step",
)

_VECTOR_BYTES = 64
_LANES = 16
_SIZE = 2


def code() -> Code:
    """The kernel."""
    return Code(SYMBOL, _VECTOR_BYTES, _write, ())


def _write() -> str:
    module = Module()
    fn, (args, tid, nth) = function(module, SYMBOL, 3)
    _Writer(fn, Words(fn, args, WORDS)).write(tid, nth)
    return module.text()


class _Writer:
    def __init__(self, fn: IRFunction, words: Words) -> None:
        self.fn = fn
        self.words = words
        self.channel_bytes = words["step"] * words["to_pixels"] * _SIZE

    def write(self, tid: Value, nth: Value) -> None:
        """A unit of work is a row of `to`."""
        fn, words = self.fn, self.words
        units = words["images"] * words["to_depth"] * words["to_height"]

        def unit(u: Value) -> None:
            rest, row = quotient(fn, u, words["to_height"])
            image, plane = quotient(fn, rest, words["to_depth"])
            h, d = row - words["before_h"], plane - words["before_d"]
            is_there = (h >= 0) & (h < words["height"]) & (d >= 0) & (d < words["depth"])
            self.width = fn.select(is_there, words["width"], fn.number(0))
            x = words["x"] + image * words["x_image"]
            self.x = x + d * words["x_plane"] + h * words["x_row"]
            self.to = words["to"] + u * words["channels"] * self.channel_bytes
            loop(fn, fn.number(0), words["step"], 1, phase)

        def phase(s: Value) -> None:
            def pixels(i: Value) -> None:
                def channels(c: Value) -> None:
                    self._block(s, i, c)

                loop(fn, fn.number(0), words["channels"], _LANES, channels)

            loop(fn, fn.number(0), words["to_pixels"], 2 * _LANES, pixels)

        loop(fn, *share(fn, units, tid, nth), 1, unit)

    def _block(self, s: Value, i: Value, c: Value) -> None:
        """16 pairs of pixels of 16 channels."""
        fn, words = self.fn, self.words
        first = i * words["step"] + s - words["before_w"]
        last = first + words["step"] * (2 * _LANES - 1)
        channels = minimum(fn, words["channels"] - c, fn.number(_LANES))
        is_whole = (first >= 0) & (last < self.width) & (channels >= _LANES)
        source = self.x + c * _SIZE
        step = words["step"]

        def copy(*, is_whole: bool) -> None:
            pairs = []
            for p in range(_LANES):
                halves = []
                for number in (2 * p, 2 * p + 1):
                    j = first + step * number
                    mask = None
                    if not is_whole:
                        is_inside = (j >= 0) & (j < self.width)
                        count = fn.select(is_inside, channels, fn.number(0))
                        mask = first_lanes(fn, count, _LANES)
                    found = load(fn, source + j * words["x_pixel"], uint16, _LANES, mask)
                    halves.append(convert(fn, found, uint32))
                pairs.append(halves[0] | fn.binary("shl", halves[1], 16))
            self._store(pairs, s, i, c, channels)

        when(fn, is_whole, lambda: copy(is_whole=True))
        when(fn, ~is_whole, lambda: copy(is_whole=False))

    def _store(self, pairs: list[Value], s: Value, i: Value, c: Value, channels: Value) -> None:
        fn, words = self.fn, self.words
        left = fn.binary("lshr", words["to_pixels"] - i, 1)
        mask = first_lanes(fn, left, _LANES)
        to = self.to + c * self.channel_bytes + (s * words["to_pixels"] + i) * _SIZE
        rows = transposed(fn, pairs)
        is_whole = channels >= _LANES

        def all_channels() -> None:
            for r, row in enumerate(rows):
                store(fn, row, to + self.channel_bytes * r if r else to, mask)

        def some_channels() -> None:
            for r, row in enumerate(rows[:-1]):
                at = to + self.channel_bytes * r if r else to
                when(fn, channels > r, partial(store, fn, row, at, mask))

        when(fn, is_whole, all_channels)
        when(fn, ~is_whole, some_channels)


def pixels_of(count: int) -> int:
    """The pixels that rows of so many take: whole pairs."""
    return -(-count // 2) * 2
