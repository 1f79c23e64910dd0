"""The gradient of a convolution with respect to an input of few channels.

Its channels would fill few lanes of a vector. So lanes are pixels here, in two steps:

    t[k, c; n, o] = sum over m of filters[k, c, m] * dy[n, o, m]        (a product of matrices)
    dx[n, i, c]   = sum over k of t[k, c; n, o],  i = o * stride + k * dilation - padding

Images are taken some at a time, so that t stays in the L2 cache.
"""

from __future__ import annotations

import math

from ....graph import DType
from ...codegen.control import fold, loop, replaced, when
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes, store_strided
from ...ir.kernel_target import Target
from ...ir.launch import Buffer, Launch, Matrix, Scratch, Word
from ...target import host
from ...target.code import Code
from ..addressing import WORD_BYTES, Words, function, load, place, quotient, share, word
from ..gemm.gemm import plan_gemm
from .window import Convolution, combined, gradient_phases

SYMBOL = "add_taps"
# So many products are worth the way of their sum through memory where lanes are half full at most.
_FEWEST_FILTERS = 16

WORDS = (
    *("sums", "sums_row"),  # of t: bytes for each k and c
    *("dx", "images", "depth", "height"),
    *("dx_image", "dx_plane", "dx_row", "dx_pixel"),
    *("stride_d", "stride_h", "stride_w"),
    *("out_depth", "out_height", "out_width"),
    "phases",
)
# For each phase; a tap is its offset along each axis, and its row of t in bytes.
PHASE_WORDS = ("first_w", "count_w", "num_taps", "taps")
_TAP_WORDS = 4


def is_narrow(conv: Convolution, dtype: DType, target: Target) -> bool:
    """Whether channels would leave much of a vector empty, and a pixel of dy is long enough."""
    lanes = target.lanes(dtype)
    fewest = lanes // 2 if conv.channels * 4 <= lanes else _FEWEST_FILTERS
    is_some = min(conv.output) > 0 and conv.groups == 1
    return is_some and conv.channels * 2 <= lanes and conv.filters >= fewest


def plan_narrow_gradient(
    dy: Word, filters: Word, dx: Word, conv: Convolution, dtype: DType, target: Target
) -> list[Launch]:
    """See plan_conv_input_gradient."""
    size = dtype.size
    pixels = math.prod(conv.output)
    rows = math.prod(conv.window) * conv.channels
    images = conv.images
    if isinstance(dy, Buffer) and isinstance(dx, Buffer):
        images = min(images, max(1, host.l2_cache() // (rows * pixels * size)))
    # An odd number of lines from row to row, for the sake of the L1 cache.
    pitch = (-(-images * pixels * size // (2 * host.LINE)) * 2 + 1) * host.LINE
    sums = Scratch(rows * pitch, "taps")
    found = []
    for first in range(0, conv.images, images):
        count = min(images, conv.images - first)
        part = conv.images != images
        dy_part = _shifted(dy, first * pixels * conv.filters * size) if part else dy
        dx_bytes = first * math.prod(conv.size) * conv.channels * size
        dx_part = _shifted(dx, dx_bytes) if part else dx
        a = Matrix(filters, conv.filters, 1)
        b = Matrix(dy_part, 1, conv.filters)
        c = Matrix(sums, pitch // size, 1)
        columns = count * pixels
        found += plan_gemm(a, b, c, rows, columns, conv.filters, dtype, target)
        found.append(_plan_adding(sums, pitch, dx_part, count, conv, dtype, target))
    return found


def _shifted(word: Word, num_bytes: int) -> Word:
    assert isinstance(word, Buffer)
    return word._replace(offset=word.offset + num_bytes)


def _plan_adding(
    sums: Word, pitch: int, dx: Word, images: int, conv: Convolution, dtype: DType, target: Target
) -> Launch:
    depth, height, width = conv.axes
    pixel = conv.channels * dtype.size
    row = width.size * pixel
    phases: list[Word] = []
    for d, h, w in combined(
        (gradient_phases(depth), gradient_phases(height), gradient_phases(width))
    ):
        taps: list[Word] = []
        for i, a in d.taps:
            for j, b in h.taps:
                for k, c in w.taps:
                    tap = (a * height.window + b) * width.window + c
                    taps += [i, j, k, tap * conv.channels * pitch]
        num_taps = len(taps) // _TAP_WORDS
        phases += [w.first, w.count, num_taps, tuple(taps)]
    values: dict[str, Word] = {
        "sums": sums,
        "sums_row": pitch,
        "dx": dx,
        "images": images,
        "depth": depth.size,
        "height": height.size,
        "dx_image": depth.size * height.size * row,
        "dx_plane": height.size * row,
        "dx_row": row,
        "dx_pixel": pixel,
        # Axes shorter than their stride have fewer phases.
        "stride_d": min(depth.stride, depth.size),
        "stride_h": min(height.stride, height.size),
        "stride_w": min(width.stride, width.size),
        "out_depth": depth.output,
        "out_height": height.output,
        "out_width": width.output,
        "phases": tuple(phases),
    }
    form = dtype, target.vector_bytes, conv.channels
    code = Code(f"{SYMBOL}_{conv.channels}", target.vector_bytes, _write, form)
    return Launch(code, tuple(values[name] for name in WORDS))


def _write(dtype: DType, vector_bytes: int, channels: int) -> str:
    module = Module()
    fn, (args, tid, nth) = function(module, f"{SYMBOL}_{channels}", 3)
    _Writer(fn, args, dtype, vector_bytes // dtype.size, channels).write(tid, nth)
    return module.text()


class _Writer:
    def __init__(
        self, fn: IRFunction, args: Value, dtype: DType, lanes: int, channels: int
    ) -> None:
        self.fn = fn
        self.channels = channels
        # AVX-512 has registers for them; a branch would cost more.
        self.masks_are_cheap = lanes * dtype.size == 64
        self.words = Words(fn, args, WORDS)
        self.dtype = dtype
        self.lanes = lanes

    def write(self, tid: Value, nth: Value) -> None:
        """A unit of work is a row of dx."""
        fn, words = self.fn, self.words
        first, last = share(fn, words["images"] * words["depth"] * words["height"], tid, nth)

        def row(u: Value) -> None:
            rest, h = quotient(fn, u, words["height"])
            image, d = quotient(fn, rest, words["depth"])
            i, phase_d = quotient(fn, d, words["stride_d"])
            j, phase_h = quotient(fn, h, words["stride_h"])
            target = words["dx"] + image * words["dx_image"]
            target = target + d * words["dx_plane"] + h * words["dx_row"]
            plane = words["sums"] + image * self._image_bytes()

            def phase(w: Value) -> None:
                number = (phase_d * words["stride_h"] + phase_h) * words["stride_w"] + w
                block = words["phases"] + number * (len(PHASE_WORDS) * WORD_BYTES)
                self._phase(Words(fn, block, PHASE_WORDS), i, j, plane, target)

            loop(fn, fn.number(0), words["stride_w"], 1, phase)

        loop(fn, first, last, 1, row)

    def _image_bytes(self) -> Value:
        words = self.words
        pixels = words["out_depth"] * words["out_height"] * words["out_width"]
        return pixels * self.dtype.size

    def _phase(self, phase: Words, i: Value, j: Value, sums: Value, target: Value) -> None:
        """The pixels of a row that the same taps reach."""
        fn, words = self.fn, self.words
        count = phase["count_w"]
        step = words["dx_pixel"] * words["stride_w"]
        start = target + phase["first_w"] * words["dx_pixel"]

        def block(k: Value) -> None:
            sums_of = self._sums(phase, i, j, k, sums)
            to = start + k * step
            is_whole = k + self.lanes <= count

            def put(mask: Value | None) -> None:
                for c, x in enumerate(sums_of):
                    store_strided(fn, x, place(fn, to + c * self.dtype.size), step, mask)

            when(fn, is_whole, lambda: put(None))
            when(fn, ~is_whole, lambda: put(first_lanes(fn, count - k, self.lanes)))

        loop(fn, fn.number(0), count, self.lanes, block)

    def _sums(self, phase: Words, i: Value, j: Value, k: Value, sums: Value) -> list[Value]:
        """The sums over taps for pixels k, k + 1, ..., a vector of them for each channel."""
        fn, words = self.fn, self.words
        zeros = fn.splat(fn.constant(0.0, Value(fn, "", self.dtype, 0)), self.lanes)
        out_depth, out_height = words["out_depth"], words["out_height"]
        out_width, taps = words["out_width"], phase["taps"]
        row = words["sums_row"]

        def tap(number: Value, carried: list[Value]) -> list[Value]:
            block = taps + number * (_TAP_WORDS * WORD_BYTES)
            d, h, w = i + word(fn, block, 0), j + word(fn, block, 1), k + word(fn, block, 2)
            is_there = fn.binary("and", d >= 0, d < out_depth)
            is_there = fn.binary("and", is_there, h >= 0)
            is_there = fn.binary("and", is_there, h < out_height)
            pixel = (d * out_height + h) * out_width + w
            at = sums + word(fn, block, 3) + pixel * self.dtype.size

            def added(old: list[Value], mask: Value | None) -> list[Value]:
                return [
                    x + load(fn, at + row * c, self.dtype, self.lanes, mask)
                    for c, x in enumerate(old)
                ]

            def at_border() -> list[Value]:
                inside = first_lanes(fn, out_width - w, self.lanes)
                before = first_lanes(fn, fn.number(0) - w, self.lanes)
                return added(carried, fn.binary("and", inside, ~before))

            if self.masks_are_cheap:
                return replaced(fn, is_there, carried, at_border)
            is_inside = fn.binary("and", w >= 0, w + self.lanes <= out_width)
            whole = fn.binary("and", is_there, is_inside)
            partly = fn.binary("and", is_there, ~is_inside)
            found = replaced(fn, whole, carried, lambda: added(carried, None))
            return replaced(fn, partly, found, at_border)

        return fold(fn, fn.number(0), phase["num_taps"], 1, [zeros] * self.channels, tap)
