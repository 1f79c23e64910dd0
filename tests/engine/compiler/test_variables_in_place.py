"""Variables that native code updates in place: where their arrays begin, who sees the update.

A run that is refused has updated none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import ops
from laminar.engine import TensorSpec
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.functions import function
from laminar.engine.ops.convert import convert_to_tensor
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


def _of_sizes(x: Any, i: Any) -> Any:
    return ops.cast(ops.shape(x)[0], "float32") * 2.0, i


def _of_indices(x: Any, i: Any) -> Any:
    return i + 1, i


def _of_what_is_checked(x: Any, i: Any) -> Any:
    return i + 1, i + 1


def _of_a_sum(x: Any, i: Any) -> Any:
    return ops.sum(i), i


@pytest.mark.parametrize("values", [_of_sizes, _of_indices, _of_what_is_checked, _of_a_sum])
def test_a_failed_check_leaves_what_could_be_made_before_it(values: Callable[..., Any]) -> None:
    """New values are made beside what is checked, and take their place behind the checks."""
    x = np.zeros((9, 2), np.float32)
    good, bad = np.array([0, 1, 2], np.int32), np.array([0, 50, 2], np.int32)
    made = np.asarray(values(x, good)[0])
    variable = Variable(np.full_like(made, -1))

    @function(
        input_signature=[TensorSpec((None, 2), "float32"), TensorSpec((3,), "int32")],
        jit_compile=True,
    )
    def step(x: Any, i: Any) -> Any:
        new, indices = values(x, i)
        variable.assign(new)
        return ops.take(x, indices, axis=0)

    step(x, good)
    np.testing.assert_array_equal(array_of(variable), made)
    with pytest.raises(InvalidArgumentError, match="out of range"):
        step(x[:8], bad)
    np.testing.assert_array_equal(array_of(variable), made)


_ROW = np.arange(1, 5, dtype=np.float32)
_TABLE = np.arange(16, dtype=np.float32).reshape(4, 4)


def _used_again(v: Any, x: Any) -> Any:
    product = ops.matmul(x, x)
    return product, product + v


@pytest.mark.parametrize(
    ("start", "values"),
    [
        (_ROW, lambda v, x: (ops.concatenate([x[0, :2], v[:2] * 2]), v * 2)),
        (_ROW, lambda v, x: (ops.concatenate([ops.sum(v, keepdims=True), v[:3]]), v + 1)),
        (_ROW, lambda v, x: (ops.pad(v[:2], ((2, 0),)), x)),
        (_ROW, lambda v, x: (ops.pad(v[:2], ((0, 2),)), x)),
        (_ROW, lambda v, x: (ops.slice_update(v * 2, (1,), v[:2]), x)),
        (_ROW, lambda v, x: (ops.sum(x, 0), ops.sum(x, 0) + v)),
        (_TABLE, lambda v, x: (ops.concatenate([x[:1], v[:3]]), x)),
        (_TABLE, lambda v, x: (x * 2, v * 2 + x)),
        (_TABLE, _used_again),
    ],
)
def test_an_old_value_is_read_before_it_is_written_over(
    start: np.ndarray[Any, Any], values: Callable[..., Any]
) -> None:
    """Also where the new one is written by parts, or what it is made of is used again."""
    new, out = map(np.asarray, values(convert_to_tensor(start), convert_to_tensor(_TABLE)))
    variable = Variable(start.copy())

    @function(jit_compile=True)
    def step(x: Any) -> Any:
        made, result = values(variable, x)
        variable.assign(made)
        return result

    np.testing.assert_allclose(np.asarray(step(_TABLE)), out, rtol=1e-6)
    np.testing.assert_allclose(array_of(variable), new, rtol=1e-6)
