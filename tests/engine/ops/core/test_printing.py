"""Print: what Python's print writes of the values."""

from __future__ import annotations

import numpy as np
import pytest

from laminar.engine.functions import function
from laminar.engine.ops.core.basic import constant
from laminar.engine.ops.core.printing import print_tensors


def test_it_writes_what_print_does(capsys: pytest.CaptureFixture[str]) -> None:
    values = np.array([1.5, -2.0])
    print_tensors(["x:", constant(values), constant(3), None], sep=", ", end=".\n")
    found = capsys.readouterr().out
    print("x:", values, 3, None, sep=", ", end=".\n")
    assert found == capsys.readouterr().out


def test_a_function_prints_at_each_run(capsys: pytest.CaptureFixture[str]) -> None:
    @function
    def double(x: object) -> object:
        print_tensors([x])
        return x

    for number in (1, 2):
        double(constant(number))
    assert capsys.readouterr().out == "1\n2\n"
