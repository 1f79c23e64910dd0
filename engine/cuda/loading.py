"""The one place where cupy is loaded: what it finds, and why there is no GPU."""

from __future__ import annotations

import functools
import importlib
from typing import Any

_INSTALL = "pip install 'laminar[gpu]'"


@functools.cache
def load() -> tuple[Any, str]:
    """(cupy, "") when there is a GPU to use, else (None, the reason)."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        if getattr(error, "name", None) == "cupy":
            return None, f"cupy is not installed ({_INSTALL})"
        return None, f"cupy cannot be loaded: {error}"
    reason = _why_not(cupy)
    return (None, reason) if reason else (cupy, "")


def _why_not(cupy: Any) -> str:
    """Why cupy has no GPU to compute on; "" where it has one."""
    runtime = cupy.cuda.runtime
    try:
        driver, library = int(runtime.driverGetVersion()), int(runtime.runtimeGetVersion())
        if driver == 0:
            return "there is no driver of NVIDIA's (libcuda.so.1 is not found, or does not start)"
        if driver // 1000 < library // 1000:
            return (
                f"the driver is for CUDA {_version(driver)}, and cupy for CUDA {_version(library)}:"
                f" update the driver, or install cupy-cuda{driver // 1000}x in place of this cupy"
            )
        count = int(runtime.getDeviceCount())
    except Exception as error:  # cupy's own classes, which cannot be named without it
        return f"cupy finds no GPU: {error}"
    if not count:
        return "the driver finds no GPU (CUDA_VISIBLE_DEVICES says which it may show)"
    try:  # NVRTC and its headers: what cupy compiles kernels with
        cupy.zeros(2, "float32").sum().get()
    except Exception as error:
        return f"the GPU does not compute: {error} ({_INSTALL} brings the libraries)"
    return ""


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def num_gpus() -> tuple[int, str]:
    """How many GPUs there are, and why none."""
    cupy, reason = load()
    return (0, reason) if cupy is None else (int(cupy.cuda.runtime.getDeviceCount()), "")


def total_bytes(index: int) -> int:
    """The memory of a GPU; 0 where there is none."""
    cupy, _ = load()
    return 0 if cupy is None else int(cupy.cuda.Device(index).mem_info[1])
