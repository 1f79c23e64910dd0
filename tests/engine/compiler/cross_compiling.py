"""Plans and object code for other machines than this one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from laminar.engine.compiler.codegen import driver
from laminar.engine.compiler.lower.rules import contractions, convolution, low_bits
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.compiler.plan import launches, specializations
from laminar.engine.compiler.plan.executable_plan import ExecutablePlan
from laminar.engine.compiler.target import code_cache, host, llvm, thread_count
from laminar.engine.compiler.target.byte_unit import ByteUnit
from laminar.engine.compiler.target.code import Code
from laminar.engine.compiler.target.code_cache import Native

from .families import Case, key_of


class Machine(NamedTuple):
    """A kind of machine.

    Attributes:
        triple: LLVM's name of it.
        processor: LLVM's name of the processor, which has what all of its kind have.
        name: Python's name of it.
        vector_bytes: the size of its vectors.
    """

    triple: str
    processor: str
    name: str
    vector_bytes: int


_LINUX = "unknown-linux-gnu"
MACHINES = {
    "SSE2": Machine(f"x86_64-{_LINUX}", "x86-64", "x86_64", 16),
    "AVX2": Machine(f"x86_64-{_LINUX}", "haswell", "x86_64", 32),
    "AVX-512": Machine(f"x86_64-{_LINUX}", "skylake-avx512", "x86_64", 64),
    "NEON": Machine(f"aarch64-{_LINUX}", "generic", "aarch64", 16),
}
THREADS = 3


@contextmanager
def planning_for(machine: Machine) -> Iterator[None]:
    """Plans are for a machine with `THREADS` threads, which share all that they can."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (llvm, specializations):
            patch.setattr(module, "vector_bytes", lambda: machine.vector_bytes)
        patch.setattr(driver, "vector_bytes", lambda: machine.vector_bytes)
        for module in (contractions, convolution):
            patch.setattr(module, "pair_unit", lambda: None)
        unit = ByteUnit.PAIRS if machine.name == "x86_64" else ByteUnit.PLAIN
        patch.setattr(low_bits, "byte_unit", lambda vector_bytes: unit)
        patch.setattr(host, "platform", SimpleNamespace(machine=lambda: machine.name))
        patch.setattr(thread_count._Setting, "count", THREADS)
        patch.setattr(launches, "_PARALLEL_BYTES", 1 << 8)
        patch.setattr(launches, "_PARALLEL_WORK", 1 << 8)
        yield


def recipe_of(case: Case) -> ExecutablePlan:
    """The plan of a cluster."""
    executable_plan, *_ = NativeCluster(case.body)._specializations.planned(key_of(case))
    return executable_plan


def code_of(function: Native) -> Code:
    """What a function of a plan is written by."""
    return code_cache._codes[function.key]


def symbol_of(function: Native) -> str:
    """Its name in object code."""
    return function.symbol + suffix_of(function)


def suffix_of(function: Native) -> str:
    """What tells functions of one name apart."""
    return code_cache._suffix(function.key)


def undefined(content: bytes) -> set[str]:
    """The functions that an object (ELF, 64 bits) calls and does not have."""
    assert content[:6] == b"\x7fELF\x02\x01"
    (start,) = struct.unpack_from("<Q", content, 0x28)
    size, count, _ = struct.unpack_from("<HHH", content, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, start + i * size) for i in range(count)]
    found = set()
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind != 2:  # the table of symbols
            continue
        names = sections[link][4]
        for at in range(offset, offset + length, 24):
            name, _, _, section = struct.unpack_from("<IBBH", content, at)
            if name and not section:
                first = names + name
                found.add(content[first : content.index(b"\0", first)].decode())
    return found


Compile = Callable[[str, str], bytes]


def objects_of(executable_plan: ExecutablePlan, compile: Compile, made: dict[str, bytes]) -> None:
    """Add the object code of a plan's functions to what is made, by its key."""
    for function in executable_plan.codes:
        if function.key not in made:
            made[function.key] = compile(code_of(function).text(), suffix_of(function))
