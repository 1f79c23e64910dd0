"""What tests of models are run with."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator

import pytest

from ..conftest import names_of_threads_left


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """No thread or process of the data outlives a test."""
    yield
    assert not names_of_threads_left(())
    assert not multiprocessing.active_children()
