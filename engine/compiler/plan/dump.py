"""Files that show what was compiled, where LAMINAR_DUMP says so."""

from __future__ import annotations

from pathlib import Path

from ...dumps import dump, folder
from ..ir.printing import describe, name_of, program_text, storage_text
from ..ir.program import LoopProgram
from ..schedule.buffer_assignment import BufferAssignment
from ..target import llvm
from ..target.code import Code

# What stands in a folder: another batch size has the same kernels.
_dumped: set[tuple[Path, str, Code]] = set()


def dump_code(label: str, code: Code) -> None:
    """Write the IR of a kernel and its assembly, once for each operation that it is for."""
    place = folder()
    if place is None or (place, label, code) in _dumped:
        return
    _dumped.add((place, label, code))
    text = code.text()
    name = f"{label}-{code.symbol}"
    dump(f"{name}.ll", text)
    dump(f"{name}.s", llvm.assembly(text, code.vector_bytes))


def dump_program(name: str, program: LoopProgram) -> None:
    """Write a loop program."""
    if folder() is not None:
        dump(f"{name}.loops.txt", program_text(program))


def dump_kernels(name: str, layout: BufferAssignment) -> None:
    """Write where the values of a program live, and its kernels."""
    if folder() is None:
        return
    program = layout.program
    lines = []
    for number in range(len(program.storages)):
        place = layout.place[number]
        kept = "memory" if place == number else f"memory of {name_of(program, place)}"
        where = kept if number in layout.stored else "registers"
        lines.append(f"{storage_text(program, number)}, {where}")
    for k, kernel in enumerate(layout.kernels):
        lines.append(f"kernel {k}: {describe(program, kernel, layout.stored)}")
    dump(f"{name}.kernels.txt", "\n".join(lines) + "\n")
