"""Files that show what was compiled, where LAMINAR_DUMP says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...dumps import dump, folder
from ..ir.kernel import Kernel
from ..ir.program import Program
from ..ir.sizes import shown, shown_size
from ..schedule.buffer_assignment import Layout
from ..target import llvm
from ..target.code import Code

# What stands in a folder: another batch size has the same kernels.
_dumped: set[tuple[Path, str, Code]] = set()


def dump_code(label: str, code: Code) -> None:
    """Write the IR of a kernel and its assembly, once for each whom it is for."""
    place = folder()
    if place is None or (place, label, code) in _dumped:
        return
    _dumped.add((place, label, code))

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
