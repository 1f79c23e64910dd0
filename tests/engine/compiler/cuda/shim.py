"""A device without a GPU: it compiles CUDA C for the host, and runs it there thread by thread.

What a run may not touch is checked: memory around each array, variables after a failed check.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.engine.compiler.cuda import CudaCompiler, prelude
from laminar.engine.compiler.cuda.cluster import CudaCluster
from laminar.engine.compiler.native.cluster_kernel import NativeCompiler
from laminar.engine.compiler.target import disk_cache
from laminar.engine.compiler.target.fingerprint import digest
from laminar.engine.cuda_program import Argument, Buffer, CudaProgram, Dims, Kernel, Launch, Table
from laminar.engine.cuda_program import LibraryCall as Call

Array = np.ndarray[Any, Any]

COMPILER = shutil.which("g++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

_SHIM = Path(__file__).with_name("shim.h")
_SIGNATURE = re.compile(r"__launch_bounds__\((\d+)\) (lm_\w+)\((.*?)\) \{", re.DOTALL)
_OPTIONS = ("-std=c++20", "-Og", "-w", "-shared", "-fPIC", "-ffp-contract=off")
_GUARD = 256  # bytes on either side of an array
_POISON = 0xFF  # of memory that nobody has written: NaN

_functions: dict[str, Any] = {}  # what is compiled, by the name of the kernel
_loaded: list[Any] = []


def compile_kernels(kernels: Sequence[Kernel]) -> None:
    """Compile kernels for the host, those that are missing as one unit."""
    missing = {k.name: k for k in kernels if k.name not in _functions}
    if not missing:
        return
    text = _SHIM.read_text() + prelude.PRELUDE + "".join(map(_unit, missing.values()))
    name = digest("shim", text, *_OPTIONS) + ".so"
    content = disk_cache.read(name)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "kernels.so"
        if content is None:
            source = Path(folder) / "kernels.cpp"
            source.write_text(text)
            command = [str(COMPILER), *_OPTIONS, "-o", str(made), str(source)]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            assert run.returncode == 0, run.stderr[:4000]
            disk_cache.write(name, made.read_bytes())
        else:
            made.write_bytes(content)
        library = ctypes.CDLL(str(made))
    _loaded.append(library)
    for kernel in missing:
        function = getattr(library, f"run_{kernel}")
        function.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        _functions[kernel] = function


def host_function(kernel: Kernel) -> Callable[[Dims, Dims, int, Sequence[int]], None]:
    """A kernel as a function of a grid, a block, shared bytes, and arguments as numbers."""
    compile_kernels([kernel])
    function = _functions[kernel.name]

    def run(grid: Dims, block: Dims, shared_bytes: int, arguments: Sequence[int]) -> None:
        dims = np.array([*grid, *block], np.uint32)
        words = np.array(arguments, np.int64)
        assert function(0, dims.ctypes.data, words.ctypes.data) == 0, kernel.source

    return run


def _unit(kernel: Kernel) -> str:
    """A kernel in a namespace of its own, and what runs it."""
    assert kernel.source.startswith(prelude.PRELUDE)
    own = kernel.source.removeprefix(prelude.PRELUDE)
    (match,) = _SIGNATURE.finditer(own)
    parameters = [p.strip().rsplit(" ", 1)[0] for p in match[3].split(",")]
    given = ", ".join(f"({kind})a[{i}]" for i, kind in enumerate(parameters))
    waits = int("__syncthreads" in own or "lm_from_lane" in own or "lm_first_lane" in own)
    return (
        f"namespace in_{kernel.name} {{\n{own}\n"
        f"static void call(const long long* a) {{ {kernel.name}({given}); }}\n}}\n"
        f'extern "C" int run_{kernel.name}(int reverse, const unsigned* dims, '
        f"const long long* args) {{\n"
        f"  return launch(in_{kernel.name}::call, {waits}, reverse, dims, args);\n}}\n"
    )


class Memory:
    """An array of bytes that begins at a multiple of 256, between bytes that stay as they are."""

    def __init__(self, size: int, fill: int = _POISON) -> None:
        self._bytes = np.full(size + 3 * _GUARD, fill, np.uint8)
        start = _GUARD + -(self._bytes.ctypes.data + _GUARD) % _GUARD
        self.bytes = self._bytes[start : start + size]
        self._around = self._bytes[:start], self._bytes[start + size :]
        for part in self._around:
            part[:] = 0xA5
        self.address = self.bytes.ctypes.data

    def check(self) -> None:
        """Check that nothing was written around it."""
        assert all((part == 0xA5).all() for part in self._around), "a kernel wrote beside memory"

    def array(self, dtype: Any, shape: tuple[int, ...]) -> Array:
        """What it holds."""
        return np.asarray(self.bytes.view(dtype).reshape(shape).copy())


def memory_of(array: Array) -> Memory:
    """A copy of an array."""
    made = Memory(array.nbytes)
    made.bytes[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return made


class ShimProgram:
    """A program on the host."""

    def __init__(self, device: ShimDevice, program: CudaProgram) -> None:
        self.device = device
        self.program = program

    def run(self, inputs: Sequence[Any], variables: Sequence[Any]) -> list[Array] | None:
        """The outputs; None where a check failed."""
        program = self.program
        arrays = [np.asarray(x) for x in inputs]
        values = [np.asarray(s.value) for s in variables]
        outputs, after, failed = execute(program, arrays, values, reverse=self.device.reverse)
        self.device.runs += 1
        if failed:
            for before, now in zip(values, after, strict=True):
                assert before.tobytes() == now.tobytes(), "a failed check, and a variable changed"
            return None
        for i in program.written:
            variables[i].value = after[i]
        return outputs


def execute(
    program: CudaProgram, inputs: Sequence[Array], variables: Sequence[Array], *, reverse: bool
) -> tuple[list[Array], list[Array], bool]:
    """Outputs, variables afterwards, and whether a check failed.

    Args:
        program: what runs.
        inputs: its inputs.
        variables: before the run.
        reverse: whether the last thread runs first.
    """
    for specs, arrays in ((program.inputs, inputs), (program.variables, variables)):
        assert [(tuple(s.shape), s.dtype.numpy) for s in specs] == [
            (x.shape, x.dtype) for x in arrays
        ]
    compile_kernels(program.kernels)
    sizes = [math.prod(_shape(s)) * s.dtype.size for s in program.outputs]
    memory = {
        "arena": [Memory(program.arena_bytes)],
        "input": list(map(memory_of, inputs)),
        "variable": list(map(memory_of, variables)),
        "output": list(map(Memory, sizes)),
        "constant": list(map(memory_of, program.constants)),
    }
    for launch in launches_of(program):
        _launch(launch, memory, reverse)
    for pieces in memory.values():
        for piece in pieces:
            piece.check()
    failed = program.failed is not None and bool(
        memory["arena"][0].bytes[program.failed.offset :][:4].view(np.int32)[0]
    )
    return (
        _arrays(memory["output"], program.outputs),
        _arrays(memory["variable"], program.variables),
        failed,
    )


def _arrays(pieces: Sequence[Memory], specs: Sequence[Any]) -> list[Array]:
    return [m.array(s.dtype.numpy, _shape(s)) for m, s in zip(pieces, specs, strict=True)]


def _shape(spec: Any) -> tuple[int, ...]:
    return tuple(map(int, spec.shape))


def launches_of(program: CudaProgram) -> Iterator[Launch]:
    """All launches, generated kernels in place of libraries."""
    for x in program.launches:
        yield from x.fallback if isinstance(x, Call) else (x,)


def _launch(launch: Launch, memory: Mapping[str, Sequence[Memory]], reverse: bool) -> None:
    tables: list[Array] = []  # alive while the kernel runs

    def word(x: Argument) -> int:
        if isinstance(x, Buffer):
            piece = memory[x.base][x.number]
            assert 0 <= x.offset <= len(piece.bytes), x
            return piece.address + x.offset
        if isinstance(x, Table):
            tables.append(np.array([word(y) for y in x.words], np.int64))
            return int(tables[-1].ctypes.data)
        return x

    arguments = np.array([word(x) for x in launch.arguments], np.int64)
    dims = np.array([*launch.grid, *launch.block], np.uint32)
    function = _functions[launch.kernel.name]
    status = function(int(reverse), dims.ctypes.data, arguments.ctypes.data)
    assert status == 0, f"threads of {launch.label} wait for what never comes"


class ShimDevice:
    """What `CudaCluster` asks of a device.

    Attributes:
        runs: how many programs have run.
        reverse: whether the last thread runs first.
        programs: those that were loaded.
    """

    architecture = ""

    def __init__(self) -> None:
        self.runs = 0
        self.reverse = False
        self.programs: list[CudaProgram] = []

    def load_program(self, program: CudaProgram, images: Mapping[str, bytes]) -> ShimProgram:
        """The program, ready to run."""
        assert not images
        self.programs.append(program)
        return ShimProgram(self, program)


@contextmanager
def on_shim() -> Iterator[ShimDevice]:
    """Have the CPU's clusters compiled as CUDA programs, which run on the host."""
    device, compiler = ShimDevice(), CudaCompiler()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NativeCompiler, "build", lambda _, body: CudaCluster(body, device))
        patch.setattr(NativeCompiler, "accepts", lambda _, ops: compiler.accepts(ops))
        yield device


os.environ.setdefault("LAMINAR_FALLBACK", "never")
