"""Items of lists by number, joined lists and lists of tuples: functions give what Python gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    ShapeError,
)

X = np.arange(5, dtype="float32")


def bound_by_a_tensor(x: Any, n: Any) -> Any:
    found = [x[0], x[1], x[2]]
    found[n - 2] = x[4]
    found[-n] *= 7
    return ops.stack(found), found[n - 1], ops.stack(found[: n - 1])


def bound_in_a_loop(x: Any, n: Any) -> Any:
    found = [0.0] * 5
    for i in range(n):
        found[i + 1] += found[i] + x[i]
    a, b, *rest = found
    return a, b, ops.stack(rest)


def bound_in_a_while(x: Any, n: Any) -> Any:
    found, i = [x[0], x[1], x[2]], 0
    while i < n:
        found[i] = x[i] * 2
        i += 1
    return ops.stack(found)


def bound_by_python_in_a_loop(x: Any, n: Any) -> Any:
    found = [[x[0], 0.0], [x[1], 1.0]]
    other = found
    for i in range(n):
        found[0][1] += x[i]
        found[1][0] = found[0][1] * 2
    return ops.stack([*found[0], *other[1]])


def bound_under_a_condition(x: Any, n: Any) -> Any:
    found = [0, 1, 2]
    if n > 1:
        found[n - 2] = x[3]
    return [ops.cast(v, "float32") for v in found]


def tuples_by_number(x: Any, n: Any) -> Any:
    found = [(x, n), (x * 2, n)]
    found[n - 2] = (x * 3, n * 2)
    return found[n - 3][0], found[n - 2][1]


def read_in_functions(x: Any, n: Any) -> Any:
    found = [x[0], x[1] + 2, x[2]]

    def at(i: Any) -> Any:
        return found[i]

    return at(n - 2), (lambda i: found[i])(n - 1)


def shrinks_and_grows(x: Any, n: Any) -> Any:
    found, i = [x[0], x[1], x[2]], 0
    while i < n:
        found.pop()
        i += 1
        found.append(x[i] * 2)
    return ops.stack(found)


def joined_under_a_condition(x: Any, n: Any) -> Any:
    found = [x[0]]
    before = found
    if n > 1:
        found = found + [x[1]]  # sums are what is tested
    if n > 2:
        found += [x[2]]
    middle = found
    if n > 1:
        found = [x[3]] + found
    return ops.stack(before), ops.stack(middle), ops.stack(found)


def joined_in_a_while(x: Any, n: Any) -> Any:
    found, i = [x[0]], 0
    while i < n:
        found = found + [x[i]]
        i += 1
    before = found
    while i < n + 1:
        found = [x[i]] + found
        i += 1
    return ops.stack(before), ops.stack(found)


def two_of_one(x: Any, n: Any) -> Any:
    found = [x[0]]
    if n > 1:
        found.append(x[1])
    one = found + [x[2]]
    found = found + [x[3]]
    one[0] = x[4]
    return ops.stack(one), ops.stack(found)


def exchanged(x: Any, n: Any) -> Any:
    a, b = [x[0]], [x[1]]
    for i in range(n):
        a.append(x[i])
        if i > 1:
            b.append(x[2])
        a, b = b, a
    return ops.stack(a), ops.stack(b)


def exchanged_under_a_condition(x: Any, n: Any) -> Any:
    a, b = [x[0]], [x[1]]
    if n > 1:
        a.append(x[2])
        b.append(x[3])
    if n > 2:
        a, b = b, a
    return ops.stack(a), ops.stack(b)


def bound_anew(x: Any, n: Any) -> Any:
    a, b = [x[0]], []
    kept = a
    if n > 1:
        a = [x[2]]
    for i in range(n):
        b.append(a[0] * 2)
        a = b
        if i > 5:
            b.append(x[0])
    return ops.stack(a), ops.stack(kept)


def tuples(x: Any, n: Any) -> Any:
    found = [(x[0], 7)]
    for i in range(n):
        found.append((x[i], i))
    total = x[0]
    for a, b in found:
        total = total * 2 + a * ops.cast(b, "float32")
    return total, found[n - 1][1], len(found)


def tuples_that_differ_in_number(x: Any, n: Any) -> Any:
    found = [(x[0], (7, x))]
    for i in range(n):
        if i != 1:
            found.append((x[i], (i, x * 2)))
    found[0] = (x[4], (100, x * 3))
    last, (number, row) = found.pop()
    more = found + [(x[1], (8, x))]
    total = 0
    while len(more) > 0:
        a, (b, _) = more.pop()
        total = total * 3 + b * ops.cast(a, "int32")
    return last, number, row, total, len(found)


CASES: list[Callable[..., Any]] = [
    bound_by_a_tensor,
    bound_in_a_loop,
    bound_in_a_while,
    bound_by_python_in_a_loop,
    bound_under_a_condition,
    tuples_by_number,
    read_in_functions,
    shrinks_and_grows,
    joined_under_a_condition,
    joined_in_a_while,
    two_of_one,
    exchanged,
    exchanged_under_a_condition,
    bound_anew,
    tuples,
    tuples_that_differ_in_number,
]


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("fn", CASES, ids=lambda f: f.__name__)
def test_values(fn: Callable[..., Any], native: bool) -> None:
    x, n = ops.convert_to_tensor(X), ops.convert_to_tensor(3)
    expected, found = fn(x, n), eng.function(fn, jit_compile=native)(x, n)
    if not isinstance(expected, tuple | list):
        expected, found = (expected,), (found,)
    for e, f in zip(expected, found, strict=True):
        np.testing.assert_array_equal(np.asarray(f), np.asarray(e))


def test_gradients() -> None:
    def f(x: Any, n: Any) -> Any:
        found = [x[0], x[1], x[2]]
        pairs = []
        for i in range(n):
            found[i] = found[i - 1] * x[i]
            pairs.append((found[i], i))
        total = x[0]
        for a, i in pairs:
            total = total + a * ops.cast(i + 1, "float32")
        return total

    # With n = 2: x0 + x2 x0 + 2 x2 x0 x1.
    given = ops.convert_to_tensor(np.array([2, 3, 5], "float32"))
    with eng.GradientTape() as tape:
        tape.watch(given)
        y = eng.function(f)(given, ops.convert_to_tensor(2))
    np.testing.assert_allclose(y, 2 + 10 + 60)
    np.testing.assert_allclose(tape.gradient(y, given), [1 + 5 + 30, 20, 2 + 12])


def refused(change: Callable[[Any, Any], Any]) -> Any:
    return eng.function(change)(ops.convert_to_tensor(X), ops.convert_to_tensor(3))


def holds_none(x: Any, n: Any) -> Any:
    found: Any = [None] * 5
    found[n] = x[0]
    return ops.stack(found)


def holds_functions(x: Any, n: Any) -> Any:
    return [abs, abs, abs, abs][n](x)


def out_of_range(x: Any, n: Any) -> Any:
    found = [x[0], x[1]]
    found[n] = x[2]
    return ops.stack(found)


def real_number(x: Any, n: Any) -> Any:
    return [x[0], x[1]][x[0]]


def deleted(x: Any, n: Any) -> Any:
    found = [x[0], x[1]]
    del found[n]
    return ops.stack(found)


def shapes_that_differ(x: Any, n: Any) -> Any:
    return [x, x[:2]][n]


def lists_in_a_list(x: Any, n: Any) -> Any:
    found = []
    for i in range(n):
        if i > 1:
            found.append([x[i], i])
    return found[0][0]


def row_of_a_table(x: Any, n: Any) -> Any:
    table = [[x[0], x[1]], [x[2], x[3]]]
    table[n - 2][0] = x[4]
    return table[0][0]


def iterated_over(x: Any, n: Any) -> Any:
    found = []
    for i in range(n):
        found.append((x[i], i))
    a, _ = zip(*found, strict=True)
    return a


@pytest.mark.parametrize(
    ("fn", "error", "said"),
    [
        (holds_none, InvalidArgumentError, "of found, which holds GraphTensor, NoneType.*0. for"),
        (holds_functions, InvalidArgumentError, "which holds builtin_function"),
        (out_of_range, InvalidArgumentError, "index 3 .* is out of range"),
        (real_number, DTypeError, r"must be one integer, got float32\[\]"),
        (deleted, FailedPreconditionError, r"del found\[\.\.\.\].*stack the items"),
        (shapes_that_differ, ShapeError, "shapes differ"),
        (lists_in_a_list, InvalidArgumentError, "'found' is a list .* holds .*tuples of them"),
        (row_of_a_table, TypeError, "'tuple' object does not support item assignment"),
        (iterated_over, FailedPreconditionError, "loop over them with for"),
    ],
)
def test_errors(fn: Callable[..., Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=f"(?s){said}") as raised:
        refused(fn)
    assert error is TypeError or "test_items_of_lists.py:" in str(raised.value)
