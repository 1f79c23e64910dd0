"""How native code is called: as Python's own functions, or, where little is known, by ctypes."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine as eng
from laminar.engine.compiler.codegen import driver_words
from laminar.engine.compiler.native import call_path, cpython_calls, ctypes_calls
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.compiler.native.ctypes_calls import CtypesPlan
from laminar.engine.compiler.plan.executable_plan import driver_codes
from laminar.engine.compiler.target.code_cache import addresses_of
from laminar.engine.errors import InvalidArgumentError

# What is called in many ways: functions of several results, loops, sizes that change, variables
# that are written in place and such as are held elsewhere, training.
PROGRAM = """
import hashlib
import numpy as np
import laminar
from laminar import ops
from laminar.engine.compiler.native.call_path import reads_structs

rng = np.random.default_rng(0)
found = []
f = laminar.function(lambda x: [ops.softmax(x) * 2, ops.sum(x, axis=0), ops.argmax(x, axis=1)])
for n in (3, 70, 3, 0, 500):
    found += f(ops.convert_to_tensor(rng.normal(size=(n, 60)).astype("float32")))
found += f(np.ones((8, 60), "float32")[::2])
v = laminar.Variable(rng.normal(size=(300, 40)).astype("float32"))
grow = laminar.function(lambda x: ops.tanh(v.assign_add(ops.exp(x) * 0.1)) * 2)
held = []
for i in range(4):
    found.append(grow(np.full((300, 40), i / 10, "float32")))
    held.append(v.value)
found += held
sums = laminar.function(lambda x: ops.scan(lambda s, e: (s + ops.sin(e), s), x[0] * 0, x))
found += sums(ops.convert_to_tensor(rng.normal(size=(20, 30)).astype("float32")))
laminar.utils.set_random_seed(0)
x = rng.normal(size=(90, 8)).astype("float32")
model = laminar.Sequential(
    [laminar.layers.Dense(64, "relu"), laminar.layers.Dropout(0.2), laminar.layers.Dense(3)]
)
model.compile(laminar.optimizers.Adam(0.01), "mse", metrics=["mae"])
found += [model.fit(x, x[:, :3], batch_size=16, epochs=3, verbose=0).history["loss"]]
found += [model.predict(x, verbose=0), *model.get_weights()]
print(reads_structs(), *[hashlib.sha256(np.asarray(y).tobytes()).hexdigest()[:12] for y in found])
"""


def run(**environment: str) -> list[str]:
    """What the program prints: the way that is taken, and a digest of each result."""
    known = {name: x for name, x in os.environ.items() if name != "LAMINAR_CALLS"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**known, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
def test_both_ways_give_the_same_bits() -> None:
    first, *results = run()
    second, *others = run(LAMINAR_CALLS="ctypes")
    assert (first, second) == ("True", "False")
    assert len(results) > 30
    assert results == others


@pytest.fixture
def _asked_anew() -> Iterator[None]:
    """What decides how native code is called decides again, now and after the test."""
    call_path.reads_structs.cache_clear()
    yield
    call_path.reads_structs.cache_clear()


@pytest.mark.usefixtures("_asked_anew")
def test_the_variable_has_one_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINAR_CALLS", "faster")
    with pytest.raises(InvalidArgumentError, match="LAMINAR_CALLS: expected ctypes, got 'faster'"):
        call_path.reads_structs()
    monkeypatch.setenv("LAMINAR_CALLS", "ctypes")
    assert not call_path.reads_structs()


def pretend(patch: pytest.MonkeyPatch, python: tuple[int, int], name: str = "cpython") -> None:
    implementation = SimpleNamespace(name=name)
    version = ".".join(map(str, python))
    there = SimpleNamespace(version_info=python, version=version, implementation=implementation)
    patch.setattr(call_path, "sys", there)


@pytest.mark.usefixtures("_asked_anew")
@pytest.mark.parametrize(
    ("python", "numpy", "expected"),
    [
        ((3, 11), "2.0.0", ""),
        ((3, 13), "2.5.1", ""),
        ((3, 12), "2.4.0rc1", ""),
        ((3, 10), "2.4.0", "it was not tried with Python 3.10"),
        ((3, 14), "2.4.0", "it was not tried with Python 3.14"),
        ((3, 12), "1.26.4", "it was not tried with NumPy 1.26.4"),
        ((3, 12), "2.6.0.dev0", "it was not tried with NumPy 2.6.0.dev0"),
    ],
)
def test_versions_are_known_or_called_through_ctypes(
    python: tuple[int, int], numpy: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAMINAR_CALLS", raising=False)
    pretend(monkeypatch, python)
    monkeypatch.setattr(np, "__version__", numpy)
    assert call_path._why_not() == expected


@pytest.mark.usefixtures("_asked_anew")
def test_other_builds_are_called_through_ctypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAMINAR_CALLS", raising=False)
    with monkeypatch.context() as patch:
        pretend(patch, (3, 12), "pypy")
        assert "not CPython" in call_path._why_not()
    with monkeypatch.context() as patch:
        patch.setattr(sysconfig, "get_config_var", lambda name: int(name == "Py_GIL_DISABLED"))
        assert "with its lock" in call_path._why_not()
    with monkeypatch.context() as patch:
        patch.setattr(call_path, "_layout_is_known", lambda: False)
        assert "lays out its arrays otherwise" in call_path._why_not()
    with monkeypatch.context() as patch:
        patch.setattr(call_path, "array_makers", lambda: (0, 0))
        assert "C API" in call_path._why_not()


def own(x: Any, references: int) -> int:
    """The status of a call that asks for an array with so many references at most."""
    plan, tables = np.zeros(driver_words.PLAN_WORDS, np.int64), np.zeros((2, 1), np.int64)
    plan[driver_words.NUM_ARRAYS], plan[driver_words.ARRAY_TYPE] = 1, id(np.ndarray)
    plan[driver_words.WANTS], plan[driver_words.REFUSED] = (
        tables[0].ctypes.data,
        tables[1].ctypes.data,
    )
    tables[0] = driver_words.WANT_OWN | references << 8
    function, *_ = addresses_of(driver_codes(is_parallel=False))
    call = CtypesPlan(function, plan.ctypes.data, 1, [], [])
    objects = [x.pop()]
    found = call(objects)
    return 0 if found == [] else int(found)


def test_what_others_hold_is_not_written_in_place() -> None:
    array = np.ones(9)
    assert own([np.ones(9)], 1) == driver_words.DONE
    assert own([array], 1) == driver_words.REFUSES
    assert own([array], 2) == driver_words.DONE
    another = array
    assert own([array], 2) == driver_words.REFUSES
    del another
    assert own([np.ones(9)[1:]], 1) == driver_words.DONE  # the only view of its memory
    assert own([array[1:]], 1) == driver_words.REFUSES
    assert own([np.frombuffer(bytearray(16), np.int64)], 1) == driver_words.REFUSES
    frozen = np.ones(3)
    frozen.setflags(write=False)
    assert own([frozen], 5) == driver_words.REFUSES
    assert own([np.ones((4, 4))[:, 0]], 9) == driver_words.REFUSES


def test_variables_are_written_in_place_through_ctypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpython_calls, "reads_structs", lambda: False)
    v: Any = eng.Variable(np.ones((64, 64), "float32"))
    grow = eng.function(lambda x: v.assign_add(x * 2.0 + 1.0) * 0.5)
    x = laminar.ops.convert_to_tensor(np.ones((64, 64), "float32"))
    grow(x)
    before = v.store.value.ctypes.data
    for _ in range(3):
        grow(x)
    assert v.store.value.ctypes.data == before
    held = v.value
    grow(x)
    assert v.store.value.ctypes.data != before
    np.testing.assert_array_equal(held, np.full((64, 64), 13, "float32"))
    np.testing.assert_array_equal(v.numpy(), np.full((64, 64), 16, "float32"))
    (body,) = grow.concrete(x).clusters
    assert isinstance(body.native, NativeCluster)
    ready = body.native._contexts[0].last
    assert ready is not None
    assert isinstance(ready.executable._alone, ctypes_calls.CtypesPlan)
