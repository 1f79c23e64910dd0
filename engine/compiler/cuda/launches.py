"""The launches of kernels of loops for real sizes: which variant, on what grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...cuda_program import Dims
from ..ir.kernel import Kernel
from ..schedule.buffer_assignment import BufferAssignment
from ..schedule.kernel_accesses import Access, KernelAccesses
from .loops import COLUMN_ROWS, THREADS, WARP, WARPS, LoopCode, Variant, is_transposed, loop_code
from .source import ArgumentSpec, Number, Part

# What one thread loads at once.
_VECTOR_BYTES = 16
_MOST_LANES = 8
# With more elements, or places further apart, numbers of places may not fit in 32 bits.
_NARROW = 1 << 30
_MOST_BLOCKS = 4096  # that go through elements; each goes on until all are done
# Operands that lie along another axis are read by tiles, if these are not much larger than they.
_LEAST_TILE = 8
_MOST_TILES = 4  # in shared memory
_LONG_ROW = 1024  # elements that a block shares, fewer are for a warp


class LoopLaunch(NamedTuple):
    """A launch of a kernel of loops, whose arguments are not yet addresses.

    Attributes:
        code: what runs.
        grid: see `cuda_program.Launch`.
        block: the same.
        numbers: the value of each argument that is a number.
    """

    code: LoopCode
    grid: Dims
    block: Dims
    numbers: dict[ArgumentSpec, int]


class LoopPlanner:
    """Plans kernels of loops.

    Args:
        layout: the program where they belong.
        real: gives the real size of a symbolic size.
        aligned: whether an element of a storage begins at a multiple of some bytes.
        is_guarded: whether a kernel is to do nothing after a check has failed.
    """

    def __init__(
        self,
        layout: BufferAssignment,
        real: Callable[[int], int],
        aligned: Callable[[int, int, int], bool],
        is_guarded: Callable[[Kernel], bool],
    ) -> None:
        self._layout = layout
        self._real = real
        self._aligned = aligned
        self._is_guarded = is_guarded

    def plan(self, kernel: Kernel) -> LoopLaunch:
        """The launch of a kernel."""
        accesses = KernelAccesses(self._layout, kernel)
        groups = accesses.joined()
        sizes = [self._size(kernel, group) for group in groups]
        reduced = [bool(kernel.axes) and g[0] in (kernel.axes or ()) for g in groups]
        length = math.prod(n for n, r in zip(sizes, reduced, strict=True) if r)
        rows = math.prod(n for n, r in zip(sizes, reduced, strict=True) if not r)
        parts = 1 if kernel.split is None else self._real(kernel.split[1])
        places = list(accesses.accesses.values())
        is_wide = not all(self._is_near(kernel, access) for access in places)
        is_wide = is_wide or length * rows * parts >= _NARROW
        lanes = self._lanes(kernel, groups, sizes, places)
        takes_blocks = kernel.is_along and length // parts > _LONG_ROW
        turned = None if lanes > 1 else self._transposed(kernel, groups, sizes, places)
        variant = Variant(is_wide, lanes, takes_blocks, self._is_guarded(kernel), turned)
        code = loop_code(self._layout, kernel, variant)
        grid: Dims
        if turned is not None:
            tiles = math.prod(-(-sizes[g] // WARP) for g in (turned, -1))
            count = rows // (sizes[turned] * sizes[-1])
            grid, block = (tiles * count, 1, 1), (WARP, COLUMN_ROWS, 1)
        elif kernel.axes is None:
            blocks = -(-rows // (THREADS * lanes))
            grid, block = (min(max(blocks, 1), _MOST_BLOCKS), 1, 1), (THREADS, 1, 1)
        elif kernel.is_along:
            count = rows * parts
            blocks = count if takes_blocks else -(-count // WARPS)
            grid = (max(blocks, 1), 1, 1)
            block = (THREADS, 1, 1) if takes_blocks else (WARP, WARPS, 1)
        else:
            grid, block = (max(-(-rows // WARP), 1), parts, 1), (WARP, COLUMN_ROWS, 1)
        given = (x for x in code.arguments if isinstance(x, Number | Part))
        numbers: dict[ArgumentSpec, int] = {x: self._number(x) for x in given}
        return LoopLaunch(code, grid, block, numbers)

    def _size(self, kernel: Kernel, group: Sequence[int]) -> int:
        return math.prod(self._real(kernel.shape[a]) for a in group)

    def _number(self, spec: Number | Part) -> int:
        if isinstance(spec, Number):
            return self._real(spec.value)
        size, parts, inner = map(self._real, (spec.size, spec.parts, spec.inner))
        return -(-size // parts) * inner

    def _transposed(
        self,
        kernel: Kernel,
        groups: Sequence[Sequence[int]],
        sizes: Sequence[int],
        places: Sequence[Access],
    ) -> int | None:
        """The group of axes along which operands lie that are read by tiles, if there is one."""
        if kernel.axes is not None or len(groups) < 2 or sizes[-1] < _LEAST_TILE:
            return None
        made = {s.target.storage for s in kernel.statements}
        steps = [[a.strides[g[-1]] for g in groups] for a in places if a.storage not in made]
        named = [a.storage for a in places if a.storage not in made]
        for turned in range(len(groups) - 1):
            found = sum(map(is_transposed, steps, [turned] * len(steps), named))
            if 0 < found <= _MOST_TILES and sizes[turned] >= _LEAST_TILE:
                return turned
        return None

    def _is_near(self, kernel: Kernel, access: Access) -> bool:
        """Whether all of its places are numbers of 32 bits."""
        pairs = zip(kernel.shape, access.strides, strict=True)
        return sum(abs(self._real(s)) * self._real(n) for n, s in pairs) < _NARROW

    def _lanes(
        self,
        kernel: Kernel,
        groups: Sequence[Sequence[int]],
        sizes: Sequence[int],
        places: Sequence[Access],
    ) -> int:
        """How many neighbouring elements a thread loads at once."""
        if not groups or (kernel.axes is not None and not kernel.is_along):
            return 1
        vectors = [
            access for access in places if access.storage is not None and access.strides[-1] == 1
        ]
        if not vectors:
            return 1
        lanes = min(_MOST_LANES, _VECTOR_BYTES // max(a.dtype.size for a in vectors))
        is_flat = len(groups) == 1 and kernel.axes is None
        if not is_flat and sizes[-1] % lanes:
            return 1
        if kernel.split is not None:
            size, parts = self._real(kernel.shape[kernel.split[0]]), self._real(kernel.split[1])
            if groups[-1][0] <= kernel.split[0] and -(-size // parts) % lanes:
                return 1
        for access in vectors:
            assert access.storage is not None
            steps = [self._real(access.strides[g[-1]]) for g in groups[:-1]]
            if any(step % lanes for step in steps):
                return 1
            offset = self._real(access.offset)
            if not self._aligned(access.storage, offset, lanes * access.dtype.size):
                return 1
        return lanes
