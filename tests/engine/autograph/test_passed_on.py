"""Variables that have a value on some paths only, bound to others or returned: zeros came of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import FailedPreconditionError


def returned_behind_an_else(n: Any) -> Any:
    for i in range(n):
        if i == 50:
            break
    else:
        return n * 0 - 1
    return i


def bound_in_a_branch(n: Any) -> Any:
    for i in range(n):
        n = n + i * 0
    y = 0
    if n > 2:
        y = i
    return y


def bound_in_a_loop(n: Any) -> Any:
    for i in range(n):
        n = n + i * 0
    y = 0
    for _ in range(n):
        y = i
    return y


def returned_at_the_end(n: Any) -> Any:
    for i in range(n):
        n = n + i * 0
    return i


@pytest.mark.parametrize(
    "fn", [returned_behind_an_else, bound_in_a_branch, bound_in_a_loop, returned_at_the_end]
)
def test_it_is_an_error_that_names_the_variable(fn: Callable[..., Any]) -> None:
    with pytest.raises(FailedPreconditionError, match="'i' has a value only inside of a loop"):
        eng.function(fn)(eng.constant(100))


def test_with_a_first_value_it_is_pythons_result() -> None:
    def found(n: Any) -> Any:
        i = -5
        for i in range(n):
            if i == 50:
                break
        else:
            return n * 0 - 1
        return i

    f = eng.function(found)
    for n in (0, 3, 51, 100):
        np.testing.assert_array_equal(f(eng.constant(n)), found(n))


def test_a_tensor_that_a_loop_left_in_a_closure_is_said_to_be_that() -> None:
    def f(n: Any) -> Any:
        total = 0

        def add(x: Any) -> None:
            nonlocal total
            total = total + x

        for i in range(n):
            add(i)
        return total

    with pytest.raises(FailedPreconditionError, match="a function that has ended"):
        eng.function(f)(eng.constant(3))
