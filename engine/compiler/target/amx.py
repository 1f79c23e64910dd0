"""Whether this process may use the matrix unit of Intel processors (AMX) for bfloat16.

Its tiles are registers that Linux gives to a process that asks for them, for all its threads.

Source: "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 1, chapter 18;
    "Using XSTATE features in user space applications", Linux kernel documentation.
"""

from __future__ import annotations

import ctypes
import functools

from . import host, llvm

_ARCH_PRCTL = 158  # the number of the system call on x86-64
_REQUEST_PERMISSION = 0x1023
_TILE_DATA = 18


@functools.cache
def has_amx() -> bool:
    """Whether bfloat16 matrices can be multiplied there."""
    if not (host.is_linux() and host.is_x86()):
        return False
    features = llvm.host_features()
    needed = ("amx-tile", "amx-bf16", "avx512f", "avx512bw", "avx512vl")
    if not all(features.get(name) for name in needed):
        return False
    return not ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA)
