"""`tf.test`: test cases that run graphs, and gradients by differences."""

from __future__ import annotations

import importlib
from typing import Any

from .face import Line, face

NAMES: dict[str, Line] = {
    "StubOutForTesting": ".testing:StubOutForTesting",
    "TestCase": ".testing:TestCase",
    "assert_equal_graph_def": ".testing:assert_equal_graph_def",
    "compute_gradient": ".gradient_checks:compute_gradient",
    "compute_gradient_error": ".gradient_checks:compute_gradient_error",
    "get_temp_dir": ".testing:get_temp_dir",
    "gpu_device_name": ".device_lists:gpu_device_name",
    "is_built_with_cuda": ".testing:is_built_with_cuda",
    "is_built_with_gpu_support": ".testing:is_built_with_cuda",
    "is_built_with_rocm": ".testing:is_built_with_rocm",
    "is_gpu_available": ".device_lists:is_gpu_available",
    "main": ".testing:main",
}

_get, _names = face(__name__, NAMES)


def __getattr__(name: str) -> Any:
    return importlib.import_module("unittest.mock") if name == "mock" else _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), "mock"})
