"""A device type has a compiler of its own: the clusters of what runs there go to it, no others."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine as eng
from laminar.engine.compiler import NativeCompiler
from laminar.engine.devices import CpuDevice, compiler_of, local_devices
from laminar.engine.devices.factories import loaded_once
from laminar.engine.graph import Operation
from laminar.engine.ops.core.cluster import ClusterBody, run_steps
from laminar.engine.runtime import SessionConfig
from tests.engine.runtime.fake_gpu import registered, two_cpus


class ToyCompiler:
    """Evaluates bodies with NumPy, and notes what it is asked."""

    def __init__(self) -> None:
        self.prepared = 0
        self.built: list[ClusterBody] = []
        self.runs = 0
        self.shapes: list[Any] = []

    def prepare(self) -> None:
        self.prepared += 1

    def accepts(self, operations: Sequence[Operation]) -> list[bool]:
        return [op.definition.async_kernel is None for op in operations]  # type: ignore[attr-defined]  # an OpDef

    def build(self, body: ClusterBody) -> Callable[..., Any] | None:
        self.built.append(body)
        return _Evaluated(self, body)


class _Evaluated:
    def __init__(self, compiler: ToyCompiler, body: ClusterBody) -> None:
        self._compiler = compiler
        self._body = body

    def __call__(self, context: Any, *inputs: Any) -> list[Any]:
        self._compiler.runs += 1
        return run_steps(context, *inputs, body=self._body)

    def prepare(self, calls: Any) -> None:
        self._compiler.shapes += calls


class ToyDevice(CpuDevice):
    """A device of a type of its own."""

    device_type = "toy"


@pytest.fixture
def toy() -> Iterator[ToyCompiler]:
    """The compiler of the type "toy", of which there are two devices."""
    compiler = ToyCompiler()
    with registered(
        "toy",
        lambda index, count, limit: ToyDevice(index, num_threads=1),
        compiler=lambda: compiler,
        count=2,
    ):
        yield compiler


def test_devices_of_a_type_share_one_compiler(toy: ToyCompiler) -> None:
    devices = {d.name.rpartition("/device:")[2]: d for d in local_devices()}
    assert devices["toy:0"].compiler is devices["toy:1"].compiler is toy
    assert isinstance(devices["cpu:0"].compiler, NativeCompiler)
    with two_cpus():
        assert {d.compiler for d in local_devices()} == {toy, devices["cpu:0"].compiler}
    assert compiler_of("no such type") is None


def test_a_function_in_the_scope_goes_to_it(toy: ToyCompiler) -> None:
    f = eng.function(lambda x: eng.lookup("Tanh")(x) * 2.0 + 1.0)
    x = np.linspace(-1, 1, 5).astype("float32")
    with eng.device("toy:1"):
        for _ in range(3):
            found = f(x)
    np.testing.assert_array_equal(found, np.tanh(x) * np.float32(2) + np.float32(1))
    (body,) = toy.built
    assert body.device is local_devices().named("toy:1")
    assert toy.runs == 3
    np.testing.assert_allclose(f(x), found, rtol=1e-6)
    assert (len(toy.built), toy.runs) == (1, 3)  # that is the host's
    (cluster,) = f.concrete(x).clusters
    assert cluster.device is local_devices().client


def test_a_session_has_both(toy: ToyCompiler) -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float64", [None])
        with eng.device("toy:0"):
            y: Any = eng.lookup("Exp")(x) * 2.0 + x
        with eng.device("cpu:0"):
            z: Any = eng.lookup("Sin")(y) * 3.0 - y
        with eng.Session(config=SessionConfig(jit_compile=True)) as session:
            found = session.run(z, {x: [1.0, 2.0]})
    expected = np.exp([1.0, 2.0]) * 2 + [1, 2]
    np.testing.assert_allclose(found, np.sin(expected) * 3 - expected, rtol=1e-12)
    (body,) = toy.built
    assert {step.definition.type for step in body.steps} >= {"Exp", "Mul", "Add"}
    assert "Sin" not in {step.definition.type for step in body.steps}


def test_a_session_compiles_what_is_run_often(toy: ToyCompiler) -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float64", [None])
        with eng.device("toy:0"):
            y: Any = eng.lookup("Exp")(x) * 2.0 + x
        with eng.Session() as session:
            for _ in range(12):
                session.run(y, {x: [1.0]})
    assert len(toy.built) == 1
    assert toy.runs == 3


def test_fit_goes_to_it(toy: ToyCompiler) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(24, 4)).astype("float32"), rng.normal(size=(24, 1)).astype("float32")

    def losses() -> Any:
        laminar.utils.set_random_seed(1)
        model = laminar.Sequential([laminar.layers.Dense(8, "tanh"), laminar.layers.Dense(1)])
        model.compile(laminar.optimizers.Adam(0.01), "mse")
        return model.fit(x, y, batch_size=8, epochs=2, verbose=0).history["loss"]

    expected = losses()
    assert not toy.built
    assert toy.prepared == 1  # a model may run there
    with eng.device("toy:0"):
        found = losses()
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert toy.runs == 6
    assert toy.shapes  # what the first batch needs is asked for before
    assert {body.device for body in toy.built} == {local_devices().named("toy:0")}
    steps = {step.definition.type for body in toy.built for step in body.steps}
    assert steps >= {"MatMul", "Tanh", "ReadVariable", "AssignSub"}


def test_a_type_without_a_compiler_runs_op_by_op() -> None:
    with registered("toy", lambda index, count, limit: ToyDevice(index)), eng.device("toy:0"):
        assert local_devices().named("toy:0").compiler is None
        f = eng.function(lambda x: eng.lookup("Tanh")(x) * 2.0 + 1.0)
        x = np.array([1, 2], "float32")
        np.testing.assert_allclose(f(x), np.tanh(x) * 2 + 1, rtol=1e-6)
        assert not f.concrete(x).clusters


def test_a_compiler_is_loaded_once_whoever_asks_first() -> None:
    made: list[Any] = []
    begun = threading.Barrier(4)

    def load() -> Any:
        made.append(object())
        return made[-1]

    compiler = loaded_once(load)
    found: list[Any] = []

    def ask() -> None:
        begun.wait(10)
        found.append(compiler())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(made) == 1
    assert found == made * 4


def test_a_compiler_that_fails_to_load_is_asked_again() -> None:
    toy = ToyCompiler()
    results: list[Any] = [ImportError("not yet"), toy]

    def load() -> Any:
        found = results.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    compiler = loaded_once(load)
    with pytest.raises(ImportError, match="not yet"):
        compiler()
    assert compiler() is compiler() is toy


def test_what_computes_at_once_loads_no_compiler() -> None:
    program = (
        "import sys, laminar; from laminar import engine, ops\n"
        "engine.set_device_count({'cpu': 2})\n"
        "with laminar.device('cpu:1'): assert ops.ones((2,)).device == '/device:cpu:1'\n"
        "assert 'llvmlite' not in sys.modules and 'laminar.engine.compiler' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
