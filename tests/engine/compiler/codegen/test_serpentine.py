"""Kernels that begin at either end of their memory: which do, when, and with what bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.engine.compiler.codegen import driver
from laminar.engine.compiler.codegen.function import POINTER, IRFunction, Module, Value
from laminar.engine.compiler.codegen.memory import address_at, store
from laminar.engine.compiler.codegen.memory import load as load_elements
from laminar.engine.compiler.codegen.serpentine import serpentine_loop
from laminar.engine.compiler.native import executable as executable
from laminar.engine.compiler.native.executable import Executable
from laminar.engine.compiler.native.threads import set_threads
from laminar.engine.compiler.plan.executable_plan import PLAN
from laminar.engine.compiler.target.thread_count import num_threads
from laminar.engine.graph import int64
from laminar.engine.state import Variable
from tests.engine.ops.native import every_cluster

from ..modules import load

Array = np.ndarray[Any, Any]

TURNS = (driver.FORWARD, driver.BACKWARD, driver.THERE, driver.BACK)
rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def native() -> Iterator[None]:
    count = num_threads()
    with every_cluster():
        yield
    set_threads(count)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Executable]:
    """The executables that are made."""
    found: list[Executable] = []
    original = Executable.__init__

    def init(self: Executable, *arguments: Any) -> None:
        original(self, *arguments)
        found.append(self)

    monkeypatch.setattr(executable.Executable, "__init__", init)
    return found


def directions(executable: Executable) -> list[int]:
    """Which of the plan's words the kernels ask for their direction."""
    places = [place for place, base in executable.executable_plan.moves.tolist() if base == PLAN]
    numbers = [int(executable.executable_plan.memory[place]) // 8 for place in places]
    return [number for number in numbers if number in TURNS]


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize(("start", "stop", "step"), [(0, 12, 4), (3, 8, 1), (8, 12, 4), (5, 5, 1)])
def test_all_rounds_are_run_in_order(start: int, stop: int, step: int, back: bool) -> None:
    fn = IRFunction(Module(), "kernel", [POINTER, "i64", "i64", "i64"])
    place = fn.arguments[0]
    first, last, turned = (Value(fn, a, int64, 0) for a in fn.arguments[1:])

    def note(i: Value) -> None:
        count = load_elements(fn, place, int64, 0) + 1
        store(fn, count, place)
        store(fn, i, address_at(fn, place, count, 8))

    serpentine_loop(fn, turned != 0, first, last, step, note)
    found = np.zeros(16, np.int64)
    load(fn.module, "kernel")(found, start, stop, int(back))
    expected = list(range(start, stop, step))[:: -1 if back else 1]
    assert found[1 : 1 + found[0]].tolist() == expected


def test_each_run_begins_where_the_last_one_stopped(made: list[Executable]) -> None:
    function = laminar.function(lambda x: ops.exp(x) * 0.5)
    x = rng.normal(size=1 << 18).astype("float32")
    function(x)
    (plan,) = made
    assert directions(plan) == [driver.THERE]
    seen = []
    for _ in range(4):
        function(x)
        seen.append(plan._plan[[driver.FORWARD, driver.BACKWARD, driver.THERE, driver.BACK]])
    assert [row.tolist() for row in seen] == [[0, 1, 0, 1], [0, 1, 1, 0]] * 2


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1 << 10,), [driver.FORWARD]),  # it stays in the cache
        ((300, 1024), [driver.THERE]),
        ((3000, 100), []),  # several rows are in a page
    ],
)
def test_large_rows_turn(
    shape: tuple[int, ...], expected: list[int], made: list[Executable]
) -> None:
    x = rng.normal(size=shape).astype("float32")
    function = ops.exp if len(shape) == 1 else ops.softmax
    laminar.function(lambda x: function(x))(x)
    assert directions(made[0]) == expected


def test_kernels_of_a_run_take_turns(made: list[Executable]) -> None:
    x, y = (rng.normal(size=shape).astype("float32") for shape in ((300, 1024), (1 << 19,)))
    laminar.function(lambda x, y: (ops.softmax(x), ops.exp(y)))(x, y)
    assert directions(made[0]) == [driver.THERE, driver.BACK]


def softmax_of_a_product(x: Any) -> Any:
    """Its rows are written over the product."""
    w = np.linspace(-1, 1, 8 * 1024, dtype="float32").reshape(8, 1024)
    z = ops.reshape(ops.matmul(ops.reshape(x, (-1, 8)), w), (-1, 1, 1024))
    return ops.softmax(ops.transpose(z, (1, 0, 2)))


CASES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "elements": (lambda x: ops.gelu(x) * 2.0, (1_000_003,)),
    "elements, then a few": (lambda x: ops.exp(x), (1 << 17, 3)),
    "rows of elements": (lambda x: x * np.arange(1031, dtype="float32"), (517, 1031)),
    "softmax": (ops.softmax, (517, 1031)),
    "normalization": (lambda x: ops.layer_normalization(x, epsilon=1e-3), (301, 2050)),
    "log of softmax": (ops.log_softmax, (3, 131, 1025)),
    "in place": (softmax_of_a_product, (1, 601 * 8)),
}


@pytest.mark.parametrize("case", CASES)
def test_both_directions_give_the_same_bits(case: str, made: list[Executable]) -> None:
    function, shape = CASES[case]
    x = rng.normal(size=shape).astype("float32")
    found = []
    for threads in (1, 2, 3):
        set_threads(threads)
        native = laminar.function(lambda x: function(x))
        found += [np.array(native(x)) for _ in range(2)]
    assert set(directions(made[0])) - {driver.FORWARD}
    for values in found[1:]:
        np.testing.assert_array_equal(values.view(np.int32), found[0].view(np.int32))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_variable_is_updated_in_both_directions(threads: int, made: list[Executable]) -> None:
    set_threads(threads)
    start = rng.normal(size=300_007).astype("float32")
    variable = Variable(start)

    @laminar.function
    def step() -> None:
        variable.assign(variable * 0.5 + 1.0)

    expected = start
    for _ in range(4):
        step()
        expected = expected * np.float32(0.5) + np.float32(1)
    np.testing.assert_array_equal(np.asarray(variable), expected)
    assert driver.THERE in directions(made[0])
