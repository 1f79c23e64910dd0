"""A watchdog: a test that hangs is a failure with a traceback of every thread."""

from __future__ import annotations

import faulthandler
import threading
from collections.abc import Iterator

import pytest

_SECONDS_TO_END = 20.0  # for one of a timer that was cancelled, say


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def no_thread_left() -> Iterator[None]:
    """Every thread that the test started ends when it ends; one that is told to takes a moment."""
    before = set(threading.enumerate())
    yield
    started = [
        t
        for t in threading.enumerate()
        if t not in before and not t.name.startswith("laminar-")  # the pools stay
    ]
    for thread in started:
        thread.join(_SECONDS_TO_END)
    left = [t.name for t in started if t.is_alive()]
    assert not left, f"threads still running: {left}"
