"""Tests on a GPU. Without one they are skipped; with LAMINAR_REQUIRE_GPU=1 they fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from laminar.engine.cuda import loading
from laminar.engine.devices import GpuDevice, local_devices

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session")
def real() -> GpuDevice:
    """The first GPU of the machine."""
    _, reason = loading.load()
    if reason and os.environ.get("LAMINAR_REQUIRE_GPU") == "1":
        pytest.fail(f"LAMINAR_REQUIRE_GPU=1, and there is no GPU: {reason}", pytrace=False)
    if reason:
        pytest.skip(reason)
    return next(d for d in local_devices() if isinstance(d, GpuDevice))


@pytest.fixture
def gpu(real: GpuDevice) -> Iterator[GpuDevice]:
    """The GPU; after the test it holds nothing that it did not hold before."""
    yield real
    real.synchronize()
