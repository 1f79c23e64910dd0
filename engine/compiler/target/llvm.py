"""Object code for this host, and its addresses; with llvm_worker.py the owner of llvmlite.

Code uses the widest vectors that the host has, unless the environment variable LAMINAR_ISA names
less: "avx2" is as on a processor without AVX-512, "sse" as on one without AVX.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Sequence
from typing import Any

from ... import forks
from ...errors import InternalError, InvalidArgumentError
from .host import is_x86
from .llvm_worker import LEVEL, binding, machine, object_code, omitted_passes, version
from .near import near_each_other

# Rises when object code of the same IR is made otherwise.
_FORM = 3
# The sizes of vectors in bytes, by what LAMINAR_ISA calls them.
_ISAS = {"sse": 16, "avx2": 32, "avx512": 64}

_lock = forks.lock()
_held: list[Any] = []  # libraries of loaded code, which must not be freed
_numbers = itertools.count()  # of libraries: one that could not be linked keeps its name, too


def host_features() -> dict[str, bool]:
    """What code may use of the host's processor, by LLVM's names."""
    return dict(_features(vector_bytes()))


def processor() -> str:
    """LLVM's name of the host's processor."""
    found: str = binding().get_host_cpu_name()
    return found


@functools.cache
def features(vector: int) -> str:
    """What code with vectors of up to `vector` bytes may use, as LLVM takes it."""
    found: str = _features(vector).flatten()
    return found


@functools.cache
def _features(vector: int) -> Any:
    """The host's features without those of wider vectors than `vector` bytes."""
    found = binding().get_host_cpu_features()
    if vector < 64:
        found.update({f: False for f in found if f.startswith(("avx512", "avx10", "amx"))})
    if vector < 32:
        found.update({f: False for f in found if f.startswith(("avx", "fma", "f16c"))})
        found.update({f: False for f in ("vaes", "vpclmulqdq", "gfni") if f in found})
    return found


@functools.cache
def _jit() -> Any:
    return binding().create_lljit_compiler(machine(features(vector_bytes())))


@functools.cache
def identity(vector: int | None = None) -> str:
    """What object code depends on besides its IR: the processor and the code generator."""
    llvm = binding()
    host = f"{llvm.get_default_triple()} {processor()}"
    return f"{version()} {host} {features(vector or vector_bytes())} {LEVEL} {_FORM}"


@functools.cache
def vector_bytes() -> int:
    """The size of the vector registers that code uses.

    Raises:
        InvalidArgumentError: LAMINAR_ISA is not the name of instructions.
    """
    host = binding().get_host_cpu_features()
    widest = 64 if host.get("avx512f") else 32 if host.get("avx") else 16
    return min(widest, asked_vector_bytes() or widest)


def asked_vector_bytes() -> int:
    """The size of the vector registers that the user asks for; 0: those of the host.

    Raises:
        InvalidArgumentError: LAMINAR_ISA is not the name of instructions.
    """
    chosen = os.environ.get("LAMINAR_ISA")
    if not chosen:
        return 0
    if chosen not in _ISAS:
        raise InvalidArgumentError(
            f"LAMINAR_ISA: expected one of {', '.join(_ISAS)}, got {chosen!r}",
            remedy="correct the environment variable, or remove it",
        )
    return _ISAS[chosen]


def converts_halves(vector: int) -> bool:
    """Whether processors with vectors of `vector` bytes (0: this one) convert float16."""
    return not is_x86() or "+f16c" in features(vector or vector_bytes())


def has_fma(vector: int) -> bool:
    """Whether processors with vectors of `vector` bytes (0: this one) round a * b + c once."""
    return not is_x86() or "+fma" in features(vector or vector_bytes())


def has_masks(vector: int, size: int) -> bool:
    """Whether processors with vectors of `vector` bytes (0: this one) have masked loads and stores.

    Args:
        vector: the size of the vectors.
        size: the size of the elements in bytes.
    """
    usable = features(vector or vector_bytes())
    return is_x86() and ("+avx512bw" in usable or (size >= 4 and "+avx" in usable))


def has_gathers(vector: int) -> bool:
    """Whether processors with vectors of `vector` bytes (0: this one) have vectors of addresses."""
    return is_x86() and "+avx2" in features(vector or vector_bytes())


def has_scatters(vector: int) -> bool:
    """The same where they write."""
    return is_x86() and "+avx512f" in features(vector or vector_bytes())


def prepare() -> None:
    """Load LLVM and what links object code."""
    identity(vector_bytes())
    _jit()


def compile_object(text: str, vector: int | None = None, suffix: str = "") -> bytes:
    """Object code of IR text.

    Args:
        text: the IR.
        vector: the widest vectors to use, in bytes; otherwise those of the host.
        suffix: goes behind the name of each function, so that code can be linked with other code.

    Raises:
        InternalError: the IR is not valid.
    """
    usable = features(vector or vector_bytes())
    with _lock:
        try:
            return object_code(text, usable, suffix)
        except RuntimeError as cause:
            raise InternalError(f"the generated code is not valid: {cause}") from cause


def assembly(text: str, vector: int | None = None) -> str:
    """The assembly that IR text becomes, for reading."""
    usable = features(vector or vector_bytes())
    with _lock, omitted_passes():
        found: str = machine(usable).emit_assembly(binding().parse_assembly(text))
        return found


def load_objects(codes: Sequence[bytes], symbols: Sequence[str]) -> dict[str, int]:
    """The addresses of symbols of objects that have no names in common; they stay loaded."""
    with _lock:
        builder = binding().JITLibraryBuilder().add_current_process()
        for code in codes:
            builder = builder.add_object_img(code)
        for symbol in symbols:
            builder = builder.export_symbol(symbol)
        with near_each_other(sum(map(len, codes))):
            library = builder.link(_jit(), f"kernels_{next(_numbers)}")
        _held.append(library)
        return {symbol: library[symbol] for symbol in symbols}
