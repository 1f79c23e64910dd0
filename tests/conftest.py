"""What all tests share."""

from __future__ import annotations

import os

import pytest

# Keras is the reference that files and arithmetic are compared with; any backend serves.
os.environ.setdefault("KERAS_BACKEND", "jax")


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
