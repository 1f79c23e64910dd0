"""Tests on a GPU. Without one they are skipped; with LAMINAR_REQUIRE_GPU=1 they fail."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from laminar.engine.cuda import loading
from laminar.engine.devices import GpuDevice, local_devices


def pytest_itemcollected(item: pytest.Item) -> None:  # is asked of the tests of this folder only
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
