"""What all tests share."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Collection, Iterator

import pytest

# Keras is the reference that files and arithmetic are compared with; any backend serves.
os.environ.setdefault("KERAS_BACKEND", "jax")
# What the compiler gets wrong is an error here, not a reason to run without it.
os.environ.setdefault("LAMINAR_FALLBACK", "never")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the slow tests too")


def pytest_configure(config: pytest.Config) -> None:
    """Native code that tests make is kept beside pytest's own cache, not in the user's."""
    if config.cache is not None:
        os.environ.setdefault("LAMINAR_CACHE", str(config.cache.mkdir("laminar")))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="slow: run with --slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)


def names_of_threads_left(before: Collection[threading.Thread]) -> list[str]:
    """Threads of laminar that work for one object only, and still live some time after it."""
    end = time.monotonic() + 5
    while True:
        left = [
            t.name
            for t in threading.enumerate()
            if t not in before and t.name.startswith("laminar-") and "inter-op" not in t.name
        ]
        if not left or time.monotonic() > end:
            return left
        gc.collect()
        time.sleep(0.01)


@pytest.fixture(scope="module", autouse=True)
def no_thread_outlives_its_module() -> Iterator[None]:
    """Threads that make batches, train replicas or write files end with what they are for."""
    before = set(threading.enumerate())
    yield
    left = names_of_threads_left(before)
    assert not left, f"threads that nobody ended: {left}"
