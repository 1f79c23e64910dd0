"""`tf.autograph`: Python's control flow as that of graphs; see `laminar.engine.autograph`."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "do_not_convert": "engine:do_not_convert",
    "set_verbosity": ".converting:set_verbosity",
    "to_graph": ".converting:to_graph",
    "trace": ".converting:trace",
}

__getattr__, __dir__ = face(__name__, NAMES, itself={"experimental"})
