"""Two GPUs of one machine: replicas, and copies from one to the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from laminar.engine import set_device_count
from laminar.engine.devices import GpuDevice
from tests.engine.runtime.fake_gpu import fake_gpu, registered
from tests.gpu.models import trained

pytestmark = pytest.mark.slow


@pytest.fixture
def gpus() -> Iterator[list[GpuDevice]]:
    one = fake_gpu(0)
    devices = [one, fake_gpu(1, beside=one)]
    with registered("gpu", lambda i, *_: devices[i], priority=100, count=2):
        yield devices


def test_replicas_train_as_on_two_cpus(gpus: list[GpuDevice]) -> None:
    losses, predictions = trained("convolutional", devices=2)
    assert all("peer" in device.gpu.log for device in gpus)  # type: ignore[attr-defined]  # fake ones
    assert not any(device.xp.unordered for device in gpus)
    set_device_count({"cpu": 2, "gpu": 0})
    try:
        expected, reference = trained("convolutional", devices=2)
    finally:
        set_device_count()
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(predictions, reference, rtol=1e-4, atol=1e-5)


def test_a_copy_waits_for_what_makes_the_value(gpus: list[GpuDevice]) -> None:
    one, two = gpus
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    there = two.receive(one.put(x), one)  # the first array is freed before anybody waits
    np.testing.assert_array_equal(two.get(there), x)
    turned = two.receive(one.put(x).T, one)
    np.testing.assert_array_equal(two.get(turned), x.T)
