"""A mistake in the compiler costs users speed, never a result; tests see it."""

from __future__ import annotations

import dataclasses
import logging
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar.engine.compiler.lower.rules import LOWERINGS
from laminar.engine.compiler.native import (
    cluster_kernel,
    executable,
)
from laminar.engine.compiler.plan import (
    fallback,
    plan_cache,
    specializations,
    supported_ops,
)
from laminar.engine.compiler.target import (
    disk_cache,
    llvm,
)
from laminar.engine.devices import local_devices
from laminar.engine.devices.factories import factories

MISTAKES = [
    TypeError("a mistake"),
    KeyError("a mistake"),
    AssertionError("a mistake"),
    RuntimeError("LLVM IR parsing error: a mistake"),
    MemoryError("a mistake"),
]
X = np.random.default_rng(0).normal(size=(12, 700)).astype(np.float32)


def _use_new_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters of the CPU go to a compiler that remembers nothing."""
    compiler = cluster_kernel.NativeCompiler()
    cpu = local_devices().client.device_type
    factory = dataclasses.replace(factories[cpu], compiler=lambda: compiler)
    monkeypatch.setitem(factories, cpu, factory)


@pytest.fixture
def _of_a_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is known yet, and mistakes are no errors."""
    monkeypatch.setenv("LAMINAR_FALLBACK", "always")
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path))
    _use_new_compiler(monkeypatch)


def _raiser(error: Exception) -> Any:
    def mistaken(*_: Any, **__: Any) -> Any:
        raise error

    return mistaken


def _break(place: str, patch: pytest.MonkeyPatch, error: Exception) -> None:
    mistaken = _raiser(error)
    if place == "lowering":
        patch.setattr(disk_cache, "read", lambda _: None)  # nothing is found out already
        patch.setitem(LOWERINGS, "Softmax", LOWERINGS["Softmax"]._replace(lower=mistaken))
    elif place == "acceptance":
        patch.setattr(supported_ops.Acceptance, "__call__", mistaken)
    elif place == "layout":
        patch.setattr(
            plan_cache.PlanCache, "read", lambda *_, **__: None
        )  # nothing is planned already
        patch.setattr(specializations, "assign_buffers", mistaken)
    elif place == "memory":
        patch.setattr(cluster_kernel, "Executable", mistaken)
    else:
        patch.setattr(executable, "addresses_of", mistaken)


def _losses() -> list[float]:
    laminar.utils.set_random_seed(3)
    model = laminar.Sequential(
        [laminar.Input((700,)), laminar.layers.Dense(5, activation="softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    found: list[float] = model.fit(X, np.arange(12) % 5, epochs=2, batch_size=5, verbose=0).history[
        "loss"
    ]
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("_of_a_user")
@pytest.mark.parametrize("place", ["lowering", "acceptance", "layout", "memory", "code"])
@pytest.mark.parametrize("error", MISTAKES, ids=lambda error: type(error).__name__)
def test_a_mistake_costs_no_result(
    place: str,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    expected = _losses()
    _use_new_compiler(monkeypatch)
    _break(place, monkeypatch, error)
    with caplog.at_level(logging.DEBUG, fallback.__name__):
        np.testing.assert_allclose(_losses(), expected, rtol=1e-5)
    assert "a mistake" in caplog.text
    assert {r.levelno for r in caplog.records} == {logging.DEBUG}


@pytest.mark.usefixtures("_of_a_user")
def test_a_mistake_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who updates laminar has the native code that a mistake has kept away."""
    x = laminar.ops.convert_to_tensor(X)

    def clusters() -> int:
        f = laminar.function(lambda x: laminar.ops.softmax(x))
        f(x)
        return len(list(f.concrete(x).clusters))

    with monkeypatch.context() as patch:
        failing = LOWERINGS["Softmax"]._replace(lower=_raiser(MemoryError()))
        patch.setitem(LOWERINGS, "Softmax", failing)
        assert clusters() == 0
    _use_new_compiler(monkeypatch)
    assert clusters() == 1


@pytest.mark.usefixtures("_of_a_user")
def test_a_second_run_at_the_same_time_needs_no_memory_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f = laminar.function(lambda x: laminar.ops.softmax(x))
    x = laminar.ops.convert_to_tensor(X)
    expected = f(x)
    (body,) = f.concrete(x).clusters
    assert isinstance(body.native, cluster_kernel.NativeCluster)
    monkeypatch.setattr(cluster_kernel, "Executable", _raiser(MemoryError()))
    place = body.native._contexts.pop()  # as a thread that runs it
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(f(x)))
    thread.start()
    thread.join()
    body.native._contexts[:] = [place]
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)


def test_tests_see_mistakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path))
    _use_new_compiler(monkeypatch)
    _break("lowering", monkeypatch, TypeError("a mistake"))
    with pytest.raises(TypeError, match="a mistake"):
        _losses()


@pytest.mark.usefixtures("_of_a_user")
def test_llvm_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _losses()
    _use_new_compiler(monkeypatch)
    for name in ("prepare", "vector_bytes", "identity"):
        monkeypatch.setattr(llvm, name, _raiser(OSError("no such library")))
    np.testing.assert_allclose(_losses(), expected, rtol=1e-5)
