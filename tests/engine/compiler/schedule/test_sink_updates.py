"""Updates of a few numbers stand behind what takes long; nothing is lost by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine as eng
from laminar import ops
from laminar.engine.compiler.ir.builder import Builder
from laminar.engine.compiler.ir.program import View
from laminar.engine.compiler.lower.rules.contractions import product
from laminar.engine.compiler.schedule.buffer_assignment import assign_buffers
from laminar.engine.compiler.schedule.fusion import fuse
from laminar.engine.compiler.schedule.sink_updates import sink_updates
from laminar.engine.graph import float32
from tests.engine.ops.native import every_cluster


def one_more(b: Builder, variable: View) -> View:
    made = b.compute(lambda s, v: v + 1.0, variable)
    b.program.updates[variable.storage] = made
    return made


def writers(b: Builder, *numbers: int) -> list[int]:
    """The place among the kernels of those that write a variable, and how many there are."""
    layout = assign_buffers(b.program, b.copy)
    b.program.verify()
    found = [
        k
        for number in numbers
        for k, kernel in enumerate(layout.kernels)
        if number in {layout.place[n] for n in kernel.writes}
    ]
    return [*found, len(layout.kernels)]


def times(b: Builder, x: View, y: View) -> View:
    made = product(b, x, y, float32)
    assert isinstance(made, View)
    return made


def matrix(b: Builder, rows: int) -> View:
    return b.storage((rows, 200), float32, "input")


@pytest.mark.parametrize("elements", [3, 100_000])
def test_a_small_one_comes_last(elements: int) -> None:
    b = Builder()
    variable = b.storage((elements,), float32, "variable")
    one_more(b, variable)
    b.program.outputs = [times(b, matrix(b, 200), matrix(b, 200))]
    update, other = sorted(fuse(b.program), key=lambda kernel: kernel.call is not None)
    place = {n: n for n in range(len(b.program.storages))}
    place[b.program.updates[variable.storage].storage] = variable.storage
    found = sink_updates(b.program, [update, other], place)
    assert found == ([other, update] if elements == 3 else [update, other])


def test_it_comes_before_what_needs_it() -> None:
    """The first product reads the new value of the one, no product that of the other."""
    b = Builder()
    first, second = (b.storage((1, 200), float32, "variable") for _ in range(2))
    new = one_more(b, first)
    one_more(b, second)
    y = times(b, new, matrix(b, 200))
    b.program.outputs = [times(b, y, matrix(b, 200))]
    one, other, count = writers(b, first.storage, second.storage)
    assert (one, other) == (0, count - 1)


def test_values() -> None:
    """An average, a counter, what is made of both, and a step that needs the counter."""
    average, count, w = (eng.Variable(v) for v in (np.zeros(3), np.int64(0), np.eye(3)))

    @laminar.function
    def step(x: Any) -> Any:
        n = count.assign_add(1)
        mean = average.assign(average * 0.5 + ops.mean(x, axis=0))
        y = ops.matmul(x, w)
        w.assign_add(ops.matmul(ops.transpose(x), y) / ops.cast(n, "float64"))
        return ops.sum(mean) * ops.cast(n, "float64"), ops.sum(y)

    x = np.arange(6.0).reshape(2, 3)
    expected_w, expected_mean = np.eye(3), np.zeros(3)
    with every_cluster():
        for n in range(1, 4):
            scaled, total = step(x)
            expected_mean = expected_mean * 0.5 + x.mean(0)
            y = x @ expected_w
            expected_w = expected_w + x.T @ y / n
            np.testing.assert_allclose(scaled, expected_mean.sum() * n)
            np.testing.assert_allclose(total, y.sum())
    assert int(count) == 3
    np.testing.assert_allclose(average.numpy(), expected_mean)
    np.testing.assert_allclose(w.numpy(), expected_w)
