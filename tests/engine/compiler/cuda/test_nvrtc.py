"""Machine code of CUDA kernels, made by NVRTC without a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from laminar import ops
from laminar.engine.compiler.cuda import nvrtc, prelude, source
from laminar.engine.cuda_program import Kernel
from laminar.engine.errors import InternalError

from . import test_cuda_loops, test_cuda_ops
from .batch import build
from .shim import on_shim
from .test_cuda_steps import batches, perceptron, trained

pytestmark = pytest.mark.skipif(bool(nvrtc.why_not()), reason="there is no libnvrtc")
ARCHITECTURES = ["sm_80", "sm_90"]
# A thread of a full block of 256 can have so many without others waiting for room: 65536 / 256 / 2.
MOST_REGISTERS = 128


def compile_together(kernels: Iterable[Kernel], architecture: str, *options: str) -> dict[str, str]:
    """What the compiler says of each kernel: as one unit, which reads the prelude once."""
    units = []
    for kernel in {kernel.name: kernel for kernel in kernels}.values():
        assert kernel.source.startswith(prelude.PRELUDE)
        own = kernel.source.removeprefix(prelude.PRELUDE)
        units.append(f"namespace in_{kernel.name} {{\n{own}\n}}\n")
    text = prelude.PRELUDE + "".join(units)
    log = nvrtc.compile_source(text, architecture, [*nvrtc.OPTIONS, *options]).log
    _, *parts = re.split(r"Compiling entry function '(\w+)'", log)
    said = dict(zip(parts[::2], parts[1::2], strict=True))
    assert len(said) == len(units)
    return said


def check_code(kernels: Iterable[Kernel], architecture: str) -> None:
    """Compile kernels, and see that each keeps all in registers."""
    for name, log in compile_together(kernels, architecture).items():
        spills = re.findall(r"(\d+) bytes spill", log)
        assert spills == ["0", "0"], f"{name}: {log}"
        (registers,) = re.findall(r"Used (\d+) registers", log)
        assert int(registers) <= MOST_REGISTERS, f"{name}: {log}"
        assert "bytes stack frame" not in log or " 0 bytes stack frame" in log, f"{name}: {log}"


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_keep_all_in_registers(architecture: str) -> None:
    kernels = list[Kernel]()
    for table in (test_cuda_loops.CASES, test_cuda_ops.CASES):
        for name, (fn, arrays) in table.items():
            case = build(name, fn, arrays)
            assert case is not None
            kernels += case.program.kernels
    check_code(kernels, architecture)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_expressions_compile(dtype: str) -> None:
    cases = test_cuda_ops.expressions([dtype], (5, 16))
    kernels = (k for case in cases for k in case.program.kernels)
    assert compile_together(kernels, "sm_90", "--Ofast-compile=max")  # its speed is not asked for


@pytest.mark.slow
def test_a_training_step_compiles() -> None:
    """What is one launch for many arrays, too."""
    with on_shim() as device:
        trained(perceptron, *batches((20,)))
    check_code((k for program in device.programs for k in program.kernels), "sm_90")


def test_machine_code_is_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path / "objects"))
    case = build("softmax", lambda x: ops.softmax(x), [np.ones((4, 8), np.float32)])
    assert case is not None
    kernels = case.program.kernels
    made = nvrtc.images_of(kernels, "sm_90")
    assert [image[:4] for image in made.values()] == [b"\x7fELF"] * len(kernels)
    assert oct((tmp_path / "objects").stat().st_mode)[-3:] == "700"
    with monkeypatch.context() as patch:
        patch.setattr(nvrtc, "compile_source", None)  # nothing is compiled again
        assert nvrtc.images_of(kernels, "sm_90") == made
    (file,) = (p for p in (tmp_path / "objects").rglob("*.cubin"))
    file.write_bytes(b"x" + file.read_bytes()[1:])  # not what was written
    assert nvrtc.images_of(kernels, "sm_90") == made
    assert nvrtc.images_of(kernels, "") == {}


def test_products_and_sums_can_be_rounded_apart() -> None:
    case = build("fma", lambda x, y: x * y + 1, [np.ones(64, np.float32)] * 2)
    assert case is not None
    (kernel,) = case.program.kernels
    fused = nvrtc.images_of([kernel], "sm_90")
    apart = nvrtc.images_of([kernel], "sm_90", nvrtc.UNFUSED)
    assert fused[kernel.name] != apart[kernel.name]


def test_what_does_not_compile_says_why() -> None:
    wrong = source.kernel(["@(float* a0) {", "*a0 = unknown;", "}"], 32)
    with pytest.raises(InternalError, match='identifier "unknown" is undefined'):
        nvrtc.compile_source(wrong.source, "sm_90")


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_places", list)
    nvrtc._library.cache_clear()
    try:
        assert "pip install" in nvrtc.why_not()
    finally:
        nvrtc._library.cache_clear()
