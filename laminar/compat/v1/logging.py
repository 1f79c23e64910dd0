"""`tf.logging`: the log "laminar"."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "DEBUG": ".logs:DEBUG",
    "INFO": ".logs:INFO",
    "WARN": ".logs:WARN",
    "ERROR": ".logs:ERROR",
    "FATAL": ".logs:FATAL",
    "debug": ".logs:debug",
    "info": ".logs:info",
    "error": ".logs:error",
    "fatal": ".logs:fatal",
    "flush": ".logs:flush",
    "log": ".logs:log_at",
    "log_every_n": ".logs:log_every_n",
    "log_first_n": ".logs:log_first_n",
    "log_if": ".logs:log_if",
    "vlog": ".logs:log_at",
    "set_verbosity": ".logs:set_verbosity",
    "get_verbosity": ".logs:get_verbosity",
    "warn": ".logs:warning",
    "warning": ".logs:warning",
}

__getattr__, __dir__ = face(__name__, NAMES)
