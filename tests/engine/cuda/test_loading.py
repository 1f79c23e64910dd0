"""Why there is no GPU, in words."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from laminar.commands import main
from laminar.engine.cuda import loading
from laminar.engine.devices import list_devices, registry


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    loading.load.cache_clear()
    registry._devices.cache_clear()
    yield
    loading.load.cache_clear()
    registry._devices.cache_clear()


def cupy(driver: int = 13000, count: int = 1, **fails: Exception) -> Any:
    """A library with as much of cupy as is looked at."""

    def number(name: str, value: int) -> Any:
        def run() -> int:
            if name in fails:
                raise fails[name]
            return value

        return run

    def zeros(*_: Any) -> Any:
        raise fails["zeros"]

    runtime = SimpleNamespace(
        driverGetVersion=number("driver", driver),
        runtimeGetVersion=number("library", 13020),
        getDeviceCount=number("devices", count),
    )
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime), zeros=zeros)


CASES = [
    pytest.param(
        ModuleNotFoundError("no", name="cupy"), r"pip install 'laminar\[gpu\]'", id="none"
    ),
    pytest.param(ImportError("libnvrtc.so is missing", name="x"), "libnvrtc.so", id="broken"),
    pytest.param(cupy(driver=0), "no driver of NVIDIA's", id="no-driver"),
    pytest.param(
        cupy(driver=12040), r"CUDA 12\.4, and cupy for CUDA 13\.2.*cupy-cuda12x", id="old-driver"
    ),
    pytest.param(cupy(count=0), "CUDA_VISIBLE_DEVICES", id="none-visible"),
    pytest.param(cupy(devices=RuntimeError("cudaErrorNoDevice")), "ErrorNoDevice", id="no-device"),
    pytest.param(
        cupy(zeros=RuntimeError("no libnvrtc.so.13")), r"libnvrtc.*laminar\[gpu\]", id="no-nvrtc"
    ),
]


@pytest.mark.parametrize(("found", "reason"), CASES)
def test_no_gpu_has_a_reason(found: Any, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> Any:
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr("importlib.import_module", find)
    devices = list_devices()
    assert [d.device_type for d in devices] == ["cpu"]
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(devices.missing["gpu"])
    assert f"no gpu: {devices.missing['gpu']}" in repr(devices)


def test_info_says_why(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(loading, "load", lambda: (None, "the reason"))
    main(["info"])
    assert "the reason" in capsys.readouterr().out
