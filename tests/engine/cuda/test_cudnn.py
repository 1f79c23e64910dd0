"""Arguments of cuDNN: its frontend on a fake GPU reads memory as the real one does."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.engine.cuda.libraries import cudnn, plan_call
from laminar.engine.cuda_program import Buffer, Convolution, LibraryCall, LibraryName
from laminar.engine.graph import as_dtype

from .fake_cudnn import FakeCudnn
from .fake_gpu import FakeGpu

ROOT = Path(__file__).resolve().parents[3]
F32 = as_dtype("float32")
PLAIN = Convolution(2, (5, 6), 3, 4, (3, 2), (1, 1), (1, 1), ((1, 1), (0, 1)), 1, (5, 6), F32)
FORMS = {
    "plain": PLAIN,
    "strides": PLAIN._replace(strides=(2, 3), pads=((1, 0), (2, 1)), out=(2, 3)),
    "dilations": PLAIN._replace(dilations=(2, 1), pads=((2, 2), (0, 1))),
    "groups": PLAIN._replace(channels=4, filters=6, groups=2),
    "depthwise": PLAIN._replace(channels=4, filters=4, groups=4),
    "one axis": Convolution(2, (7,), 3, 4, (3,), (2,), (1,), ((1, 1),), 1, (4,), F32),
    "three axes": Convolution(
        2,
        (4, 3, 5),
        2,
        3,
        (2, 3, 1),
        (1, 1, 2),
        (1, 1, 1),
        ((0, 1), (1, 1), (0, 0)),
        1,
        (4, 3, 3),
        F32,
    ),
    "half": PLAIN._replace(dtype=as_dtype("float16")),
    "bfloat16": PLAIN._replace(dtype=as_dtype("bfloat16")),
}
NAMES: tuple[LibraryName, ...] = (
    "convolution",
    "convolution_input_gradient",
    "convolution_filter_gradient",
)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeCudnn:
    gpu = FakeGpu()
    gpu.architecture = "sm_90"
    found = FakeCudnn(gpu)
    monkeypatch.setattr(cudnn, "frontend_or_none", lambda: found)
    return found


def computed(x: Any, w: Any, call: Convolution) -> Any:
    """The convolution in float64, with filters (*window, channels/groups, filters)."""
    padded = np.pad(x.astype(float), [(0, 0), *call.pads, (0, 0)])
    inside, outside = call.channels // call.groups, call.filters // call.groups
    found = np.zeros((call.images, *call.out, call.filters))
    for g, tap in itertools.product(range(call.groups), np.ndindex(*call.window)):
        cells = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, call.dilations, call.out, call.strides, strict=True)
        )
        part = padded[(slice(None), *cells, slice(g * inside, (g + 1) * inside))]
        found[..., g * outside : (g + 1) * outside] += part @ w[tap][
            :, g * outside : (g + 1) * outside
        ].astype(float)
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_convolutions(form: str, name: LibraryName, library: FakeCudnn) -> None:
    """The gradients are those of the sum of y * dy, which is linear in x and in w."""
    call = FORMS[form]
    rng = np.random.default_rng(0)
    of = call.dtype.numpy
    inside = call.channels // call.groups
    x = rng.normal(size=(call.images, *call.dims, call.channels)).astype(of)
    w = rng.normal(size=(*call.window, inside, call.filters)).astype(of)
    dy = rng.normal(size=(call.images, *call.out, call.filters)).astype(of)
    turned = np.ascontiguousarray(np.moveaxis(w, -1, 0))
    operands = {NAMES[0]: (x, turned), NAMES[1]: (dy, turned), NAMES[2]: (x, dy)}[name]
    likes = {NAMES[0]: dy, NAMES[1]: x, NAMES[2]: turned}[name]
    result = np.full(likes.shape, 9, of)
    made = LibraryCall(name, call, (Buffer("arena", 0, 0),) * 3, ())
    run = plan_call(library.gpu, made, [a.ctypes.data for a in (*operands, result)])
    assert run is not None
    run(library.gpu.stream)
    library.gpu.synchronize(library.gpu.stream)
    wide = result.astype(float)
    if name == NAMES[0]:
        np.testing.assert_allclose(wide, computed(x, w, call), rtol=2e-2, atol=2e-2)
        return
    other = rng.normal(size=(x if name == NAMES[1] else w).shape)
    moved = computed(other, w, call) if name == NAMES[1] else computed(x, other, call)
    slope = wide if name == NAMES[1] else np.moveaxis(wide, 0, -1)
    np.testing.assert_allclose((slope * other).sum(), (moved * dy).sum(), rtol=3e-2, atol=3e-2)


def test_a_form_is_built_once(library: FakeCudnn) -> None:
    for place in (256, 512, 1024):
        assert cudnn.plan_convolution(library.gpu, NAMES[0], PLAIN, [place] * 3) is not None
    assert library.built == 1
    assert cudnn.plan_convolution(library.gpu, NAMES[1], PLAIN, [256] * 3) is not None
    assert library.built == 2


def test_what_it_cannot_do_is_left_to_kernels(
    library: FakeCudnn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned(**changes: Any) -> Any:
        return cudnn.plan_convolution(library.gpu, NAMES[0], PLAIN._replace(**changes), [256] * 3)

    assert planned() is not None
    assert planned(dtype=as_dtype("float64")) is None
    assert planned(pads=((-1, 0), (0, 0))) is None
    library.has_engines = False
    assert planned(images=3) is None
    assert planned(images=3) is None  # it is not asked again
    assert library.built == 2
    monkeypatch.setattr(cudnn, "frontend_or_none", lambda: None)
    cudnn._library.cache_clear()
    assert planned() is None  # it is not installed
    library.gpu.architecture = ""
    cudnn._library.cache_clear()
    assert planned() is None


DEVICE = {  # what an H200 tells of itself
    "cudaDeviceId": 0,
    "deviceName": "NVIDIA H200",
    "deviceVer": 900,
    "driverVer": 13000,
    "isTccDriver": 0,
    "l2CacheSize": 60 << 20,
    "maxBlockSize": [1024, 1024, 64],
    "maxCtasPerSM": 32,
    "maxGridSize": [2147483647, 65535, 65535],
    "maxRegistersPerSM": 65536,
    "maxSharedMemoryPerBlock": 49152,
    "maxSharedMemoryPerBlockOptin": 232448,
    "maxSharedMemoryPerSM": 233472,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048,
    "memClockRateKHz": 3201000,
    "memoryBusWidth": 6144,
    "multiProcessorCount": 132,
    "pciDeviceId": 0x233510DE,
    "regsPerBlock": 65536,
    "reservedSharedMemoryPerBlock": 1024,
    "smClockRateKHz": 1980000,
    "smCountOrigin": 0,
    "supportCoopLaunch": 1,
    "totalGlobalMem": 150_000_000_000,
    "warpSize": 32,
}
# A driver without devices: cuDNN imports these, and makes plans for a device that is described.
DRIVER = """
int cuGetErrorString(int e, const char** s) { *s = "no device"; return 0; }
int cuDriverGetVersion(int* v) { *v = 13000; return 0; }
""" + "\n".join(
    f"int {name}(void) {{ return 100; }}"
    for name in (
        *("cuInit", "cuModuleGetFunction", "cuModuleLoadData", "cuModuleUnload"),
        *("cuTensorMapEncodeIm2col", "cuTensorMapEncodeTiled"),
        *("cuGetProcAddress", "cuGetProcAddress_v2"),
    )
)
PROGRAM = """
import json, sys
import cudnn
from laminar.engine.cuda.libraries.cudnn import build
from tests.engine.cuda.test_cudnn import DEVICE, FORMS, NAMES
device = cudnn.create_device_properties(json.dumps(DEVICE))
for form, call in FORMS.items():
    for name in NAMES:
        if build(cudnn, name, call, device_property=device) is None:
            sys.exit(f"no engine computes {name}: {form}")
"""


@pytest.mark.exhaustive
def test_cudnn_itself_has_engines_for_all(tmp_path: Path) -> None:
    """Plans need no GPU: `pip install 'laminar[gpu-cudnn]'`, a gigabyte, is all."""
    pytest.importorskip("cudnn")
    compiler = shutil.which("gcc") or pytest.skip("no C compiler")
    source = tmp_path / "driver.c"
    source.write_text(DRIVER)
    library = tmp_path / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    environment = dict(os.environ, LD_LIBRARY_PATH=str(tmp_path), PYTHONPATH=str(ROOT))
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, timeout=600)
