"""Halves that several kernels use as float32 are in memory as halves alone."""

from __future__ import annotations

import pytest

from laminar.engine.compiler.ir.builder import Builder, as_it_is
from laminar.engine.compiler.ir.program import IndirectLoad, View
from laminar.engine.compiler.schedule.buffer_assignment import BufferAssignment, assign_buffers
from laminar.engine.graph import DType, bfloat16, float16, float32, int32

from ..planners import NotPlanned

SHAPE = (4000, 16)


def laid_out(b: Builder, *outputs: View) -> BufferAssignment:
    b.program.outputs = list(outputs)
    layout = assign_buffers(b.program, b.copy)
    b.program.verify()
    return layout


def halves(b: Builder, dtype: DType = bfloat16) -> tuple[View, View]:
    """Halves that are computed, and their copy."""
    x = b.storage(SHAPE, float32, "input")
    made = b.cast(b.compute(lambda s, x: s.exp(x), x), dtype)
    assert isinstance(made, View)
    return made, b.widened(made)


def in_float32(layout: BufferAssignment) -> list[int]:
    """The temporaries in memory that are as large, and of twice the bytes."""
    storages = layout.program.storages
    return [
        n
        for n in layout.stored
        if storages[n].role == "temporary"
        and storages[n].shape == SHAPE
        and storages[n].dtype == float32
    ]


@pytest.mark.parametrize("dtype", [bfloat16, float16])
def test_a_normalization_reads_halves(dtype: DType) -> None:
    """A sum of columns, then a sum of what is left, then each element."""
    b = Builder()
    made, wide = halves(b, dtype)
    mean = b.total(wide, (0,))
    spread = b.total(b.compute(lambda s, x, m: (x - m) * (x - m), wide, mean), (0,))
    layout = laid_out(b, b.compute(lambda s, x, m, v: (x - m) * v, wide, mean, spread))
    assert not in_float32(layout)
    assert made.storage in layout.stored


def test_a_sum_of_the_copy_itself_reads_halves() -> None:
    b = Builder()
    made, wide = halves(b)
    first, second = b.total(wide, (0,)), b.total(wide, (1,))
    layout = laid_out(b, made, first, second)
    assert not in_float32(layout)
    assert not any(wide.storage in kernel.writes for kernel in layout.kernels[1:])


def test_gathered_elements_are_those_of_the_halves() -> None:
    b = Builder()
    made, wide = halves(b)
    rows = b.storage((7,), int32, "input")
    place = View(wide.storage, (7, 16), (0, 1))
    picked = IndirectLoad(place, (b.broadcast(b.reshape(rows, (7, 1)), (7, 16)),), (16,), (4000,))
    layout = laid_out(b, b.total(wide, (0,)), b.copy(picked))
    assert not in_float32(layout)
    reads = {view.storage for kernel in layout.kernels for view in kernel.views}
    assert made.storage in reads


def test_a_copy_that_a_library_takes_stays() -> None:
    b = Builder()
    _, wide = halves(b)
    b.kernel_call("reads", [wide], [((16,), float32)], NotPlanned())
    layout = laid_out(b, b.total(wide, (0,)))
    assert in_float32(layout) == [wide.storage]


def test_halves_that_are_written_again_are_copied_before() -> None:
    b = Builder()
    made, wide = halves(b)
    total = b.total(wide, (0,))
    b.map_into(made, as_it_is, [made])
    last = b.compute(lambda s, x, t: x - t, wide, total)
    layout = laid_out(b, last)
    assert in_float32(layout) == [wide.storage]
