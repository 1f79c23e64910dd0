"""CUDA C to machine code, by NVIDIA's runtime compiler (NVRTC) through its C interface.

It needs no driver and no GPU. Its library comes with the wheel `nvidia-cuda-nvrtc`, or with CUDA.
Machine code is kept on disk by the digest of all that it was made of (see target/disk_cache.py).
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib.util
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from ...cuda_program import Kernel
from ...errors import InternalError, UnimplementedError
from ..target import disk_cache
from ..target.fingerprint import digest
from ..target.thread_count import num_threads

_SUFFIX = ".cubin"
# Whole numbers wrap around, and floats are IEEE's: nothing is made faster by other results.
OPTIONS = ("--std=c++17", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
# Products and sums are rounded apart, as the CPU's kernels have them.
UNFUSED = (*OPTIONS, "--fmad=false")


class Compiled(NamedTuple):
    """Machine code, and what the compiler says of it."""

    image: bytes
    log: str


def images_of(
    kernels: Sequence[Kernel], architecture: str, options: Sequence[str] = OPTIONS
) -> dict[str, bytes]:
    """Machine code of kernels by their names, compiled where it is not on disk.

    Args:
        kernels: all different.
        architecture: as "sm_90"; "" for a device that takes none.
        options: of the compiler.

    Raises:
        UnimplementedError: there is no compiler.
        InternalError: a kernel does not compile.
    """
    if not architecture:
        return {}
    identity = f"nvrtc {version()} {architecture} {' '.join(options)}"
    names = {k.name: digest(identity, k.source) + _SUFFIX for k in kernels}
    found: dict[str, bytes] = {}
    missing = []
    for kernel in kernels:
        content = disk_cache.read(names[kernel.name])
        if content is None:
            missing.append(kernel)
        else:
            found[kernel.name] = content

    def make(kernel: Kernel) -> None:
        image = compile_source(kernel.source, architecture, options).image
        disk_cache.write(names[kernel.name], image)
        found[kernel.name] = image

    if missing:
        with ThreadPoolExecutor(max(1, min(num_threads(), len(missing)))) as pool:
            list(pool.map(make, missing))
    return found


def compile_source(source: str, architecture: str, options: Sequence[str] = OPTIONS) -> Compiled:
    """Compile a translation unit.

    Raises:
        UnimplementedError: there is no compiler.
        InternalError: it does not compile.
    """
    library, program = _library(), ctypes.c_void_p()
    name = b"laminar.cu"
    _check(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name, 0, None, None))
    try:
        given = [*options, f"--gpu-architecture={architecture}", "--ptxas-options=-v"]
        texts = (ctypes.c_char_p * len(given))(*(text.encode() for text in given))
        status = library.nvrtcCompileProgram(program, len(given), texts)
        log = _text(library, "ProgramLog", program).rstrip(b"\0").decode()
        if status:
            raise InternalError(f"a CUDA kernel does not compile for {architecture}:\n{log}")
        return Compiled(_text(library, "CUBIN", program), log)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(library: Any, name: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _check(getattr(library, f"nvrtcGet{name}Size")(program, ctypes.byref(size)))
    content = ctypes.create_string_buffer(size.value)
    _check(getattr(library, f"nvrtcGet{name}")(program, content))
    return content.raw


@functools.cache
def version() -> str:
    """The version of the compiler.

    Raises:
        UnimplementedError: there is none.
    """
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return f"{major.value}.{minor.value}"


def why_not() -> str:
    """Why nothing can be compiled here; "" where it can."""
    try:
        _library()
    except UnimplementedError as error:
        return str(error)
    return ""


def _check(status: int) -> None:
    if status:
        _library().nvrtcGetErrorString.restype = ctypes.c_char_p
        text = _library().nvrtcGetErrorString(status).decode()
        raise InternalError(f"NVRTC says {text}")


@functools.cache
def _library() -> Any:
    for place in _places():
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    raise UnimplementedError(
        "there is no compiler for CUDA kernels: libnvrtc was not found",
        remedy="pip install 'laminar[gpu]', or nvidia-cuda-nvrtc alone",
    )


def _places() -> list[str]:
    """Where the library may be: in NVIDIA's wheels, then where the system looks."""
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None else spec.submodule_search_locations or []
    found = [
        str(path)
        for folder in folders
        for path in sorted(Path(folder).glob("*/lib/libnvrtc.so.*"), reverse=True)
        if not path.name.startswith("libnvrtc-builtins") and ".alt." not in path.name
    ]
    named = ctypes.util.find_library("nvrtc")
    return [*found, *([named] if named else [])]
