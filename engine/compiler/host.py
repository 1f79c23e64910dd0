"""What kind of processor and system code is made for, where that makes a difference."""

from __future__ import annotations

import platform
import sys

_X86 = frozenset({"x86_64", "amd64"})
_ARM = frozenset({"aarch64", "arm64"})


def is_x86() -> bool:
    """Whether the processor is a 64-bit one of Intel's kind."""
    return platform.machine().lower() in _X86


def is_arm() -> bool:
    """Whether the processor is a 64-bit one of ARM's kind."""
    return platform.machine().lower() in _ARM


def is_linux() -> bool:
    """Whether the system is Linux."""
    return sys.platform == "linux"


def why_not() -> str:
    """Why no native code is made on this machine; empty where it is."""
    if sys.platform == "win32":
        return "threads wait for each other by calls of POSIX systems"
    if sys.byteorder != "little" or sys.maxsize < 1 << 32:
        return "native code is for 64-bit processors with the lowest byte first"
    return ""
