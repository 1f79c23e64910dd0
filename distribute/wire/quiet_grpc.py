"""gRPC, loaded so that it prints nothing: what goes wrong is raised, with more that helps.

GRPC_VERBOSITY says what it prints, and is read once, when it is loaded. Where it is set, it holds.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

_VERBOSITY = "GRPC_VERBOSITY"


def _load() -> Any:
    if _VERBOSITY in os.environ:
        return importlib.import_module("grpc")
    os.environ[_VERBOSITY] = "NONE"
    try:
        return importlib.import_module("grpc")
    finally:
        del os.environ[_VERBOSITY]


grpc = _load()
