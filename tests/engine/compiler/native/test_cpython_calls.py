"""Native plans as functions of Python's, or through ctypes: what they take, hold and leave."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import time
import weakref
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.compiler.codegen import cpython_code, driver_words
from laminar.engine.compiler.codegen.control import repeat
from laminar.engine.compiler.codegen.function import POINTER, IRFunction, Module, Value
from laminar.engine.compiler.codegen.memory import address_at, store
from laminar.engine.compiler.native import cpython_calls
from laminar.engine.compiler.native.cpython_calls import callable_plan
from laminar.engine.compiler.plan.executable_plan import driver_codes
from laminar.engine.compiler.target import host
from laminar.engine.compiler.target.code import Code
from laminar.engine.compiler.target.code_cache import address_of, addresses_of
from laminar.engine.compiler.target.llvm import vector_bytes
from laminar.engine.graph import EagerTensor, int64, tensor


@pytest.fixture(params=["built-in", "ctypes"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls by the one way and by the other."""
    if request.param == "ctypes":
        monkeypatch.setattr(cpython_calls, "reads_structs", lambda: False)


either_way = pytest.mark.usefixtures("_either_way")


def _waiting() -> str:
    """words[1] = 1, then wait until words[0] is not 0."""
    module = Module()
    fn = IRFunction(module, "await", [POINTER, "i64", "i64"])
    words = fn.arguments[0]
    store(fn, fn.number(1), address_at(fn, words, fn.number(1), 8))

    def again(x: Value) -> tuple[Value, Value]:
        seen = fn.instruction(f"load atomic i64, ptr {words} seq_cst, align 8", int64, 0)
        return x, seen == 0

    repeat(fn, fn.number(0), again)
    return module.text()


class Waiting:
    """A plan of one kernel that waits, for one array."""

    def __init__(self) -> None:
        self.words = np.zeros(2, np.int64)
        code = address_of(Code("await", vector_bytes(), _waiting, ()))
        self._table = np.array([(code, self.words.ctypes.data, 0, 0)], np.int64)
        self._wants = np.zeros(1, np.int64)
        self.refused = np.zeros(1, np.int64)
        self.plan = np.zeros(driver_words.PLAN_WORDS, np.int64)
        for place, value in (
            (driver_words.NUM_KERNELS, 1),
            (driver_words.KERNELS, self._table.ctypes.data),
            (driver_words.NUM_ARRAYS, 1),
            (driver_words.WANTS, self._wants.ctypes.data),
            (driver_words.REFUSED, self.refused.ctypes.data),
            (driver_words.ARRAY_TYPE, id(np.ndarray)),
        ):
            self.plan[place] = value
        run, *_ = addresses_of(driver_codes(is_parallel=False))
        self.run = callable_plan(run, self.plan.ctypes.data, 1)


@either_way
def test_others_run_meanwhile_and_the_arrays_live() -> None:
    waiting = Waiting()
    array = np.arange(3.0)
    alive, found = weakref.ref(array), list[Any]()
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
    assert found == [[]]
    objects.clear()
    assert alive() is None


@either_way
@pytest.mark.parametrize(
    "thing", [None, 3.0, [1.0], np.float32(1), np.ma.ones(2), np.arange(8.0)[::2]], ids=repr
)
def test_what_is_no_plain_array_is_refused_and_nothing_runs(thing: Any) -> None:
    waiting = Waiting()
    assert waiting.run([thing]) == driver_words.REFUSES
    assert waiting.refused.tolist() == [1]
    assert waiting.words[1] == 0


@either_way
def test_a_call_leaves_no_references_behind() -> None:
    waiting = Waiting()
    waiting.words[0] = 1
    objects = [np.ones(3)]
    counts = [sys.getrefcount(x) for x in (objects, objects[0], waiting.run)]
    for _ in range(1000):
        assert waiting.run(objects) == []
    assert [sys.getrefcount(x) for x in (objects, objects[0], waiting.run)] == counts


def test_a_function_keeps_what_it_reads() -> None:
    waiting = Waiting()
    waiting.words[0] = 1
    run = waiting.run
    words = run.__self__  # type: ignore[attr-defined]  # built-in functions have it
    assert words[cpython_code.CALL_PLAN] == waiting.plan.ctypes.data
    alive = weakref.ref(words)
    del words
    gc.collect()
    assert alive() is not None
    assert run([np.ones(2)]) == []
    del run, waiting.run
    assert alive() is None


def test_a_function_keeps_what_python_reads_when_it_is_dropped() -> None:
    """Its PyMethodDef, which at the end of the interpreter has nobody else left."""
    run = Waiting().run
    address = ctypes.c_void_p.from_address(id(run) + 16).value  # m_ml, after the header
    kept = [x for x in gc.get_referents(run) if isinstance(x, ctypes.Structure)]
    assert address in [ctypes.addressof(x) for x in kept]


@either_way
def test_it_takes_one_argument() -> None:
    with pytest.raises(TypeError):
        Waiting().run()  # type: ignore[call-arg]  # that is the test


FLOATS, FLAGS = np.dtype(np.float32), np.dtype(np.bool_)


def doing_nothing(
    num_arrays: int, given: list[tuple[int, ...]], results: list[tuple[tuple[int, ...], Any]]
) -> tuple[Any, Any]:
    """A plan without kernels, and a function of what it takes that runs it."""
    plan = np.zeros(driver_words.PLAN_WORDS, np.int64)
    tables = np.zeros((2, num_arrays), np.int64)
    plan[driver_words.NUM_ARRAYS], plan[driver_words.ARRAY_TYPE] = num_arrays, id(np.ndarray)
    plan[driver_words.WANTS], plan[driver_words.REFUSED] = (
        tables[0].ctypes.data,
        tables[1].ctypes.data,
    )
    run, *_ = addresses_of(driver_codes(is_parallel=False))
    return (plan, tables), callable_plan(run, plan.ctypes.data, num_arrays, given, results)


@either_way
def test_results_are_made() -> None:
    forms = [((2, 3), FLOATS), ((), FLOATS), ((0, 4), FLAGS), ((5,), FLAGS)]
    kept, run = doing_nothing(5, [(2,)], forms)
    objects: list[Any] = [np.ones(2), *[None] * 4]
    counts = [sys.getrefcount(x) for x in (None, FLOATS, FLAGS)]
    found = run(objects)
    assert [(x.shape, x.dtype) for x in found] == forms
    for x, held in zip(found, objects[1:], strict=True):
        assert x is held
        assert x.flags.c_contiguous
        assert x.flags.owndata
        assert x.flags.writeable
        assert type(x) is np.ndarray
        x.fill(1)
    del objects, x, held
    alive = [weakref.ref(x) for x in found]
    found.clear()
    assert [ref() for ref in alive] == [None] * 4
    now = [sys.getrefcount(x) for x in (None, FLOATS, FLAGS)]
    assert np.abs(np.subtract(now, counts)).max() < 8  # the names of this test
    for _ in range(1000):
        run([np.ones(2), *[None] * 4])
    then = [sys.getrefcount(x) for x in (None, FLOATS, FLAGS)]
    assert np.abs(np.subtract(then, now)).max() < 8
    del kept


@either_way
def test_large_results_begin_at_a_line_in_memory_of_their_own() -> None:
    forms = [((40, 128), FLOATS), ((3,), FLOATS), ((1 << 15,), FLAGS), ((64, 64), FLOATS)]
    kept, run = doing_nothing(5, [(2,)], forms)
    for _ in range(20):
        found = run([np.ones(2), *[None] * 4])
        assert [(x.shape, x.dtype) for x in found] == forms
        del found[1]
        for x in found:
            assert x.ctypes.data % host.LINE == 0
            assert x.flags.c_contiguous
            assert x.flags.aligned
            assert x.flags.writeable
            memory = x.base
            first = x.ctypes.data - memory.ctypes.data
            assert 0 <= first <= memory.nbytes - x.nbytes
            assert memory.flags.owndata
            assert sys.getrefcount(memory) == 3  # the array's, this one, and the call's
            x.fill(1)
        alive = [weakref.ref(x.base) for x in found]
        del x, memory
        found.clear()
        assert [ref() for ref in alive] == [None] * 3
    counts = [sys.getrefcount(x) for x in (None, FLOATS, np.dtype(np.uint8))]
    for _ in range(1000):
        run([np.ones(2), *[None] * 4])
    then = [sys.getrefcount(x) for x in (None, FLOATS, np.dtype(np.uint8))]
    assert np.abs(np.subtract(then, counts)).max() < 8  # the names of this test
    del kept


@either_way
def test_results_that_are_there_are_taken() -> None:
    kept, run = doing_nothing(3, [(2,)], [((2,), FLOATS)] * 2)
    own = np.empty(2, np.float32)
    found = run([np.ones(2), None, own])
    assert found[1] is own
    assert found[0] is not own
    del kept


@either_way
@pytest.mark.parametrize("shape", [(3, 2), (2,), (2, 3, 1), (), (0, 3), (2, 4)], ids=str)
def test_other_shapes_are_noticed(shape: tuple[int, ...]) -> None:
    kept, run = doing_nothing(4, [(4,), (2, 3)], [((2,), FLOATS)])
    anything = np.ones(7)  # of a variable's the shape is known
    objects = [np.ones(4), np.ones(shape), anything, None]
    assert run(objects) == cpython_code.OTHER_SHAPES
    assert objects[-1] is None
    assert isinstance(run([np.ones(4), np.ones((2, 3)), anything, None]), list)
    assert run([np.float32(4), np.ones((2, 3)), anything, None]) == driver_words.REFUSES
    del kept


@either_way
def test_without_memory_for_a_result_nothing_runs() -> None:
    kept, run = doing_nothing(3, [(2,)], [((2,), FLOATS), ((1 << 60,), FLOATS)])
    objects = [np.ones(2), None, None]
    with pytest.raises((MemoryError, ValueError)):
        run(objects)
    assert objects[2] is None
    del kept


def native_tensors() -> Any:
    """What makes tensors of values, as `tensors_of` has it from native code."""
    cpython_calls.make_tensors_natively()
    made: Any = tensor._Maker.make
    assert isinstance(made, BuiltinFunctionType)
    return made


def test_tensors_are_made() -> None:
    arrays = [np.full(n, n, np.float32) for n in range(4)]
    dtypes = [eng.float32] * 4
    counts = [sys.getrefcount(x) for x in arrays]
    values = list(arrays)
    found = native_tensors()(values, dtypes)
    assert found is values
    for made, array in zip(found, arrays, strict=True):
        assert isinstance(made, EagerTensor)
        assert made.value is array
        assert made.dtype is eng.float32
        assert made.shape == array.shape
        assert (made + 1.0).tolist() == (array + 1).tolist()
        made._keras_mask = 5  # what was not given is free for use
        assert gc.is_tracked(made)
    alive = [weakref.ref(made) for made in found]
    del made, array, found
    values.clear()
    assert [ref() for ref in alive] == [None] * 4
    assert [sys.getrefcount(x) for x in arrays] == counts
    before = [sys.getrefcount(x) for x in (*arrays, eng.float32, EagerTensor)]
    for _ in range(1000):
        native_tensors()(list(arrays), dtypes)
    after = [sys.getrefcount(x) for x in (*arrays, eng.float32, EagerTensor)]
    assert np.abs(np.subtract(after, before)).max() < 4  # the names of this test


def test_tensors_of_nothing() -> None:
    assert native_tensors()([], []) == []


def test_what_holds_itself_is_collected() -> None:
    """Python's collector goes through what was made."""
    (made,) = native_tensors()([np.ones(2)], [eng.float64])
    made._keras_mask = made
    alive = weakref.ref(made)
    del made
    gc.collect()
    assert alive() is None
