"""Variables that native code updates in place: where their arrays begin, who sees the update."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.functions import function
from laminar.engine.state import Variable


def array_of(variable: Variable) -> Any:
    return variable.store.value


def stepping(variable: Variable) -> Any:
    @function(jit_compile=True)
    def step() -> Any:
        variable.assign_add(variable * 2.0 + 1.0)

    return step


@pytest.mark.parametrize("shape", [(), (3,), (33, 5), (100, 100)])
def test_their_arrays_begin_at_a_line_and_are_no_one_elses(shape: tuple[int, ...]) -> None:
    variable = Variable(np.zeros(shape, np.float32))
    step = stepping(variable)
    step()
    place = array_of(variable).ctypes.data
    assert place % 64 == 0
    step()
    assert array_of(variable).ctypes.data == place
    for hold in (lambda x: x, lambda x: x[...], memoryview):
        held = hold(array_of(variable))
        before = np.array(held)
        step()  # what others hold stays as it is
        np.testing.assert_array_equal(held, before)
        np.testing.assert_array_equal(array_of(variable), before * 3.0 + 1.0)
        assert not np.shares_memory(held, array_of(variable))
