"""What tests of models are run with."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator

import pytest


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """No thread or process of the data outlives a test."""
    yield
    assert not [t.name for t in threading.enumerate() if t.name.startswith("laminar-")]
    assert not multiprocessing.active_children()
