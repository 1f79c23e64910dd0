"""Files that show what was compiled, where LAMINAR_DUMP says so."""

from __future__ import annotations

from pathlib import Path

from ...dumps import dump, folder
from ..ir.printing import describe, name_of, program_text, storage_text
from ..ir.program import LoopProgram
from ..schedule.buffer_assignment import BufferAssignment, in_order
from ..target import llvm
from ..target.code import Code
from ..target.fingerprint import NoDigestError
from .kernel_table import MOST_OPERATIONS, KernelTable, joined

# The files with the IR of a kernel, by folder: another batch size has the same kernels.
_files: dict[Path, dict[Code, str]] = {}


def dump_plan(table: KernelTable) -> None:
    """Write the code of the kernels of a plan, and what they compute.

    A function is written once, and named for the kernel that uses it first.
    """
    place = folder()
    if place is None:
        return
    files = _files.setdefault(place, {})
    for kernel in table.kernels:
        label = joined(kernel.operations) or table.name
        for code in kernel.codes:
            if code not in files:
                text, name = code.text(), f"{label}-{code.symbol}"
                short = joined(kernel.operations, MOST_OPERATIONS)
                what = f"the LLVM IR of a function of kernel {kernel.number}, {short}"
                files[code] = dump(f"{name}.ll", text, what)
                dump(f"{name}.s", llvm.assembly(text, code.vector_bytes), "its machine code")
    sizes = ", ".join(f"n{i} = {n}" for i, n in enumerate(table.sizes))
    what = f"what each kernel of {table.name} computes, on how many bytes, in which files"
    dump(f"{table.name}.plan.txt", table.text(files), f"{what}{sizes and f'; {sizes}'}")


def dump_program(name: str, program: LoopProgram) -> None:
    """Write a loop program."""
    if folder() is not None:
        what = f"the loop program of {name}: what is computed for each element, on which memory"
        dump(f"{name}.loops.txt", program_text(program) + _digest_line(program), what)


def _digest_line(program: LoopProgram) -> str:
    """The digest of a program, if there is one: where it is equal, so are the kernels."""
    try:
        return f"digest {program.digest}\n"
    except NoDigestError:
        return ""


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
    numbers = {id(kernel): k for k, kernel in enumerate(in_order(layout.kernels))}
    for kernel in layout.kernels:
        number = numbers[id(kernel)]
        lines.append(f"kernel {number}: {describe(program, kernel, layout.stored, numbers)}")
    what = f"the kernels of {name}: what is fused, what is kept in memory"
    dump(f"{name}.kernels.txt", "\n".join(lines) + "\n", what)
