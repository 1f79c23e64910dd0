"""The innermost kernel of all contractions: a tile of C, kept in registers, over a sum of products.

    C[r, n] (+)= sum over o, k of A[r; o, k] * B[o, k; n]

A tile is `groups` x `rows` rows high and `vectors` vectors wide. Addresses, in bytes:

    A[g, r; o, k]: a + g * group_stride + r * row_stride + offsets[o] + k * a_stride
    B[o, k; n]:    b + (o * count + k) * b_stride + o * b_skip + n elements
    C[g, r; n]:    c + (g * rows + r) * c_stride + n elements

A product of matrices has one o; a convolution one for each tap of its window (or run of taps that
follow each other in memory), so `offsets` is all it takes to know the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....graph import DType, int64
from ...codegen.control import fold, replaced, when
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes
from ...ir.kernel_target import Target
from ...target.code import Code
from ...target.host import LINE
from ..addressing import Words, function, load, prefetch, store, word
from .tiles import Cut

# What the kernel reads at `shape`.
SHAPE = (
    "row_stride",
    "group_stride",
    "a_stride",
    "b_stride",
    "b_skip",
    "c_stride",
    "num_offsets",
    "offsets",
)

# One register, advanced along k, reaches this many rows: x86 adds an index times 1, 2, 4 or 8, and
# the indices are row_stride times 1, 3 and 5.
_ROWS_OF_A_BASE = 7
# Products along k in a round of the innermost loop.
UNROLL = 2
# B is fetched into the L1 cache this many k before it is used, by tiles of some height: lower
# ones have no time to spare for that. Nor have 4 x 3 short vectors, whose panels stay there: each
# fetch takes the place of a load, and of the power that the clock depends on.
_FETCHED_AHEAD = 8
_FEWEST_ROWS_TO_FETCH = 4
_FEWEST_ROWS_TO_FETCH_SHORT = 5
# Rounds of the innermost loop in which a line of C is on its way into the L1 cache. Lines from
# beyond the second one take long, and hold few places meanwhile, which lines of A and B need too.
_ROUNDS_OF_LINE = 2


class Tile(NamedTuple):
    """The form of a microkernel.

    masked: the last vector of B, and so that of C, may be partial.
    lanewise: A has a vector for each vector of B, A[r; o, k, n], instead of one element for all n:
        then C[r, n] is a sum of A[r; o, k, n] * B[o, k; n].
    ahead: the kernel also fetches what is needed later into the L2 cache, a line for each round
        of k, which is UNROLL of them.
    paced: C is far away: its lines are fetched one after the other while the sums are made, if
        these are long enough. For vectors of a whole line.
    pairs: an element of A and of B is two bfloat16 next to each other along the sum, whose products
        are both added to the float32 of C. For AVX512_BF16, which takes subnormal numbers for 0.
    """

    dtype: DType
    vector_bytes: int
    rows: int
    vectors: int
    groups: int = 1
    masked: bool = True
    lanewise: bool = False
    ahead: bool = False
    paced: bool = False
    pairs: bool = False

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return self.vector_bytes // self.dtype.size

    @property
    def height(self) -> int:
        """Rows of C."""
        return self.groups * self.rows

    @property
    def width(self) -> int:
        """Columns of C."""
        return self.vectors * self.lanes

    @property
    def code(self) -> Code:
        """void microkernel(a, b, c, shape, columns, count, accumulate); see `ahead` for two more.

        columns: how many of the tile's columns there are; only the last vector may be partial.
        count: how many k.
        accumulate: whether to add to C.
        ahead, ahead_step: with `ahead`, an address to fetch, and how far it moves with each round;
            without, nobody looks at them if they are given.
        """
        kind = "_masked" * self.masked + "_lanewise" * self.lanewise + "_ahead" * self.ahead
        kind += "_paced" * self.paced + "_pairs" * self.pairs
        name = f"microkernel_{self.dtype}_{self.groups}x{self.rows}x{self.vectors}{kind}"
        return Code(name, self.vector_bytes, _write, (name, *self))


def tile_of(code: Code) -> Tile | None:
    """The form of a microkernel; None of other code."""
    form: Any = code.parameters[1:]
    return Tile(*form) if code.writer is _write else None


def _write(name: str, *form: Any) -> str:
    module = Module()
    tile = Tile(*form)
    fn, arguments = function(module, name, 9 if tile.ahead else 7)
    _Writer(fn, tile).write(*arguments)
    return module.text()


def microkernels(
    rows: Cut,
    vectors: Cut,
    columns: int,
    dtype: DType,
    target: Target,
    *,
    groups: int = 1,
    lanewise: bool = False,
    ahead: bool = False,
    paced: bool = False,
    pairs: bool = False,
) -> tuple[Code, ...]:
    """The four of a grid: high and wide, high and narrow, low and wide, low and narrow.

    Args:
        rows: heights of tiles, in all groups.
        vectors: widths of tiles.
        columns: of the result, the last vector of which may be partial.
        dtype: of all operands.
        target: the vectors.
        groups: see Tile.
        lanewise: see Tile.
        ahead: see Tile.
        paced: see Tile.
        pairs: see Tile.
    """
    masked = columns % target.lanes(dtype) != 0
    heights = [size // groups for size, _ in rows.sizes] * 2
    widths = [size for size, _ in vectors.sizes] * 2
    kind = masked, lanewise, ahead, paced, pairs
    return tuple(
        Tile(dtype, target.vector_bytes, height, width, groups, *kind).code
        for height in heights[:2]
        for width in widths[:2]
    )


def dot_of_pairs(fn: IRFunction, x: Value, y: Value, to: Value) -> Value:
    """x[0] * y[0] + x[1] * y[1] + to, for pairs of bfloat16 that are in float32 registers.

    Source: "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2, VDPBF16PS.
    """
    name, pairs = "llvm.x86.avx512bf16.dpbf16ps.512", "<32 x bfloat>"
    fn.module.declarations[name] = f"declare {to.type} @{name}({to.type}, {pairs}, {pairs})"
    left, right = (fn.named(f"bitcast {v} to {pairs}") for v in (x, y))
    call = f"call {to.type} @{name}({to}, {pairs} {left}, {pairs} {right})"
    return fn.instruction(call, to.dtype, to.lanes)


class _Writer:
    def __init__(self, fn: IRFunction, tile: Tile) -> None:
        self.fn = fn
        self.tile = tile

    def write(
        self,
        a: Value,
        b: Value,
        c: Value,
        shape: Value,
        columns: Value,
        count: Value,
        add: Value,
        *ahead: Value,
    ) -> None:
        fn, tile = self.fn, self.tile
        words = Words(fn, shape, SHAPE)
        self.row_stride = words["row_stride"]
        self.row_stride_3 = self.row_stride * 3
        self.row_stride_5 = self.row_stride * 5
        self.a_stride, self.b_stride = words["a_stride"], words["b_stride"]
        # Products of short vectors share ports with what adds to addresses: B moves on once in a
        # round, and its other rows in it are an index away. Longer ones have ports of their own.
        rows = range(1, UNROLL + 1 if tile.vector_bytes < LINE else 1)
        self.b_rows = [self.b_stride * row for row in rows]
        # From the row of B at which a round begins, or else from each row.
        self.fetched = [self.b_stride * (_FETCHED_AHEAD + row) for row in range(len(rows) or 1)]
        self.mask = first_lanes(fn, columns - (tile.vectors - 1) * tile.lanes, tile.lanes)
        self.counts = list(self._row_counts())
        steps = self._base_steps(words["group_stride"])
        zero = fn.splat(fn.constant(0.0, Value(fn, "", tile.dtype, 0)), tile.lanes)
        num_sums = tile.groups * tile.rows * tile.vectors
        sums = [zero] * num_sums
        # A C that is read is on its way into the cache while the sums are made. One that is only
        # written can wait in the store buffer, and A and B are not kept from the lines' way in;
        # where vectors are short, a tile has so few lines that they are in nobody's way.
        # Far lines come one after the other instead.
        self.c, self.c_stride = c, words["c_stride"]
        if tile.vector_bytes < LINE:
            self._fetch()
        elif tile.paced:
            height = fn.number(tile.groups * tile.rows)
            self.num_paced = fn.select(count >= height * self._paced, height, fn.number(0))
            when(fn, (add != 0) & (self.num_paced <= 0), self._fetch)
        else:
            when(fn, add != 0, self._fetch)
        self.ahead_step = ahead[1:]
        offsets, b_skip = words["offsets"], words["b_skip"]
        whole = fn.binary("and", count, -UNROLL)

        def taps(o: Value, carried: list[Value]) -> Sequence[Value]:
            *sums, b = carried[: num_sums + 1]
            base = a + word(fn, offsets, o)
            bases = [base]
            for step in steps:
                bases.append(bases[-1] + step)
            state = [*sums, *bases, *carried[num_sums:]]
            state = self._rounds(whole, state)
            state = fold(fn, whole, count, 1, state, lambda k, s: self._steps(s, False))
            b, *later = state[num_sums + len(bases) :]
            return [*state[:num_sums], b + b_skip, *later]

        start = [*sums, b, *ahead[:1]]
        sums = fold(fn, fn.number(0), words["num_offsets"], 1, start, taps)[:num_sums]
        places = self._places()
        sums = replaced(fn, add != 0, sums, lambda: self._added(sums, places))
        for x, (address, mask) in zip(sums, places, strict=True):
            store(fn, x, address, mask)

    @property
    def _paced(self) -> int:
        """How many k go by while the lines of a row of C are fetched."""
        return self.tile.vectors * _ROUNDS_OF_LINE * UNROLL

    def _fetch(self) -> None:
        tile = self.tile
        places = self._places()
        for row in range(0, len(places), tile.vectors):
            for address, _ in places[row : row + tile.vectors : LINE // tile.vector_bytes]:
                prefetch(self.fn, address, write=True)

    def _places(self) -> list[tuple[Value, Value | None]]:
        """Where each vector of the tile is in C, and its mask."""
        tile, c, found = self.tile, self.c, list[tuple[Value, Value | None]]()
        for r in range(tile.groups * tile.rows):
            c = c + self.c_stride if r else c
            for v in range(tile.vectors):
                mask = self.mask if tile.masked and v == tile.vectors - 1 else None
                found.append((c + v * tile.vector_bytes if v else c, mask))
        return found

    def _added(
        self, sums: Sequence[Value], places: Sequence[tuple[Value, Value | None]]
    ) -> list[Value]:
        """The sums, and what C holds."""
        tile = self.tile
        return [
            x + load(self.fn, address, tile.dtype, tile.lanes, mask)
            for x, (address, mask) in zip(sums, places, strict=True)
        ]

    def _row_counts(self) -> Sequence[int]:
        """How many rows each base reaches."""
        found = []
        for _ in range(self.tile.groups):
            left = self.tile.rows
            num_bases = -(-left // _ROWS_OF_A_BASE)
            for i in range(num_bases):
                found.append(left // num_bases + (i < left % num_bases))
        return found

    def _base_steps(self, group_stride: Value) -> list[Value]:
        """From each base to the next one."""
        per_group = len(self.counts) // self.tile.groups
        steps = []
        for i in range(1, len(self.counts)):
            if i % per_group:
                steps.append(self.row_stride * self.counts[i - 1])
            else:
                reached = sum(self.counts[i - per_group : i - 1])
                steps.append(group_stride - self.row_stride * reached)
        return steps

    def _rounds(self, whole: Value, state: list[Value]) -> list[Value]:
        """All whole rounds: first those in which rows of C are fetched, then what is left."""
        fn = self.fn
        if not self.tile.paced:
            return fold(fn, fn.number(0), whole, UNROLL, state, lambda k, s: self._steps(s, True))

        def row(r: Value, state: list[Value]) -> list[Value]:
            is_row = r < self.num_paced
            begin = r * self._paced
            end = fn.select(is_row, begin + self._paced, whole)
            # After the last row a line of the first one is fetched again, which takes no time.
            place = self.c + fn.select(is_row, r, fn.number(0)) * self.c_stride
            step = fn.select(is_row, fn.number(LINE // _ROUNDS_OF_LINE), fn.number(0))

            def steps(k: Value, state: list[Value]) -> list[Value]:
                *state, place = state
                prefetch(fn, place, write=True)
                return [*self._steps(state, True), place + step]

            return fold(fn, begin, end, UNROLL, [*state, place], steps)[:-1]

        return fold(fn, fn.number(0), self.num_paced + 1, 1, state, row)

    def _steps(self, state: list[Value], unrolled: bool) -> list[Value]:
        place = self.tile.groups * self.tile.rows * self.tile.vectors + len(self.counts)
        b = state[place]
        for i in range(UNROLL if unrolled else 1):
            state = self._step(state, (b, i) if self.b_rows else (state[place], 0))
            if self.b_rows:
                state[place] = b + self.b_rows[i]
        if self.ahead_step and unrolled:
            prefetch(self.fn, state[-1], level=2)
            state = [*state[:-1], state[-1] + self.ahead_step[0]]
        return state

    def _step(self, state: list[Value], origin: tuple[Value, int]) -> list[Value]:
        """One k: the products of a column of A and a row of B.

        Args:
            state: sums, bases of A, the row of B.
            origin: a row of B, and which of `fetched` is how far from it to fetch.
        """
        fn, tile = self.fn, self.tile
        num_sums = tile.groups * tile.rows * tile.vectors
        num_bases = len(self.counts)
        sums, bases = state[:num_sums], state[num_sums : num_sums + num_bases]
        b, *ahead = state[num_sums + num_bases :]
        row = self._vectors(b)
        is_long = tile.vector_bytes >= LINE
        fewest = _FEWEST_ROWS_TO_FETCH if is_long else _FEWEST_ROWS_TO_FETCH_SHORT
        if tile.groups * tile.rows >= fewest and not tile.lanewise:
            start, number = origin
            for line in range(0, tile.vectors * tile.vector_bytes, LINE):
                prefetch(fn, start + self.fetched[number] + line)
        found = list[Value]()
        for base, count in zip(bases, self.counts, strict=True):
            # Frozen, it is out of sight of LLVM's strength reduction, which would make a chain of
            # additions of the addresses of the rows.
            frozen = fn.instruction(f"freeze {base}", int64, 0)
            for r in range(count):
                address = self._row(frozen, r)
                if tile.lanewise:
                    xs = self._vectors(address)
                else:
                    xs = [fn.splat(load(fn, address, tile.dtype), tile.lanes)] * tile.vectors
                for x, y in zip(xs, row, strict=True):
                    found.append(self._added_product(x, y, sums[len(found)]))
        bases = [base + self.a_stride for base in bases]
        return [*found, *bases, b + self.b_stride, *ahead]

    def _added_product(self, x: Value, y: Value, to: Value) -> Value:
        fn = self.fn
        return dot_of_pairs(fn, x, y, to) if self.tile.pairs else fn.call("fmuladd", x, y, to)

    def _vectors(self, address: Value) -> list[Value]:
        """The vectors of a row of B, or of A."""
        tile = self.tile
        last = tile.vectors - 1
        return [
            load(
                self.fn,
                address + v * tile.vector_bytes if v else address,
                tile.dtype,
                tile.lanes,
                self.mask if tile.masked and v == last else None,
                # Otherwise LLVM repeats the load where registers are short.
                is_fixed=tile.groups * tile.rows > 1 and not tile.lanewise,
            )
            for v in range(tile.vectors)
        ]

    def _row(self, base: Value, r: int) -> Value:
        """The address of row `r` of a base, in the forms that x86 has."""
        stride, shift = {
            0: (None, 0),
            1: (self.row_stride, 0),
            2: (self.row_stride, 1),
            3: (self.row_stride_3, 0),
            4: (self.row_stride, 2),
            5: (self.row_stride_5, 0),
            6: (self.row_stride_3, 1),
        }[r]
        if stride is None:
            return base
        return base + (self.fn.binary("shl", stride, shift) if shift else stride)
