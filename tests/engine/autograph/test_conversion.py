"""Python's control flow on tensors: functions run plainly on values, and traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops

Arguments = list[Any]


def early_return(x: Any) -> Any:
    if x > 10:
        return x - 10
    if x > 5:
        x = x * 2
        if x > 14:
            return -x
    elif x < 0:
        return x * x
    return x + 1


def nested_conditions(x: Any, y: Any) -> Any:
    a = b = 0.0
    if x > 0:
        if y > 0:
            a = x
        else:
            b = y
    elif y > 0:
        a, b = y, x
    return a * 10 + b


def collatz(n: Any) -> Any:
    steps = 0
    while n != 1:
        if n % 2 == 0:  # noqa: SIM108  # statements are what is tested
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def breaks_and_continues(n: Any) -> Any:
    total = 0
    for i in range(n):
        if i % 3 == 1:
            continue
        if total > 20:
            break
        total = total + i
    else:
        total = -total
    return total


def nested_loops(n: Any) -> Any:
    found = 0
    for i in range(n):
        j = 0
        while j < i:
            j += 1
            if j == 4:
                break
            if (i + j) % 2:
                continue
            found += i * j
    return found


def return_from_loops(xs: Any) -> Any:
    for x in xs:
        for k in range(3):
            if x * k > 7:
                return x + k
    return ops.sum(xs)


def return_from_while(n: Any) -> Any:
    i = 0
    while True:
        i += 1
        if i * i >= n:
            return i


def infinite_with_break(x: Any) -> Any:
    while True:
        x = x * 2.0
        if x > 100.0:
            break
    return x


def tensor_break_in_python_loop(x: Any) -> Any:
    for i in range(5):
        if x > 10:
            break
        x = x + i
    return x


def while_else(n: Any) -> Any:
    i = 0
    while i < n:
        if i == 5:
            break
        i += 1
    else:
        i = 100
    return i


def logic(x: Any, y: Any) -> Any:
    a = 1 if x > 0 and y > 0 else 0
    b = 1 if x > 0 or y > 0 else 0
    c = 1 if not x > y else 0
    d = 1 if 0 < x < y <= 3 else 0
    e = 1 if (x > 0 and (y > 1 or not x > 1)) else 0
    return a + 10 * b + 100 * c + 1000 * d + 10000 * e


def guarded_index(xs: Any, n: Any) -> Any:
    i = 0
    while i < n and xs[i] > 0:
        i += 1
    return i


def appends(xs: Any) -> Any:
    found = []
    for x in xs:
        y = x * 2
        found.append(y)
        found.append(y + 1)
    return ops.stack(found)


def appends_to_what_is_there(n: Any) -> Any:
    found: list[Any] = [ops.convert_to_tensor(7)]
    for i in range(n):
        found.append(i)
    return ops.stack(found), found[0]


def pops(xs: Any) -> Any:
    stack = [xs, xs * 2, xs * 3]
    total = 0.0
    while stack:  # a list is Python's
        item = stack.pop()
        if ops.sum(item) > 3:
            total = total + ops.sum(item)
    return total


def enumerated(xs: Any) -> Any:
    total = 0.0
    for i, x in enumerate(xs):
        total += i * x
    return total


def enumerated_from(xs: Any) -> Any:
    total = 0.0
    for i, x in enumerate(xs, 5):
        if x > 2:
            break
        total += i * x
    return total


def zipped(xs: Any, ys: Any) -> Any:
    total = 0.0
    for x, y in zip(xs, ys, strict=False):
        total += x * y
    return total


def ranges(n: Any) -> Any:
    total = 0
    for i in range(2, n):
        total += i
    for i in range(n, 0, -2):
        total = total * 3 + i
    for i in range(0, n, 3):
        total -= i
    return total


def rows(xs: Any) -> Any:
    state = ops.zeros_like(xs[0])
    for row in xs:
        state = 0.5 * state + row
    return state


def changes_containers(x: Any) -> Any:
    values, by_name = [0.0, 1.0], {"a": 1.0, "b": 2.0}
    same = values
    if x > 0:
        values[0] = x
        by_name["a"] = x * 3
    return same[0] + by_name["a"] + by_name["b"]


def structures(x: Any) -> Any:
    pair = (x, {"y": x})
    for _ in range(x):
        pair = (pair[0] + 1, {"y": pair[1]["y"] * 2})
    return pair[0] + pair[1]["y"]


def loop_locals(n: Any) -> Any:
    total: Any = 0
    square: Any
    for i in range(n):
        square = i * i
        total += square
    square = 3.0
    for i in range(n):
        square = square + 1.0
        cube = square * i
        total = total + cube
    return total


def numbers_become_vectors(xs: Any) -> Any:
    total = 0
    for x in xs:
        total = total + x
    return total


def builtins(x: Any, y: Any) -> Any:
    found = max(x, y) - min(x, 2.0)
    if any([x > y, x > 3]) and all([x > 0, y > 0]):
        found = found + float(int(x))
    return found


def in_with_and_try(x: Any) -> Any:
    with eng.device("/device:cpu:0"):
        if x > 1:
            return x * 2
    try:
        if x > 0:
            return x * 3
    finally:
        x = x + 1
    return x


def closure(x: Any) -> Any:
    scale = 2.0

    def scaled(v: Any) -> Any:
        nonlocal scale
        if v > 3:
            return v * scale
        scale = 5.0
        return v

    double: Any = lambda v: v * 2 if v > 0 else v  # noqa: E731  # a lambda is converted, too
    return scaled(x) + double(-x) + scale


def helper(x: Any, *, by: Any = 2.0) -> Any:
    if x > 0:
        return x * by
    return x


def calls_others(x: Any) -> Any:
    return helper(x) + helper(-x, by=3.0) + sum(map(float, [1, 2]))


def recursion(x: Any, depth: int = 3) -> Any:
    if depth == 0:
        return x
    if x > 0:
        return recursion(x - 1, depth - 1)
    return recursion(x + 2, depth - 1)


def walrus(n: Any) -> Any:
    total = 0
    while (rest := n - total) > 3:
        total += 2
    return total + rest


def deletes(x: Any) -> Any:
    temporary = x * 2
    if x > 0:
        y = temporary
        del temporary
        x = y
    return x


def annotated(x: Any) -> Any:
    y: Any
    z: Any = x
    if x > 0:
        y = x * 2
        z = y
    return z


def matches(x: Any, kind: str) -> Any:
    match kind:
        case "double":
            if x > 1:
                x = x * 2
        case _:
            x = -x
    return x


def starts_with_none(xs: Any) -> Any:
    greatest = None
    for i, x in enumerate(xs):
        greatest = x * i if greatest is None else ops.maximum(greatest, x * i)
    return greatest


def starts_with_none_and_breaks(xs: Any) -> Any:
    last = None
    for x in xs:
        last = x
        if x > 2:
            break
    return last


def membership(x: Any) -> Any:
    if x in (1.0, 2.0):
        return x * 10
    return x if x not in [3.0, 4.0] else -x


CASES: list[tuple[Callable[..., Any], list[Arguments]]] = [
    (early_return, [[12.0], [7.0], [8.0], [-3.0], [1.0], [5.5]]),
    (nested_conditions, [[1.0, 2.0], [1.0, -2.0], [-1.0, 2.0], [-1.0, -2.0]]),
    (collatz, [[1], [6], [27]]),
    (breaks_and_continues, [[0], [1], [5], [20]]),
    (nested_loops, [[0], [3], [8]]),
    (return_from_loops, [[[1.0, 2.0, 5.0]], [[1.0, 2.0, 3.0]], [[9.0]]]),
    (return_from_while, [[1], [17]]),
    (infinite_with_break, [[3.0], [300.0]]),
    (tensor_break_in_python_loop, [[3.0], [9.5], [30.0]]),
    (while_else, [[3], [9]]),
    (logic, [[1.0, 2.0], [-1.0, 2.0], [2.0, 1.0], [-2.0, -1.0], [1.0, 1.0]]),
    (guarded_index, [[[1.0, 2.0, -1.0], 3], [[1.0, 2.0], 2], [[-1.0], 1]]),
    (appends, [[[1.0, 2.0, 3.0]]]),
    (appends_to_what_is_there, [[3], [1]]),
    (pops, [[[1.0, 1.0]], [[-1.0, 3.0]]]),
    (enumerated, [[[1.0, 2.0, 3.0]]]),
    (enumerated_from, [[[1.0, 2.0, 3.0]], [[1.0, 1.0]]]),
    (zipped, [[[1.0, 2.0, 3.0], [4.0, 5.0]], [[1.0], [4.0]]]),
    (ranges, [[7], [1], [0]]),
    (rows, [[[[1.0, 2.0], [3.0, 4.0]]]]),
    (changes_containers, [[2.0], [-2.0]]),
    (structures, [[3], [0]]),
    (loop_locals, [[4], [0]]),
    (numbers_become_vectors, [[[[1.0, 2.0], [3.0, 4.0]]]]),
    (builtins, [[4.0, 2.0], [1.0, 2.0], [3.5, 0.5]]),
    (in_with_and_try, [[2.0], [0.5], [-1.0]]),
    (closure, [[4.0], [2.0], [-1.0]]),
    (calls_others, [[1.0], [-2.0]]),
    (recursion, [[3.0], [-3.0], [1.0]]),
    (walrus, [[10], [2]]),
    (deletes, [[1.0], [-1.0]]),
    (annotated, [[1.0], [-1.0]]),
    (starts_with_none, [[[1.0, 5.0, 2.0]], [[3.0]]]),
    (starts_with_none_and_breaks, [[[1.0, 5.0, 7.0]], [[3.0, 1.0]], [[1.0, 2.0]]]),
    (membership, [[1.0], [3.0], [5.0]]),
    (matches, [[2.0, "double"], [1.0, "double"], [1.0, "other"]]),
]


def tensors(arguments: Arguments) -> Arguments:
    kinds = {int: "int32", float: "float32"}
    return [
        a if isinstance(a, str) else ops.convert_to_tensor(a, dtype=kinds[_element(a)])
        for a in arguments
    ]


def _element(a: Any) -> type:
    return _element(a[0]) if isinstance(a, list) else type(a)


def numbers(result: Any) -> list[Any]:
    return [np.asarray(y) for y in (result if isinstance(result, tuple) else (result,))]


NATIVE = (early_return, collatz, return_from_loops, appends, logic)


@pytest.mark.parametrize(
    ("fn", "calls", "jit_compile"),
    [
        pytest.param(fn, calls, native, id=f"{fn.__name__}-{'native' if native else 'kernels'}")
        for fn, calls in CASES
        for native in ([False, True] if fn in NATIVE else [False])
    ],
)
def test_a_function_gives_what_python_gives(
    fn: Callable[..., Any], calls: list[Arguments], jit_compile: bool
) -> None:
    traced = eng.function(fn, jit_compile=jit_compile)
    traces = set()
    for arguments in calls:
        given = tensors(arguments)
        expected = numbers(fn(*given))
        found = numbers(traced(*given))
        traces.add(tuple(g if isinstance(g, str) else str(g.spec) for g in given))
        for e, f in zip(expected, found, strict=True):
            np.testing.assert_allclose(f, e, rtol=1e-6)
    assert traced.trace_count == len(traces)


UNKNOWN = [rows, enumerated, enumerated_from, zipped, appends, return_from_loops]


@pytest.mark.parametrize("fn", UNKNOWN, ids=[fn.__name__ for fn in UNKNOWN])
def test_lengths_that_are_not_known(fn: Callable[..., Any]) -> None:
    calls = next(calls for f, calls in CASES if f is fn)
    traced = eng.function(fn, jit_compile=False)
    given = tensors(calls[0])
    specs = [eng.TensorSpec([None, *x.shape[1:]], x.dtype) for x in given]
    concrete = traced.concrete(*specs)
    for arguments in calls:
        given = tensors(arguments)
        for e, f in zip(numbers(fn(*given)), numbers(concrete(*given)), strict=True):
            np.testing.assert_allclose(f, e, rtol=1e-6)


def test_gradients_go_through() -> None:
    def f(x: Any, n: Any) -> Any:
        y = x
        for i in range(n):
            if y > 4.0:  # noqa: SIM108  # statements are what is tested
                y = y * 0.5
            else:
                y = y * x + i
        return y if y > 0.0 else -y

    x, n = ops.convert_to_tensor(1.7), ops.convert_to_tensor(5)

    def slope(g: Callable[..., Any]) -> Any:
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = g(x, n)
        return tape.gradient(y, x)

    np.testing.assert_allclose(slope(eng.function(f, jit_compile=False)), slope(f), rtol=1e-5)


def test_updates_of_variables_in_branches_and_loops() -> None:
    def f(x: Any) -> Any:
        for i in range(x):
            if i % 2 == 0:
                v.assign_add(2.0)
            elif i > 3:
                v.assign(v * 10.0)
        return v + 1.0

    results = []
    for g in (f, eng.function(f, jit_compile=False)):
        v = eng.Variable(1.0)
        results.append([float(g(ops.convert_to_tensor(n))) for n in (3, 6)])
    assert results[0] == results[1]


def test_tensor_arrays_are_carried() -> None:
    @eng.function(jit_compile=False)
    def f(n: Any) -> Any:
        found = eng.TensorArray("int32", size=2 * n)
        for i in range(n):
            found = found.write(2 * i, i)
            if i > 1:
                found = found.write(2 * i + 1, i * i)
        return found.stack()

    assert f(ops.convert_to_tensor(4)).tolist() == [0, 0, 1, 0, 2, 4, 3, 9]
