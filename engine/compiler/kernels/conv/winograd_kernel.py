"""The kernels of Winograd's convolution of 3 x 3 windows; see winograd_transforms.

    y tile = output( sum over c of filters(f)[c] * patch(x tile)[c] ),  point by point of 6 x 6

A tile is 4 x 4 pixels of y, which take a patch of 6 x 6 pixels of x. For each of the 36 points
there is a product of matrices, tiles by channels, in the microkernel. A unit of work is some rows
of tiles: their patches are transformed to memory that stays in the L2 cache, multiplied, and
the products transformed to y. The transform of a tile is 36 rows of channels, tile after tile. The
sum over channels is made in order, so neither units nor threads change a bit.

The gradient with respect to filters sums over tiles instead, in parts (see
filter_gradient_kernel): df = taps( sum over tiles of patch(x)^T * results(dy) ).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial

from ....graph import DType
from ...codegen.control import fold, loop, when
from ...codegen.function import IRFunction, Module, Value
from ...target.code import Code
from ...target.host import LINE
from ..addressing import (
    WORD_BYTES,
    Words,
    function,
    invoke,
    load,
    minimum,
    prefetch,
    quotient,
    share,
    store,
    word,
)
from ..gemm.panels import column_of
from . import winograd_transforms as transforms
from .winograd_transforms import POINTS, TAPS, TILE, Transform

FILTERS = "winograd_filters"
CONVOLVE = "winograd_convolve"
GRADIENT = "winograd_filter_gradient"
FINISH = "winograd_finish"


# The transforms of filters: one row of columns for each of `rows`, at each point.
FILTER_WORDS = (
    *("filters", "taps", "filter_row"),  # taps: the place of each, in bytes
    *("rows", "vectors"),
    *("to", "to_point", "to_row"),
)

# An operand whose patches are taken: first_h, first_w: of the first patch, may be negative.
IMAGE_WORDS = (
    *("data", "image", "row", "pixel"),
    *("height", "width", "first_h", "first_w"),
    "vectors",
    *("tile", "point"),  # bytes of the transform of a tile, of one of its points
)

_UNIT_WORDS = (
    *("rows", "unit_rows", "image_rows", "row_tiles"),  # rows of tiles; tiles of a row
    *("memory", "memory_bytes"),  # of each thread: what follows, in bytes from the beginning
    *("columns_at", "patches_at", "products_at"),  # before them a line of zeros
)

_PANEL_WORDS = ("panel_columns", "num_wide_panels", "num_panels", "columns")

CONVOLVE_WORDS = (
    *_UNIT_WORDS,
    "x",
    *("y", "y_image", "y_row", "y_pixel", "out_height", "out_width"),
    *("filters", "filter_point", "filter_columns"),
    *_PANEL_WORDS,
    *("product_tile", "product_point", "product_vectors"),
    *("cut", "last_cut"),
    *("epilogue", "epilogue_words"),
)

# How the tiles of a unit are cut into rows of microkernels.
CUT_WORDS = ("cut_rows", "num_high", "num_cuts", "microkernels", "shape", "low_shape")

GRADIENT_WORDS = (
    *_UNIT_WORDS,
    *("x", "dy"),
    *("sums", "sums_part", "sums_point", "sums_row", "parts"),
    *_PANEL_WORDS,
    "cut",
)

FINISH_WORDS = (
    *("sums", "sums_part", "sums_point", "sums_row", "parts"),
    *("df", "df_tap", "df_row", "rows", "vectors"),
)


def code(symbol: str, dtype: DType, vector_bytes: int) -> Code:
    """One of the kernels."""
    return Code(symbol, vector_bytes, _write, (symbol, dtype, vector_bytes))


def products_left(codes: Iterable[Code]) -> Fraction:
    """The share of a convolution's multiplications that native functions do: 1 where no function is
    one of these. Transforms come on top."""
    main = (CONVOLVE, GRADIENT)
    if any(code.writer is _write and code.parameters[0] in main for code in codes):
        return Fraction(POINTS**2, TILE**2 * TAPS**2)
    return Fraction(1)


def _write(symbol: str, dtype: DType, vector_bytes: int) -> str:
    module = Module()
    fn, (args, tid, nth) = function(module, symbol, 3)
    writer, names = {
        FILTERS: (_Filters, FILTER_WORDS),
        CONVOLVE: (_Convolve, CONVOLVE_WORDS),
        GRADIENT: (_Gradient, GRADIENT_WORDS),
        FINISH: (_Finish, FINISH_WORDS),
    }[symbol]
    writer(fn, Words(fn, args, names), dtype, vector_bytes).write(tid, nth)
    return module.text()


class _Writer:
    def __init__(self, fn: IRFunction, words: Words, dtype: DType, vector_bytes: int) -> None:
        self.fn = fn
        self.words = words
        self.dtype = dtype
        self.bytes = vector_bytes
        self.lanes = vector_bytes // dtype.size

    def write(self, tid: Value, nth: Value) -> None:
        """The body of the kernel."""
        raise NotImplementedError

    def load(self, address: Value) -> Value:
        """A vector."""
        return load(self.fn, address, self.dtype, self.lanes)

    def each(self, count: Value, body: Callable[[Value], None]) -> None:
        """Run body(0), body(1), ..."""
        loop(self.fn, self.fn.number(0), count, 1, body)

    def square(self, rows: Sequence[Sequence[Value]], transform: Transform) -> list[list[Value]]:
        """Both axes of a square transformed: first columns, then rows."""
        columns = [transform(self.fn, column) for column in zip(*rows, strict=True)]
        return [transform(self.fn, row) for row in zip(*columns, strict=True)]

    def points(self, start: Value, step: Value) -> list[list[Value]]:
        """The vectors at all points."""
        found = list[list[Value]]()
        for _ in range(POINTS):
            row = []
            for _ in range(POINTS):
                row.append(self.load(start))
                start = start + step
            found.append(row)
        return found


class _Filters(_Writer):
    def write(self, tid: Value, nth: Value) -> None:
        """A unit of work is a row of filters, for all taps."""
        fn, words = self.fn, self.words
        first, last = share(fn, words["rows"], tid, nth)

        def row(r: Value) -> None:
            source = words["filters"] + r * words["filter_row"]
            target = words["to"] + r * words["to_row"]

            def vector(v: Value) -> None:
                at = source + v * self.bytes
                taps = [self.load(at + word(fn, words["taps"], i)) for i in range(TAPS * TAPS)]
                rows = [taps[i : i + TAPS] for i in range(0, TAPS * TAPS, TAPS)]
                to, step = target + v * self.bytes, words["to_point"]
                for line in self.square(rows, transforms.filters):
                    for x in line:
                        store(fn, x, to)
                        to = to + step

            self.each(words["vectors"], vector)

        loop(fn, first, last, 1, row)


class _Units(_Writer):
    """What the kernels that go through tiles have in common."""

    def begin(self, tid: Value) -> None:
        """Find the memory of this thread."""
        fn, words = self.fn, self.words
        self.memory = words["memory"] + tid * words["memory_bytes"]
        like = Value(fn, "", self.dtype, self.lanes)
        self.zero = fn.constant(0.0, like)
        store(fn, self.zero, self.memory)

    def transform(
        self, image: Words, row: Value, to: Value, size: int, transform: Transform
    ) -> None:
        """The transforms of a row of tiles, of patches of `size` x `size`.

        Columns of pixels first: neighbours share some.
        """
        fn, words = self.fn, self.words
        number, tile_row = quotient(fn, row, words["image_rows"])
        source = image["data"] + number * image["image"]
        top = tile_row * TILE + image["first_h"]
        first, width, pixel = image["first_w"], image["width"], image["pixel"]
        columns = words["row_tiles"] * TILE + (size - TILE)
        left = fn.select(first < 0, fn.number(0) - first, fn.number(0))
        left = minimum(fn, left, columns)
        right = minimum(fn, width - first, columns)
        right = fn.select(right > left, right, left)
        starts, steps = [], []
        for i in range(size):
            at = top + i
            is_there = fn.binary("and", at >= 0, at < image["height"])
            there = source + at * image["row"] + (left + first) * pixel
            starts.append(fn.select(is_there, there, self.memory))
            steps.append(fn.select(is_there, pixel, fn.number(0)))
        moves = [fn.select(step != 0, fn.number(self.bytes), step) for step in steps]
        held, column_bytes = self.memory + words["columns_at"], POINTS * self.bytes

        def vector(v: Value) -> None:
            def empty(c: Value) -> None:
                for i in range(POINTS):
                    store(fn, self.zero, held + c * column_bytes + i * self.bytes)

            def column(c: Value, places: list[Value]) -> list[Value]:
                xs = [self.load(place) for place in places]
                for i, x in enumerate(transform(fn, xs)):
                    store(fn, x, held + c * column_bytes + i * self.bytes)
                return [place + step for place, step in zip(places, steps, strict=True)]

            loop(fn, fn.number(0), left, 1, empty)
            at = [start + v * move for start, move in zip(starts, moves, strict=True)]
            fold(fn, left, right, 1, at, column)
            loop(fn, right, columns, 1, empty)

            def tile(t: Value) -> None:
                patch = held + t * (TILE * column_bytes)
                target = to + t * image["tile"] + v * self.bytes
                step = image["point"]
                for i in range(POINTS):
                    xs = [
                        self.load(patch + (j * column_bytes + i * self.bytes)) for j in range(size)
                    ]
                    for x in transform(fn, xs):
                        store(fn, x, target)
                        target = target + step

            self.each(words["row_tiles"], tile)

        self.each(image["vectors"], vector)

    def fetch(self, image: Words, row: Value, part: Value) -> None:
        """Fetch a part, one for each point, of what a unit that begins at a row of tiles takes."""
        fn, words = self.fn, self.words
        number, tile_row = quotient(fn, row, words["image_rows"])
        start = image["data"] + number * image["image"]
        start = start + (tile_row * TILE + image["first_h"]) * image["row"]
        total = words["unit_rows"] * TILE * image["row"]
        first, last = share(fn, total, part, fn.number(POINTS * POINTS))
        loop(fn, first, last, LINE, lambda at: prefetch(fn, start + at, level=2))

    def multiply(
        self, a: Value, b: Value, c: Value, cut: Words, steps: tuple[Value, Value], *rest: Value
    ) -> None:
        """Products of matrices of a point: `steps` are bytes from a row of tiles to the next."""
        fn, words = self.fn, self.words
        b_column, count, add = rest
        size = self.dtype.size

        def panel(p: Value) -> None:
            column = column_of(fn, words, p, self.lanes)
            columns = column_of(fn, words, p + 1, self.lanes) - column
            narrow = fn.select(p < words["num_wide_panels"], fn.number(0), fn.number(WORD_BYTES))
            kernels = cut["microkernels"] + narrow
            b_at, c_at = b + column * b_column, c + column * size

            def block(t: Value) -> None:
                high = minimum(fn, t, cut["num_high"])
                i = t * cut["cut_rows"] - (t - high)
                is_high = t < cut["num_high"]
                low = fn.select(is_high, fn.number(0), fn.number(2))
                invoke(
                    fn,
                    word(fn, kernels, low),
                    a + i * steps[0],
                    b_at,
                    c_at + i * steps[1],
                    fn.select(is_high, cut["shape"], cut["low_shape"]),
                    columns,
                    count,
                    add,
                )

            self.each(cut["num_cuts"], block)

        self.each(words["num_panels"], panel)


class _Convolve(_Units):
    def write(self, tid: Value, nth: Value) -> None:
        fn, words = self.fn, self.words
        self.begin(tid)
        unit_rows = words["unit_rows"]
        units = fn.binary("udiv", words["rows"] + (unit_rows - 1), unit_rows)
        first, last = share(fn, units, tid, nth)
        image = Words(fn, words["x"], IMAGE_WORDS)
        patches = self.memory + words["patches_at"]
        products = self.memory + words["products_at"]

        def unit(u: Value) -> None:
            begin = u * unit_rows
            end = minimum(fn, begin + unit_rows, words["rows"])
            count = end - begin
            tiles = words["row_tiles"]
            is_whole = count == unit_rows
            cut = Words(fn, fn.select(is_whole, words["cut"], words["last_cut"]), CUT_WORDS)

            def take(r: Value) -> None:
                to = patches + r * tiles * image["tile"]
                self.transform(image, begin + r, to, POINTS, transforms.patch)

            def point(p: Value) -> None:
                self.fetch(image, end, p)
                self.multiply(
                    patches + p * image["point"],
                    words["filters"] + p * words["filter_point"],
                    products + p * words["product_point"],
                    cut,
                    (image["tile"], words["product_tile"]),
                    words["filter_columns"],
                    image["vectors"] * self.lanes,
                    fn.number(0),
                )

            def give(r: Value) -> None:
                self._finish(begin + r, products + r * tiles * words["product_tile"])

            self.each(count, take)
            self.each(fn.number(POINTS * POINTS), point)
            self.each(count, give)

        loop(fn, first, last, 1, unit)

    def _finish(self, row: Value, products: Value) -> None:
        """Transform a row of tiles to y, and let the epilogue go on with it."""
        fn, words = self.fn, self.words
        image, tile_row = quotient(fn, row, words["image_rows"])
        top = tile_row * TILE
        rows = minimum(fn, words["out_height"] - top, fn.number(TILE))
        target = words["y"] + image * words["y_image"] + top * words["y_row"]

        def tile(t: Value) -> None:
            pixels = minimum(fn, words["out_width"] - t * TILE, fn.number(TILE))
            source = products + t * words["product_tile"]
            to = target + t * (words["y_pixel"] * TILE)
            is_whole = fn.binary("and", rows == TILE, pixels == TILE)

            def vector(v: Value) -> None:
                at = v * self.bytes
                found = self.square(
                    self.points(source + at, words["product_point"]), transforms.output
                )
                places = [
                    [to + at + i * words["y_row"] + j * words["y_pixel"] for j in range(TILE)]
                    for i in range(TILE)
                ]

                def all_of_it() -> None:
                    for xs, addresses in zip(found, places, strict=True):
                        for x, address in zip(xs, addresses, strict=True):
                            store(fn, x, address)

                def part_of_it() -> None:
                    for i, (xs, addresses) in enumerate(zip(found, places, strict=True)):
                        for j, (x, address) in enumerate(zip(xs, addresses, strict=True)):
                            is_there = fn.binary("and", rows > i, pixels > j)
                            when(fn, is_there, partial(store, fn, x, address))

                when(fn, is_whole, all_of_it)
                when(fn, ~is_whole, part_of_it)

            self.each(words["product_vectors"], vector)

        self.each(words["row_tiles"], tile)

        def go_on() -> None:
            first = (image * words["out_height"] + top) * words["out_width"]
            invoke(
                fn,
                words["epilogue"],
                words["epilogue_words"],
                first,
                rows * words["out_width"],
                fn.number(0),
                words["columns"],
            )

        when(fn, words["epilogue"] != 0, go_on)


class _Gradient(_Units):
    def write(self, tid: Value, nth: Value) -> None:
        fn, words = self.fn, self.words
        self.begin(tid)
        unit_rows = words["unit_rows"]
        units = fn.binary("udiv", words["rows"] + (unit_rows - 1), unit_rows)
        x, dy = (Words(fn, words[name], IMAGE_WORDS) for name in ("x", "dy"))
        patches = self.memory + words["patches_at"]
        results = self.memory + words["products_at"]
        cut = Words(fn, words["cut"], CUT_WORDS)
        size = fn.number(self.dtype.size)
        first, last = share(fn, words["parts"], tid, nth)

        def part(g: Value) -> None:
            sums = words["sums"] + g * words["sums_part"]
            from_unit, to_unit = share(fn, units, g, words["parts"])

            def unit(u: Value) -> None:
                begin = u * unit_rows
                end = minimum(fn, begin + unit_rows, words["rows"])
                count, tiles = end - begin, words["row_tiles"]

                def take(r: Value) -> None:
                    place = r * tiles
                    to, into = patches + place * x["tile"], results + place * dy["tile"]
                    self.transform(x, begin + r, to, POINTS, transforms.patch)
                    self.transform(dy, begin + r, into, TILE, transforms.results)

                def point(p: Value) -> None:
                    self.fetch(x, end, p)
                    self.fetch(dy, end, p)
                    self.multiply(
                        patches + p * x["point"],
                        results + p * dy["point"],
                        sums + p * words["sums_point"],
                        cut,
                        (size, words["sums_row"]),
                        size,
                        count * tiles,
                        fn.select(u > from_unit, fn.number(1), fn.number(0)),
                    )

                self.each(count, take)
                self.each(fn.number(POINTS * POINTS), point)

            loop(fn, from_unit, to_unit, 1, unit)

        loop(fn, first, last, 1, part)


class _Finish(_Writer):
    def write(self, tid: Value, nth: Value) -> None:
        """A unit of work is a channel of x: the parts added up in order, and transformed."""
        fn, words = self.fn, self.words
        first, last = share(fn, words["rows"], tid, nth)

        def row(r: Value) -> None:
            source = words["sums"] + r * words["sums_row"]
            target = words["df"] + r * words["df_row"]

            def vector(v: Value) -> None:
                start, step = source + v * self.bytes, words["sums_point"]

                def add(p: Value, carried: list[Value]) -> list[Value]:
                    at = start + p * words["sums_part"]
                    flat = [x for line in self.points(at, step) for x in line]
                    return [x + y for x, y in zip(carried, flat, strict=True)]

                flat = [x for line in self.points(start, step) for x in line]
                flat = fold(fn, fn.number(1), words["parts"], 1, flat, add)
                rows = [flat[i : i + POINTS] for i in range(0, POINTS * POINTS, POINTS)]
                to = target + v * self.bytes
                for line in self.square(rows, transforms.taps):
                    for x in line:
                        store(fn, x, to)
                        to = to + words["df_tap"]

            self.each(words["vectors"], vector)

        loop(fn, first, last, 1, row)
