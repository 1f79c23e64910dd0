"""`tf.xla.experimental`: laminar compiles what it can without being asked."""

from __future__ import annotations

import sys
from typing import Any

from .face import Line, face

NAMES: dict[str, Line] = {
    "compile": ".compiling:compile",
    "jit_scope": ".compiling:jit_scope",
}

_get, _names = face(__name__, NAMES)


def __getattr__(name: str) -> Any:
    return sys.modules[__name__] if name == "experimental" else _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), "experimental"})
