"""Sizes that stand for others, and the arena."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.engine.compiler.ir.not_lowered import NotLoweredError
from laminar.engine.compiler.ir.program import Literal, LoopProgram, Pointwise, Storage, View
from laminar.engine.compiler.ir.recording_scalars import same
from laminar.engine.compiler.ir.sizes import Sizes, is_known, symbolic_size
from laminar.engine.compiler.schedule.buffer_assignment import arrange
from laminar.engine.errors import InternalError
from laminar.engine.graph import DType, as_dtype

FLOAT: DType = as_dtype("float32")


@given(
    st.lists(st.integers(1, 100_000), min_size=1, max_size=6),
    st.data(),
)
def test_a_number_made_of_stand_ins_is_read_back(values: list[int], data: st.DataObject) -> None:
    sizes = Sizes(values)
    factors = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=3))
    number, real = (data.draw(st.integers(1, 1 << 20)),) * 2
    for k in factors:
        number, real = number * symbolic_size(k), real * values[k]
    extra = data.draw(st.integers(-1000, 1000))
    assert sizes.real(number) == real
    assert sizes.real(number + extra) == real + extra
    assert is_known(number) == (not factors)


def test_a_number_made_otherwise_is_refused() -> None:
    with pytest.raises(NotLoweredError, match="not known"):
        Sizes([7]).real(symbolic_size(0) // 2)
    with pytest.raises(NotLoweredError, match="more than 4096 unknown sizes"):
        symbolic_size(4096)


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 5000)),
        min_size=1,
        max_size=25,
    )
)
def test_pieces_alive_together_do_not_overlap(pieces: list[tuple[int, int, int]]) -> None:
    ranges = {i: (min(a, b), max(a, b)) for i, (a, b, _) in enumerate(pieces)}
    sizes = {i: size for i, (_, _, size) in enumerate(pieces)}
    pieces_of: Any = ranges, sizes
    offsets, total = arrange(*pieces_of)
    for i in ranges:
        assert offsets[i] % 64 == 0
        assert offsets[i] + sizes[i] <= total
        for j in ranges:
            together = ranges[i][0] <= ranges[j][1] and ranges[j][0] <= ranges[i][1]
            if i < j and together and sizes[i] and sizes[j]:
                apart = offsets[i] + sizes[i] <= offsets[j] or offsets[j] + sizes[j] <= offsets[i]
                assert apart, (i, j)
    largest = max(
        sum(-(-max(sizes[i], 1) // 64) * 64 for i in ranges if ranges[i][0] <= t <= ranges[i][1])
        for t in range(41)
    )
    assert total >= largest


def _program() -> tuple[LoopProgram, int, int]:
    program = LoopProgram()
    x = program.add(Storage(FLOAT, (4,), "input"))
    y = program.add(Storage(FLOAT, (4,)))
    return program, x, y


def test_verify_finds_what_is_read_before_it_is_written() -> None:
    program, _, y = _program()
    program.outputs = [program.whole(y)]
    with pytest.raises(InternalError, match="never written"):
        program.verify()
    z = program.add(Storage(FLOAT, (4,)))
    program.statements = [Pointwise(program.whole(z), (program.whole(y),), same(FLOAT))]
    with pytest.raises(InternalError, match="read before it is written"):
        program.verify()


def test_verify_finds_views_that_reach_outside() -> None:
    program, x, y = _program()
    program.statements = [Pointwise(program.whole(y), (View(x, (4,), (1,), 1),), same(FLOAT))]
    with pytest.raises(InternalError, match="reaches outside"):
        program.verify()
    program.statements = [Pointwise(program.whole(x), (Literal(1.0, FLOAT),), same(FLOAT))]
    with pytest.raises(InternalError, match="is given, and written to"):
        program.verify()
