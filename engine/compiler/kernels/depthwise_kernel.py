"""Convolutions in which each channel is by itself, row by row; lanes are channels.

    y[n, i, c] = sum over taps t of x[n, i * step + t, c] * filters[t, c]
    df[t, c]   = sum over n, i of x[n, i * step + t, c] * dy[n, i, c]

They take the time of memory: so x is read where it is, a column of the window at a time, and what
neighbouring pixels share stays in registers. The border is read from a line of zeros. What the next
row takes is fetched meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

from ...graph import DType
from ..emit import Function, Module, Value
from .launch import Code
from .words import Words, function, invoke, load, prefetch, quotient, share, store

_IMAGE_WORDS = (
    *("x", "x_image", "x_row", "x_pixel", "height"),
    *("width", "first_h", "first_w", "step_h"),  # first: of the first window; may be negative
    *("images", "rows", "pixels", "channels"),  # of the result of a convolution
    *("inner_first", "inner_last"),  # the pixels whose windows are between the borders
    "zeros",  # a line for each thread
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

# Vectors of a window: columns of rows.
_Window: TypeAlias = list[list[Value]]


class Form(NamedTuple):
    """What code depends on.

    window: height and width.
    step: pixels of x along the width for one of the result.
    masked: whether the last vector of channels is partial.
    """

    dtype: DType
    vector_bytes: int
    window: tuple[int, int]
    step: int
    masked: bool

    def code(self, *, is_gradient: bool) -> Code:
        """The kernel of a convolution, or of its gradient with respect to filters."""
        height, width = self.window
        kind = "_gradient" * is_gradient + "_masked" * self.masked
        name = f"depthwise_{self.dtype}_{height}x{width}_{self.step}{kind}"
        return Code(name, self.vector_bytes, _write, (name, self, is_gradient))


def _write(name: str, form: Form, is_gradient: bool) -> str:
    module = Module()
    fn, (args, tid, nth) = function(module, name, 3)
    words = Words(fn, args, GRADIENT_WORDS if is_gradient else WORDS)
    (_Gradient if is_gradient else _Forward)(fn, words, form).write(tid, nth)
    return module.text()


class _Writer:
    def __init__(self, fn: Function, words: Words, form: Form) -> None:
        self.fn = fn
        self.words = words
        self.form = form
        self.size = form.dtype.size
        self.lanes = form.vector_bytes // form.dtype.size
        self.zero = fn.constant(0.0, Value(fn, "", form.dtype, self.lanes))
        self.mask: Value | None = None

    def begin(self, tid: Value) -> None:
        """Make the line of zeros."""
        words = self.words
        self.line = words["zeros"] + tid * self.form.vector_bytes
        store(self.fn, self.zero, self.line)

    def load(self, address: Value) -> Value:
        """A vector of channels."""
        return load(self.fn, address, self.form.dtype, self.lanes, self.mask)

    def each_vector(self, body: Callable[[Value], None]) -> None:
        """Run the body for each vector of channels, given its place in bytes."""
        fn, channels = self.fn, self.words["channels"]

        def vector(c: Value) -> None:
            if self.form.masked:
                self.mask = fn.first_lanes(channels - c, self.lanes)
            body(c * self.size)

        fn.loop(fn.number(0), channels, self.lanes, vector)

    def rows(self, image: Value, row: Value) -> None:
        """Find the rows of x that a row of the result takes."""
        fn, words = self.fn, self.words
        top = row * words["step_h"] + words["first_h"]
        source = words["x"] + image * words["x_image"]
        found = []
        for i in range(self.form.window[0]):
            at = top + i
            is_there = fn.binary("and", at >= 0, at < words["height"])
            start = fn.select(is_there, source + at * words["x_row"], self.line)
            found.append((start, fn.select(is_there, fn.number(1), fn.number(0))))
        self.found = found
        # The last rows that the next window takes.
        ahead = top + words["step_h"] + (self.form.window[0] - 1)
        self.ahead = source + ahead * words["x_row"]

    def along(
        self,
        at: Value,
        state: Sequence[Value],
        body: Callable[[Value, _Window, Sequence[Value]], list[Value]],
    ) -> list[Value]:
        """Fold `body(pixel, window, state)` over the pixels of a row, at a vector of channels."""
        fn, words, form = self.fn, self.words, self.form
        pixel, first = words["x_pixel"], words["first_w"]
        starts = [start + at * is_there for start, is_there in self.found]
        steps = [is_there * pixel for _, is_there in self.found]
        ahead = self.ahead + at
        height, width = form.window
        shared = max(0, width - form.step)

        def column(at: Value) -> list[Value]:
            return [self.load(s + at * t) for s, t in zip(starts, steps, strict=True)]

        def at_border(i: Value, carried: list[Value]) -> list[Value]:
            window = []
            for j in range(width):
                at = i * form.step + first + j
                is_there = fn.binary("and", at >= 0, at < words["width"])
                places = [
                    fn.select(is_there, s + at * t, self.line)
                    for s, t in zip(starts, steps, strict=True)
                ]
                window.append([self.load(place) for place in places])
            return body(i, window, carried)

        inner_first, inner_last = words["inner_first"], words["inner_last"]
        state = fn.fold(fn.number(0), inner_first, 1, list(state), at_border)

        def inside() -> list[Value]:
            begin = inner_first * form.step + first
            kept = [x for j in range(shared) for x in column(begin + j)]
            new = begin + shared
            places = [s + new * t for s, t in zip(starts, steps, strict=True)]
            count = len(kept)

            def one(i: Value, carried: list[Value]) -> list[Value]:
                flat, places = carried[:count], carried[count : count + height]
                own = carried[count + height : -1]
                window = [flat[j : j + height] for j in range(0, count, height)]
                for j in range(width - shared):
                    moved = [p + t * j if j else p for p, t in zip(places, steps, strict=True)]
                    window.append([self.load(place) for place in moved])
                for j, up in product(range(form.step), repeat=2):
                    prefetch(fn, carried[-1] + pixel * j - words["x_row"] * up)
                own = body(i, window, own)
                flat = [x for column in window[form.step :] for x in column]
                places = [p + t * form.step for p, t in zip(places, steps, strict=True)]
                return [*flat, *places, *own, carried[-1] + pixel * form.step]

            start = [*kept, *places, *state, ahead + new * pixel]
            return fn.fold(inner_first, inner_last, 1, start, one)[count + height : -1]

        # Without such pixels nothing is read ahead of them.
        state = fn.replaced(inner_first < inner_last, state, inside)
        return fn.fold(inner_last, words["pixels"], 1, state, at_border)


class _Forward(_Writer):
    def write(self, tid: Value, nth: Value) -> None:
        """A unit of work is a row of y."""
        fn, words = self.fn, self.words
        self.begin(tid)
        first, last = share(fn, words["images"] * words["rows"], tid, nth)

        def row(u: Value) -> None:
            image, number = quotient(fn, u, words["rows"])
            self.rows(image, number)
            target = words["y"] + u * words["y_row"]
            self.each_vector(lambda at: self._vector(at, target))

            def go_on() -> None:
                invoke(
                    fn,
                    words["epilogue"],
                    words["epilogue_words"],
                    u * words["pixels"],
                    words["pixels"],
                    fn.number(0),
                    words["channels"],
                )

            fn.when(words["epilogue"] != 0, go_on)

        fn.loop(first, last, 1, row)

    def _vector(self, at: Value, target: Value) -> None:
        fn, words = self.fn, self.words
        height, width = self.form.window
        taps = []
        place = words["filters"] + words["first_tap"] + at
        for _ in range(height * width):
            taps.append(self.load(place))
            place = place + words["filter_tap"]
        pixel, row = words["y_pixel"], words["y_row"]

        def body(i: Value, window: _Window, state: Sequence[Value]) -> list[Value]:
            total: Value | None = None
            for k, tap in enumerate(taps):
                x = window[k % width][k // width]
                total = x * tap if total is None else fn.call("fmuladd", x, tap, total)
            assert total is not None
            to = target + i * pixel + at
            store(fn, total, to, self.mask)
            prefetch(fn, to + row, write=True)
            return list(state)

        self.along(at, [fn.number(0)], body)


class _Gradient(_Writer):
    def write(self, tid: Value, nth: Value) -> None:
        """A unit of work is a part of the rows of dy."""
        fn, words = self.fn, self.words
        self.begin(tid)
        first, last = share(fn, words["parts"], tid, nth)
        units = words["images"] * words["rows"]

        def part(p: Value) -> None:
            self.sums = words["sums"] + p * words["sums_part"]
            begin, end = share(fn, units, p, words["parts"])
            self.each_vector(self._clear)

            def row(u: Value) -> None:
                image, number = quotient(fn, u, words["rows"])
                self.rows(image, number)
                source = words["dy"] + u * words["dy_row"]
                self.each_vector(lambda at: self._vector(at, source))

            fn.loop(begin, end, 1, row)

        fn.loop(first, last, 1, part)

    def _places(self, at: Value) -> list[Value]:
        height, width = self.form.window
        found = [self.sums + at]
        for _ in range(height * width - 1):
            found.append(found[-1] + self.words["sums_tap"])
        return found

    def _clear(self, at: Value) -> None:
        for place in self._places(at):
            store(self.fn, self.zero, place, self.mask)

    def _vector(self, at: Value, source: Value) -> None:
        fn, words = self.fn, self.words
        width = self.form.window[1]
        pixel = words["dy_pixel"]
        row = words["dy_row"]

        def body(i: Value, window: _Window, state: Sequence[Value]) -> list[Value]:
            place = source + i * pixel + at
            dy = self.load(place)
            prefetch(fn, place + row)
            return [
                fn.call("fmuladd", window[k % width][k // width], dy, total)
                for k, total in enumerate(state)
            ]

        places = self._places(at)
        sums = self.along(at, [self.load(place) for place in places], body)
        for x, place in zip(sums, places, strict=True):
            store(fn, x, place, self.mask)
