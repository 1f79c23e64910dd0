"""A library with cupy's face over NumPy's arithmetic: its arrays refuse to mix with NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from laminar.engine.devices import (
    Device,
    GpuDevice,
    register_device,
    registry,
    set_device_count,
)
from laminar.engine.devices.factories import factories
from laminar.engine.ops.core.cluster import Compiler


class Array(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that "lies on the device": only `get` leads back to the host."""

    def __init__(self, host: np.ndarray[Any, Any]) -> None:
        self._host = host

    def get(self) -> np.ndarray[Any, Any]:
        return self._host.copy()

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return _call(getattr(ufunc, method), args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._host, name)
        if callable(found):
            return lambda *args, **kwargs: _call(found, args, kwargs)
        return _on_device(found)

    def __getitem__(self, index: Any) -> Any:
        return _on_device(np.asarray(self._host[_on_host(index)]))

    def __setitem__(self, index: Any, value: Any) -> None:
        self._host[_on_host(index)] = _on_host(value)

    def __len__(self) -> int:
        return len(self._host)

    def __int__(self) -> int:
        return int(self._host)

    def __float__(self) -> float:
        return float(self._host)

    def __bool__(self) -> bool:
        return bool(self._host)

    __index__ = __int__


def _on_host(value: Any) -> Any:
    if isinstance(value, Array):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"unsupported type {type(value)}")
    if isinstance(value, tuple | list):
        return type(value)(_on_host(v) for v in value)
    if isinstance(value, dict):
        return {k: _on_host(v) for k, v in value.items()}
    return value


def _on_device(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return Array(value)
    if isinstance(value, np.generic):
        return Array(np.asarray(value))
    if type(value) in (tuple, list):
        return type(value)(_on_device(v) for v in value)
    return value


def _call(fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return _on_device(fn(*_on_host(list(args)), **_on_host(kwargs)))


class _Block:
    def __init__(self, *_: Any, **__: Any) -> None:
        self.id = 0

    def __enter__(self) -> _Block:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass


class _Pool:
    """Counts what `asarray` brings, and runs out on request."""

    def __init__(self) -> None:
        self.used = 0
        self.limit: int | None = None

    def set_limit(self, size: int) -> None:
        self.limit = size

    def used_bytes(self) -> int:
        return self.used


class FakeCupy:
    """The module."""

    ndarray = Array

    def __init__(self) -> None:
        self.pool = _Pool()
        properties = {"name": b"Fake GPU"}
        runtime = SimpleNamespace(getDeviceProperties=lambda index: properties)
        self.cuda = SimpleNamespace(Device=_Block, Stream=_Block, runtime=runtime)
        self.copies: list[int] = []

    def get_default_memory_pool(self) -> _Pool:
        return self.pool

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        if isinstance(value, Array):
            return value if dtype is None else Array(value._host.astype(dtype))
        host = np.array(value, dtype)
        if self.pool.limit is not None and self.pool.used + host.nbytes > self.pool.limit:
            raise MemoryError("out of memory")
        self.pool.used += host.nbytes
        self.copies.append(host.nbytes)
        return Array(host)

    array = asarray

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found
        return lambda *args, **kwargs: _call(found, args, kwargs)


@contextmanager
def registered(
    device_type: str,
    make: Callable[[int, int, int | None], Device],
    priority: int = -1,
    compiler: Callable[[], Compiler] | None = None,
    count: int = 1,
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
            compiler=compiler,
        )
        try:
            yield
        finally:
            registry._devices.cache_clear()


@contextmanager
def one_gpu() -> Iterator[GpuDevice]:
    """Inside, this is the GPU of all sessions, with a library that refuses NumPy's arrays."""
    device = GpuDevice(0, FakeCupy())
    with registered("gpu", lambda index, count, limit: device, priority=100):
        yield device


@contextmanager
def two_cpus() -> Iterator[None]:
    """Inside, the process has two CPU devices."""
    set_device_count({"cpu": 2})
    try:
        yield
    finally:
        set_device_count()
