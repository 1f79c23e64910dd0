"""The launch of the kernel of convolutions: input tiles, tiles, and where their operands are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ....graph import DType
from ...ir.kernel_target import Target
from ...ir.launch import Epilogue, Launch, Word
from ...target import host
from ..gemm.epilogue_scratch import plan_epilogue_scratch
from ..gemm.microkernel import SHAPE
from ..gemm.operand_format import Factors
from ..gemm.tiles import Cut, Grid, choose_lanewise_grid
from . import conv_kernel as kernel
from .filter_layout import Packed
from .input_tile import Rows, plan_input_tile
from .window import Convolution, Phase, Reach, combined

# An input tile of this size stays in the L2 cache, with filters and results beside it.
INPUT_TILE_SHARE = 3 / 32
# Cycles for a vector of filters, which are read again for each row of the result.
COST_OF_FILTERS = 0.4
# Enough units of work for threads to come out even.
_UNITS_PER_THREAD = 4


class Image(NamedTuple):
    """Images in memory, channels last; `size` is depth, height, width."""

    data: Word
    size: tuple[int, int, int]
    channels: int

    def strides(self, dtype: DType) -> tuple[int, int, int, int]:
        """Bytes from an image, a plane, a row, a pixel to the next one."""
        pixel = self.channels * dtype.size
        depth, height, width = self.size
        return depth * height * width * pixel, height * width * pixel, width * pixel, pixel


class ConvGeometry(NamedTuple):
    """How a result is made from an operand: phases along each axis, and their reach."""

    phases: tuple[list[Phase], list[Phase], list[Phase]]
    reach: tuple[Reach, Reach, Reach]

    @classmethod
    def of(cls, d: list[Phase], h: list[Phase], w: list[Phase]) -> ConvGeometry:
        return cls((d, h, w), (Reach.of(d), Reach.of(h), Reach.of(w)))

    @property
    def steps(self) -> tuple[int, int, int]:
        """Elements of the operand for one of the result."""
        d, h, w = (phases[0].step for phases in self.phases)
        return d, h, w

    @property
    def counts(self) -> tuple[int, int, int]:
        """The most points of a phase along each axis."""
        d, h, w = (max(p.count for p in phases) for phases in self.phases)
        return d, h, w

    def stays_inside(self, size: Sequence[int]) -> bool:
        """Whether no phase reaches beyond the operand."""
        return all(
            phase.taps[0][0] >= 0 and (phase.count - 1) * phase.step + phase.taps[-1][0] < length
            for phases, length in zip(self.phases, size, strict=True)
            for phase in phases
            if phase.taps
        )


def is_lanewise(conv: Convolution) -> bool:
    """Whether each channel of y is made of the same channel of x, so that lanes are channels."""
    return 1 < conv.channels == conv.filters == conv.groups


class Filters(NamedTuple):
    """Where filters are, with strides in bytes; `panel` or `column` is 0."""

    data: Word
    group: int
    panel: int
    column: int
    tap: int
    row: int
    skip: int

    @classmethod
    def of(cls, packed: Packed) -> Filters:
        return cls(packed.data, packed.group, packed.panel, 0, packed.tap, packed.row, packed.skip)


class ConvPlan:
    """The parts of a launch of the kernel of convolutions."""

    def __init__(
        self,
        geometry: ConvGeometry,
        source: Image,
        result: Image,
        conv: Convolution,
        inside: int,
        outside: int,
        factors: Factors,
        target: Target,
    ) -> None:
        self.geometry = geometry
        self.source = source
        self.result = result
        self.conv = conv
        self.inside = inside
        self.outside = outside
        self.factors = factors
        self.dtype = factors.dtype
        self.target = target
        self.is_lanewise = is_lanewise(conv)
        self.groups = 1 if self.is_lanewise else conv.groups
        self.phases = list(combined(geometry.phases))
        self.has_copy = not geometry.stays_inside(source.size)
        grid = self._grid()
        self.vectors = grid.vectors
        self.highest = grid.rows.large
        _, height, width = conv.axes
        self._window = height.window, width.window
        self.tap_order = [tap for phase in self.phases for tap in self._taps_of(phase)]

    def _grid(self) -> Grid:
        pixels = self.geometry.counts[2]
        sums = math.prod(self.conv.window) * self.inside
        vectors = -(-self.outside // self.target.lanes(self.dtype))
        if self.is_lanewise:
            return choose_lanewise_grid(pixels, vectors, self.target.registers)
        return self.factors.grid(pixels, vectors, sums, self.target, COST_OF_FILTERS)

    def _taps_of(self, phase: tuple[Phase, ...]) -> list[int]:
        """The numbers of the taps of a phase, in the order of their offsets."""
        d, h, w = phase
        height, width = self._window
        return [
            (i * height + j) * width + k for _, i in d.taps for _, j in h.taps for _, k in w.taps
        ]

    def launch(self, filters: Filters, epilogue: Epilogue | None) -> Launch:
        """The launch, with filters in the order of `tap_order`."""
        size = self.dtype.size
        rows, tiles, input_tile = self._input_tiles()
        x = Rows(self.source.data, *self.source.strides(self.dtype))
        lanes = self.target.lanes(self.dtype)
        num_tiles = -(-self.geometry.counts[2] // self.highest)
        blocks: list[Word] = []
        place = 0
        for phase in self.phases:
            blocks.extend(self._phase(phase, place * filters.tap, filters, input_tile))
            place += len(self._taps_of(phase))
        y_pixel = self.result.strides(self.dtype)[-1]
        own = plan_epilogue_scratch(epilogue, tiles * self.highest * y_pixel, self.target.threads)
        values: dict[str, Word] = {
            **plan_input_tile(
                *(x, self.source.size, self.source.channels),
                *(input_tile if self.has_copy else None, self.geometry.steps, self.reach_first),
                self.target.threads,
            ),
            "y": 0 if own["own"] else self.result.data,
            "y_image": self.result.strides(self.dtype)[0],
            "filters": filters.data,
            "images": self.conv.images,
            "planes": self.geometry.counts[0],
            "input_tiles": -(-self.geometry.counts[1] // rows),
            "input_tile_rows": rows,
            "input_tile_tiles": tiles,
            "tile_blocks": -(-num_tiles // tiles),
            "groups": self.groups,
            "x_group": self.inside * size,
            "y_group": self.outside * size,
            "filter_group": filters.group,
            "x_column": size if self.is_lanewise else 0,
            "panel_columns": self.vectors.large * lanes,
            "num_wide_panels": self.vectors.num_large,
            "num_panels": self.vectors.parts,
            "columns": self.outside,
            "filter_panel": filters.panel,
            "filter_columns": filters.column,
            "num_phases": len(self.phases),
            "phases": tuple(blocks),
            "epilogue": epilogue.code if epilogue else 0,
            "epilogue_words": epilogue.words if epilogue else 0,
            **own,
        }
        code = kernel.code(self.dtype, self.target.vector_bytes)
        return Launch(code, tuple(values[name] for name in kernel.WORDS))

    @property
    def reach_first(self) -> tuple[int, int, int]:
        """Where the reach of all phases begins."""
        d, h, w = (reach.first for reach in self.geometry.reach)
        return d, h, w

    def _input_tiles(self) -> tuple[int, int, tuple[int, int, int]]:
        """Rows of an input tile, tiles of an input tile, and the size of what is copied for it."""
        num_rows, num_pixels = self.geometry.counts[1:]
        (_, step_h, step_w), (d, h, w) = self.geometry.steps, self.geometry.reach
        pixel = d.span * self.source.channels * self.dtype.size
        num_tiles = -(-num_pixels // self.highest)
        most = host.in_l2_cache(INPUT_TILE_SHARE)

        def taken(rows: int, tiles: int) -> tuple[int, int, int]:
            pixels = min(tiles * self.highest, num_pixels)
            return d.span, (rows - 1) * step_h + h.span, (pixels - 1) * step_w + w.span

        def fits(rows: int, tiles: int) -> bool:
            return math.prod(taken(rows, tiles)[1:]) * pixel <= most

        blocks = 1
        if len(self.phases) == 1:
            while blocks < num_tiles and not fits(1, -(-num_tiles // blocks)):
                blocks += 1
        tiles = -(-num_tiles // blocks)
        rows = num_rows
        while rows > 1 and not fits(rows, tiles):
            rows -= 1
        units = self.conv.images * self.geometry.counts[0] * blocks
        threads = self.target.threads
        input_tiles = -(-num_rows // rows)
        for more in range(input_tiles, num_rows + 1):
            if units * more % threads == 0 or units * more >= _UNITS_PER_THREAD * threads:
                input_tiles = more
                break
        rows = -(-num_rows // input_tiles)
        return rows, tiles, taken(rows, tiles)

    def _phase(
        self,
        phase: tuple[Phase, ...],
        filter_offset: int,
        filters: Filters,
        input_tile: tuple[int, int, int],
    ) -> list[Word]:
        """The words of a phase."""
        d, h, w = phase
        size = self.dtype.size
        image, plane, row, pixel = self.result.strides(self.dtype)
        cut = Cut.of(w.count, self.highest)
        offsets, run, spacing = self._offsets(phase, filters, input_tile)
        count = run if self.is_lanewise else run * self.inside
        shape: dict[str, Word] = {
            "row_stride": w.step * self.source.channels * size,
            "group_stride": 0,
            "a_stride": spacing if self.is_lanewise else size,
            "b_stride": filters.row,
            "b_skip": filters.skip,
            "c_stride": w.every * pixel,
        }
        shapes, row_taps = self._row_taps(phase, shape, offsets, filters)
        values: dict[str, Word] = {
            "y_offset": d.first * plane + h.first * row + w.first * pixel,
            "y_plane": d.every * plane,
            "y_row": h.every * row,
            "y_pixel": w.every * pixel,
            "planes": d.count,
            "rows": h.count,
            "pixels": w.count,
            "tile_rows": cut.large,
            "num_high_tiles": cut.num_large,
            "num_tiles": cut.parts,
            "filter_offset": filter_offset,
            "count": count,
            "shapes": shapes,
            "row_taps": row_taps,
            "microkernels": self.factors.microkernels(
                cut, self.vectors, self.outside, count, self.target, lanewise=self.is_lanewise
            ),
        }
        return [values[name] for name in kernel.PHASE_WORDS]

    def _row_taps(
        self,
        phase: tuple[Phase, ...],
        shape: dict[str, Word],
        offsets: list[int],
        filters: Filters,
    ) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
        """The shapes of a phase, and for each row its shape and where its filters begin.

        In one plane, taps beyond the operand are left out: they would add zeros.
        """
        d, h, w = phase
        each = len(offsets) // max(1, len(d.taps) * len(h.taps))  # offsets for a tap along h
        kinds: dict[tuple[int, int], int] = {}
        rows: list[Word] = []
        for row in range(h.count):
            inside = [
                i
                for i, (offset, _) in enumerate(h.taps)
                if len(d.taps) != 1 or 0 <= row * h.step + offset < self.source.size[1]
            ]
            first, last = (inside[0], inside[-1] + 1) if inside else (0, 0)
            rows += [kinds.setdefault((first, last), len(kinds)), first * len(w.taps) * filters.tap]
        shapes: list[Word] = []
        for first, last in kinds:
            part = offsets if len(d.taps) != 1 else offsets[first * each : last * each]
            words = shape | {"num_offsets": len(part), "offsets": tuple(part)}
            shapes.append(tuple(words[name] for name in SHAPE))
        return tuple(shapes), tuple(rows)

    def _offsets(
        self, phase: tuple[Phase, ...], filters: Filters, input_tile: tuple[int, int, int]
    ) -> tuple[list[int], int, int]:
        """Where the taps of a phase are in the operand, how many are a run, and how far apart.

        Taps along the width follow each other in memory when they are one pixel apart and there is
        one group; then a run of them is one tap of more channels. Lanewise, a run may be of any
        taps that are equally far apart.
        """
        _, plane, row, pixel = self.source.strides(self.dtype)
        if self.has_copy:
            row = input_tile[2] * pixel
            plane = input_tile[1] * row
        d, h, w = phase
        widths = [offset for offset, _ in w.taps]
        spacings = {b - a for a, b in zip(widths, widths[1:], strict=False)}
        if self.is_lanewise:
            is_run = len(spacings) <= 1
        else:
            is_run = spacings <= {1} and self.groups == 1 and not filters.skip
        run = len(widths) if is_run and widths else 1
        first_d, first_h, first_w = self.reach_first
        found = [
            (i - first_d) * plane + (j - first_h) * row + (k - first_w) * pixel
            for i, _ in d.taps
            for j, _ in h.taps
            for k in widths[::run]
        ]
        return found, run, max(spacings, default=1) * pixel
