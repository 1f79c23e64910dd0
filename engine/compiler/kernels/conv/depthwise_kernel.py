"""Convolutions in which each channel is by itself, row by row; lanes are channels.

    y[n, i, c] = sum over taps t of x[n, i * step + t, c] * filters[t, c]
    df[t, c]   = sum over n, i of x[n, i * step + t, c] * dy[n, i, c]

They take the time of memory: so x is read where it is, by blocks of the result (two rows, two
pixels), whose windows overlap. The border is read from pixels of zeros. What the next rows take is
fetched meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

from ....graph import DType
from ...codegen.control import fold, loop, when
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes
from ...target.code import Code
from ...target.host import LINE
from ..addressing import Words, function, invoke, load, minimum, prefetch, quotient, share, store

# A block of the result: each vector of x is loaded once for all of it. With 3 x 3 taps these are 16
# loads for 36 products, which then take longer; and 9 taps, 4 sums and an x fit 16 registers.
BLOCK_ROWS = 2
BLOCK_PIXELS = 2

# Of the caches.

_IMAGE_WORDS = (
    *("x", "x_image", "x_row", "x_pixel", "height"),
    *("width", "first_h", "first_w"),  # first: of the first window; may be negative
    *("images", "rows", "pixels", "channels"),  # of the result of a convolution
    # The pixels whose windows are between the borders, in whole blocks.
    *("inner_first", "inner_last"),
    *("zeros", "zeros_bytes"),  # for each thread, pixels of a vector
)

WORDS = (
    *_IMAGE_WORDS,
    *("y", "y_row", "y_pixel"),
    *("filters", "first_tap", "filter_tap"),  # in bytes; from a tap to the next may be negative
    *("epilogue", "epilogue_words"),
)

GRADIENT_WORDS = (
    *_IMAGE_WORDS,
    *("dy", "dy_row", "dy_pixel"),
    *("sums", "sums_part", "sums_tap", "parts"),
)

# Gives the vector of x in a row and a column of a block's window.
_Window: TypeAlias = Callable[[int, int], Value]


class Form(NamedTuple):
    """What code depends on.

    window: height and width.
    steps: pixels of x for one of the result, along height and width.
    masked: whether the last vector of channels is partial.
    """

    dtype: DType
    vector_bytes: int
    window: tuple[int, int]
    steps: tuple[int, int]
    masked: bool

    def columns(self, pixels: int) -> int:
        """Columns of x that some neighbours take."""
        return (pixels - 1) * self.steps[1] + self.window[1]

    def code(self, *, is_gradient: bool) -> Code:
        """The kernel of a convolution, or of its gradient with respect to filters."""
        height, width = self.window
        kind = "_gradient" * is_gradient + "_masked" * self.masked
        down, right = self.steps
        name = f"depthwise_{self.dtype}_{height}x{width}_{down}x{right}{kind}"
        return Code(name, self.vector_bytes, _write, (name, self, is_gradient))


def _write(name: str, form: Form, is_gradient: bool) -> str:
    module = Module()
    fn, (args, tid, nth) = function(module, name, 3)
    words = Words(fn, args, GRADIENT_WORDS if is_gradient else WORDS)
    (_Gradient if is_gradient else _Forward)(fn, words, form).write(tid, nth)
    return module.text()


class _Writer:
    def __init__(self, fn: IRFunction, words: Words, form: Form) -> None:
        self.fn = fn
        self.words = words
        self.form = form
        self.size = form.dtype.size
        self.lanes = form.vector_bytes // form.dtype.size
        self.zero = fn.constant(0.0, Value(fn, "", form.dtype, self.lanes))
        self.mask: Value | None = None

    def begin(self, tid: Value) -> None:
        """Make the pixels of zeros."""
        words = self.words
        self.zeros = words["zeros"] + tid * words["zeros_bytes"]
        for column in range(self.form.columns(BLOCK_PIXELS)):
            store(self.fn, self.zero, self.zeros + words["x_pixel"] * column)

    def load(self, address: Value) -> Value:
        """A vector of channels."""
        return load(self.fn, address, self.form.dtype, self.lanes, self.mask)

    def blocks(self, unit: Value, body: Callable[[Value, int], None]) -> None:
        """Run `body(row, rows)` for a block of rows: of all images, and how many they are."""
        fn, words = self.fn, self.words
        image, block = quotient(fn, unit, self.num_blocks())
        top = block * BLOCK_ROWS
        rows = minimum(fn, words["rows"] - top, fn.number(BLOCK_ROWS))
        for count in range(1, BLOCK_ROWS + 1):

            def some(count: int = count) -> None:
                self._find(image, top, count)
                body(image * words["rows"] + top, count)

            when(fn, fn.compare("eq", rows, count), some)

    def num_blocks(self) -> Value:
        """Blocks of rows of an image."""
        fn = self.fn
        return fn.binary("udiv", self.words["rows"] + (BLOCK_ROWS - 1), fn.number(BLOCK_ROWS))

    def each_vector(self, body: Callable[[Value], None]) -> None:
        """Run the body for each vector of channels, given its place in bytes."""
        fn, channels = self.fn, self.words["channels"]

        def vector(c: Value) -> None:
            if self.form.masked:
                self.mask = first_lanes(fn, channels - c, self.lanes)
            body(c * self.size)

        loop(fn, fn.number(0), channels, self.lanes, vector)

    def _find(self, image: Value, row: Value, count: int) -> None:
        """Find the rows of x that some rows of the result take, and those that come next."""
        fn, words = self.fn, self.words
        height, _ = self.form.window
        down, _ = self.form.steps
        top = row * down + words["first_h"]
        source = words["x"] + image * words["x_image"]
        self.ahead = source + (top + (count - 1) * down + height) * words["x_row"]
        # Where a row is in the image its number of bytes is multiplied by 1, otherwise by 0.
        self.found: dict[int, tuple[Value, Value]] = {}
        for i in sorted({q * down + k for q in range(count) for k in range(height)}):
            at = top + i
            is_there = fn.binary("and", at >= 0, at < words["height"])
            start = fn.select(is_there, source + at * words["x_row"], self.zeros)
            self.found[i] = start, fn.select(is_there, fn.number(1), fn.number(0))

    def along(
        self,
        at: Value,
        state: Sequence[Value],
        body: Callable[[Value, int, _Window, Sequence[Value]], list[Value]],
    ) -> list[Value]:
        """Fold `body(pixel, pixels, window, state)` over a row, at a vector of channels.

        Blocks of pixels are between the borders, which have their pixels one by one.
        """
        fn, words = self.fn, self.words
        pixel, first = words["x_pixel"], words["first_w"]
        down, right = self.form.steps
        starts = {i: start + at * is_there for i, (start, is_there) in self.found.items()}

        def at_border(i: Value, carried: list[Value]) -> list[Value]:
            columns = []
            for j in range(self.form.columns(1)):
                column = i * right + first + j
                columns.append((column, fn.binary("and", column >= 0, column < words["width"])))

            def window(row: int, j: int) -> Value:
                column, is_there = columns[j]
                place = starts[row] + column * (self.found[row][1] * pixel)
                return self.load(fn.select(is_there, place, self.zeros))

            return body(i, 1, window, carried)

        inner_first, inner_last = words["inner_first"], words["inner_last"]
        state = fold(fn, fn.number(0), inner_first, 1, list(state), at_border)

        begin = (inner_first * right + first) * pixel
        places, steps = list[Value](), list[Value]()
        for i, (_, is_there) in self.found.items():
            places.append(starts[i] + begin * is_there)
            steps.append(pixel * (right * BLOCK_PIXELS) * is_there)
        order = {row: i for i, row in enumerate(self.found)}

        def inside(i: Value, carried: list[Value]) -> list[Value]:
            places, own = carried[: len(order)], carried[len(order) :]

            def window(row: int, j: int) -> Value:
                place = places[order[row]]
                return self.load(place + pixel * j if j else place)

            self.fetch(self.ahead, at, i, down * right)
            own = body(i, BLOCK_PIXELS, window, own)
            return [*(p + s for p, s in zip(places, steps, strict=True)), *own]

        carried = fold(fn, inner_first, inner_last, BLOCK_PIXELS, [*places, *state], inside)
        return fold(fn, inner_last, words["pixels"], 1, carried[len(order) :], at_border)

    def fetch(self, rows: Value, at: Value, i: Value, times: int) -> None:
        """Fetch what a block of pixels has its share of: the rows that come next.

        That is in the order of memory, although a row is traversed once for each vector of
        channels: otherwise all of it is read at the first vector, and memory rests at the others.
        `times`: pixels of those rows for a pixel of the result.
        """
        share_bytes = BLOCK_ROWS * times * self.form.vector_bytes
        start = rows + at * self.words["pixels"] * (BLOCK_ROWS * times) + i * share_bytes
        for line in range(0, BLOCK_PIXELS * share_bytes, LINE):
            prefetch(self.fn, start + line, level=2)

    def uses(self, rows: int, pixels: int) -> list[tuple[int, int, list[tuple[int, int, int]]]]:
        """For each row and column of a block's window: the row, pixel and tap that take it."""
        (height, width), (down, right) = self.form.window, self.form.steps
        found: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for q, p, k in product(range(rows), range(pixels), range(height * width)):
            at = p * right + k % width, q * down + k // width
            found.setdefault(at, []).append((q, p, k))
        return [(row, column, takers) for (column, row), takers in sorted(found.items())]


class _Forward(_Writer):
    def write(self, tid: Value, nth: Value) -> None:
        """A unit of work is a block of rows of y."""
        fn, words = self.fn, self.words
        self.begin(tid)
        first, last = share(fn, words["images"] * self.num_blocks(), tid, nth)
        loop(fn, first, last, 1, lambda unit: self.blocks(unit, self._rows))

    def _rows(self, row: Value, count: int) -> None:
        fn, words = self.fn, self.words
        target = words["y"] + row * words["y_row"]
        self.each_vector(lambda at: self._vector(at, target, count))

        def go_on() -> None:
            invoke(
                fn,
                words["epilogue"],
                words["epilogue_words"],
                row * words["pixels"],
                words["pixels"] * count,
                fn.number(0),
                words["channels"],
            )

        when(fn, words["epilogue"] != 0, go_on)

    def _vector(self, at: Value, target: Value, rows: int) -> None:
        fn, words = self.fn, self.words
        height, width = self.form.window
        taps = []
        place = words["filters"] + words["first_tap"] + at
        for _ in range(height * width):
            taps.append(self.load(place))
            place = place + words["filter_tap"]
        pixel, row = words["y_pixel"], words["y_row"]

        def body(i: Value, pixels: int, window: _Window, state: Sequence[Value]) -> list[Value]:
            sums: dict[tuple[int, int], Value] = {}
            for r, column, takers in self.uses(rows, pixels):
                x = window(r, column)
                for q, p, k in takers:
                    old = sums.get((q, p))
                    new = x * taps[k] if old is None else fn.call("fmuladd", x, taps[k], old)
                    sums[q, p] = new
            to = target + i * pixel + at
            if pixels == BLOCK_PIXELS:
                self.fetch(target + row * rows, at, i, 1)
            for (q, p), total in sums.items():
                store(fn, total, to + row * q + pixel * p, self.mask)
            return list(state)

        self.along(at, [], body)


class _Gradient(_Writer):
    def write(self, tid: Value, nth: Value) -> None:
        """A unit of work is a part of the blocks of rows of dy."""
        fn, words = self.fn, self.words
        self.begin(tid)
        first, last = share(fn, words["parts"], tid, nth)
        units = words["images"] * self.num_blocks()

        def part(p: Value) -> None:
            self.sums = words["sums"] + p * words["sums_part"]
            begin, end = share(fn, units, p, words["parts"])
            self.each_vector(self._clear)
            loop(fn, begin, end, 1, lambda unit: self.blocks(unit, self._rows))

        loop(fn, first, last, 1, part)

    def _rows(self, row: Value, count: int) -> None:
        source = self.words["dy"] + row * self.words["dy_row"]
        self.each_vector(lambda at: self._vector(at, source, count))

    def _places(self, at: Value) -> list[Value]:
        height, width = self.form.window
        found = [self.sums + at]
        for _ in range(height * width - 1):
            found.append(found[-1] + self.words["sums_tap"])
        return found

    def _clear(self, at: Value) -> None:
        for place in self._places(at):
            store(self.fn, self.zero, place, self.mask)

    def _vector(self, at: Value, source: Value, rows: int) -> None:
        fn, words = self.fn, self.words
        pixel, row = words["dy_pixel"], words["dy_row"]

        def body(i: Value, pixels: int, window: _Window, state: Sequence[Value]) -> list[Value]:
            place = source + i * pixel + at
            if pixels == BLOCK_PIXELS:
                self.fetch(source + row * rows, at, i, 1)
            block = product(range(rows), range(pixels))
            dy = {(q, p): self.load(place + row * q + pixel * p) for q, p in block}
            sums = list(state)
            for r, column, takers in self.uses(rows, pixels):
                x = window(r, column)
                for q, p, k in takers:
                    sums[k] = fn.call("fmuladd", x, dy[q, p], sums[k])
            return sums

        places = self._places(at)
        sums = self.along(at, [self.load(place) for place in places], body)
        for x, place in zip(sums, places, strict=True):
            store(fn, x, place, self.mask)
