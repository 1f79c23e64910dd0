"""The package `onnx`: loaded on first use, by this file alone."""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any

from laminar.engine.errors import UnimplementedError

# Of the operators that are written. onnxruntime has had it since 1.14.
OPSET = 18
# Of the file format: the one that came with that opset.
IR_VERSION = 8


@lru_cache(maxsize=1)
def library() -> Any:
    """The package.

    Raises:
        UnimplementedError: it is not installed.
    """
    try:
        onnx = importlib.import_module("onnx")
        for part in ("checker", "helper", "numpy_helper"):
            importlib.import_module(f"onnx.{part}")
    except ImportError as error:
        raise UnimplementedError(
            'export: format="onnx" takes the package onnx', remedy="pip install 'laminar[onnx]'"
        ) from error
    return onnx


def element_type(dtype: Any) -> int:
    """ONNX's number of an element type."""
    onnx = library()
    name = str(dtype).upper()
    names = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE"}
    number: int = onnx.TensorProto.DataType.Value(names.get(name, name))
    return number
