"""Which statements share a kernel, and that what is written in place is read before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from laminar.engine.compiler.ir.builder import Builder
from laminar.engine.compiler.ir.program import Operand, Pointwise, View, views_of
from laminar.engine.compiler.lower.rules.contractions import product
from laminar.engine.compiler.schedule import fusion as fuse_module
from laminar.engine.compiler.schedule.buffer_assignment import BufferAssignment, assign_buffers
from laminar.engine.compiler.schedule.fusion import fuse, regrouped
from laminar.engine.graph import float32, uint32

from ..planners import NotPlanned


def add(b: Builder, x: View, y: View) -> View:
    return b.compute(lambda s, p, q: p + q, x, y)


def laid_out(b: Builder) -> BufferAssignment:
    layout = assign_buffers(b.program, b.copy)
    b.program.verify()
    return layout


def test_an_epilogue_of_more_axes_than_the_product() -> None:
    b = Builder()
    x, w = (b.storage(shape, float32, "input") for shape in ((4, 6, 8), (8, 10)))
    bias = b.storage((2, 5), float32, "input")
    y = b.reshape(product(b, x, w, float32), (4, 6, 2, 5))
    b.program.outputs = [add(b, y, bias)]
    (kernel,) = laid_out(b).kernels
    assert kernel.call is not None
    assert len(kernel.statements) == 1


def test_columns_that_are_not_evenly_apart_stay_apart() -> None:
    b = Builder()
    x = b.storage((4, 2, 5), float32, "input")
    turned = b.transpose(b.storage((5, 2), float32, "input"), (1, 0))
    add(b, x, turned)
    (statement,) = b.program.statements
    assert isinstance(statement, Pointwise)
    assert regrouped(statement, (4, 10)) is None
    assert regrouped(statement, (8, 5)) is None
    assert regrouped(statement, (4, 2, 5)) is statement


def test_the_work_for_a_long_chain_grows_with_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def counted(operands: Sequence[Operand]) -> list[View]:
        nonlocal looks
        looks += 1
        return views_of(operands)

    monkeypatch.setattr(fuse_module, "views_of", counted)

    def cost(length: int) -> int:
        nonlocal looks
        b = Builder()
        y = x = b.storage((8,), float32, "input")
        for _ in range(length):
            y = add(b, y, x)
        b.program.outputs, looks = [y], 0
        kernels = fuse(b.program)
        assert sum(len(k.statements) for k in kernels) == length
        return looks

    assert cost(2000) < 3 * cost(1000)


def test_parts_of_one_update_share_a_kernel() -> None:
    """They read different memory, and meet only at the end."""
    b = Builder()
    x, g, m, v = (
        b.storage((100,), float32, role) for role in ("variable", "input", *["variable"] * 2)
    )
    new_m = add(b, b.compute(lambda s, m: m * 0.9, m), b.compute(lambda s, g: g * 0.1, g))
    new_v = add(b, b.compute(lambda s, v: v * 0.9, v), b.compute(lambda s, g: g * g, g))
    new_x = b.compute(lambda s, x, p, q: x - p / s.sqrt(q), x, new_m, new_v)
    b.program.updates = {x.storage: new_x, m.storage: new_m, v.storage: new_v}
    layout = laid_out(b)
    assert len(layout.kernels) == 1
    assert [layout.place[n] for n in (new_m.storage, new_v.storage)] == [m.storage, v.storage]


def test_a_column_sum_updates_its_variable_in_place() -> None:
    b = Builder()
    x = b.storage((50, 8), float32, "input")
    total = b.storage((8,), float32, "variable")
    new = add(b, total, b.reduce("sum", x, (0,)))
    b.program.updates = {total.storage: new}
    layout = laid_out(b)
    assert len(layout.kernels) == 1
    assert layout.place[new.storage] == total.storage


def test_a_row_sum_does_too() -> None:
    b = Builder()
    x = b.storage((50, 8), float32, "input")
    total = b.storage((50,), float32, "variable")
    new = add(b, total, b.reduce("sum", x, (1,)))
    b.program.updates = {total.storage: new}
    layout = laid_out(b)
    assert len(layout.kernels) == 1
    assert layout.place[new.storage] == total.storage


def test_a_row_sum_does_not_where_another_pass_reads_the_variable() -> None:
    b = Builder()
    x = b.storage((50, 8), float32, "input")
    old = b.storage((50,), float32, "variable")
    new = add(b, old, b.reduce("sum", x, (1,)))
    wide = b.broadcast(b.reshape(old, (50, 1)), (50, 8))
    shares = b.broadcast(b.reshape(new, (50, 1)), (50, 8))
    b.program.outputs = [b.compute(lambda s, x, o, n: (x + o) / n, x, wide, shares)]
    b.program.updates = {old.storage: new}
    layout = laid_out(b)
    assert len(layout.kernels) == 2
    assert layout.place[new.storage] != old.storage


def test_steps_within_a_norm_update_in_place() -> None:
    """The norm is a phase of the kernel: what it scales is read, and written, in the next one."""
    b = Builder()
    x, g, m = (b.storage((100,), float32, role) for role in ("variable", "input", "variable"))
    norm = b.reduce("sum", b.compute(lambda s, g: g * g, g), (0,), keepdims=True)
    scaled = b.compute(lambda s, g, n: g / s.sqrt(n), g, norm)
    new_m = add(b, b.compute(lambda s, m: m * 0.9, m), scaled)
    new_x = b.compute(lambda s, x, m: x - m, x, new_m)
    b.program.updates = {x.storage: new_x, m.storage: new_m}
    layout = laid_out(b)
    assert len(layout.kernels) == 1
    assert [layout.place[n.storage] for n in (new_x, new_m)] == [x.storage, m.storage]


def test_a_variable_that_a_later_phase_reads_is_not_written_before() -> None:
    b = Builder()
    x = b.storage((100,), float32, "variable")
    new = b.compute(lambda s, x: x * 0.9, x)
    norm = b.reduce("sum", new, (0,), keepdims=True)
    b.program.outputs = [b.compute(lambda s, x, n: x / n, x, norm)]
    b.program.updates = {x.storage: new}
    layout = laid_out(b)
    assert len(layout.kernels) == 2
    assert layout.place[new.storage] != x.storage


def test_early_kernels_come_first() -> None:
    b = Builder()
    x, y = (b.storage((20, 30), float32, "input") for _ in range(2))
    state = b.array(np.zeros(4, np.uint32), uint32)
    add(b, x, y)
    b.kernel_call("draw", [state], [((20, 30), float32)], NotPlanned(), hoisted=True)
    assert fuse(b.program)[0].call is not None


def test_what_an_epilogue_stores_is_read_again_instead_of_what_is_made_of_it() -> None:
    """Batch normalization's gradient: sums of dy, and of its products with x, then dx."""
    b = Builder()
    a, w, x = (b.storage(shape, float32, "input") for shape in ((40000, 8), (8, 16), (40000, 16)))
    dy = b.compute(lambda s, y: s.max(y, 0), product(b, a, w, float32))
    products = b.compute(lambda s, x, d: x * d, x, dy)
    sums = [b.total(products, (0,)), b.total(dy, (0,))]
    dx = b.compute(lambda s, d, p, q: d - p * q, dy, *sums)
    b.program.outputs = [dx]
    layout = laid_out(b)
    first, in_parts, of_parts, last = layout.kernels
    assert first.call is not None
    assert first.writes == {*first.call.writes, dy.storage}
    assert products.storage not in layout.stored
    assert {products.storage, *(v.storage for v in of_parts.views)} == in_parts.writes
    assert {s.storage for s in sums} == of_parts.writes
    assert last.writes == {dx.storage}


def test_a_sum_is_made_once() -> None:
    b = Builder()
    x = b.storage((50, 8), float32, "input")
    assert b.total(x, (0,)) == b.total(x, (-2,)) != b.total(x, (1,))


def test_what_only_sums_of_columns_need_is_made_with_them() -> None:
    """Not stored by the kernel over rows that has the same memory at hand."""
    b = Builder()
    x, y = (b.storage((5000, 64), float32, "input") for _ in range(2))
    rows = b.reduce("sum", b.compute(lambda s, x, y: x * y, x, y), (1,))
    products = b.compute(lambda s, x, y: x * y * x, x, y)
    columns = b.reduce("sum", products, (0,))
    b.program.outputs = [rows, columns]
    layout = laid_out(b)
    assert products.storage not in layout.stored
    first, second, _ = layout.kernels
    assert rows.storage in first.writes
    assert products.storage in second.writes
