"""What the kernels of a plan compute, on which sizes, in how many bytes: a table for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...text_table import aligned
from ..codegen import driver_words
from ..ir.kernel import Kernel
from ..ir.launch import codes_in
from ..ir.program import IndirectLoad, Operand, Pointwise, Reduce, View
from ..kernels.conv.winograd_kernel import products_left
from ..kernels.gemm.microkernel import tile_of
from ..schedule.cost import instructions
from ..target.code import Code
from .compiled_program import CompiledProgram, changed_in_part
from .launches import PlannedLaunch, all_of

_MOST_NAMES = 8  # of functions in a row
MOST_OPERATIONS = 3  # of a layer in a row
_NAMELESS = ("constant", "conj")  # functions of real numbers that compute nothing


@dataclass(frozen=True)
class KernelRow:
    """A kernel of a plan.

    Attributes:
        number: its number, as in the list of fused kernels; those of a loop follow the loop.
        depth: how many loops it is in.
        runs: how often one run of the plan runs it; 1 where that depends on data.
        operations: the operations that it is for, with their layers.
        lines: where the user's program made these.
        what: the functions that it computes, in order.
        sizes: the shapes that a contraction takes and makes, or that loops go over.
        read_bytes: of memory that others have filled, read by one run of it.
        written_bytes: of memory that one run of it fills.
        flops: multiplications and additions of one run; of functions such as exp, about as many
            instructions as they take. Of Winograd's convolution, what is left of the products.
        tile: of a contraction, rows and columns of the result that are made in registers at once.
        is_parallel: whether threads share it.
        codes: its native functions.
        seconds: how long a run of it takes on one thread; None where that was not measured.
    """

    number: int
    depth: int
    runs: int
    operations: tuple[str, ...]
    lines: tuple[str, ...]
    what: str
    sizes: str
    read_bytes: int
    written_bytes: int
    flops: int
    tile: str
    is_parallel: bool
    codes: tuple[Code, ...]
    seconds: float | None = None

    def about(self, start: str) -> str:
        """Lines that begin with `start`: the operations, then what is computed, and on what."""
        times = f"  (runs {self.runs} times)" if self.runs != 1 else ""
        named = joined(self.operations, MOST_OPERATIONS)
        computed = "  ".join(text for text in (self.what, self.sizes) if text)
        return "".join(start + text for text in (named, computed + times) if text)


@dataclass(frozen=True)
class KernelTable:
    """The kernels of a plan; printed, a table.

    Attributes:
        name: of the cluster.
        sizes: the real size for each symbolic one.
        kernels: in the order in which they run.
        arena_bytes: of the memory for all intermediate values.
    """

    name: str
    sizes: tuple[int, ...]
    kernels: tuple[KernelRow, ...]
    arena_bytes: int

    @property
    def num_bytes(self) -> int:
        """What all kernels read and write in one run of the plan."""
        return sum(k.runs * (k.read_bytes + k.written_bytes) for k in self.kernels)

    @property
    def flops(self) -> int:
        """Of one run of the plan."""
        return sum(k.runs * k.flops for k in self.kernels)

    @property
    def seconds(self) -> float | None:
        """Of all kernels, one after the other on one thread."""
        found = [k.seconds for k in self.kernels if k.seconds is not None]
        return sum(found) if found else None

    def by_launch(self) -> dict[int, KernelRow]:
        """What is started by itself, by number: a loop has the bytes and flops of what it runs."""
        found: dict[int, KernelRow] = {}
        last = 0
        for k in self.kernels:
            if k.depth == 0:
                last, found[k.number] = k.number, k
                continue
            loop = found[last]
            found[last] = replace(
                loop,
                operations=tuple(dict.fromkeys((*loop.operations, *k.operations))),
                sizes=loop.sizes or k.sizes,
                read_bytes=loop.read_bytes + k.runs * k.read_bytes,
                written_bytes=loop.written_bytes + k.runs * k.written_bytes,
                flops=loop.flops + k.runs * k.flops,
            )
        return found

    def with_seconds(self, seconds: Mapping[int, float]) -> KernelTable:
        """The same with what was measured, by the number of the kernel."""
        kernels = (replace(k, seconds=seconds.get(k.number)) for k in self.kernels)
        return replace(self, kernels=tuple(kernels))

    def __str__(self) -> str:
        return self.text()

    def text(self, files: Mapping[Code, str] | None = None) -> str:
        """The table.

        Args:
            files: the names of the files with the code of functions, to be named too.
        """
        has_seconds = self.seconds is not None
        rows = [["", "bytes read", "written", "flop", "tile", "threads", *["us"] * has_seconds]]
        below = [""]
        for k in self.kernels:
            seconds = "" if k.seconds is None else f"{k.seconds * 1e6:,.1f}"
            row = [
                f"{'  ' * k.depth}{k.number}",
                _shown(k.read_bytes),
                _shown(k.written_bytes),
                _shown(k.flops),
                k.tile,
                "all" if k.is_parallel else "one",
            ]
            rows.append([*row, *[seconds] * has_seconds])
            below.append(k.about("\n" + "  " * (k.depth + 2)))
        lines = [f"{self.name}{self._sizes()}"]
        # What is computed stands below its numbers: beside them, no terminal has room for it.
        for numbers, about in zip(aligned(rows), below, strict=True):
            lines.append(numbers + about)
        total = f"{len(self.kernels)} kernels: {_shown(self.num_bytes)} bytes, "
        total += f"{_shown(self.flops)} flop, arena {_shown(self.arena_bytes)} bytes"
        if self.seconds is not None:
            total += f", {self.seconds * 1e6:,.1f} us on one thread"
        lines.append(total)
        if files is None:
            return "\n".join(lines)
        places = {line for k in self.kernels for line in k.lines}
        lines += ["", f"all made at {', '.join(places)}"] if len(places) == 1 else [""]
        for k in self.kernels:
            names = [files[code] for code in k.codes if code in files]
            where = f"made at {', '.join(k.lines)}" if k.lines and len(places) > 1 else ""
            lines += [f"kernel {k.number} {where}".rstrip(), *(f"    {name}" for name in names)]
        return "\n".join(lines) + "\n"

    def _sizes(self) -> str:
        sizes = ", ".join(f"n{i} = {n}" for i, n in enumerate(self.sizes))
        return f", where {sizes}" if sizes else ""


def kernel_table(
    compiled: CompiledProgram,
    sizes: Sequence[int],
    real: Callable[[int], int],
    launches: Sequence[PlannedLaunch],
    unused: Collection[int],
    arena_bytes: int,
    places: Mapping[str, str],
) -> KernelTable:
    """The table of a plan.

    Args:
        compiled: its kernels.
        sizes: the real sizes of the symbolic ones.
        real: gives the real size of any.
        launches: of the kernels.
        unused: storages that have no memory after all.
        arena_bytes: of its memory.
        places: the user's line for each operation.
    """
    by_kernel: dict[int, list[PlannedLaunch]] = {}
    for planned in all_of(launches):
        by_kernel.setdefault(planned.kernel, []).append(planned)
    rows = []
    for number, (kernel, depth, runs) in enumerate(_nested(compiled.layout.kernels, real)):
        made = by_kernel.get(number, [])
        runs_code = [x.launch._replace(others=()) for x in made if kernel.check is None]
        codes = codes_in(runs_code)
        labels = compiled.labels(kernel)
        read, written = _bytes_of(compiled, kernel, real, unused)
        rows.append(
            KernelRow(
                number=number,
                depth=depth,
                runs=runs,
                operations=labels,
                lines=tuple(dict.fromkeys(places[x] for x in labels if x in places)),
                what=_what(kernel, real),
                sizes=_sizes_of(compiled, kernel, real),
                read_bytes=read,
                written_bytes=written,
                flops=_flops(kernel, real, codes),
                tile=next((f"{t.height} x {t.width}" for t in map(tile_of, codes) if t), ""),
                is_parallel=any(x.flags & driver_words.PARALLEL for x in made),
                codes=codes,
            )
        )
    return KernelTable(compiled.name, tuple(sizes), tuple(rows), arena_bytes)


def joined(labels: Sequence[str], most: int | None = None) -> str:
    """Operations in few words: those of a layer after its name, "hidden/MatMul+Add".

    Args:
        labels: the operations.
        most: how many of each layer are named; None for all.
    """
    found: dict[str, list[str]] = {}
    for operation in (part for label in labels for part in label.split("+")):
        layer, _, name = operation.rpartition("/")
        names = found.setdefault(layer, [])
        if name not in names:
            names.append(name)
    texts = []
    for layer, names in found.items():
        more = ["..."] if most is not None and len(names) > most else []
        text = "+".join([*names[:most], *more])
        texts.append(f"{layer}/{text}" if layer else text)
    return ", ".join(texts)


def _nested(
    kernels: Sequence[Kernel], real: Callable[[int], int], depth: int = 0, runs: int = 1
) -> Iterator[tuple[Kernel, int, int]]:
    """As `in_order`: each kernel, how many loops it is in, and how often it runs."""
    for kernel in kernels:
        yield kernel, depth, runs
        if kernel.loop is not None:
            times = 1 if kernel.loop.count is None else real(kernel.loop.count)
            yield from _nested([*kernel.test, *kernel.body], real, depth + 1, runs * times)


def _what(kernel: Kernel, real: Callable[[int], int]) -> str:
    """The functions that a kernel computes."""
    if kernel.check is not None:
        return "stop if true"
    if kernel.loop is not None:
        count = kernel.loop.count
        return "loop until it is done" if count is None else f"loop {real(count)} times"
    names: dict[str, None] = {}
    for s in kernel.statements:
        if isinstance(s, Reduce):
            names[s.kind] = None
        else:
            names |= dict.fromkeys(x.name for x in s.expression.applications)
    parts = [name for name in names if name not in _NAMELESS]
    parts[_MOST_NAMES:] = ["..."] * (len(parts) > _MOST_NAMES)
    if kernel.call is not None:
        return f"{kernel.call.name}; {' '.join(parts)}" if parts else kernel.call.name
    return " ".join(parts) or "copy"


def _sizes_of(compiled: CompiledProgram, kernel: Kernel, real: Callable[[int], int]) -> str:
    def shape(sizes: Sequence[int]) -> str:
        return f"[{', '.join(str(real(n)) for n in sizes)}]"

    if kernel.call is not None:
        storages = compiled.layout.program.storages
        given = ", ".join(shape(x.shape) for x in kernel.call.inputs)
        return f"{given} -> {', '.join(shape(storages[n].shape) for n in kernel.call.writes)}"
    if kernel.check is not None or kernel.loop is not None:
        return ""
    whole = shape(kernel.shape)
    return whole if kernel.axes is None else f"{whole} -> {shape(kernel.kept)}"


def _flops(kernel: Kernel, real: Callable[[int], int], codes: Iterable[Code]) -> int:
    total = 0
    if kernel.call is not None:
        total = math.ceil(2 * real(kernel.call.work) * products_left(codes))
    for s in kernel.statements:
        per_element = instructions(s.expression) if isinstance(s, Pointwise) else 1
        total += per_element * math.prod(map(real, s.shape))
    return total


def _bytes_of(
    compiled: CompiledProgram, kernel: Kernel, real: Callable[[int], int], unused: Collection[int]
) -> tuple[int, int]:
    """What a kernel reads that others have made, and what it fills."""
    if kernel.loop is not None:
        return 0, 0
    layout, storages = compiled.layout, compiled.layout.program.storages
    own = kernel.writes
    part = changed_in_part(kernel, layout.place)
    read: dict[View, int] = {}
    for s in kernel.all_statements:
        for view, count in _elements(s.operands, real):
            if view.storage in layout.stored and view.storage not in own:
                read[view] = max(read.get(view, 0), real(part.get(view.storage, count)))
    filled: dict[View, int] = {}
    for s in kernel.all_statements:
        targets = [s.target] if isinstance(s, Pointwise | Reduce) else []
        targets = targets or [layout.program.whole(n) for n in s.writes]
        for target in targets:
            number = layout.place[target.storage]
            if target.storage in layout.stored and number not in unused:
                view = target._replace(storage=number)
                whole = math.prod(map(real, target.shape))
                filled[view] = real(part.get(target.storage, whole))

    def total(counts: Mapping[View, int]) -> int:
        by_storage: dict[int, int] = {}
        for view, count in counts.items():
            by_storage[view.storage] = by_storage.get(view.storage, 0) + count
        return sum(
            storages[n].dtype.size * min(count, math.prod(map(real, storages[n].shape)))
            for n, count in by_storage.items()
        )

    return total(read), total(filled)


def _elements(
    operands: Sequence[Operand], real: Callable[[int], int]
) -> Iterator[tuple[View, int]]:
    """The views that operands read, and of how many elements."""
    for x in operands:
        if isinstance(x, IndirectLoad):
            yield x.view, math.prod(map(real, x.view.shape))
            yield from _elements(x.indices, real)
        elif isinstance(x, View):
            sizes = zip(x.shape, x.strides, strict=True)
            yield x, math.prod(real(n) for n, stride in sizes if stride)


def _shown(count: int) -> str:
    """A number for people, of thousands (k), millions (M) or billions (G) where it is large."""
    for letter, unit in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= 10 * unit:
            return f"{count / unit:,.1f} {letter}"
    return f"{count:,}"
