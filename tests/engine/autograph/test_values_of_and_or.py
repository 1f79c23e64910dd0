"""`and` and `or` of tensors give one of their operands, as in Python; of truths, a truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import ShapeError


def steps(n: Any) -> Any:
    while n and n > 2:
        n = n - 1
    return n


CASES: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (lambda x: x or 5, [(0,), (3,), (0.0,), (0.5,)]),
    (lambda x: x > 1 and x or x * 0, [(3,), (0,)]),
    (lambda x: x and x * 2.5, [(2,), (0,)]),
    (lambda x, y: x and y, [(2, 3), (0, 3), (2, 0)]),
    (lambda x, y: x or y or 7, [(0, 3), (0, 0), (1, 0)]),
    (lambda x: x > 0 and 10 // x > 2, [(3,), (0,)]),
    (lambda x: x > 0 and 0 or 4, [(1,), (0,)]),
    (steps, [(9,), (0,)]),
]


@pytest.mark.parametrize(("fn", "calls"), CASES)
def test_the_value_is_pythons(fn: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    f = eng.function(fn)
    for arguments in calls:
        found = np.asarray(f(*(eng.constant(a) for a in arguments)))
        assert found == fn(*arguments)


def test_of_truths_a_truth() -> None:
    f = eng.function(lambda x: (x > 0 and x < 9) or not x)
    assert f(eng.constant(3)).dtype == "bool"


def test_an_operand_of_several_elements_is_refused() -> None:
    with pytest.raises(ShapeError, match="and: the condition must be one bool"):
        eng.function(lambda x: x[0] and x)(eng.constant([1, 2]))
