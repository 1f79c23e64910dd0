"""The session face under the names of TensorFlow 1: `import laminar.compat.v1 as tf`.

A script of that time, which builds the default graph and runs it in sessions, runs with this
import alone changed. What has these names builds in the default graph, also outside of
`with graph.as_default()`, unless `enable_eager_execution()` was called; the rest of laminar
computes at once, as ever. What differs from TensorFlow is told in README.md.

The names are tables (see face.py); what stands behind one is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import array, math, names, sparse
from .face import Line, face

_MODULES = frozenset(
    {
        "app",
        "autograph",
        "bitwise",
        "compat",
        "config",
        "data",
        "distribute",
        "distributions",
        "debugging",
        "dtypes",
        "errors",
        "feature_column",
        "flags",
        "gfile",
        "graph_util",
        "image",
        "initializers",
        "io",
        "layers",
        "linalg",
        "logging",
        "lookup",
        "losses",
        "manip",
        "math",
        "metrics",
        "nest",
        "nn",
        "python_io",
        "quantization",
        "queue",
        "ragged",
        "random",
        "resource_loader",
        "saved_model",
        "sets",
        "signal",
        "sparse",
        "spectral",
        "strings",
        "summary",
        "test",
        "train",
        "version",
        "xla",
    }
)

NAMES: dict[str, Line] = {**math.NAMES, **array.NAMES, **sparse.TOP, **names.NAMES}

_get, _names = face(__name__, NAMES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name == "keras":
        return importlib.import_module("laminar")
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), *_MODULES, "keras"})
