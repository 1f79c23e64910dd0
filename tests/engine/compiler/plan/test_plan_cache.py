"""Plans that are read from disk: the same results, for what they were made for and nothing else."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar.engine.compiler import (
    NativeCompiler,
)
from laminar.engine.compiler.codegen.function import IRFunction, Module
from laminar.engine.compiler.codegen.memory import store
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.compiler.plan import (
    specializations,
    supported_ops,
)
from laminar.engine.compiler.target import (
    code_cache,
    fingerprint,
    host,
    llvm,
)
from laminar.engine.compiler.target.code import Code
from laminar.engine.compiler.target.code_cache import address_of, addresses_of
from laminar.engine.compiler.target.code_cache import native as function_of
from laminar.engine.compiler.target.fingerprint import NoDigestError, encoded
from laminar.engine.devices import local_devices
from laminar.engine.graph import DType, Graph, Operation, TensorShape, TensorSpec
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.core.cluster import ClusterBody, run_steps
from laminar.engine.ops.core.elementwise import elementwise
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.arithmetic import add, multiply
from laminar.engine.ops.math.elementary import tanh
from laminar.engine.ops.math.reduce import reduce_sum
from laminar.engine.passes import cluster, needed_operations
from laminar.engine.runtime import StepContext

rng = np.random.default_rng(0)
X = rng.normal(size=(6, 5)).astype("float32")
Build = Callable[[Any], Sequence[Any]]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path))
    return tmp_path


def operations_of(build: Build, scope: str = "") -> tuple[Graph, Any, list[Any], list[Operation]]:
    graph = Graph()
    with graph.as_default(), graph.name_scope(scope):
        x = placeholder("float32", [None, 5])
        ys = list(build(x))
    return graph, x, ys, needed_operations(ys, (), [x])


def body_of(build: Build, scope: str = "") -> ClusterBody:
    _, x, ys, operations = operations_of(build, scope)
    clustered, _ = cluster(operations, ys, [x], local_devices().client)
    (body,) = [op.attrs["body"] for op in clustered if op.type == "Cluster"]
    return body  # type: ignore[no-any-return]  # attributes are Any


def run(build: Build, scope: str = "") -> tuple[list[Any], NativeCluster]:
    made = NativeCluster(body_of(build, scope))
    return made(StepContext(), X), made


def plans(place: Path) -> list[Path]:
    return sorted(place.rglob("*.plan"))


def layer(x: Any) -> Sequence[Any]:
    w = constant(np.linspace(-1, 1, 20, dtype="float32").reshape(5, 4))
    y = tanh(add(matmul(x, w), constant(0.5)))
    return y, reduce_sum(multiply(y, y), axis=1)


def refuse(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("it is to be read, not made")


def test_a_plan_is_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, made = run(layer)
    assert made.events[0].reason == "first run"
    assert len(plans(place)) == 1
    monkeypatch.setattr(specializations, "ClusterLowering", refuse)
    again, read = run(layer)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    (event,) = read.events
    assert event.reason == "first run"
    assert event.num_kernels == made.events[0].num_kernels > 0
    assert not any(kernel.fresh for kernel in event.kernels)
    assert event.arena_bytes == made.events[0].arena_bytes


def test_a_size_without_a_plan_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    run(layer)
    _, made = run(layer)
    found = made(StepContext(), X[:3])
    expected = np.tanh(X[:3] @ np.linspace(-1, 1, 20).reshape(5, 4) + 0.5)
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)
    assert made.events[1].reason == "sizes for which there is no plan on disk"
    monkeypatch.setattr(specializations, "ClusterLowering", refuse)
    _, read = run(layer)
    np.testing.assert_array_equal(read(StepContext(), X[:3])[0], found[0])
    assert len(read.events) == 1


def test_a_plan_of_loaded_code_brings_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(keep: Sequence[code_cache.Native]) -> None:
        kept = {(f.key, f.symbol) for f in keep}
        known = {pair: at for pair, at in code_cache._addresses.items() if pair in kept}
        monkeypatch.setattr(code_cache, "_addresses", known)
        monkeypatch.setattr(code_cache, "_symbols", {symbol for _, symbol in known})
        monkeypatch.setattr(code_cache, "_contents", {})

    forget(())  # so all of it is compiled, and on disk
    _, made = run(layer)
    found = made(StepContext(), X[:3])
    used = {f for executable_plan in made._plans.values() for f in executable_plan.codes}
    monkeypatch.setattr(specializations, "ClusterLowering", refuse)
    driver = [f for f in used if f.symbol in ("run", "share", "call")]
    for keep in (driver, ()):
        forget(keep)
        _, read = run(layer)
        forget(keep)
        np.testing.assert_array_equal(read(StepContext(), X[:3])[0], found[0])
        assert not any(kernel.fresh for event in read.events for kernel in event.kernels)


def test_a_plan_for_a_cache_of_another_size_is_not_read(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size, expected in ((1 << 19, 1), (1 << 21, 2), (1 << 19, 2)):
        monkeypatch.setattr(host, "l2_cache", lambda size=size: size)
        run(layer)
        assert len(plans(place)) == expected


def test_not_all_of_many_sizes_are_kept(place: Path) -> None:
    _, made = run(layer)
    for rows in range(1, 100):
        assert made(StepContext(), rng.normal(size=(rows, 5)).astype("float32"))
    assert 1 < len(plans(place)) < 99


@pytest.mark.slow
def test_another_process_reads_it(place: Path) -> None:
    """So there are no addresses in it; each process has its own."""
    program = (
        "import numpy as np, laminar\n"
        "from laminar import ops\n"
        "f = laminar.engine.function(lambda x: ops.tanh(ops.matmul(x, x) * x + 0.5))\n"
        "x = np.linspace(-1, 1, 400, dtype='float32').reshape(20, 20)\n"
        "print(float(ops.sum(f(laminar.ops.convert_to_tensor(x)))))\n"
    )
    printed, seen = [], []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "LAMINAR_CACHE": str(place)},
            capture_output=True,
            text=True,
            check=True,
        )
        printed.append(done.stdout)
        seen.append({p.name: p.stat().st_ino for p in place.rglob("*") if p.is_file()})
    assert len(set(printed)) == 1
    assert seen[0] == seen[1] == seen[2]
    assert any(name.endswith(".plan") for name in seen[0])


def other_constant(x: Any) -> Sequence[Any]:
    w = constant(np.linspace(-1, 1.5, 20, dtype="float32").reshape(5, 4))
    y = tanh(add(matmul(x, w), constant(0.5)))
    return y, reduce_sum(multiply(y, y), axis=1)


def other_attribute(x: Any) -> Sequence[Any]:
    y, _ = layer(x)
    return y, reduce_sum(multiply(y, y), axis=0)


def other_operands(x: Any) -> Sequence[Any]:
    y, _ = layer(x)
    return y, reduce_sum(multiply(y, constant(3.0)), axis=1)


def other_type(x: Any) -> Sequence[Any]:
    y, total = layer(x)
    return add(y, y), total


@pytest.mark.parametrize("build", [other_constant, other_attribute, other_operands, other_type])
def test_what_differs_has_a_plan_of_its_own(build: Build, place: Path) -> None:
    run(layer)
    found, _ = run(build)
    assert len(plans(place)) == 2
    body = body_of(build)
    for a, b in zip(found, run_steps(StepContext(), X, body=body), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_threads_and_vectors_have_plans_of_their_own(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(layer)
    try:
        laminar.set_threads(3)
        run(layer)
    finally:
        laminar.set_threads(None)
    assert len(plans(place)) == 2
    if llvm.vector_bytes() > 16:
        monkeypatch.setattr(llvm, "vector_bytes", lambda: 16)
        monkeypatch.setattr(specializations, "vector_bytes", lambda: 16)
        run(layer)
        assert len(plans(place)) == 3


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 4096])
def test_a_damaged_plan_is_made_anew(place: Path, damage: bytes) -> None:
    first, _ = run(layer)
    (path,) = plans(place)
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + damage + whole[40 + len(damage) :] if damage else damage)
    again, _ = run(layer)
    np.testing.assert_array_equal(first[0], again[0])
    assert path.read_bytes() == whole


def test_kernels_are_named_by_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    named = []
    for scope in ("first", "second"):
        monkeypatch.setattr(code_cache, "_addresses", {})  # as in another process
        _, made = run(layer, scope)
        named.append([kernel.what for kernel in made.events[0].kernels])
    assert any("first/" in what for what in named[0])
    assert [what.replace("second/", "first/") for what in named[1]] == named[0] != named[1]


def test_ops_of_others_are_not_kept(place: Path) -> None:
    """Their names do not say what they compute."""
    sign = 1.0
    theirs = elementwise("TheirsAlone", "A user's.", scalar=lambda s, x: s.tanh(x) * sign)

    def build(x: Any) -> Sequence[Any]:
        return [add(multiply(theirs(x), x), x)]

    found, _ = run(build)
    np.testing.assert_allclose(found[0], np.tanh(X) * X + X, rtol=1e-5)
    assert not plans(place)


VALUES: list[Any] = [
    *(None, True, 1, 1.0, "1", b"1", (1,), [1], ((1,),), {"a": 1}, {"a": 1.0}, 0.0, -0.0),
    *(float("inf"), np.float32(1), np.float64(1), np.ones(1), np.ones((1, 1)), np.ones(1, "int64")),
    *(DType("float32"), "float32", TensorShape([1]), TensorShape([None]), TensorShape(None)),
    *(TensorSpec([1]), TensorSpec([1], "float64"), np.zeros(2), np.array([0.0, -0.0]), ()),
    *((1, 1), ((1), (1,)), ("a,b",), ("a", "b"), llvm.prepare, llvm.assembly),
]


def test_different_values_are_encoded_differently() -> None:
    assert len({encoded(value) for value in VALUES}) == len(VALUES)
    assert [encoded(value) for value in VALUES] == [encoded(value) for value in VALUES]


@pytest.mark.parametrize(
    "value", [object(), lambda: 0, {len, 2}, np.array([object()]), (1, object()), len]
)
def test_what_is_not_known_has_no_digest(value: Any) -> None:
    with pytest.raises(NoDigestError, match="no digest"):
        encoded(value)


def test_the_compilers_source_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "_ROOT", tmp_path)
    (tmp_path / "compiler" / "kernels").mkdir(parents=True)
    file = tmp_path / "compiler" / "kernels" / "a.py"
    found = []
    for text in ("x = 1", "x = 2", "x = 1"):
        file.write_text(text)
        found.append(fingerprint.sources.__wrapped__())
    assert found[0] == found[2] != found[1]
    file.rename(file.with_name("b.py"))
    assert fingerprint.sources.__wrapped__() != found[0]


def test_what_is_accepted_is_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *_, operations = operations_of(layer)
    first = NativeCompiler().accepts(operations)
    assert any(first)
    assert len(list(place.rglob("*.kinds"))) == 1
    monkeypatch.setattr(supported_ops, "_can_lower", refuse)
    assert NativeCompiler().accepts(operations) == first


def _text(number: int) -> str:
    module = Module()
    fn = IRFunction(module, "same_name", ["ptr"])
    store(fn, fn.number(number), fn.arguments[0])
    return module.text()


def test_functions_of_one_name_are_linked_together() -> None:
    made = [Code("same_name", llvm.vector_bytes(), _text, (n,)) for n in (11, 22, 11)]
    addresses = addresses_of([function_of(code) for code in made])
    assert addresses[0] == addresses[2] == address_of(made[0])
    for address, number in zip(addresses, (11, 22, 11), strict=True):
        value = ctypes.c_int64()
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(ctypes.byref(value))
        assert value.value == number
