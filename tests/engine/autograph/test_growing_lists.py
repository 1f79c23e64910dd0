"""Lists whose length tensors decide: traced functions give what Python gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import layers, ops
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, ShapeError


def under_a_condition(xs: Any) -> Any:
    found = []
    for x in xs:
        if x % 2 == 0:
            found.append(x)
    return ops.stack(found)


def another_number_in_each_branch(xs: Any) -> Any:
    found = [xs[0]]
    for x in xs:
        if x % 2 == 0:
            found.append(x)
            found.append(x * 10)
        elif x > 2:
            found += [-x]
    return ops.stack(found)


def in_a_while(n: Any) -> Any:
    found = []
    while n != 1:
        found.append(n)
        if n % 2 == 0:  # noqa: SIM108  # statements are what is tested
            n = n // 2
        else:
            n = 3 * n + 1
    return ops.stack(found)


def in_a_loop_in_a_loop(n: Any) -> Any:
    found = []
    for i in range(n):
        for j in range(i):
            if j > i:
                break
            found.append(i * 10 + j)
    return ops.stack(found)


def before_a_break(n: Any) -> Any:
    found = []
    for i in range(n):
        if i >= 3:
            break
        found.extend([i, -i])
    return ops.stack(found)


def two_of_them(n: Any) -> Any:
    evens, odds = [], []
    for i in range(n):
        if i % 2 == 0:
            evens.append(i)
        else:
            odds.append(ops.cast(i, "float32"))
    return ops.stack(evens), ops.stack(odds)


def in_python_s_loop(x: Any) -> Any:
    found = []
    for i in range(3):
        if x[i] > 0:
            found.append(x[i])
    return ops.sum(ops.stack(found))


def depth_first(n: Any) -> Any:
    total, waiting = 0, []
    waiting.append(n)
    while len(waiting) > 0:
        k = waiting.pop()
        total = total * 2 + k
        if k > 1:
            waiting.append(k // 2)
            waiting.append(k - 1 - k // 2)
    return total


def items_by_number(n: Any) -> Any:
    found = []
    for i in range(n):
        if i != 1:
            found.append(i)
    found[0] = 7 + found[-1]
    found[n - 2] = found[1] * 100
    return ops.stack(found), len(found)


def gone_through(n: Any) -> Any:
    found = []
    for i in range(n):
        if i > 1:
            found.append(i)
    total = 0
    for x in found:
        total = total * 10 + x
    return total if found else -1


def columns_that_grow_on(n: Any) -> Any:
    """The first loop appends alike in each iteration."""
    found = []
    for i in range(n):
        found.append(i)
    if n > 3:
        found.append(n * n)
    rest = []
    for i in range(n):
        if i > 1:
            rest.append(i)
    found.extend(rest)
    return ops.stack(found)


def read_while_it_grows(n: Any) -> Any:
    primes: Any = []
    sums = [1]
    for i in range(2, n):
        is_prime = True
        for p in primes:
            if i % p == 0:
                is_prime = False
                break
        if is_prime:
            primes.append(i)
        sums.append(sums[-1] + i)
    return ops.stack(primes), ops.stack(sums)


def read_while_it_is_joined(n: Any) -> Any:
    sums = [1]
    for i in range(n):
        sums += [sums[-1] * 2 + i]
    return ops.stack(sums)


def joined(n: Any) -> Any:
    found = []
    for i in range(n):
        if i != 1:
            found.append(ops.ones((2,)) * ops.cast(i, "float32"))
    return ops.concatenate(found)


XS = np.array([1, 2, 3, 4, 6], "int32")
CASES: list[tuple[Callable[..., Any], Any]] = [
    *[(f, XS) for f in (under_a_condition, another_number_in_each_branch)],
    *[(f, np.int32(6)) for f in (in_a_while, in_a_loop_in_a_loop, before_a_break, two_of_them)],
    (in_python_s_loop, np.array([1.0, -2.0, 3.0], "float32")),
    *[(f, np.int32(n)) for f in (depth_first, gone_through) for n in (1, 7)],
    *[(f, np.int32(5)) for f in (items_by_number, columns_that_grow_on, joined)],
    (columns_that_grow_on, np.int32(3)),
    *[(f, np.int32(12)) for f in (read_while_it_grows, read_while_it_is_joined)],
]


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(("fn", "x"), CASES, ids=lambda v: getattr(v, "__name__", None))
def test_values(fn: Callable[..., Any], x: Any, native: bool) -> None:
    given = ops.convert_to_tensor(x)
    expected, found = fn(given), eng.function(fn, jit_compile=native)(given)
    if not isinstance(expected, tuple):
        expected, found = (expected,), (found,)
    for e, f in zip(expected, found, strict=True):
        np.testing.assert_array_equal(np.asarray(f), np.asarray(e))
        assert np.asarray(f).dtype == np.asarray(e).dtype or isinstance(e, int)


def test_none_is_appended() -> None:
    f = eng.function(under_a_condition)
    assert f(np.array([1, 3])).numpy().shape == (0,)
    assert f(np.array([1, 4])).tolist() == [4]


def test_what_is_returned_is_the_stack() -> None:
    @eng.function
    def f(n: Any) -> Any:
        found = []
        for i in range(n):
            if i > 0:
                found.append(ops.ones((2,)) * ops.cast(i, "float32"))
        return found

    np.testing.assert_array_equal(f(ops.convert_to_tensor(3)), [[1, 1], [2, 2]])


def test_layers() -> None:
    class Positive(layers.Layer):
        def call(self, x: Any) -> Any:
            columns = []
            numbers: Any = ops.arange(ops.shape(x)[1])
            for i in numbers:
                if ops.sum(x[:, i]) > 0:
                    columns.append(x[:, i] * 2)
            return ops.stack(columns, axis=1)

    layer = Positive()
    x = np.array([[1, -1, 2], [1, 0, 2]], "float32")
    np.testing.assert_array_equal(eng.function(lambda x: layer(x))(x), [[2, 4], [2, 4]])


def squares(x: Any) -> Any:
    found = []
    numbers: Any = ops.arange(3)
    for i in numbers:
        if x[i] > 0:
            found.append(x[i] * x[i])
    return ops.sum(ops.stack(found))


def written_again(x: Any) -> Any:
    """x^3 + x^3 + 3 x^2 + 9 x^2: an item is read, taken away and written again."""
    found = []
    i = 0
    while i + ops.sum(x) * 0 < 4:
        found.append(x * i)
        i += 1
    last = found.pop()
    found.append(last * x)
    found[0] = x * x * x
    found[1] = found[0]
    found[2] = last * last
    return ops.sum(ops.stack(found))


@pytest.mark.parametrize(
    ("fn", "x", "expected"),
    [
        (squares, [1.0, -2.0, 3.0], [2, 0, 6]),
        (written_again, [2.0], [3 * 4 + 3 * 4 + 6 * 2 + 18 * 2]),
    ],
)
def test_gradients(fn: Callable[..., Any], x: Any, expected: Any) -> None:
    given = ops.convert_to_tensor(x, "float64")
    for f in (fn, eng.function(fn)):
        with eng.GradientTape() as tape:
            tape.watch(given)
            y = f(given)
        np.testing.assert_allclose(tape.gradient(y, given), expected)


def appended(item: Callable[[Any], Any], then: Callable[[Any], Any] = ops.stack) -> Any:
    @eng.function
    def f(n: Any) -> Any:
        found = []
        for i in range(n):
            if i > 1:
                found.append(i)
            else:
                found.append(i + 1)
                found.append(item(i))
        return then(found)

    return f(ops.convert_to_tensor(4))


def test_errors() -> None:
    with pytest.raises(InvalidArgumentError, match="'found' is a list .* holds float32 and int32"):
        appended(lambda i: ops.cast(i, "float32"))
    with pytest.raises(InvalidArgumentError, match=r"'found' is a list .* holds .* and \("):
        appended(lambda i: (i, i))
    with pytest.raises(FailedPreconditionError, match=r"has no reverse\(\); it has append"):
        appended(lambda i: i, lambda found: found.reverse())
    with pytest.raises(FailedPreconditionError, match="known at run time only"):
        appended(lambda i: i, lambda found: list(found))
    with pytest.raises(InvalidArgumentError, match="cannot read index -1, the size is 6"):
        appended(lambda i: i, lambda found: found[6])
    with pytest.raises(ShapeError, match=r"holds int32\[\], got int32\[1\]"):
        appended(lambda i: i, lambda found: found.append(ops.zeros((1,), "int32")))


def test_an_item_that_is_gone_is_not_there() -> None:
    @eng.function
    def f(n: Any) -> Any:
        found = []
        for i in range(n):
            if i > 1:
                found.append(i)
        while len(found) > 1:
            found.pop()
        return found[1]

    with pytest.raises(InvalidArgumentError, match="cannot read index -1"):
        f(ops.convert_to_tensor(5))


def test_integers_of_another_type_than_python_s() -> None:
    @eng.function
    def sum_even(xs: Any) -> Any:
        total = 0
        for x in xs:
            if x % 2 > 0:
                continue
            total += x
        return total

    found = sum_even(np.array([10, 12, 15, 2**40]))
    assert (found.item(), found.dtype) == (2**40 + 22, "int64")
