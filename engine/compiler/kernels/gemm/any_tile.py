"""A microkernel for tiles of any height and width, of products of matrices.

The others (microkernel.py) have their sizes in their code. This one goes through its tile in parts:
four rows at a time, then two, then one, so that a result of a new size needs no new code. It adds
the same products in the same order, so what it makes has the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ....graph import DType, int64
from ...codegen.control import fold, loop, replaced
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes
from ...target.code import Code
from ...target.llvm import has_masks
from ..addressing import Words, function, load, store
from .microkernel import SHAPE

# What the kernel reads at `shape`: there is one offset, 0, and one group.
ANY_SHAPE = (*SHAPE, "rows")

# Heights of parts. Their sums hide the time of a multiplication, and 16 registers are enough.
HEIGHTS = (4, 2, 1)
SUMS = 8


def code(dtype: DType, vector_bytes: int) -> Code:
    """void any_tile(a, b, c, shape, columns, count, accumulate), as of a microkernel.

    It does not look at the two more arguments that some microkernels take.
    """
    return Code(f"any_tile_{dtype}", vector_bytes, _write, (dtype, vector_bytes))


def _write(dtype: DType, vector_bytes: int) -> str:
    module = Module()
    fn, arguments = function(module, f"any_tile_{dtype}", 7)
    _Writer(fn, dtype, vector_bytes, arguments).write()
    return module.text()


class _Writer:
    def __init__(
        self, fn: IRFunction, dtype: DType, vector_bytes: int, arguments: Sequence[Value]
    ) -> None:
        self.fn = fn
        self.dtype = dtype
        self.lanes = vector_bytes // dtype.size
        self.vector_bytes = vector_bytes
        self.a, self.b, self.c, shape, self.columns, self.count, self.add = arguments
        words = Words(fn, shape, ANY_SHAPE)
        self.rows, self.row_stride = words["rows"], words["row_stride"]
        self.strides = words["a_stride"], words["b_stride"]
        self.c_stride = words["c_stride"]

    def write(self) -> None:
        fn, first = self.fn, self.fn.number(0)
        for height in HEIGHTS:
            end = fn.binary("and", self.rows, -height)
            loop(fn, first, end, height, partial(self._rows, height=height))
            first = end

    def _rows(self, row: Value, height: int) -> None:
        """Some rows of the tile, panel by panel."""
        fn, width = self.fn, SUMS // height
        step, start = width * self.lanes, fn.number(0)
        places = [(row + i if i else row) for i in range(height)]
        sources = [self.a + place * self.row_stride for place in places]
        targets = [self.c + place * self.c_stride for place in places]
        if not has_masks(self.vector_bytes, self.dtype.size):  # there they take their time
            whole = fn.binary("and", self.columns, -step)
            no_masks: list[Value | None] = [None] * width
            loop(fn, start, whole, step, lambda n: self._part(sources, targets, n, no_masks))
            start = whole

        def part(n: Value) -> None:
            left = self.columns - n
            masks = [first_lanes(fn, left - v * self.lanes, self.lanes) for v in range(width)]
            self._part(sources, targets, n, masks)

        loop(fn, start, self.columns, step, part)

    def _part(
        self,
        sources: Sequence[Value],
        targets: Sequence[Value],
        column: Value,
        masks: Sequence[Value | None],
    ) -> None:
        fn, first = self.fn, column * self.dtype.size
        a_stride, b_stride = self.strides
        zero = fn.splat(fn.constant(0.0, Value(fn, "", self.dtype, 0)), self.lanes)

        def term(_: Value, state: list[Value]) -> list[Value]:
            *sums, at, place = state
            row = self._vectors(place, masks)
            # Out of sight of LLVM's strength reduction, as in microkernel.py.
            frozen = fn.instruction(f"freeze {at}", int64, 0)
            found = list[Value]()
            for source in sources:
                x = fn.splat(load(fn, source + frozen, self.dtype), self.lanes)
                for y in row:
                    found.append(fn.call("fmuladd", x, y, sums[len(found)]))
            return [*found, at + a_stride, place + b_stride]

        start = [*[zero] * SUMS, fn.number(0), self.b + first]
        sums = fold(fn, fn.number(0), self.count, 1, start, term)[:SUMS]
        places = [target + first for target in targets]

        def added() -> list[Value]:
            old = [y for place in places for y in self._vectors(place, masks)]
            return [x + y for x, y in zip(sums, old, strict=True)]

        sums = replaced(fn, self.add != 0, sums, added)
        for i, x in enumerate(sums):
            row, v = divmod(i, len(masks))
            store(fn, x, places[row] + v * self.vector_bytes, masks[v])

    def _vectors(self, address: Value, masks: Sequence[Value | None]) -> list[Value]:
        """A row of B or C."""
        places = [address + v * self.vector_bytes for v in range(len(masks))]
        return [
            load(self.fn, place, self.dtype, self.lanes, mask)
            for place, mask in zip(places, masks, strict=True)
        ]
