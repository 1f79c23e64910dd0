"""How many traces `function` makes: one for each dtype, shape, value, object and device scope."""

from __future__ import annotations

import dataclasses
import gc
import threading
import time
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.ops.math.elementary import tanh
from tests.engine.runtime.fake_gpu import two_cpus


def tensor(value: Any, dtype: str = "float32") -> Any:
    return eng.convert_to_tensor(np.asarray(value, dtype))


def count_traces(*calls: Any) -> int:
    f = eng.function(lambda x, y=None: x)
    for call in calls:
        f(*call) if isinstance(call, tuple) else f(call)
    return int(f.trace_count)


COUNTS: list[Any] = [
    pytest.param([tensor(1, "int32"), tensor(1.0)], 2, id="dtypes"),
    pytest.param([1.0, 2.0], 2, id="numbers"),
    pytest.param([1.0, 1.0], 1, id="one-number"),
    pytest.param([1, 1.0, True], 3, id="types-of-numbers"),
    pytest.param([0.0, -0.0], 2, id="signed-zeros"),
    pytest.param([float("nan"), float("nan"), np.nan], 1, id="nan"),
    pytest.param([complex("nanj"), complex("nanj")], 1, id="complex-nan"),
    pytest.param([(tensor(1), True), (tensor(2), False), (tensor(3), True)], 2, id="flags"),
    pytest.param([tensor(v) for v in ([2], [2, 3], [[2]], [3], [4, 5])], 3, id="shapes"),
    pytest.param([tensor(1), tensor([1]), tensor([[1]])], 3, id="ranks"),
    pytest.param([np.array([1.0]), np.array([2.0])], 1, id="arrays"),
    pytest.param([np.float32(1), np.float32(2)], 1, id="numpy-scalars"),
    pytest.param([(tensor(1), "a"), (tensor(1), b"a"), (tensor(1), "a")], 2, id="strings"),
    pytest.param([(tensor(1), [1, 2]), (tensor(1), (1, 2)), (tensor(1), [1, 2])], 2, id="nests"),
    pytest.param([(tensor(1), None), (tensor(1),)], 1, id="default"),
    pytest.param(
        [(tensor(1), {"a": 1, "b": 2}), (tensor(1), {"b": 2, "a": 1})], 1, id="order-of-a-dict"
    ),
    pytest.param([(tensor(1), eng.TensorShape(None)), (tensor(1), 3)], 2, id="unknown-shape"),
]


@pytest.mark.parametrize(("calls", "count"), COUNTS)
def test_trace_counts(calls: list[Any], count: int) -> None:
    assert count_traces(*calls) == count


def test_forms_of_one_call_share_a_trace() -> None:
    f = eng.function(lambda x, y=2.0, *rest, z=3.0, **more: x)
    x = tensor(1)
    forms: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((x,), {}),
        ((x, 2.0), {}),
        ((x,), {"y": 2.0}),
        ((), {"z": 3.0, "x": x}),
    ]
    for args, kwargs in forms:
        f(*args, **kwargs)
    assert f.trace_count == 1
    f(x, 2.0, a=1, b=2)
    f(x, 2.0, b=2, a=1)
    assert f.trace_count == 2


def test_a_device_scope_is_part_of_the_key() -> None:
    f = eng.function(lambda x: x * 2.0)
    x = tensor(1)
    with eng.device("/cpu:0"):
        f(x)
        here = f.concrete(x)
    with two_cpus(), eng.device("/cpu:1"):
        f(x)
        there = f.concrete(x)
    f(x)
    assert f.trace_count == 3
    devices = [{op.device for op in c.graph.operations if op.type == "Mul"} for c in (here, there)]
    assert devices == [{"/device:cpu:0"}, {"/device:cpu:1"}]


class Parameters:
    def __init__(self, multiply: bool) -> None:
        self.multiply = multiply


def test_objects_count_by_identity() -> None:
    f = eng.function(lambda x, p: x * 2.0 if p.multiply else x + 2.0)
    p = Parameters(multiply=True)
    assert f(3.0, p) == 6.0
    p.multiply = False
    assert f(3.0, p) == 6.0  # as documented: a change inside of an object is not seen
    assert f(3.0, Parameters(multiply=False)) == 5.0


def test_a_key_keeps_no_object_alive() -> None:
    f = eng.function(lambda x, p: x)
    x = tensor(1)
    for _ in range(4):
        p = Parameters(multiply=True)
        alive = weakref.ref(p)
        f(x, p)
        del p
        gc.collect()
        assert alive() is None
    assert f.trace_count == 4
    assert not f._concrete  # graphs that no call can ask for again are dropped


@dataclasses.dataclass(frozen=True)
class Config:
    scale: float


def test_values_that_compare_equal_share_a_trace() -> None:
    f = eng.function(lambda x, c: x * c.scale)
    assert f(tensor(2), Config(3.0)) == f(tensor(2), Config(3.0)) == 6.0
    assert f(tensor(2), Config(4.0)) == 8.0
    assert f.trace_count == 2


def test_variables_as_arguments_count_by_identity() -> None:
    f = eng.function(lambda v: v.assign_add(1.0))
    v, w = eng.Variable(1.0), eng.Variable(10.0)
    assert [float(f(x)) for x in (v, w, v)] == [2.0, 11.0, 3.0]
    assert f.trace_count == 2


def test_an_error_while_tracing_leaves_nothing_behind() -> None:
    fail = [True]

    @eng.function
    def f(x: Any) -> Any:
        if fail[0]:
            raise KeyError("broken")
        return x * 2.0

    with pytest.raises(KeyError, match="broken"):
        f(tensor(1))
    assert f.variables == []
    fail[0] = False
    assert f(tensor(1)) == 2.0


def test_many_traces_are_warned_of_at_the_users_line() -> None:
    f = eng.function(lambda x: x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(12):
            f(float(i))
    assert len(caught) == 1
    assert "was traced 8 times in 8 calls" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_tracing_is_thread_safe() -> None:
    traces: list[int] = []

    @eng.function
    def f(x: Any) -> Any:
        traces.append(1)
        time.sleep(0.02)  # the others come while it is traced
        return tanh(x)

    barrier = threading.Barrier(8)
    results: list[list[float]] = []

    def work(i: int) -> None:
        barrier.wait()
        results.append([float(f(tensor([1.0] * (1 + n % 3)))[0]) for n in range(20)])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(traces) == f.trace_count == 3
    assert len({tuple(r) for r in results}) == 1


def test_a_variable_of_another_thread_is_not_the_functions() -> None:
    started, made = threading.Event(), threading.Event()

    def other() -> None:
        started.wait()
        keep.append(eng.Variable(1.0))
        made.set()

    keep: list[Any] = []
    thread = threading.Thread(target=other)
    thread.start()

    @eng.function
    def f(x: Any) -> Any:
        started.set()
        made.wait()
        return x

    f(tensor(1))
    thread.join()
    assert f.trace_count == 1
