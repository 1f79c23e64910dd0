"""Devices that tests register: a GPU of NumPy, two CPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from laminar.engine.devices import (
    Device,
    GpuDevice,
    local_devices,
    register_device,
    registry,
    set_device_count,
)
from laminar.engine.devices.factories import factories
from laminar.engine.ops.core.cluster import Compiler
from tests.engine.cuda.fake_gpu import FakeGpu
from tests.engine.cuda.strict_cupy import StrictCupy


@contextmanager
def registered(
    device_type: str,
    make: Callable[[int, int, int | None], Device],
    priority: int = -1,
    compiler: Callable[[], Compiler] | None = None,
    count: int = 1,
    memory_bytes: Callable[[int], int] | None = None,
) -> Iterator[None]:
    """Inside, there are devices of a type more, or of a type that there was already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(factories, device_type, factories["cpu"])  # at the end, it is as it was
        del factories[device_type]
        register_device(
            device_type,
            make,
            available=lambda: (count, ""),
            priority=priority,
            memory_bytes=memory_bytes,
            compiler=compiler,
        )
        try:
            yield
        finally:
            registry._devices.cache_clear()


def fake_gpu(
    index: int = 0, *, limit_bytes: int | None = None, beside: GpuDevice | None = None
) -> GpuDevice:
    """A device whose library refuses what cupy refuses, in the machine of another one."""
    gpu = FakeGpu(index, beside=None if beside is None else beside.gpu)  # type: ignore[arg-type]  # a fake one
    StrictCupy(gpu)
    return GpuDevice(gpu, limit_bytes=limit_bytes)


def real_or_fake_gpu() -> GpuDevice:
    """The first GPU of this machine, where it has one."""
    real = [d for d in local_devices() if isinstance(d, GpuDevice)]
    return real[0] if real else fake_gpu()


@contextmanager
def one_gpu() -> Iterator[GpuDevice]:
    """Inside, this is the GPU of all sessions, with a library that refuses NumPy's arrays."""
    device = fake_gpu()

    def make(index: int, count: int, limit_bytes: int | None) -> GpuDevice:
        if limit_bytes is not None:
            device.gpu.set_limit(limit_bytes)
        return device

    with registered("gpu", make, priority=100, memory_bytes=lambda index: 64 << 20):
        yield device


@contextmanager
def two_cpus() -> Iterator[None]:
    """Inside, the process has two CPU devices."""
    set_device_count({"cpu": 2})
    try:
        yield
    finally:
        set_device_count()
