"""`tf.logging`: the log "laminar"."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from typing import Any

DEBUG, INFO, WARN, ERROR, FATAL = 10, 20, 30, 40, 50
log = logging.getLogger("laminar")
# How often each line of a program, (file, number), has asked for `log_every_n` or `log_first_n`.
_asked: Counter[tuple[str, int]] = Counter()


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


def log_at(level: int, msg: str, *args: Any) -> None:
    """Write a message of a level."""
    log.log(level, msg, *args)


def log_if(level: int, msg: str, condition: Any, *args: Any) -> None:
    """Write a message of a level where a condition holds."""
    if condition:
        log.log(level, msg, *args)


def _times_before() -> int:
    """How often the line of the caller's caller was here before."""
    frame = sys._getframe(2)
    line = (frame.f_code.co_filename, frame.f_lineno)
    _asked[line] += 1
    return _asked[line] - 1


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Write a message of a level at the first and then at each n-th call of this line."""
    if _times_before() % n == 0:
        log.log(level, msg, *args)


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Write a message of a level at the first n calls of this line."""
    if _times_before() < n:
        log.log(level, msg, *args)


def flush() -> None:
    """Have what was written arrive where it goes."""
    for handler in log.handlers:
        handler.flush()


def get_logger() -> logging.Logger:
    """The log itself."""
    return log
