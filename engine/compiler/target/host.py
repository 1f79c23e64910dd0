"""What kind of processor and system code is made for, where that makes a difference."""

from __future__ import annotations

import functools
import math
import platform
import sys
from pathlib import Path

# Bytes of a line of a cache. Memory for vectors begins at one, so none of them is in two lines.
LINE = 64
# The L1 cache keeps so many lines that are a multiple of so many bytes apart, or some more.
_WAYS = 8
_WAY_BYTES = 4096
_X86 = frozenset({"x86_64", "amd64"})
_ARM = frozenset({"aarch64", "arm64"})
_PROCESSORS = Path("/sys/devices/system/cpu")
# The L2 cache where nobody says how large it is: few processors have less.
_L2_CACHE = 1 << 20
_UNITS = {"K": 1 << 10, "M": 1 << 20}


def is_x86() -> bool:
    """Whether the processor is a 64-bit one of Intel's kind."""
    return platform.machine().lower() in _X86


def is_arm() -> bool:
    """Whether the processor is a 64-bit one of ARM's kind."""
    return platform.machine().lower() in _ARM


def is_linux() -> bool:
    """Whether the system is Linux."""
    return sys.platform == "linux"


@functools.cache
def has_steady_counter() -> bool:
    """Whether the processor has a counter of time that all cores share, at one rate, in sleep too.

    Only what Linux says of one of Intel's kind is known.
    """
    if not (is_x86() and is_linux()):
        return False
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        clock = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text()
    except OSError:
        return False
    flags = next((line for line in lines if line.startswith("flags")), "").split()
    return {"constant_tsc", "nonstop_tsc"} <= {*flags} and clock.strip() in ("tsc", "kvm-clock")


@functools.cache
def l2_cache() -> int:
    """Bytes of the L2 cache that a core has for itself, of the core that has least.

    A cache that cores share, as small ones do, is shared out.
    """
    if not is_linux():
        return _L2_CACHE
    found = []
    for level in _PROCESSORS.glob("cpu[0-9]*/cache/index[0-9]/level"):
        try:
            if level.read_text().strip() == "2":
                found.append(_share(level.parent))
        except (OSError, ValueError):  # a core that goes, or an entry that says nothing
            continue
    return min(found, default=_L2_CACHE)


def whole_lines(num_bytes: int) -> int:
    """The bytes of the lines of a cache that so many take."""
    return -(-num_bytes // LINE) * LINE


def lines_in_l1_cache(stride: int) -> int:
    """How many lines that are so many bytes apart the L1 cache keeps."""
    return _WAYS * (_WAY_BYTES // math.gcd(stride, _WAY_BYTES))


def in_l2_cache(share: float) -> int:
    """The bytes of a share of the L2 cache."""
    return int(l2_cache() * share)


def _share(cache: Path) -> int:
    """The bytes of a cache that each core has which shares it; its threads are one core."""
    size = (cache / "size").read_text().strip()
    num_bytes = int(size[:-1]) * _UNITS.get(size[-1:], 0)
    if num_bytes <= 0:
        raise ValueError(size)
    sharing = _bits(cache / "shared_cpu_map")
    siblings = _bits(cache.parents[1] / "topology" / "thread_siblings")
    return num_bytes * siblings // max(siblings, sharing)


def _bits(mask: Path) -> int:
    """How many processors a mask has; one where there is no mask."""
    try:
        return max(1, int(mask.read_text().replace(",", ""), 16).bit_count())
    except (OSError, ValueError):
        return 1


def why_not() -> str:
    """Why no native code is made on this machine; empty where it is."""
    if sys.platform == "win32":
        return "threads wait for each other by calls of POSIX systems"
    if sys.byteorder != "little" or sys.maxsize < 1 << 32:
        return "native code is for 64-bit processors with the lowest byte first"
    return ""
