"""All families of kernels for processors of each kind: what their code asks of these, and calls."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from .cross_compiling import (
    MACHINES,
    THREADS,
    code_of,
    objects_of,
    planning_for,
    recipe_of,
    undefined,
)
from .emulated import COMPILER, EMULATOR, LoopProgram
from .families import FAMILIES, Case, cases
from .modules import Processor

# What native code may call: of the system, and where a processor lacks instructions for them.
SYSTEM = {"clock_gettime", "syscall"}
FUNCTIONS = {
    "SSE2": {"fma", "floorf", "ceilf", "trunc", "roundeven", "roundevenf"},
}
# Registers, as assembly writes them, that a processor of a kind does not have.
REGISTERS = {
    "SSE2": r"%[yz]mm\d|%k[0-7]",
    "AVX2": r"%zmm\d|%[xy]mm(1[6-9]|2\d|3[01])|%k[0-7]",
    "AVX-512": r"%tmm\d",
    "NEON": r"\b[zp]\d+\.[bhsd]\b",
}
# Families of LLVM's intrinsics that a processor of a kind has.
INTRINSICS = {
    "SSE2": {"x86.sse", "x86.sse2"},
    "AVX2": {"x86.sse", "x86.sse2", "x86.avx", "x86.avx2"},
    "AVX-512": {"x86.sse", "x86.sse2", "x86.avx2", "x86.avx512"},
    "NEON": {"aarch64.hint", "aarch64.get", "aarch64.set"},
}
RELATIVE = {"float32": 3e-5, "float64": 1e-9, "float16": 2e-3, "bfloat16": 2e-2}


@pytest.fixture(scope="module")
def programs() -> dict[str, list[Case]]:
    return {name: cases(*family) for name, family in FAMILIES.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_code_asks_for_what_a_processor_has(name: str, programs: dict[str, list[Case]]) -> None:
    machine = MACHINES[name]
    processor = Processor(machine.triple, machine.processor)
    made: dict[str, bytes] = {}
    texts: dict[str, str] = {}
    with planning_for(machine):
        for case in (case for family in programs.values() for case in family):
            executable_plan = recipe_of(case)
            assert executable_plan.is_parallel
            objects_of(executable_plan, processor.compile, made)
            texts.update((f.key, code_of(f).text()) for f in executable_plan.codes)
    called = set[str]().union(*map(undefined, made.values())) - {"_GLOBAL_OFFSET_TABLE_"}
    assert called <= SYSTEM | FUNCTIONS.get(name, set())
    assert called >= SYSTEM
    special = set(re.findall(r"@llvm\.((?:x86|aarch64)\.\w+)", "\n".join(texts.values())))
    assert special <= INTRINSICS[name]
    assert special & {"x86.sse2", "aarch64.hint"}, "the driver pauses"
    # The longest are those of contractions: a few of each kind are read.
    for text in sorted(texts.values(), key=len)[::6]:
        assert not re.search(REGISTERS[name], processor.assembly(text))


@pytest.mark.skipif(not (COMPILER and EMULATOR), reason="needs qemu-aarch64 and its C compiler")
def test_on_an_emulated_processor_of_arms_kind(
    programs: dict[str, list[Case]], tmp_path: Path
) -> None:
    """The driver and the kernels, on one thread and on several, which give the same bits."""
    machine = MACHINES["NEON"]
    processor = Processor(machine.triple, machine.processor)
    made: dict[str, bytes] = {}
    with planning_for(machine):
        planned = [(case, recipe_of(case)) for family in programs.values() for case in family]
        for _, executable_plan in planned:
            objects_of(executable_plan, processor.compile, made)
        program = LoopProgram(tmp_path, [executable_plan for _, executable_plan in planned], made)
        alone, together = (program.run(planned, n) for n in (1, THREADS))
    for name, (case, _), first, second in zip(programs, planned, alone, together, strict=True):
        for i, (x, y, wanted) in enumerate(zip(first, second, case.expected, strict=True)):
            np.testing.assert_array_equal(x, y, f"output {i} of {name}")
            if wanted.dtype.kind in "biu":
                np.testing.assert_array_equal(x, wanted, f"output {i} of {name}")
                continue
            rtol = RELATIVE[str(wanted.dtype)]
            x, wanted = x.astype(np.float64), wanted.astype(np.float64)
            finite = np.abs(wanted[np.isfinite(wanted)])
            scale = rtol * max(1.0, float(np.sqrt(np.mean(finite * finite))))
            np.testing.assert_allclose(x, wanted, rtol, scale, err_msg=f"output {i} of {name}")
