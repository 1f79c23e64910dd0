"""The part of an operand that an input tile of a convolution takes.

It is copied, with zeros where it reaches beyond the operand, to memory of the thread that stays in
cache; without padding the operand is read where it is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ...codegen.control import loop, when
from ...codegen.function import IRFunction, Value
from ...ir.launch import Scratch, Word
from ...target import host
from ..addressing import Words, invoke, minimum, quotient
from ..gemm.pack import COPY, ZERO

# What is copied of x for a unit; sizes and strides of memory in bytes.
INPUT_TILE_WORDS = (
    *("x", "x_image", "x_plane", "x_row", "x_pixel"),
    *("depth", "height", "width"),
    "pixel_elements",
    *("copy", "input_tile", "input_tile_bytes"),  # copy: 0 or 1
    *("input_tile_depth", "input_tile_height", "input_tile_width"),
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


def plan_input_tile(
    x: Rows,
    size: tuple[int, int, int],
    channels: int,
    input_tile: tuple[int, int, int] | None,
    steps: tuple[int, int, int],
    first: tuple[int, int, int],
    threads: int,
) -> dict[str, Word]:
    """The words about input tiles.

    Args:
        x: the operand.
        size: its depth, height and width.
        channels: elements of a pixel.
        input tile: the size of what is copied; None: nothing is.
        steps: of x for one of y.
        first: in x, for the first of y.
        threads: how many there may be.
    """
    num_bytes = host.whole_lines(math.prod(input_tile) * x.pixel) if input_tile else 0
    return {
        "x": x.data,
        "x_image": x.image,
        "x_plane": x.plane,
        "x_row": x.row,
        "x_pixel": x.pixel,
        "pixel_elements": channels,
        "copy": int(input_tile is not None),
        "input_tile": Scratch(num_bytes * threads, "input_tile") if input_tile else 0,
        "input_tile_bytes": num_bytes,
        **_along_axes("depth", "height", "width", size),
        **_along_axes(
            "input_tile_depth", "input_tile_height", "input_tile_width", input_tile or (0, 0, 0)
        ),
        **_along_axes("step_d", "step_h", "step_w", steps),
        **_along_axes("first_d", "first_h", "first_w", first),
    }


def _along_axes(d: str, h: str, w: str, numbers: tuple[int, int, int]) -> dict[str, Word]:
    return dict(zip((d, h, w), numbers, strict=True))


class InputTile:
    """Code that makes the part of x for a unit ready.

    `words` has INPUT_TILE_WORDS; the module has the functions that copy, and that write zeros.
    """

    def __init__(self, fn: IRFunction, words: Words, tid: Value, size: int) -> None:
        self.fn = fn
        self.words = words
        self.size = size
        self.memory = words["input_tile"] + words["input_tile_bytes"] * tid

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
        zero, width = fn.number(0), words["input_tile_width"]
        elements = words["pixel_elements"]
        left = fn.select(w < 0, zero - w, zero)
        left = minimum(fn, left, width)
        inside = minimum(fn, words["width"] - w, width) - left
        inside = fn.select(inside > 0, inside, zero)

        def row(i: Value) -> None:
            p, r = quotient(fn, i, words["input_tile_height"])
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

        loop(fn, zero, words["input_tile_depth"] * words["input_tile_height"], 1, row)
