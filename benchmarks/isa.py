"""Narrower vectors than the processor has, for laminar and its peers alike.

What a machine with less would measure, as far as the libraries can be told.
"""

from __future__ import annotations

import importlib.util
import mmap
from collections.abc import Mapping, MutableMapping
from pathlib import Path

_XLA = "XLA_FLAGS"
_MOST = "--xla_cpu_max_isa="

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
        _XLA: _MOST + "AVX2",
    },
}

# What XLA writes keeps to its flag, and oneDNN, which it calls for products, to its variable. But
# JAX's gives most products to a library that asks the processor alone, unless it is told not to.
_LIBRARY = "xla_cpu_experimental_ynn_fusion_type"
_WITH_LIBRARY = ("jax", "keras")


def restricted(variables: Mapping[str, str], isa: str | None) -> dict[str, str]:
    """Variables of a process, with those that keep its libraries to an instruction set, if any."""
    found = dict(variables)
    if isa is None:
        return found
    flags = [found.get(_XLA, ""), ISAS[isa][_XLA]]
    return {**found, **ISAS[isa], _XLA: " ".join(flags).strip()}


def keep_products(
    framework: str, variables: MutableMapping[str, str], folder: Path | None = None
) -> None:
    """Have the XLA of this process, which is kept to an instruction set, leave products to oneDNN.

    Args:
        framework: whose process it is.
        variables: of the process, before XLA reads them.
        folder: where jaxlib is. A flag that it does not know would end the process.
    """
    flags = variables.get(_XLA, "")
    if framework not in _WITH_LIBRARY or _MOST not in flags:
        return
    if folder is None:
        found = importlib.util.find_spec("jaxlib")
        if found is None or found.origin is None:
            return
        folder = Path(found.origin).parent
    if any(_mentions(path, _LIBRARY) for path in folder.glob("*.so")):
        variables[_XLA] = f"{flags} --{_LIBRARY}="


def _mentions(path: Path, name: str) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(name.encode()) >= 0
