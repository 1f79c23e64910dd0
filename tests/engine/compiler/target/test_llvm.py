"""What code is made for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from laminar.engine import errors
from laminar.engine.compiler.target import llvm

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
