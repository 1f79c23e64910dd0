"""The one place where cupy is loaded: what it finds, and why there is no GPU."""

from __future__ import annotations

import functools
import importlib
from typing import Any


@functools.cache
def load() -> tuple[Any, str]:
    """(cupy, "") when there is a GPU to use, else (None, the reason)."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        if getattr(error, "name", None) == "cupy":
            return None, "cupy is not installed (pip install 'laminar[gpu]')"
        return None, f"cupy cannot be loaded: {error}"
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:  # cupy's own classes, which cannot be named without it
        return None, f"cupy finds no GPU: {error}"
    return (cupy, "") if count else (None, "cupy finds no GPU")
