"""Loop nests: what runs together, and which axes become one loop."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from laminar.engine.compiler.nests import Nest, make_loops, make_nests, shapes_of
from laminar.engine.graph import TensorSpec
from laminar.engine.ops.arithmetic import add
from laminar.engine.ops.cluster import Body, Step


def body(num_inputs: int, pairs: list[tuple[int, int]], outputs: list[int]) -> Body:
    """Additions of pairs of values."""
    steps = [Step(add, pair, {}, num_inputs + i) for i, pair in enumerate(pairs)]
    specs = [TensorSpec(None, "float32")] * (num_inputs + len(pairs))
    return Body(steps, specs, num_inputs, outputs)


def test_one_shape_is_one_nest() -> None:
    b = body(2, [(0, 1), (2, 0), (3, 2)], [4])
    (nest,) = make_nests(b, shapes_of(b, [(3, 4), (3, 4)]))
    assert nest.steps == [0, 1, 2]
    assert nest.reads == [0, 1]
    assert nest.writes == [4]


def test_a_smaller_shape_goes_through_memory() -> None:
    b = body(3, [(0, 0), (3, 1), (4, 2)], [5])  # a row, then the whole
    shapes = shapes_of(b, [(4,), (4,), (3, 4)])
    assert shapes[3:] == [(4,), (4,), (3, 4)]
    row, whole = make_nests(b, shapes)
    assert (row.steps, row.writes) == ([0, 1], [4])
    assert (whole.steps, whole.reads, whole.writes) == ([2], [4, 2], [5])


def test_producers_stand_before_consumers() -> None:
    # whole, row, and the whole again, which needs the row
    b = body(2, [(1, 1), (0, 0), (2, 3), (3, 3)], [4, 5])
    nests = make_nests(b, shapes_of(b, [(4,), (3, 4)]))
    assert [n.steps for n in nests] == [[0], [1, 3], [2]]


@pytest.mark.parametrize(
    ("shape", "reads", "sizes", "strides"),
    [
        ((3, 4), [(3, 4), (3, 4)], (12,), ((1,), (1,))),
        ((3, 4), [(3, 4), (4,)], (3, 4), ((4, 1), (0, 1))),
        ((3, 4), [(3, 1), (3, 4)], (3, 4), ((1, 0), (4, 1))),
        ((3, 4), [(), (1, 1)], (12,), ((0,), (0,))),
        ((2, 3, 4), [(2, 3, 4), (3, 4)], (2, 12), ((12, 1), (0, 1))),
        ((2, 3, 4), [(2, 3, 4), (2, 1, 1)], (2, 12), ((12, 1), (1, 0))),
        ((2, 1, 4), [(2, 1, 4)], (8,), ((1,),)),
        ((1, 1), [(1, 1)], (), ((),)),
        ((), [()], (), ((),)),
        ((0, 4), [(0, 4)], (0,), ((1,),)),
    ],
)
def test_loops(
    shape: tuple[int, ...],
    reads: list[tuple[int, ...]],
    sizes: tuple[int, ...],
    strides: tuple[tuple[int, ...], ...],
) -> None:
    loops = make_loops(Nest(shape, reads=list(range(len(reads)))), reads)
    assert loops.sizes == sizes
    assert loops.strides == strides


def test_strides_address_what_broadcasting_does() -> None:
    shape = (2, 3, 4)
    for rank in range(4):
        for mask in itertools.product([True, False], repeat=rank):
            own = tuple(n if keep else 1 for n, keep in zip(shape[3 - rank :], mask, strict=True))
            data = np.arange(np.prod(own, dtype=int))
            loops = make_loops(Nest(shape, reads=[0, 1]), [own, shape])
            grid = np.indices(loops.sizes).reshape(len(loops.sizes), -1)
            places = (np.array(loops.strides[0])[:, None] * grid).sum(0)
            expected = np.broadcast_to(data.reshape(own), shape).ravel()
            np.testing.assert_array_equal(data[places], expected)
