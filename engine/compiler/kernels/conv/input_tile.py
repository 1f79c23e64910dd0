"""The part of an operand that a band of a convolution takes.

It is copied, with zeros where it reaches beyond the operand, to memory of the thread that stays in
cache; without padding the operand is read where it is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ...codegen.control import loop, when
from ...codegen.function import Function, Value
from ...ir.launch import Scratch, Word
from ...target import host
from ..addressing import Words, invoke, minimum, quotient
from ..gemm.pack import COPY, ZERO

# What is copied of x for a unit; sizes and strides of memory in bytes.
BAND_WORDS = (
    *("x", "x_image", "x_plane", "x_row", "x_pixel"),
    *("depth", "height", "width"),
    "pixel_elements",
    *("copy", "band", "band_bytes"),  # copy: 0 or 1
    *("band_depth", "band_height", "band_width"),
    *("step_d", "step_h", "step_w"),  # of x for one of y
    *("first_d", "first_h", "first_w"),  # in x, for the first of y; may be negative
)


class Rows(NamedTuple):
    """An operand: bytes from an image, a plane, a row, a pixel to the next one."""

    data: Word
    image: int
    plane: int
    row: int
    pixel: int


def plan_band(
    x: Rows,
    size: tuple[int, int, int],
    channels: int,
    band: tuple[int, int, int] | None,
    steps: tuple[int, int, int],
    first: tuple[int, int, int],
    threads: int,
) -> dict[str, Word]:
    """The words about bands.

    Args:
        x: the operand.
        size: its depth, height and width.
        channels: elements of a pixel.
        band: the size of what is copied; None: nothing is.
        steps: of x for one of y.
        first: in x, for the first of y.
        threads: how many there may be.
    """
    num_bytes = host.whole_lines(math.prod(band) * x.pixel) if band else 0
    return {
        "x": x.data,
        "x_image": x.image,
        "x_plane": x.plane,
        "x_row": x.row,
        "x_pixel": x.pixel,
        "pixel_elements": channels,
        "copy": int(band is not None),
        "band": Scratch(num_bytes * threads, "band") if band else 0,
        "band_bytes": num_bytes,
        **_along_axes("depth", "height", "width", size),
        **_along_axes("band_depth", "band_height", "band_width", band or (0, 0, 0)),
        **_along_axes("step_d", "step_h", "step_w", steps),
        **_along_axes("first_d", "first_h", "first_w", first),
    }


def _along_axes(d: str, h: str, w: str, numbers: tuple[int, int, int]) -> dict[str, Word]:
    return dict(zip((d, h, w), numbers, strict=True))


class Band:
    """Code that makes the part of x for a unit ready.

    `words` has BAND_WORDS; the module has the functions that copy, and that write zeros.
    """

    def __init__(self, fn: Function, words: Words, tid: Value, size: int) -> None:
        self.fn = fn
        self.words = words
        self.size = size
        self.memory = words["band"] + words["band_bytes"] * tid

    def ready(self, image: Value, plane: Value, row: Value, pixel: Value) -> Value:
        """The address of the first element that y[image, plane, row, pixel] takes."""
        fn, words = self.fn, self.words
        d = plane * words["step_d"] + words["first_d"]
        h = row * words["step_h"] + words["first_h"]
        w = pixel * words["step_w"] + words["first_w"]
        x = words["x"] + image * words["x_image"]
        when(fn, words["copy"] != 0, lambda: self._copy(x, d, h, w))
        there = x + d * words["x_plane"] + h * words["x_row"] + w * words["x_pixel"]
        return fn.select(words["copy"] != 0, self.memory, there)

    def _copy(self, x: Value, d: Value, h: Value, w: Value) -> None:
        fn, words = self.fn, self.words
        zero, width = fn.number(0), words["band_width"]
        elements = words["pixel_elements"]
        left = fn.select(w < 0, zero - w, zero)
        left = minimum(fn, left, width)
        inside = minimum(fn, words["width"] - w, width) - left
        inside = fn.select(inside > 0, inside, zero)

        def row(i: Value) -> None:
            p, r = quotient(fn, i, words["band_height"])
            at_d, at_h = d + p, h + r
            is_there = fn.binary("and", at_d >= 0, at_d < words["depth"])
            is_there = fn.binary("and", is_there, at_h >= 0)
            is_there = fn.binary("and", is_there, at_h < words["height"])
            before = fn.select(is_there, left, width)
            middle = fn.select(is_there, inside, zero)
            to = self.memory + i * width * elements * self.size
            source = x + at_d * words["x_plane"] + at_h * words["x_row"]
            source = source + (w + before) * words["x_pixel"]
            invoke(fn, ZERO, to, before * elements)
            to = to + before * elements * self.size
            one, count = fn.number(1), middle * elements
            every = fn.select(count > 0, count, one)
            invoke(fn, COPY, to, source, one, zero, zero, count, every, zero)
            invoke(fn, ZERO, to + count * self.size, (width - before - middle) * elements)

        loop(fn, zero, words["band_depth"] * words["band_height"], 1, row)
