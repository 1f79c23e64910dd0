"""Modules compiled by several processes at once: the same code, whatever becomes of a helper."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from laminar.engine import errors
from laminar.engine.compiler.target import code_cache, compile_pool, llvm, llvm_worker
from laminar.engine.compiler.target.code import Code
from laminar.engine.compiler.target.compile_pool import Compile, Helper, compile_all

KEYS = [f"key {i}" for i in range(40)]
TEXT = "define i64 @seven() { ret i64 7 }"


def text_of(n: int) -> str:
    return f"define i64 @number() {{ ret i64 {n} }}"


def test_a_helper_makes_the_same_code() -> None:
    expected = [llvm.compile_object(TEXT, vector, "_x") for vector in (16, llvm.vector_bytes())]
    with Helper() as helper:
        assert helper.is_ready()
        found = [helper.compile_object(TEXT, vector, "_x") for vector in (16, llvm.vector_bytes())]
        process = vars(helper)["_process"]
        assert process.poll() is None
    assert found == expected
    assert process.poll() is not None


def test_a_helper_ends_at_what_is_no_code() -> None:
    with Helper() as helper:
        assert helper.is_ready()
        with pytest.raises((ValueError, OSError)):
            helper.compile_object("no code", 16, "")
        with pytest.raises((ValueError, OSError)):
            helper.compile_object(TEXT, 16, "")


def test_a_helper_ends_with_the_process_that_started_it() -> None:
    folder = Path(sys.modules["llvmlite"].__file__ or "").parents[1]
    command = [sys.executable, "-I", "-S", llvm_worker.__file__, str(folder)]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=True)
    assert done.stdout.decode().strip() == llvm_worker.version()


def test_what_lies_beside_llvmlite_does_not_stand_in_for_the_standard_library(
    tmp_path: Path,
) -> None:
    folder = Path(sys.modules["llvmlite"].__file__ or "").parent
    (tmp_path / "llvmlite").symlink_to(folder)
    (tmp_path / "ctypes.py").write_text("raise SystemExit(1)")
    command = [sys.executable, "-I", "-S", llvm_worker.__file__, str(tmp_path)]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=True)
    assert done.stdout.decode().strip() == llvm_worker.version()


class Fake:
    """Stands in for a helper; what it fails at is its class's."""

    def __enter__(self) -> Fake:
        return self

    def __exit__(self, *error: object) -> None:
        return

    def is_ready(self) -> bool:
        return True

    def compile_object(self, text: str, vector: int, suffix: str) -> bytes:
        return b"helper"


class CannotStart(Fake):
    def __init__(self) -> None:
        raise PermissionError


class IsAnother(Fake):
    def is_ready(self) -> bool:
        return False


class Fails(Fake):
    def compile_object(self, text: str, vector: int, suffix: str) -> bytes:
        raise EOFError


class FailsLater(Fake):
    def __init__(self) -> None:
        self.left = 3

    def compile_object(self, text: str, vector: int, suffix: str) -> bytes:
        self.left -= 1
        if self.left < 0:
            raise OSError
        return b"helper"


class Hangs(Fake):
    over = threading.Event()

    def compile_object(self, text: str, vector: int, suffix: str) -> bytes:
        self.over.wait(60)
        raise EOFError


@pytest.mark.parametrize("kind", [Fake, CannotStart, IsAnother, Fails, FailsLater, Hangs])
def test_everything_is_made_whatever_becomes_of_helpers(
    kind: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_pool, "Helper", kind)
    monkeypatch.setattr(compile_pool, "_num_helpers", lambda count: 3)
    monkeypatch.setattr(compile_pool, "_PATIENCE_SECONDS", 0.05)
    made = Counter[str]()

    def make(key: str, compile: Compile) -> None:
        if compile is llvm.compile_object:
            threading.Event().wait(1e-3)  # gives the others time to take part
        else:
            compile(key, 16, "")
        made[key] += 1

    compile_all(KEYS, make)
    Hangs.over.set()
    assert made == Counter(KEYS)


def test_an_error_is_raised_and_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_pool, "Helper", Fake)
    monkeypatch.setattr(compile_pool, "_num_helpers", lambda count: 2)

    def make(key: str, compile: Compile) -> None:
        threading.Event().wait(1e-3)
        if compile is llvm.compile_object:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile_all(KEYS, make)
    for thread in [t for t in threading.enumerate() if t.name == "laminar-compile"]:
        thread.join(10)
        assert not thread.is_alive()


def test_many_functions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path))
    monkeypatch.setattr(compile_pool, "_num_helpers", lambda count: 1)
    by_helper = []
    compile_object = Helper.compile_object

    def noted(self: Helper, text: str, vector: int, suffix: str) -> bytes:
        by_helper.append(text)
        return compile_object(self, text, vector, suffix)

    monkeypatch.setattr(Helper, "compile_object", noted)
    ready = threading.Event()
    is_ready = Helper.is_ready

    def told(self: Helper) -> bool:
        found = is_ready(self)
        ready.set()
        return found

    monkeypatch.setattr(Helper, "is_ready", told)
    here = llvm.compile_object

    def patient(*arguments: Any) -> bytes:
        ready.wait(60)
        return here(*arguments)

    monkeypatch.setattr(llvm, "compile_object", patient)
    numbers = range(1000, 1064)
    made = [code_cache.native(Code("number", llvm.vector_bytes(), text_of, (n,))) for n in numbers]
    addresses = code_cache.addresses_of(made)
    assert [ctypes.CFUNCTYPE(ctypes.c_int64)(address)() for address in addresses] == [*numbers]
    assert by_helper
    assert len(list(tmp_path.rglob("*.o"))) == len(numbers)


def test_code_that_is_not_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_pool, "_num_helpers", lambda count: 1)
    made = code_cache.native(Code("number", llvm.vector_bytes(), text_of, ("wrong",)))
    with pytest.raises(errors.InternalError, match="not valid"):
        code_cache.addresses_of([made])


@pytest.mark.parametrize(
    ("program", "is_python"),
    [
        ("/usr/bin/python3.11", True),
        ("C:/Python/Python.exe", True),
        ("/usr/bin/uwsgi", False),
        ("", False),
        (None, False),
    ],
)
def test_other_programs_are_not_started(
    program: str | None, is_python: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: (_ for _ in ()).throw(TimeoutError))
    with pytest.raises(TimeoutError if is_python else FileNotFoundError):
        Helper()


@pytest.mark.parametrize(
    ("modules", "cores", "count"), [(5, 8, 0), (30, 8, 2), (99, 8, 3), (99, 1, 0), (99, 2, 1)]
)
def test_helpers_are_for_many_modules_and_free_cores(
    modules: int, cores: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_pool, "_LOAD", Path("there is no such file"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(cores), raising=False)
    assert compile_pool._num_helpers(modules) == count


@pytest.mark.parametrize(
    ("running", "of_all", "count"), [(1, 4, 3), (3, 4, 1), (4, 4, 0), (9, 4, 0), (9, 32, 2)]
)
def test_there_are_helpers_for_cores_that_are_free(
    running: int, of_all: int, count: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of `of_all` cores this process may use four; among what runs is the process itself."""
    (tmp_path / "loadavg").write_text(f"7.00 7.00 7.00 {running}/300 4242\n")
    monkeypatch.setattr(compile_pool, "_LOAD", tmp_path / "loadavg")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(4), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: of_all)
    assert compile_pool._num_helpers(1000) == count
