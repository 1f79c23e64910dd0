"""NumPy's BLAS has the threads that are set, and does not fight with those of native code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from laminar import ops
from laminar.engine import Graph, Session, SessionConfig, blas, device, placeholder
from laminar.engine.runtime import partitioned
from laminar.engine.runtime.pool import inter_op_threads
from laminar.engine.runtime.workers import Workers


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of threads that a library is told."""
    told: list[int] = []
    monkeypatch.setattr(blas, "_setters", lambda: [told.append])
    for name in blas._VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(blas._Setting, "many", 0)
    monkeypatch.setattr(blas._Setting, "is_shared", False)
    return told


def test_large_products_have_more_threads_for_their_time(counts: list[int]) -> None:
    with blas.many_threads():
        assert counts == []  # nobody has set anything
    blas.set_blas_threads(8)
    with blas.many_threads():
        assert counts == [8]  # nobody else is there
    blas.share_cores()
    with blas.many_threads():
        assert counts == [8, 1, 8]
        with blas.many_threads():  # as another thread would
            assert counts == [8, 1, 8]
    assert counts == [8, 1, 8, 1]
    blas.set_blas_threads(4)
    assert counts[-1] == 1
    with pytest.raises(KeyError), blas.many_threads():
        raise KeyError
    assert counts[-1] == 1


def test_what_the_environment_says_holds(
    counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    blas.set_blas_threads(2)
    blas.share_cores()
    with blas.many_threads():
        pass
    assert counts == []


def test_a_product_asks_for_threads_if_it_is_large(counts: list[int]) -> None:
    blas.set_blas_threads(2)
    blas.share_cores()
    x = np.random.default_rng(0).normal(size=(900, 900)).astype("float32")
    small = ops.convert_to_tensor(x[:50, :50])
    small @ small
    assert counts == [2, 1]
    found = ops.convert_to_tensor(x) @ ops.convert_to_tensor(x)
    assert counts == [2, 1, 2, 1]
    wide = x.astype("float64")
    np.testing.assert_allclose(found, wide @ wide, rtol=1e-3, atol=1e-3)


def test_operations_that_run_side_by_side_have_one_thread_each(
    counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products in threads of several devices wait for each other's BLAS threads, which spin."""
    monkeypatch.setattr(partitioned, "WORKERS", Workers())  # none of an earlier test's threads
    config = SessionConfig(device_count={"cpu": 2}, jit_compile=False)
    with Graph().as_default() as graph:
        x = placeholder("float32", [4, 4])
        halves = []
        for name in ("/cpu:0", "/cpu:1"):
            with device(name):
                halves.append(ops.matmul(x, x))
    with Session(graph=graph, config=config) as session:
        found = session.run(halves, {x: 2 * np.eye(4, dtype="float32")})
    np.testing.assert_array_equal(found, [4 * np.eye(4)] * 2)
    assert counts == [1]


def test_inter_op_threads_share_cores(counts: list[int]) -> None:
    threads = inter_op_threads(2)
    assert counts == [1]
    assert threads is not None
    threads.shutdown()


def test_the_library_of_numpy_is_found_and_told() -> None:
    config = np.show_config(mode="dicts")
    name = config["Build Dependencies"]["blas"]["name"]
    if "openblas" not in name:
        pytest.skip(f"NumPy has another BLAS here: {name}")
    code = (
        "import ctypes, numpy as np, laminar\n"
        "from laminar.engine import blas\n"
        "assert blas._setters()\n"
        "library = ctypes.CDLL(blas._libraries()[0])\n"
        "ask = [n.replace('set', 'get') for n in blas._NAMES]\n"
        "get = next(getattr(library, n) for n in ask if hasattr(library, n))\n"
        "laminar.set_threads(2)\n"
        "assert get() == 2, get()\n"
        "from laminar.engine.compiler.native.threads import pool\n"
        "pool()\n"
        "assert get() == 1, get()\n"
        "laminar.set_threads(1)\n"
        "assert get() == 1, get()\n"
    )
    env = {name: x for name, x in os.environ.items() if name not in blas._VARIABLES}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=env)


def test_without_maps_it_is_looked_for_beside_numpy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(blas, "_MAPS", tmp_path / "none")
    assert all("openblas" in Path(path).name.lower() for path in blas._libraries())
