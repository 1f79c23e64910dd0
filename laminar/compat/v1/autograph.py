"""`tf.autograph`: Python's control flow as that of graphs; see `laminar.engine.autograph`."""

from __future__ import annotations

import sys
from typing import Any

from .face import Line, face

NAMES: dict[str, Line] = {
    "do_not_convert": "engine:do_not_convert",
    "set_verbosity": ".converting:set_verbosity",
    "to_graph": ".converting:to_graph",
    "trace": ".converting:trace",
}

_get, _names = face(__name__, NAMES)


def __getattr__(name: str) -> Any:
    return sys.modules[__name__] if name == "experimental" else _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), "experimental"})
