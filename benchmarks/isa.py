"""Narrower vectors than the processor has, for laminar and its peers alike.

What a machine with less would measure, as far as the libraries can be told.
"""

from __future__ import annotations

from collections.abc import Mapping

_XLA = "XLA_FLAGS"

# Instruction set: the variables that keep libraries to it. OpenBLAS and NumPy name processors and
# features; the others have a variable for the most that they may use.
ISAS: Mapping[str, Mapping[str, str]] = {
    "avx2": {
        "LAMINAR_ISA": "avx2",
        "ATEN_CPU_CAPABILITY": "avx2",  # torch's own kernels, and what torch.compile writes
        "TORCHINDUCTOR_CPP_MARCH": "haswell",
        "ONEDNN_MAX_CPU_ISA": "AVX2",  # of torch and TensorFlow
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512F AVX512_SKX AVX512_ICL AVX512_SPR",
        _XLA: "--xla_cpu_max_isa=AVX2",
    },
}

# What XLA writes keeps to its flag. The kernels for products that it calls ask the processor alone.
UNRESTRICTED = ("jax", "keras", "keras-tensorflow")


def restricted(variables: Mapping[str, str], isa: str | None) -> dict[str, str]:
    """Variables of a process, with those that keep its libraries to an instruction set, if any."""
    found = dict(variables)
    if isa is None:
        return found
    flags = [found.get(_XLA, ""), ISAS[isa][_XLA]]
    return {**found, **ISAS[isa], _XLA: " ".join(flags).strip()}
