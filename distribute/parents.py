"""Processes that end with the one that started them."""

from __future__ import annotations

import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # of prctl(2)


def die_with_parent(parent: int) -> None:
    """Have this process killed when the one that started it ends; elsewhere than on Linux, nothing.

    Args:
        parent: the process that started it; where that has ended already, so does this one.
    """
    if sys.platform != "linux":
        return
    import ctypes  # what starts no processes does not need it

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
