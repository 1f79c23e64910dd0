"""`tf.logging`: the log "laminar"."""

from __future__ import annotations

import logging
from typing import Any

DEBUG, INFO, WARN, ERROR, FATAL = 10, 20, 30, 40, 50
log = logging.getLogger("laminar")


def debug(msg: str, *args: Any) -> None:
    """Write a message for whoever looks for a fault."""
    log.debug(msg, *args)


def info(msg: str, *args: Any) -> None:
    """Write a message."""
    log.info(msg, *args)


def warning(msg: str, *args: Any) -> None:
    """Write a warning."""
    log.warning(msg, *args)


def error(msg: str, *args: Any) -> None:
    """Write of an error."""
    log.error(msg, *args)


def fatal(msg: str, *args: Any) -> None:
    """Write of an error after which nothing goes on."""
    log.critical(msg, *args)


def set_verbosity(v: int) -> None:
    """Leave out what is below a level; the rest goes to the standard error, if nowhere else."""
    log.setLevel(v)
    if not log.hasHandlers():
        log.addHandler(logging.StreamHandler())


def get_verbosity() -> int:
    """The level below which messages are left out."""
    return log.getEffectiveLevel()
