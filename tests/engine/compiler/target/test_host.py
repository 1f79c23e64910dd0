"""Hosts of other kinds: the native driver needs less, and all runs where it cannot."""

from __future__ import annotations

import faulthandler
import logging
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from laminar import engine, ops
from laminar.engine.compiler.codegen import driver
from laminar.engine.compiler.ir.kernel_target import Target
from laminar.engine.compiler.native import checksums, cluster_kernel, threads
from laminar.engine.compiler.plan import fallback
from laminar.engine.compiler.target import code_cache, host, llvm
from laminar.engine.compiler.target.code import Code
from laminar.engine.compiler.target.llvm import vector_bytes
from laminar.engine.graph import Graph, float32
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.nn.activations import relu
from laminar.engine.passes import StepGraph
from laminar.engine.runtime import Plan, StepContext

from ..counting import counting_plan


@pytest.fixture(autouse=True)
def _watchdog() -> Iterator[None]:
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def pretend(
    patch: pytest.MonkeyPatch, machine: str, system: str = "linux", byteorder: str = "little"
) -> None:
    """Let the compiler take this machine for another one."""
    there = SimpleNamespace(platform=system, byteorder=byteorder, maxsize=sys.maxsize)
    patch.setattr(host, "sys", there)
    patch.setattr(host, "platform", SimpleNamespace(machine=lambda: machine))


@pytest.fixture
def _unoffered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A host for which no native code is made."""
    pretend(monkeypatch, "AMD64", "win32")
    cluster_kernel.is_offered.cache_clear()
    yield
    cluster_kernel.is_offered.cache_clear()


def _elsewhere() -> str:
    """The driver for a kind of processor that laminar does not know."""
    with pytest.MonkeyPatch.context() as patch:
        pretend(patch, "riscv64")
        return driver.text()


@pytest.mark.parametrize(
    ("machine", "asks_the_system", "pauses", "registers"),
    [
        ("x86_64", True, True, (16, 16, 32)),
        ("AMD64", True, True, (16, 16, 32)),
        ("aarch64", True, True, (28, 28, 32)),
        ("arm64", True, True, (28, 28, 32)),
        ("riscv64", False, False, (16, 16, 32)),
    ],
)
@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_what_is_asked_of_a_machine(
    machine: str,
    asks_the_system: bool,
    pauses: bool,
    registers: tuple[int, ...],
    system: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pretend(monkeypatch, machine, system)
    assert not host.why_not()
    text = driver.text()
    assert ("@syscall" in text) == (asks_the_system and system == "linux")
    assert ("@usleep" in text) != ("@syscall" in text)
    assert ("call void @llvm.x86.sse2.pause" in text) == (host.is_x86() and pauses)
    assert ("call void @llvm.aarch64.hint" in text) == (host.is_arm() and pauses)
    assert tuple(Target(n, 1).registers for n in (16, 32, 64)) == registers


def test_threads_that_cannot_ask_the_system_to_wake_them_look_for_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        threads, "driver_code", lambda symbol: Code(symbol, vector_bytes(), _elsewhere, ())
    )
    pool = threads.Pool(3)
    plan, table, words = counting_plan(pool, 7)
    for i in range(100):
        pool.run(plan.ctypes.data)
        if i % 25 == 0:
            time.sleep(0.02)  # the threads fall asleep
    assert words[1:4].tolist() == [3 * 7 * 100] * 3
    pool.close()
    assert not any(thread.is_alive() for thread in pool._threads)
    del table


def _doubled(x: Any) -> Any:
    return relu(x) + relu(x)


def _run() -> tuple[list[str], Any]:
    """The kinds of operation that run, and the result."""
    x = np.arange(-60, 60, dtype=np.float32)
    graph = Graph()
    with graph.as_default():
        given = placeholder(float32, [120])
        y = _doubled(given)
    plan = Plan(StepGraph([y], [given]), compiled=True)
    (found,) = plan.run([x], StepContext())
    np.testing.assert_array_equal(found, 2 * np.maximum(x, 0))
    return [op.type for op in plan.operations], found


@pytest.mark.usefixtures("_unoffered")
def test_where_no_native_code_is_made_all_runs_without(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, cluster_kernel.__name__):
        kinds, _ = _run()
        f = engine.function(_doubled)
        np.testing.assert_array_equal(f(ops.convert_to_tensor([-1.0, 2.0])), [0.0, 4.0])
    assert "Cluster" not in kinds
    assert not list(f.concrete(ops.convert_to_tensor([-1.0, 2.0])).clusters)
    (note,) = (r for r in caplog.records if "no native code" in r.message)
    assert note.levelno == logging.DEBUG


def test_native_code_wants_the_lowest_byte_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not host.why_not()
    pretend(monkeypatch, "s390x", byteorder="big")
    assert "lowest byte first" in host.why_not()


def _refuse(*_: Any) -> Any:
    raise RuntimeError("no memory for code")


def test_code_that_cannot_be_linked_is_not_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As on systems that let nobody make code, or that lack a function that it calls."""
    monkeypatch.setenv("LAMINAR_FALLBACK", "always")
    monkeypatch.setattr(code_cache, "_addresses", {})
    monkeypatch.setattr(llvm, "load_objects", _refuse)
    with caplog.at_level(logging.DEBUG, fallback.__name__):
        kinds, _ = _run()
    assert "Cluster" in kinds
    assert "no memory for code" in caplog.text
    assert {r.levelno for r in caplog.records} == {logging.DEBUG}


def test_a_checksum_that_cannot_be_linked_is_made_by_zlib(monkeypatch: pytest.MonkeyPatch) -> None:
    data = memoryview(np.random.default_rng(1).bytes(10_000))
    monkeypatch.setattr(checksums, "address_of", _refuse)
    checksums._kernel.cache_clear()
    assert checksums.crc32(data) == zlib.crc32(data)
    checksums._kernel.cache_clear()


def test_code_that_cannot_be_linked_spoils_no_other() -> None:
    texts = [
        "declare void @nobody_has_this()\n"
        "define void @caller() {\n  call void @nobody_has_this()\n  ret void\n}\n",
        "define void @alone() {\n  ret void\n}\n",
    ]
    lacking, whole = map(llvm.compile_object, texts)
    with pytest.raises(RuntimeError):
        llvm.load_objects([lacking], ["caller"])
    assert llvm.load_objects([whole], ["alone"])["alone"]


def _caches(folder: Path, *cores: tuple[str, str, str]) -> Path:
    """What Linux says of processors: the size of the L2 cache, who share it, whose core."""
    for i, (size, sharing, siblings) in enumerate(cores):
        for index, level in enumerate(("1", "1", "2", "3")):
            place = folder / f"cpu{i}" / "cache" / f"index{index}"
            place.mkdir(parents=True)
            (place / "level").write_text(f"{level}\n")
            (place / "size").write_text(f"{size if level == '2' else '48K'}\n")
            (place / "shared_cpu_map").write_text(f"{sharing}\n")
        (folder / f"cpu{i}" / "topology").mkdir()
        (folder / f"cpu{i}" / "topology" / "thread_siblings").write_text(f"{siblings}\n")
    (folder / "cpufreq").mkdir()
    return folder


@pytest.mark.parametrize(
    ("cores", "expected"),
    [
        pytest.param([("2048K", "1", "1"), ("2048K", "2", "2")], 2048, id="of-a-core"),
        pytest.param([("1M", "3", "3"), ("1M", "3", "3")], 1024, id="of-the-threads-of-a-core"),
        pytest.param([("2048K", "0,0000000f", "1")], 512, id="of-four-cores"),
        pytest.param([("2048K", "1", "1"), ("1280K", "2", "2")], 1280, id="of-unlike-cores"),
        pytest.param([("", "1", "1"), ("512K", "2", "2")], 512, id="one-that-is-silent"),
        pytest.param([("many", "1", "1")], 1024, id="none-that-is-understood"),
        pytest.param([], 1024, id="none-there"),
    ],
)
def test_the_second_cache_of_a_core(
    cores: list[tuple[str, str, str]],
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pretend(monkeypatch, "x86_64")
    monkeypatch.setattr(host, "_PROCESSORS", _caches(tmp_path, *cores))
    assert host.l2_cache.__wrapped__() == expected * 1024


def test_another_system_does_not_say_how_large_the_cache_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, "arm64", "darwin")
    monkeypatch.setattr(host, "_PROCESSORS", _caches(tmp_path, ("256K", "1", "1")))
    assert host.l2_cache.__wrapped__() == 1024 * 1024
