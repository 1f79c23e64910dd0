"""Native plans as functions of Python's: what they take, what they hold, what they leave."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

from laminar.engine.compiler import driver
from laminar.engine.compiler.codes import address_of, addresses_of
from laminar.engine.compiler.emit import POINTER, Function, Module, Value
from laminar.engine.compiler.instance import driver_codes
from laminar.engine.compiler.kernels.launch import Code
from laminar.engine.compiler.llvm import vector_bytes
from laminar.engine.compiler.python_calls import callable_plan
from laminar.engine.graph import int64


def _waiting() -> str:
    """words[1] = 1, then wait until words[0] is not 0."""
    module = Module()
    fn = Function(module, "await", [POINTER, "i64", "i64"])
    words = fn.arguments[0]
    fn.store(fn.number(1), fn.offset(words, fn.number(1), 8))

    def again(x: Value) -> tuple[Value, Value]:
        seen = fn.instruction(f"load atomic i64, ptr {words} seq_cst, align 8", int64, 0)
        return x, seen == 0

    fn.repeat(fn.number(0), again)
    return module.text()


class Waiting:
    """A plan of one kernel that waits, for one array."""

    def __init__(self) -> None:
        self.words = np.zeros(2, np.int64)
        code = address_of(Code("await", vector_bytes(), _waiting, ()))
        self._table = np.array([(code, self.words.ctypes.data, 0, 0)], np.int64)
        self._wants = np.zeros(1, np.int64)
        self.refused = np.zeros(1, np.int64)
        self.plan = np.zeros(driver.PLAN_WORDS, np.int64)
        for place, value in (
            (driver.NUM_KERNELS, 1),
            (driver.KERNELS, self._table.ctypes.data),
            (driver.NUM_ARRAYS, 1),
            (driver.WANTS, self._wants.ctypes.data),
            (driver.REFUSED, self.refused.ctypes.data),
            (driver.ARRAY_TYPE, id(np.ndarray)),
        ):
            self.plan[place] = value
        run, *_ = addresses_of(driver_codes(is_parallel=False))
        self.run = callable_plan(run, self.plan.ctypes.data)


def test_others_run_meanwhile_and_the_arrays_live() -> None:
    waiting = Waiting()
    array = np.arange(3.0)
    alive, found = weakref.ref(array), list[int]()
    objects = [array]
    thread = threading.Thread(target=lambda: found.append(waiting.run(objects)))
    thread.start()
    while not waiting.words[1]:  # this thread has Python's lock again and again
        time.sleep(0.001)
    del array
    gc.collect()
    assert not found
    assert alive() is not None
    waiting.words[0] = 1
    thread.join()
    assert found == [driver.DONE]
    objects.clear()
    assert alive() is None


@pytest.mark.parametrize(
    "thing", [None, 3.0, [1.0], np.float32(1), np.ma.ones(2), np.arange(8.0)[::2]], ids=repr
)
def test_what_is_no_plain_array_is_refused_and_nothing_runs(thing: Any) -> None:
    waiting = Waiting()
    assert waiting.run([thing]) == driver.REFUSES
    assert waiting.refused.tolist() == [1]
    assert waiting.words[1] == 0


def test_a_call_leaves_no_references_behind() -> None:
    waiting = Waiting()
    waiting.words[0] = 1
    objects = [np.ones(3)]
    counts = [sys.getrefcount(x) for x in (objects, objects[0], waiting.run)]
    for _ in range(1000):
        assert waiting.run(objects) == driver.DONE
    assert [sys.getrefcount(x) for x in (objects, objects[0], waiting.run)] == counts


def test_a_function_keeps_what_it_reads() -> None:
    waiting = Waiting()
    waiting.words[0] = 1
    run = waiting.run
    words = run.__self__  # type: ignore[attr-defined]  # built-in functions have it
    assert words[driver.CALL_PLAN] == waiting.plan.ctypes.data
    alive = weakref.ref(words)
    del words
    gc.collect()
    assert alive() is not None
    assert run([np.ones(2)]) == driver.DONE
    del run, waiting.run
    assert alive() is None


def test_a_function_keeps_what_python_reads_when_it_is_dropped() -> None:
    """Its PyMethodDef, which at the end of the interpreter has nobody else left."""
    run = Waiting().run
    address = ctypes.c_void_p.from_address(id(run) + 16).value  # m_ml, after the header
    kept = [x for x in gc.get_referents(run) if isinstance(x, ctypes.Structure)]
    assert address in [ctypes.addressof(x) for x in kept]


def test_it_takes_one_argument() -> None:
    with pytest.raises(TypeError):
        Waiting().run()  # type: ignore[call-arg]  # that is the test
