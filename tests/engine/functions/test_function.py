"""`function`: calls, composition, errors."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
)
from laminar.engine.graph import TensorSpec
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.arithmetic import add, square
from laminar.engine.ops.math.compare import equal
from laminar.engine.ops.math.elementary import tanh


def tensor(value: Any, dtype: str = "float32") -> Any:
    return eng.convert_to_tensor(np.asarray(value, dtype))


# Calling


def test_a_function_calls_another() -> None:
    z1 = eng.function(lambda x, y: add(x, y))
    z0 = eng.function(lambda x: z1(x, square(x)))
    assert z0(2.0) == 6.0
    assert z1(2.0, 2.0) == 4.0


def test_calls_on_tensors_are_bound_once_for_each_form(monkeypatch: pytest.MonkeyPatch) -> None:
    f = eng.function(lambda x, y: {"sum": add(x, y), "nothing": None})
    bound: list[int] = []
    bind = f._binder.bind

    def counted(args: Any, kwargs: Any) -> Any:
        bound.append(len(args))
        return bind(args, kwargs)

    monkeypatch.setattr(f._binder, "bind", counted)
    forms = [([1, 2], "float32"), ([1, 2], "int32"), ([1, 2, 3], "float32")]
    for _ in range(3):
        for value, dtype in forms:
            x = tensor(value, dtype)
            result = f(x, x)
            assert result["nothing"] is None
            assert result["sum"].tolist() == [2 * n for n in value]
            assert result["sum"].dtype == dtype
    assert len(bound) == f.trace_count == len(forms)
    f(tensor([1, 2]), y=tensor([1, 2]))  # by name: the same trace
    assert f.trace_count == len(forms)


def combined(x: Any, w: Any, scale: Any = 2.0, *, add_one: bool = False) -> Any:
    return x * scale - w + add_one * 1.0


def variadic(x: Any, *more: Any, a: Any = 0.0) -> Any:
    return x - sum(more) + a


@pytest.mark.parametrize(
    ("fn", "args", "kwargs"),
    [
        (combined, (3, 1), {}),  # the defaults are those of the function
        (combined, (3,), {"w": 1}),
        (combined, (), {"w": 1, "x": 3}),
        (combined, (3, 1, 4.0), {"add_one": True}),
        (combined, (3, 1), {"add_one": True, "scale": 0.5}),
        (combined, (3, 1, 5), {}),
        (lambda w, b: w - b, (3, 1), {}),  # inputs are by name, which is not as given
        (lambda w, b, /, c="c": w - b, (3, 1), {"c": "other"}),
        (variadic, (3, 1, 2), {}),
        (variadic, (3, 1, 2), {"a": 5}),
    ],
)
@pytest.mark.parametrize("kind", ["tensors", "arrays", "numbers"])
def test_calls_of_a_known_form_are_not_bound_again(
    monkeypatch: pytest.MonkeyPatch, fn: Any, args: Any, kwargs: Any, kind: str
) -> None:
    f = eng.function(fn)

    def made(value: Any, step: int) -> Any:
        if type(value) is not int or kind == "numbers":
            return value
        array = np.array([value + step, -value], np.float32)
        return tensor(array) if kind == "tensors" else array

    def check(step: int) -> None:
        given = [made(x, step) for x in args]
        named = {k: made(x, step) for k, x in kwargs.items()}
        arrays = [np.asarray(x) if hasattr(x, "shape") else x for x in given]
        wanted = fn(
            *arrays, **{k: np.asarray(x) if hasattr(x, "shape") else x for k, x in named.items()}
        )
        np.testing.assert_array_equal(f(*given, **named), np.asarray(wanted, np.float32))

    check(0)
    monkeypatch.setattr(f._binder, "bind", None)
    check(1)
    assert f.trace_count == 1


@pytest.mark.filterwarnings("ignore:combined was traced")
def test_forms_that_differ_are_told_apart() -> None:
    f = eng.function(combined)
    x, y = tensor([3]), tensor([1])
    calls: list[tuple[Any, Any, float]] = [
        ((x, y), {}, 5.0),
        ((y, x), {}, -1.0),
        ((x, x), {}, 3.0),
        ((), {"w": x, "x": y}, -1.0),
        ((), {"x": x, "w": y}, 5.0),
        ((x, y, 1), {}, 2.0),
        ((x, y, True), {}, 2.0),
        ((x, y, 1.0), {}, 2.0),
        ((x, y, 0.0), {}, -1.0),
        ((x, y, y), {}, 2.0),
        ((x, y), {"scale": y}, 2.0),
        ((x, y), {"add_one": y}, 6.0),
        ((np.array([3], np.float32), y), {}, 5.0),
        ((np.full(1, 3, np.float32), np.ones(1, np.float32)), {"add_one": True}, 6.0),
    ]
    for _ in range(3):
        for args, kwargs, wanted in calls:
            for _ in range(2):  # the second time it is the form of the call before
                assert f(*args, **kwargs).tolist() == [wanted], (args, kwargs)
    for _ in range(2):
        with pytest.raises(TypeError, match="missing a required argument: 'w'"):
            f(x)
        with pytest.raises(TypeError, match="multiple values for argument 'x'"):
            f(x, x=y)
        with pytest.raises(TypeError, match="too many positional arguments"):
            f(x, y, 2.0, False)
        with pytest.raises(TypeError, match="unexpected keyword argument 'wrong'"):
            f(x, y, wrong=1)


def test_numbers_that_are_equal_but_not_the_same_are_told_apart() -> None:
    f = eng.function(lambda x, by: x / by)
    one, inf = tensor(1), float("inf")
    for by, wanted in ((0.0, inf), (-0.0, -inf), (0, inf), (0.0, inf), (False, inf), (-0.0, -inf)):
        for _ in range(2):
            assert f(one, by) == wanted, by
    assert f.trace_count == 4


def test_an_array_is_taken_as_it_is_at_the_call() -> None:
    f = eng.function(lambda x: (x, x + 1.0))
    array = np.zeros(2, np.float32)
    results = []
    for step in range(3):
        array[:] = step
        results.append(f(array))
    array[:] = 9.0
    assert [[y.tolist() for y in pair] for pair in results] == [
        [[s, s], [s + 1.0, s + 1.0]] for s in (0.0, 1.0, 2.0)
    ]


def test_a_default_that_changes_is_seen() -> None:
    held = [2.0]
    f = eng.function(lambda x, scales=held: x * scales[0])
    assert f(tensor(3)) == 6.0
    held[0] = 3.0
    assert f(tensor(3)) == 9.0


def test_a_form_that_is_known_is_seen_by_tapes_and_by_graphs() -> None:
    f = eng.function(square)
    x = tensor(3)
    assert f(x) == f(x) == 9.0
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x) == 6.0
    graph = eng.Graph()
    with graph.as_default():
        z = f(x)
    assert z.op.graph is graph


def test_python_runs_while_tracing_only() -> None:
    seen: list[Any] = []

    @eng.function
    def f(x: Any) -> Any:
        seen.append(x)
        return x + 1.0

    for i in range(5):
        assert f(tensor(i)) == i + 1
    assert len(seen) == f.trace_count == 1


def test_a_function_may_give_nothing() -> None:
    w = eng.Variable(0.0)

    @eng.function
    def f() -> None:
        w.assign_add(1.0)

    assert [f(), f(), f()] == [None, None, None]
    assert float(w) == 3.0


def test_structures_go_in_and_come_out() -> None:
    @eng.function
    def f(batch: dict[str, Any], pair: tuple[Any, Any]) -> dict[str, Any]:
        return {"sum": batch["a"] + pair[0], "rest": [pair[1], None, {"k": batch["a"]}]}

    found = f({"a": tensor(1)}, (tensor(2), tensor(3)))
    assert found["sum"] == 3.0
    assert found["rest"][0] == 3.0
    assert found["rest"][1] is None
    assert found["rest"][2]["k"] == 1.0
    f({"a": tensor(5)}, (tensor(2), tensor(3)))
    assert f.trace_count == 1


def test_results_are_tensors() -> None:
    assert eng.function(lambda: (1, np.ones(2)))()[1].tolist() == [1.0, 1.0]
    variable = eng.Variable(3.0)
    assert eng.function(lambda: variable)() == 3.0
    with pytest.raises(InvalidArgumentError, match="may return tensors and None, got <object"):
        eng.function(lambda: object())()


def test_names_and_documentation_are_kept() -> None:
    @eng.function
    def named(x: Any) -> Any:
        """What it does."""
        return x

    assert (named.__name__, named.__doc__) == ("named", "What it does.")
    assert repr(named) == "<function named, 0 traces>"
    graph = named.concrete(TensorSpec([], "float32")).graph
    assert [op.name for op in graph.operations] == ["x"]


def test_decorator_with_arguments() -> None:
    @eng.function(input_signature=[TensorSpec([None])])
    def f(x: Any) -> Any:
        return x + 1.0

    assert f([2.0]).tolist() == [3.0]


# Composition


def test_effects_of_inner_functions() -> None:
    v = eng.Variable(0.0)
    inner = eng.function(lambda: v.assign_add(1.0))

    @eng.function
    def outer() -> Any:
        inner()
        inner()
        return v.value

    assert [float(outer()), float(outer())] == [2.0, 4.0]


def test_an_inner_function_may_use_what_the_outer_one_computes() -> None:
    @eng.function
    def outer(x: Any) -> Any:
        y = x * 2.0
        inner = eng.function(lambda z: z + y)  # captures a symbol
        return inner(x) * inner(y)

    assert outer(tensor(1)) == (1 + 2) * (2 + 2)


def test_a_graph_that_captures_symbols_is_not_used_elsewhere() -> None:
    cell: dict[str, Any] = {}
    inner = eng.function(lambda z: z + cell["y"])

    @eng.function
    def outer(x: Any) -> Any:
        cell["y"] = x * 2.0
        return inner(x)

    assert outer(tensor(1)) == 3.0
    assert outer(tensor([1])).tolist() == [3.0]
    cell["y"] = tensor(10)
    assert inner(tensor(1)) == 11.0


def test_devices_pass_into_inner_functions() -> None:
    def pinned(x: Any) -> Any:
        with eng.device("/cpu:1"):
            return x * 2.0

    inner = eng.function(pinned)
    outer = eng.function(lambda x: inner(x) + 1.0)
    with eng.Graph().as_default(), eng.device("/job:worker"):
        graph = outer.concrete(tensor(1)).graph
    devices = {op.type: op.device for op in graph.operations}
    assert devices["Mul"] == "/job:worker/device:cpu:1"
    assert devices["Add"] == "/job:worker"


def test_names_of_inner_functions() -> None:
    def block(x: Any) -> Any:
        return tanh(x)

    inner = eng.function(block)
    graph = eng.function(lambda x: inner(inner(x))).concrete(tensor(1)).graph
    assert [op.name for op in graph.operations] == ["x", "block/Tanh", "block_1/Tanh"]


def test_recursion_on_a_python_value() -> None:
    @eng.function
    def power(x: Any, n: int) -> Any:
        return x * power(x, n - 1) if n else tensor(1)

    assert power(tensor(2), 5) == 32.0
    assert power.trace_count == 6


def test_in_a_plain_graph() -> None:
    c = eng.Variable(0.0)

    @eng.function
    def f(x: Any) -> Any:
        c.assign_add(1.0)
        return x * 2.0

    with eng.Graph().as_default():
        x = eng.placeholder("float32", [], name="x")
        y = f(x)
        with eng.Session() as session:
            assert session.run(y, {x: 3.0}) == 6.0
    assert float(c) == 1.0


# Symbols and values


def test_a_symbol_that_leaks_has_no_value() -> None:
    leaked: list[Any] = []

    @eng.function
    def f(x: Any) -> Any:
        leaked.append(x * 2.0)
        with pytest.raises(FailedPreconditionError, match="is symbolic"):
            leaked[0].numpy()
        return x

    f(tensor(1))
    with pytest.raises(FailedPreconditionError, match="belongs to a function that has been traced"):
        leaked[0] + 1.0
    with pytest.raises(FailedPreconditionError, match="belongs to a function that has been traced"):
        f(leaked[0])


def test_branching_on_a_value() -> None:
    def f(x: Any, y: Any) -> Any:
        if equal(y, tensor(0)):
            return y
        return x / y

    assert f(tensor(2), tensor(2)) == 1.0
    lines, first = inspect.getsourcelines(f)
    with pytest.raises(FailedPreconditionError, match="data-dependent control flow") as caught:
        eng.function(f, autograph=False)(tensor(2), tensor(2))
    assert caught.value.location is not None
    assert caught.value.location.line == first + 1
    assert "if equal(y, tensor(0)):" in str(caught.value)
    assert caught.value.remedy is not None
    assert "cond" in caught.value.remedy
    assert "Python value" in caught.value.remedy


def test_an_error_at_run_time_points_to_the_users_line() -> None:
    @eng.function(input_signature=[TensorSpec([None, None]), TensorSpec([None, None])])
    def f(x: Any, y: Any) -> Any:
        return matmul(x, y)

    line = inspect.getsourcelines(f._fn)[1] + 2
    with pytest.raises(LaminarError, match=r"MatMul.*\[operation 'MatMul'\]") as caught:
        f(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32))
    assert f"{__file__}:{line}: return matmul(x, y)" in str(caught.value)
    outer = eng.function(lambda x: f(x, x))
    with pytest.raises(LaminarError, match=r"\[operation 'f/MatMul'\]") as caught:
        outer.concrete(TensorSpec([None, None]))(np.ones((2, 3), np.float32))
    assert f"{__file__}:{line}" in str(caught.value)


def test_an_error_inside_of_a_cluster_names_its_operation() -> None:
    @eng.function(input_signature=[TensorSpec([None, None]), TensorSpec([None, None])])
    def f(x: Any, y: Any) -> Any:
        z = x + 1.0
        w = matmul(z * z, y)
        return w - 2.0

    line = inspect.getsourcelines(f._fn)[1] + 3
    message = r"^MatMul\(float32\[2, 3\], float32\[2, 3\]\): .*\[operation 'MatMul'\]"
    with pytest.raises(LaminarError, match=message) as caught:
        f(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32))
    assert f"{__file__}:{line}: w = matmul(z * z, y)" in str(caught.value)


def test_dumps_have_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINAR_DUMP", str(tmp_path))

    @eng.function
    def tripled(x: Any) -> Any:
        return x * 3.0

    assert float(tripled(eng.constant(2.0))) == 6.0
    assert (tmp_path / "0001_tripled.given.txt").exists()
