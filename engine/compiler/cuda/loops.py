"""Kernels of loops as CUDA C.

There are three forms. What has no reduction goes through its elements. Where the innermost axis
is reduced, a warp or a block takes a row, once for each phase. Where it is kept, a block takes 32
columns, and its threads share what is above each other. Nothing depends on the order in which
blocks run, and no sum on the order in which threads do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...cuda_program import Kernel as CudaKernel
from ..ir.kernel import Kernel
from ..ir.program import Reduce
from ..schedule.buffer_assignment import BufferAssignment
from .combine import Combine
from .elements import ElementWriter, write_elements
from .scalars import memory_type, register_type
from .source import ArgumentSpec, Number, Part, kernel

THREADS = 256
WARP = 32
WARPS = THREADS // WARP  # rows of a block where a warp takes each
COLUMN_ROWS = 8  # threads that share a column


class Variant(NamedTuple):
    """What code a kernel has for some real sizes.

    Attributes:
        is_wide: places take 64 bits.
        lanes: how many neighbouring elements are loaded at once.
        takes_blocks: a block takes a row, not a warp.
        is_guarded: it does nothing after a check has failed.
        transposed: the group of axes along which some operands lie in memory, where that is not
            the last one: those are read by tiles; None where there is none.
    """

    is_wide: bool = False
    lanes: int = 1
    takes_blocks: bool = False
    is_guarded: bool = False
    transposed: int | None = None


class LoopCode(NamedTuple):
    """The code of a kernel.

    Attributes:
        kernel: which takes `arguments`.
        arguments: what they are.
        many: a kernel that does the same for many sets of arguments: it takes a table of them
            and their number. None where there is no such form.
    """

    kernel: CudaKernel
    arguments: tuple[ArgumentSpec, ...]
    many: CudaKernel | None = None


class LoopWriter(ElementWriter):
    """Writes the code of one kernel."""

    def __init__(self, layout: BufferAssignment, made: Kernel, variant: Variant) -> None:
        index = "long long" if variant.is_wide else "int"
        super().__init__(layout, made, index, variant.lanes, variant.is_guarded)
        self.variant = variant

    def write(self) -> LoopCode:
        """The code."""
        if self.kernel.axes is None and self.variant.transposed is None:
            return self._pointwise()
        if self.kernel.axes is None:
            self._tiles()
        elif self.kernel.is_along:
            self._rows()
        else:
            self._columns()
        lines = [f"@({self.source.parameters}) {{", *self.source.lines, "}"]
        return LoopCode(kernel(lines, THREADS), tuple(self.source.arguments))

    # No reduction

    def _pointwise(self) -> LoopCode:
        source, lanes, count = self.source, self.lanes, len(self.groups)
        statements = self.kernel.statements
        groups = list(range(count))
        # A single axis is an argument, so that arrays of any size share the code.
        total = source.argument(Number(self.numbers[0] if groups else 1), "long long")
        if count > 1:
            total = "1"
            for n in self.numbers:
                total += f" * {source.number(n)}"
        source.add(f"const {source.index} total = ({source.index})({total});")
        step = f"blocks * {THREADS}"
        first = f"block * {THREADS} + threadIdx.x"
        if lanes > 1:
            source.add(f"const {source.index} whole = total / {lanes};")
            head = f"for ({source.index} v = {first}; v < whole; v += {step})"
            with source.block(head):
                source.add(f"const {source.index} i = v * {lanes};")
                write_elements(self, self.coordinates("i", groups), statements, None, {})
            if count == 1:
                self.lanes = 1
                head = f"for ({source.index} i = whole * {lanes} + {first}; i < total; i += {step})"
                with source.block(head):
                    write_elements(self, self.coordinates("i", groups), statements, None, {})
        else:
            with source.block(f"for ({source.index} i = {first}; i < total; i += {step})"):
                at = self.coordinates("i", groups) if groups else {}
                write_elements(self, at, statements, None, {})
        return self._called()

    def _called(self) -> LoopCode:
        """The lines as a function of a block's number: a kernel for one array, and for many."""
        source, index = self.source, self.source.index
        body, source.lines[:] = [*source.lines], []
        self.guard()
        guard = [*source.lines]
        kinds, names = source.types, [f"a{i}" for i in range(len(source.types))]
        function = [
            f"static __device__ __forceinline__ void body({source.parameters}, "
            f"const {index} block, const {index} blocks) {{",
            *body,
            "}",
        ]
        one = [
            *function,
            f"@({source.parameters}) {{",
            *guard,
            f"body({', '.join(names)}, blockIdx.x, gridDim.x);",
            "}",
        ]
        # A row of the table: the number of the first block, that of the one behind the last, and
        # the arguments.
        width = len(names) + 2
        given = ", ".join(f"({kind})row[{i + 2}]" for i, kind in enumerate(kinds))
        taken = [f"{kind} a{i} = ({kind})row[{i + 2}];" for i, kind in enumerate(kinds)]
        many = [
            *function,
            "@(const long long* __restrict__ table, long long count) {",
            "int low = 0, high = (int)count - 1;",
            "while (low < high) {",
            "const int middle = (low + high) / 2;",
            f"if (table[middle * {width} + 1] > (long long)blockIdx.x) high = middle;",
            "else low = middle + 1;",
            "}",
            f"const long long* row = table + low * {width};",
            *(taken if guard else ()),
            *guard,
            f"body({given}, ({index})(blockIdx.x - row[0]), ({index})(row[1] - row[0]));",
            "}",
        ]
        return LoopCode(kernel(one, THREADS), tuple(source.arguments), kernel(many, THREADS))

    def _tiles(self) -> None:
        """Tiles of 32 x 32 elements along the last group and the one along which operands lie.

        These are read along their own group, into shared memory, and taken from there along the
        last one: all threads of a warp read, and write, neighbouring elements.
        """
        source, index, turned = self.source, self.source.index, self.variant.transposed
        assert turned is not None
        self.guard()
        last = len(self.groups) - 1
        rest = [g for g in range(last) if g != turned]
        sizes = {g: source.number(self.numbers[g]) for g in (turned, last)}
        # Signed: an unsigned number beside a negative stride would make all of a place unsigned.
        source.add("const int x = threadIdx.x;")
        source.add(f"const {index} across = ({sizes[last]} + {WARP - 1}) / {WARP};")
        source.add(f"const {index} down = ({sizes[turned]} + {WARP - 1}) / {WARP};")
        source.add(f"const {index} place = blockIdx.x / across / down;")
        source.add(f"const {index} first = blockIdx.x % across * {WARP};")
        source.add(f"const {index} top = blockIdx.x / across % down * {WARP};")
        outer = self.coordinates("place", rest) if rest else {}
        tiles: dict[int, str] = {}
        for access in self.accesses.values():
            is_read = access.storage not in self.made
            if is_read and is_transposed(access.steps, turned, access.storage):
                name = tiles[id(access)] = source.name()
                kind = memory_type(access.dtype)
                source.add(f"__shared__ {kind} {name}[{WARP}][{WARP + 1}];")
        step = f"j += {COLUMN_ROWS}"
        with source.block(f"for (int j = threadIdx.y; j < {WARP}; {step})"):
            source.add(f"if (first + j >= {sizes[last]} || top + x >= {sizes[turned]})")
            source.add("continue;")
            at = {**outer, last: "(first + j)", turned: "(top + x)"}
            for access in self.accesses.values():
                if id(access) in tiles:
                    place = f"{access.pointer}[{self.offset(access, at)}]"
                    source.add(f"{tiles[id(access)]}[j][x] = {place};")
        source.add("__syncthreads();")
        texts = {key: f"{name}[x][j]" for key, name in tiles.items()}
        with source.block(f"for (int j = threadIdx.y; j < {WARP}; {step})"):
            source.add(f"if (first + x >= {sizes[last]} || top + j >= {sizes[turned]})")
            source.add("continue;")
            at = {**outer, last: "(first + x)", turned: "(top + j)"}
            write_elements(self, at, self.kernel.statements, None, {}, texts)

    # The innermost axis is reduced

    def _rows(self) -> None:
        source, index = self.source, self.source.index
        self.guard()
        kept = [g for g, r in enumerate(self.reduced) if not r]
        along = [g for g, r in enumerate(self.reduced) if r]
        threads = THREADS if self.variant.takes_blocks else WARP
        rows = self._product(kept)
        if self.variant.takes_blocks:
            source.add(f"const {index} place = blockIdx.x;", "const int lane = threadIdx.x;")
        else:
            source.add(f"const {index} place = ({index})blockIdx.x * {WARPS} + threadIdx.y;")
            source.add("const int lane = threadIdx.x;")
        first, length = "", self._product(along)
        if self.kernel.split is None:
            source.add(f"if (place >= {rows}) return;")
        else:
            parts = source.number(self.kernel.split[1])
            source.add(f"if (place >= {parts} * {rows}) return;")
            first, length = self._part(f"(place / {rows})", along)
        source.add(f"const {index} length = {length};")
        row = "place" if self.kernel.split is None else f"(place % {rows})"
        source.add(f"const {index} row = {row};")
        at = self.coordinates("row", kept) if kept else {}
        self._move_targets("place", rows)
        store = "lane == 0"
        self.row_statements(at, 0, store)
        for phase in range(self.phases.count):
            full = self.phase(phase)
            if not full:
                continue
            combines = {id(s): self._combine(s) for s in full if isinstance(s, Reduce)}
            for c in combines.values():
                c.begin()
            step = threads * self.lanes
            x = source.name()
            head = f"for ({index} {x} = lane * {self.lanes}; {x} < length; {x} += {step})"
            with source.block(head):
                inner = {**at, **self.coordinates(x, along, first)}
                lines = {
                    key: c.step("@", f"{inner[along[-1]]} + #" if c.is_place else "")
                    for key, c in combines.items()
                }
                write_elements(self, inner, full, phase, lines)
            for s in full:
                if isinstance(s, Reduce):
                    c = combines[id(s)]
                    c.across_lanes()
                    if self.variant.takes_blocks:
                        c.across_warps(THREADS // WARP)
                    self._reduced(s, c, at, store)
            self.row_statements(at, phase + 1, store)

    def _reduced(self, s: Reduce, c: Combine, at: dict[int, str], store: str) -> None:
        name, dtype = c.result
        self.row_terms[s.target.storage] = self.scalars.term(name, dtype)
        self.store_row(s, at, store)

    def _combine(self, s: Reduce) -> Combine:
        return Combine(self.source, s.kind, self.program.dtype(s.operand))

    def _product(self, groups: list[int]) -> str:
        """The product of the sizes of groups."""
        found = " * ".join(self.source.number(self.numbers[g]) for g in groups)
        return f"({found})" if found else "1"

    def _part(self, part: str, along: list[int]) -> tuple[str, str]:
        """Where a part begins along the first reduced group, and how many places it has."""
        source, index = self.source, self.source.index
        assert self.kernel.split is not None
        axis, parts = self.kernel.split
        size = self.kernel.shape[axis]
        (group,) = (i for i, g in enumerate(self.groups) if axis in g)
        assert group == along[0], "the first of the reduced axes is cut"
        spec = Part(size, parts, self.numbers[group] // size)
        each = f"({index}){source.argument(spec, 'long long')}"
        total = source.number(self.numbers[group])
        source.add(f"const {index} begin = lm_min(({index})({part} * {each}), ({index}){total});")
        source.add(f"const {index} end = lm_min(({index})(begin + {each}), ({index}){total});")
        return "begin", f"(end - begin) * {self._product(along[1:])}"

    def _move_targets(self, place: str, rows: str) -> None:
        """What the parts of a reduction give is side by side: `place` counts through all of it."""
        if self.kernel.split is None:
            return
        source = self.source
        for s in self.kernel.statements:
            if isinstance(s, Reduce):
                access = self.target_access(s)
                name = source.name()
                kind = register_type(access.dtype)
                source.add(f"{kind}* {name} = {access.pointer} + {place} / {rows} * {rows};")
                access.pointer = name

    # The innermost axis is kept

    def _columns(self) -> None:
        source, index = self.source, self.source.index
        self.guard()
        kept = [g for g, r in enumerate(self.reduced) if not r]
        along = [g for g, r in enumerate(self.reduced) if r]
        columns = self._product(kept)
        source.add(f"const {index} place = ({index})blockIdx.x * {WARP} + threadIdx.x;")
        source.add(f"const bool is_there = place < {columns};")
        first, length = "", self._product(along)
        if self.kernel.split is not None:
            first, length = self._part("blockIdx.y", along)
        source.add(f"const {index} length = {length};")
        at = self.coordinates("place", kept)
        self._move_targets(f"(({index})blockIdx.y * {columns})", columns)
        full = [s for s in self.kernel.statements if not self.is_row(s)]
        combines = {id(s): self._combine(s) for s in full if isinstance(s, Reduce)}
        for c in combines.values():
            c.begin()
        x = source.name()
        head = f"for ({index} {x} = threadIdx.y; {x} < length; {x} += {COLUMN_ROWS})"
        with source.block("if (is_there)"), source.block(head):
            inner = {**at, **self.coordinates(x, along, first)}
            place = inner[along[-1]] if len(along) == 1 else ""
            lines = {key: c.step("@", place if c.is_place else "") for key, c in combines.items()}
            write_elements(self, inner, full, None, lines)
        store = "threadIdx.y == 0"
        for c in combines.values():
            c.across_rows(COLUMN_ROWS, "threadIdx.y", "threadIdx.x", WARP)
        source.add("if (!is_there) return;")
        for s in full:
            if isinstance(s, Reduce):
                self._reduced(s, combines[id(s)], at, store)
        self.row_statements(at, None, store)


def is_transposed(steps: Sequence[int], turned: int, storage: int | None) -> bool:
    """Whether an access lies along a group of axes that is not the last one."""
    return storage is not None and steps[turned] == 1 and steps[-1] not in (0, 1)


def loop_code(layout: BufferAssignment, made: Kernel, variant: Variant) -> LoopCode:
    """The code of a kernel of loops."""
    return LoopWriter(layout, made, variant).write()
