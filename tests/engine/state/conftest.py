"""A watchdog: a test that hangs is a failure with a traceback of every thread."""

from __future__ import annotations

import faulthandler
import threading
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def no_thread_left() -> Iterator[None]:
    """Every thread that the test started has ended when it ends."""
    before = set(threading.enumerate())
    yield
    left = [
        t.name
        for t in threading.enumerate()
        if t not in before and not t.name.startswith("laminar-")  # the pools stay
    ]
    assert not left, f"threads still running: {left}"
