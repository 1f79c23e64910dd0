"""The innermost kernel of contractions on the matrix unit: as a microkernel, of pairs of bfloat16.

It is called as the kernels of microkernel.py are, and reads what they read. An element of A and of
B is a pair of bfloat16 next to each other along the sum, 4 bytes; C is float32. Pairs of a row of A
follow each other in memory. A tile of C is made of up to 2 x 2 tiles of the matrix unit, so each
one of A and B that is read is used twice.

Source: "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2, TDPBF16PS.
"""

from __future__ import annotations

from typing import NamedTuple

from ....graph import float32
from ...codegen.control import fold, loop, replaced, when
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes, room
from ...target.code import Code
from ..addressing import Words, function, load, store, word
from ..gemm.microkernel import SHAPE
from . import amx_instructions
from .amx_instructions import LINES, REGISTERS

MOST_ROWS = 2 * LINES
MOST_VECTORS = 2
_VECTOR_BYTES = 64
_SIZE = 4  # bytes of a pair, and of an element of C
_A, _B = 4, 6  # the first registers of A and B; those of C come before


class AmxTile(NamedTuple):
    """The form of a kernel.

    rows: up to MOST_ROWS.
    vectors: of 16 columns, up to MOST_VECTORS.
    masked: whether the last vector of C may be partial. That of B is whole memory in any case.
    depth: pairs in a tile, up to LINES; `count` is a multiple of it.
    """

    rows: int
    vectors: int
    masked: bool
    depth: int

    @property
    def heights(self) -> tuple[int, ...]:
        """Rows of the tiles below each other."""
        if self.rows <= LINES:
            return (self.rows,)
        return -(-self.rows // 2), self.rows // 2

    @property
    def code(self) -> Code:
        """void amx_tile(a, b, c, shape, columns, count, accumulate): see Tile.code."""
        name = f"amx_tile_{self.rows}x{self.vectors}x{self.depth}{'_masked' * self.masked}"
        return Code(name, _VECTOR_BYTES, _write, (name, *self))


def depth_of(count: int) -> int:
    """The most pairs of a tile for sums of `count` pairs, all of whose tiles are alike."""
    return max(d for d in range(1, LINES + 1) if count % d == 0)


def _write(name: str, rows: int, vectors: int, masked: bool, depth: int) -> str:
    module = Module()
    tile = AmxTile(rows, vectors, masked, depth)
    fn, arguments = function(module, name, 7)
    _Writer(fn, tile).write(f"{name}_config", *arguments)
    return module.text()


class _Writer:
    def __init__(self, fn: IRFunction, tile: AmxTile) -> None:
        self.fn = fn
        self.tile = tile

    def write(
        self,
        config: str,
        a: Value,
        b: Value,
        c: Value,
        shape: Value,
        columns: Value,
        count: Value,
        add: Value,
    ) -> None:
        fn, tile = self.fn, self.tile
        words = Words(fn, shape, SHAPE)
        row_stride, b_stride = words["row_stride"], words["b_stride"]
        c_stride, b_skip, offsets = words["c_stride"], words["b_skip"], words["offsets"]
        # For the part of C of which columns may be missing.
        self.room = room(fn, LINES * _VECTOR_BYTES) if tile.masked else ""
        self._configure(config)
        places = self._places(c, c_stride)
        is_added = add != 0
        when(fn, is_added, lambda: self._begin(places, c_stride, is_added=True))
        when(fn, ~is_added, lambda: self._begin(places, c_stride, is_added=False))

        def tap(o: Value, carried: list[Value]) -> list[Value]:
            start = a + word(fn, offsets, o)

            def step(k: Value, inner: list[Value]) -> list[Value]:
                at = start + k * _SIZE
                self._products(at, inner[0], row_stride, b_stride)
                return [inner[0] + b_stride * tile.depth]

            (end,) = fold(fn, fn.number(0), count, tile.depth, carried, step)
            return [end + b_skip]

        fold(fn, fn.number(0), words["num_offsets"], 1, [b], tap)
        for register, height, address, is_partial in places:
            if is_partial:
                self._store_part(register, height, address, c_stride, columns, is_added)
            else:
                amx_instructions.store_tile(fn, register, address, c_stride)

    def _configure(self, config: str) -> None:
        """Say how much of each register is used."""
        tile = self.tile
        widths, lines = [_VECTOR_BYTES] * REGISTERS, [tile.depth] * REGISTERS
        for i, height in enumerate(tile.heights):
            lines[_A + i] = height
            widths[_A + i] = tile.depth * _SIZE
            for j in range(tile.vectors):
                lines[i * tile.vectors + j] = height
        amx_instructions.configure(self.fn, config, widths, lines)

    def _places(self, c: Value, c_stride: Value) -> list[tuple[int, int, Value, bool]]:
        """The registers of C: lines, place in memory, and whether columns may be missing."""
        tile, found = self.tile, list[tuple[int, int, Value, bool]]()
        for i, height in enumerate(tile.heights):
            row = c + c_stride * tile.heights[0] if i else c
            for j in range(tile.vectors):
                is_partial = tile.masked and j == tile.vectors - 1
                address = row + j * _VECTOR_BYTES if j else row
                found.append((i * tile.vectors + j, height, address, is_partial))
        return found

    def _begin(
        self, places: list[tuple[int, int, Value, bool]], c_stride: Value, *, is_added: bool
    ) -> None:
        fn = self.fn
        for register, _, address, is_partial in places:
            if is_added and not is_partial:
                amx_instructions.load_tile(fn, register, address, c_stride)
            else:
                amx_instructions.zero_tile(fn, register)

    def _products(self, a: Value, b: Value, row_stride: Value, b_stride: Value) -> None:
        fn, tile = self.fn, self.tile
        for j in range(tile.vectors):
            address = b + j * _VECTOR_BYTES if j else b
            amx_instructions.load_tile(fn, _B + j, address, b_stride)
        for i in range(len(tile.heights)):
            row = a + row_stride * tile.heights[0] if i else a
            amx_instructions.load_tile(fn, _A + i, row, row_stride)
            for j in range(tile.vectors):
                amx_instructions.add_products(fn, i * tile.vectors + j, _A + i, _B + j)

    def _store_part(
        self,
        register: int,
        height: int,
        address: Value,
        c_stride: Value,
        columns: Value,
        is_added: Value,
    ) -> None:
        """By way of memory of its own, of which the columns that there are go to C."""
        fn, tile = self.fn, self.tile
        amx_instructions.store_tile(fn, register, self.room, _VECTOR_BYTES)
        mask = first_lanes(fn, columns - (tile.vectors - 1) * LINES, LINES)
        source = Value(fn, fn.named(f"ptrtoint ptr {self.room} to i64"), address.dtype, 0)

        def line(r: Value) -> None:
            at = address + r * c_stride
            x = load(fn, source + r * _VECTOR_BYTES, float32, LINES)
            (x,) = replaced(fn, is_added, [x], lambda: [x + load(fn, at, float32, LINES, mask)])
            store(fn, x, at, mask)

        loop(fn, fn.number(0), fn.number(height), 1, line)
