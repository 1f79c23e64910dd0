"""The one owner of llvmlite: IR text to object code for this host, and object code to addresses."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any

from ..errors import InternalError

# How much of LLVM's code generator to use. The IR comes in its final form, so the middle end is
# skipped; at 0 the code is three times slower, above 2 it is not faster.
_CODE_GENERATION = 2
# Rises when object code of the same IR is made otherwise.
_FORM = 2

_lock = threading.Lock()
_held: list[Any] = []  # libraries of loaded code, which must not be freed


@functools.cache
def _binding() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def host_features() -> dict[str, bool]:
    """What the host's processor can do, by LLVM's names."""
    return dict(_binding().get_host_cpu_features())


@functools.cache
def _features(vector: int) -> str:
    """The host's features without those of wider vectors than `vector` bytes."""
    features = _binding().get_host_cpu_features()
    if vector < 64:
        features.update({f: False for f in features if f.startswith(("avx512", "avx10", "amx"))})
    if vector < 32:
        features.update({f: False for f in features if f.startswith(("avx", "fma", "f16c"))})
        features.update({f: False for f in ("vaes", "vpclmulqdq", "gfni") if f in features})
    flat: str = features.flatten()
    return flat


@functools.cache
def _machine(vector: int) -> Any:
    """What makes code for this host that uses vectors of up to `vector` bytes."""
    llvm = _binding()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=_features(vector),
        opt=_CODE_GENERATION,
        reloc="pic",
        codemodel="default",
        jit=True,
    )


@functools.cache
def _jit() -> Any:
    return _binding().create_lljit_compiler(_machine(vector_bytes()))


@functools.cache
def identity(vector: int | None = None) -> str:
    """What object code depends on besides its IR: the processor and the code generator."""
    llvm = _binding()
    import llvmlite

    features = _features(vector or vector_bytes())
    machine = f"{llvm.get_default_triple()} {llvm.get_host_cpu_name()} {features}"
    return f"{llvmlite.__version__} {machine} {_CODE_GENERATION} {_FORM}"


@functools.cache
def vector_bytes() -> int:
    """The size of the host's vector registers."""
    features = host_features()
    if features.get("avx512f"):
        return 64
    return 32 if features.get("avx") else 16


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
    llvm = _binding()
    machine = _machine(vector or vector_bytes())
    with _lock:
        try:
            module = llvm.parse_assembly(text)
            module.triple = llvm.get_default_triple()
            module.data_layout = str(machine.target_data)
            if suffix:
                for function in [f for f in module.functions if not f.is_declaration]:
                    function.name += suffix
            module.verify()
        except RuntimeError as cause:
            raise InternalError(f"the generated code is not valid: {cause}") from cause
        found: bytes = machine.emit_object(module)
        return found


def assembly(text: str, vector: int | None = None) -> str:
    """The assembly that IR text becomes, for reading."""
    llvm = _binding()
    with _lock:
        module = llvm.parse_assembly(text)
        found: str = _machine(vector or vector_bytes()).emit_assembly(module)
        return found


def load_objects(codes: Sequence[bytes], symbols: Sequence[str]) -> dict[str, int]:
    """The addresses of symbols of objects that have no names in common; they stay loaded."""
    llvm = _binding()
    with _lock:
        builder = llvm.JITLibraryBuilder().add_current_process()
        for code in codes:
            builder = builder.add_object_img(code)
        for symbol in symbols:
            builder = builder.export_symbol(symbol)
        library = builder.link(_jit(), f"kernels_{len(_held)}")
        _held.append(library)
        return {symbol: library[symbol] for symbol in symbols}
