"""What was compiled, when and why; and files that show it, where LAMINAR_DUMP says so."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...dumps import dump, folder
from ..ir.launch import Code
from ..ir.sizes import shown, shown_size

if TYPE_CHECKING:
    from ..ir.kernel import Kernel
    from ..ir.program import Program
    from ..schedule.buffer_assignment import Layout

# A compile that takes longer is told of while it runs.
_LONG_SECONDS = 1.0


class Compile(NamedTuple):
    """One kernel that was made.

    Attributes:
        what: the operations or layers it is for.
        fresh: whether it was compiled; otherwise it was read from the cache on disk.
        seconds: how long that took.
        num_bytes: of object code.
    """

    what: str
    fresh: bool
    seconds: float
    num_bytes: int


class Event(NamedTuple):
    """A cluster that was compiled for inputs of certain forms, and why.

    Attributes:
        cluster: its name: the operation it begins with.
        reason: why it had to be compiled.
        inputs: the shapes it was compiled for; None where any size goes.
        num_kernels: how many native kernels it runs.
        kernels: those that were made for it.
        seconds: how long it all took.
        arena_bytes: of memory that it works in, for the sizes of that run: what is needed at once
            of all that is neither given, nor a variable, nor a result.
    """

    cluster: str
    reason: str
    inputs: tuple[tuple[int | None, ...], ...]
    num_kernels: int
    kernels: tuple[Compile, ...]
    seconds: float
    arena_bytes: int

    def __str__(self) -> str:
        fresh = sum(k.fresh for k in self.kernels)
        return (
            f"{self.cluster}: {self.reason}; {self.num_kernels} kernels, {fresh} compiled, "
            f"{len(self.kernels) - fresh} from the cache on disk, {self.seconds * 1e3:.0f} ms, "
            f"works in {self.arena_bytes / 2**20:.1f} MiB"
        )


class _Watch(threading.local):
    """The compiles of the event that this thread is in."""

    def __init__(self) -> None:
        self.compiles: list[Compile] = []


_watch = _Watch()


def note(compile: Compile) -> None:
    """Remember a compile."""
    _watch.compiles.append(compile)


def begin() -> None:
    """Begin an event."""
    _watch.compiles = []


def compiles() -> tuple[Compile, ...]:
    """The compiles since `begin`."""
    return tuple(_watch.compiles)


class LongCompileNote:
    """Tells on the standard error that a compile goes on, once it has taken a second."""

    def __init__(self, what: str) -> None:
        self._timer = threading.Timer(_LONG_SECONDS, self._tell, [what])
        self._timer.daemon = True

    @staticmethod
    def _tell(what: str) -> None:
        print(f"laminar: compiling {what} (once; it is kept on disk)...", file=sys.stderr)

    def __enter__(self) -> LongCompileNote:
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()


# What stands in a folder: another batch size has the same kernels.
_dumped: set[tuple[Path, str, Code]] = set()


def dump_code(label: str, code: Code) -> None:
    """Write the IR of a kernel and its assembly, once for each whom it is for."""
    place = folder()
    if place is None or (place, label, code) in _dumped:
        return
    _dumped.add((place, label, code))
    from ..target import llvm  # llvmlite loads here

    text = code.text()
    name = f"{label}-{code.symbol}"
    dump(f"{name}.ll", text)
    dump(f"{name}.s", llvm.assembly(text, code.vector_bytes))


def dump_program(name: str, layout: Layout) -> None:
    """Write a loop program, kernel by kernel."""
    if folder() is None:
        return
    program = layout.program
    lines = []
    for number, storage in enumerate(program.storages):
        place = layout.place[number]
        kept = f"with {place}" if place != number else "memory"
        if storage.window is not None:
            kept = f"at {storage.window.base} + {storage.window.offset}, then {storage.window.step}"
        where = kept if number in layout.stored else "registers"
        lines.append(f"%{number}: {storage.dtype}{shown(storage.shape)} {storage.role}, {where}")
    lines.extend(_kernel_lines(program, layout.kernels))
    dump(f"{name}.loops.txt", "\n".join(lines) + "\n")


def _kernel_lines(program: Program, kernels: Sequence[Kernel]) -> Iterator[str]:
    """Kernels with their statements; those of a loop further in."""
    for k, kernel in enumerate(kernels):
        if kernel.loop is not None:
            count = kernel.loop.count
            yield f"loop {k}, {shown_size(count) if count else 'any number of'} times"
            for name, part in (("test", kernel.test), ("body", kernel.body)):
                if part:
                    yield f"  {name}"
                    yield from ("    " + line for line in _kernel_lines(program, part))
            continue
        axes = "" if kernel.axes is None else f", reduced {sorted(kernel.axes)}"
        yield f"kernel {k} over {shown(kernel.shape)}{axes}"
        for statement in kernel.all_statements:
            kind = getattr(statement, "kind", None) or getattr(statement, "name", None) or "map"
            label = program.labels.get(id(statement), "")
            reads = ", ".join(map(str, statement.operands))
            yield f"  {list(statement.writes)} = {kind}({reads})  # {label}"
