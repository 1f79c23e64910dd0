"""What code is made for."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

from laminar.engine import errors
from laminar.engine.compiler.target import host, llvm, llvm_worker

_SHOW = """
from laminar.engine.compiler.target import llvm
print(*[name for name, is_there in llvm.host_features().items() if is_there])
"""

_TRAIN = """
import laminar
import numpy as np
model = laminar.Sequential([laminar.layers.Input((8,)), laminar.layers.Dense(4)])
model.compile(optimizer="adam", loss="mse")
model.fit(np.ones((8, 8)), np.ones((8, 4)), verbose=0)
"""


@pytest.mark.parametrize(("isa", "size"), [("sse", 16), ("avx2", 32), ("avx512", 64), ("", 64)])
def test_vectors_are_as_wide_as_is_asked_for(
    isa: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAMINAR_ISA", raising=False)
    widest = llvm.vector_bytes.__wrapped__()
    monkeypatch.setenv("LAMINAR_ISA", isa)
    assert llvm.vector_bytes.__wrapped__() == min(size, widest)


def test_unknown_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINAR_ISA", "mmx")
    with pytest.raises(errors.InvalidArgumentError, match="one of sse, avx2, avx512, got 'mmx'"):
        llvm.vector_bytes.__wrapped__()


@pytest.mark.slow
def test_training_does_not_go_on_without_unknown_instructions() -> None:
    """Not even where mistakes of the compiler are passed over."""
    variables = {n: v for n, v in os.environ.items() if n != "LAMINAR_FALLBACK"}
    program = [sys.executable, "-c", _TRAIN]
    found = subprocess.run(
        program, env={**variables, "LAMINAR_ISA": "mmx"}, capture_output=True, text=True
    )
    assert found.returncode == 1
    assert "LAMINAR_ISA: expected one of sse, avx2, avx512, got 'mmx'" in found.stderr


def test_no_feature_of_wider_vectors_is_used() -> None:
    program = [sys.executable, "-c", _SHOW]
    variables = {**os.environ, "LAMINAR_ISA": "avx2"}
    found = subprocess.run(program, env=variables, capture_output=True, text=True, check=True)
    assert found.stdout
    assert not [f for f in found.stdout.split() if f.startswith(("avx512", "avx10", "amx"))]


# The sum of every third number up to one: LLVM would make a pointer of the counter.
_SUM = """
define float @sum(ptr %x, i64 %n) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %k = mul i64 %i, 3
  %p = getelementptr float, ptr %x, i64 %k
  %v = load float, ptr %p
  %t = fadd float %s, %v
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret float %t
}
"""


def _as_others_make_it() -> bytes:
    """The object code that llvmlite makes by itself."""
    target = llvm_worker.machine(llvm.features(16))
    module = llvm_worker.binding().parse_assembly(_SUM)
    module.triple = llvm_worker.binding().get_default_triple()
    module.data_layout = str(target.target_data)
    found: bytes = target.emit_object(module)
    return found


@pytest.mark.skipif(not host.is_x86(), reason="other processors have all passes")
def test_passes_are_omitted_for_this_compiler_alone() -> None:
    before = _as_others_make_it()
    code = llvm.compile_object(_SUM, 16)
    assert code != before
    assert _as_others_make_it() == before
    number = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_void_p, ctypes.c_int64)
    x = np.arange(30, dtype=np.float32)
    address = llvm.load_objects([llvm.compile_object(_SUM, 16, "_of_thirds")], ["sum_of_thirds"])
    assert number(address["sum_of_thirds"])(x.ctypes.data, 10) == x[::3].sum()


def test_unknown_versions_of_llvm_have_all_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_worker, "_KNOWN", range(14, 15))
    monkeypatch.setattr(llvm_worker.binding(), "llvm_version_info", (15, 0, 0))
    assert llvm.compile_object(_SUM, 16) == _as_others_make_it()
