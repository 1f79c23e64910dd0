"""Ragged tensors against lists of Python: rows, slices, joins, masks; eager and in a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine.errors import DTypeError, InvalidArgumentError, NoTensorError, ShapeError
from laminar.engine.ops.ragged import ragged_structure as structure
from laminar.engine.ops.ragged.ragged_creation import ragged_arrays

FLAT = [[3, 1, 4], [], [1], [5, 9]]
DEEP = [[[1, 2], [3]], [], [[4], [], [5, 6, 7]]]


def lists(x: Any) -> Any:
    return x.to_list() if isinstance(x, engine.RaggedTensor) else np.asarray(x).tolist()


def both_ways(fn: Callable[[Any], Any], *given: Any) -> Any:
    """What `fn` gives of ragged tensors, eagerly; the same comes of a graph that is fed them."""
    eager = lists(fn(*(engine.ragged_constant(x) for x in given)))
    values = [ragged_arrays(x) for x in given]
    with engine.Graph().as_default():
        fed = [
            engine.ragged_placeholder(engine.as_dtype(v.dtype), v.ragged_rank, []) for v in values
        ]
        result = fn(*fed)
        with engine.Session() as session:
            found = session.run(result, dict(zip(fed, values, strict=True)))
    assert lists(found) == eager
    return eager


ITEMS: list[tuple[str, Any, Callable[[Any], Any]]] = [
    ("row", 2, lambda x: x[2]),
    ("last", -1, lambda x: x[-1]),
    ("rows", slice(1, None), lambda x: x[1:]),
    ("reversed", slice(None, None, -1), lambda x: x[::-1]),
    ("tails", (slice(None), slice(1, None)), lambda x: [r[1:] for r in x]),
    ("heads", (slice(None), slice(None, -1)), lambda x: [r[:-1] for r in x]),
    ("ends", (slice(None), slice(-2, None)), lambda x: [r[-2:] for r in x]),
    ("steps", (slice(None), slice(None, None, 2)), lambda x: [r[::2] for r in x]),
    ("back", (slice(None), slice(None, None, -1)), lambda x: [r[::-1] for r in x]),
    ("part of a row", (0, slice(0, 2)), lambda x: x[0][:2]),
    ("new first", None, lambda x: [x]),
    ("new second", (slice(None), None), lambda x: [[r] for r in x]),
]


@pytest.mark.parametrize(("key", "expected"), [i[1:] for i in ITEMS], ids=[i[0] for i in ITEMS])
def test_items(key: Any, expected: Callable[[Any], Any]) -> None:
    for given in (FLAT, DEEP):
        assert both_ways(lambda x: x[key], given) == expected(given)


def test_deeper_items() -> None:
    assert both_ways(lambda x: x[2, 2], DEEP) == [5, 6, 7]
    assert both_ways(lambda x: x[..., :1], DEEP) == [[[1], [3]], [], [[4], [], [5]]]
    with pytest.raises(InvalidArgumentError, match="cannot be indexed by a number"):
        engine.ragged_constant(FLAT)[:, 0]
    with pytest.raises(InvalidArgumentError, match="step of 0"):
        engine.ragged_constant(FLAT)[:, ::0]


def test_joins() -> None:
    join = engine.ragged_concat
    assert both_ways(lambda x: join([x, x[1:]]), FLAT) == FLAT + FLAT[1:]
    assert both_ways(lambda x: join([x, x[::-1]], 1), FLAT) == [
        a + b for a, b in zip(FLAT, FLAT[::-1], strict=True)
    ]
    assert both_ways(lambda x: join([x, x], -1), DEEP) == [[r + r for r in x] for x in DEEP]
    assert both_ways(lambda x: engine.ragged_stack([x, x[:2]]), FLAT) == [FLAT, FLAT[:2]]
    assert both_ways(lambda x: engine.ragged_stack([x, x], 1), FLAT) == [[r, r] for r in FLAT]
    dense = engine.constant([[7], [8], [9], [10]])
    assert lists(join([engine.ragged_constant(FLAT), dense], 1)) == [
        [*r, n] for r, n in zip(FLAT, (7, 8, 9, 10), strict=True)
    ]
    assert lists(engine.ragged_stack([engine.constant([1, 2]), engine.constant([3])])) == [
        [1, 2],
        [3],
    ]
    assert both_ways(lambda x: structure.ragged_tile(x, [2, 1]), FLAT) == FLAT * 2
    assert both_ways(lambda x: structure.ragged_tile(x, [1, 2]), FLAT) == [r * 2 for r in FLAT]
    with pytest.raises(ShapeError, match="numbers of axes differ"):
        join([engine.ragged_constant(FLAT), engine.ragged_constant(DEEP)])
    with pytest.raises(InvalidArgumentError, match="axis 5"):
        join([engine.ragged_constant(FLAT)] * 2, 5)


def test_rows_are_gathered() -> None:
    gather = engine.ragged_gather
    assert both_ways(lambda x: gather(x, [3, 1, 3]), FLAT) == [FLAT[3], FLAT[1], FLAT[3]]
    assert both_ways(lambda x: gather(x, [[2, 0], [0, 1]]), DEEP) == [
        [DEEP[2], DEEP[0]],
        [DEEP[0], DEEP[1]],
    ]
    places = engine.ragged_constant([[2], [], [0, 0]])
    assert lists(gather(engine.ragged_constant(FLAT), places)) == [[[1]], [], [FLAT[0], FLAT[0]]]
    assert lists(gather(engine.constant([10, 20, 30]), places)) == [[30], [], [10, 10]]
    with pytest.raises(InvalidArgumentError):
        gather(engine.ragged_constant(FLAT), [4])


def test_masks_and_places() -> None:
    mask = engine.ragged_boolean_mask
    assert both_ways(lambda x: mask(x, x > 2), FLAT) == [[n for n in r if n > 2] for r in FLAT]
    assert both_ways(lambda x: mask(x, x > 2), DEEP) == [
        [[n for n in r if n > 2] for r in x] for x in DEEP
    ]
    rows = engine.constant([True, False, True, False])
    assert lists(mask(engine.ragged_constant(FLAT), rows)) == [FLAT[0], FLAT[2]]
    flags = engine.constant([[True, False], [True, True]])
    assert lists(mask(engine.constant([[1, 2], [3, 4]]), flags)) == [[1], [3, 4]]
    assert both_ways(lambda x: structure.ragged_where(x > 3), FLAT) == [[0, 2], [3, 0], [3, 1]]
    parts = structure.stack_dynamic_partitions(engine.constant([1, 2, 3, 4]), [2, 0, 2, 0], 4)
    assert lists(parts) == [[2, 4], [], [1, 3], []]


def test_what_it_is_made_of() -> None:
    make = engine.RaggedTensor
    values, rows = engine.constant([3, 1, 4, 1, 5, 9]), FLAT
    assert lists(make.from_row_splits(values, [0, 3, 3, 4, 6])) == rows
    assert lists(make.from_row_lengths(values, [3, 0, 1, 2])) == rows
    assert lists(make.from_row_starts(values, [0, 3, 3, 4])) == rows
    assert lists(make.from_row_limits(values, [3, 3, 4, 6])) == rows
    assert lists(make.from_value_rowids(values, [0, 0, 0, 2, 3, 3])) == rows
    assert lists(make.from_value_rowids(values, [0, 0, 0, 2, 3, 3], 6)) == [*rows, [], []]
    deep = make.from_nested_row_lengths(engine.constant(range(1, 8)), [[2, 0, 3], [2, 1, 1, 0, 3]])
    assert lists(deep) == DEEP
    assert lists(make.from_nested_row_splits(deep.flat_values, deep.nested_row_splits)) == DEEP
    ids = deep.nested_value_rowids()
    assert lists(make.from_nested_value_rowids(deep.flat_values, ids, [3, 5])) == DEEP
    assert lists(deep.row_lengths(2)) == [[2, 1], [], [1, 0, 3]]
    assert deep.shape == (3, None, None)
    assert deep.with_row_splits_dtype("int32").row_splits.dtype == "int32"
    assert lists(deep.bounding_shape()) == [3, 3, 3]
    assert lists(deep.bounding_shape(1)) == 3


def test_what_is_refused() -> None:
    make, values = engine.RaggedTensor, engine.constant([1, 2, 3])
    for splits in ([0, 2], [1, 3], [0, 2, 1, 3], [0, 4]):
        with pytest.raises(InvalidArgumentError, match="row_splits rise from 0"):
            make.from_row_splits(values, splits)
    for ids in ([1, 0, 2], [-1, 0, 0], [0, 0, 5]):
        with pytest.raises(InvalidArgumentError, match="value_rowids rise"):
            make.from_value_rowids(values, ids, 3)
    with pytest.raises(DTypeError, match="int32 or int64"):
        make.from_row_splits(values, np.array([0.0, 3.0]))
    with pytest.raises(NoTensorError, match="no tensor"):
        engine.convert_to_tensor(engine.ragged_constant(FLAT))
    with pytest.raises(InvalidArgumentError, match="side by side"):
        engine.ragged_constant([[1], 2])
    with pytest.raises(InvalidArgumentError, match="at least one axis"):
        make(values, [])
    with engine.Graph().as_default():  # here it is known when it runs
        fed = engine.placeholder("int64", [None])
        found = make.from_row_splits(values, fed).to_tensor()
        with engine.Session() as session, pytest.raises(InvalidArgumentError, match="row_splits"):
            session.run(found, {fed: [0, 2]})


def test_constants() -> None:
    made = engine.ragged_constant
    assert made([[[1, 2], [3, 4]], [[5, 6]]], inner_shape=(2,)).shape == (2, None, 2)
    assert made([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1).flat_values.shape == (3, 2)
    assert made([[], []]).dtype == "float32"
    assert lists(made([], ragged_rank=2)) == []
    assert lists(engine.ragged_numbers([0, 5, 8], [3, 3, 12])) == [[0, 1, 2], [], [8, 9, 10, 11]]
    assert lists(engine.ragged_numbers([0.0, 5.0], [3.0, 8.0], [2.0, 1.0])) == [[0, 2], [5, 6, 7]]
    assert lists(engine.row_splits_to_segment_ids([0, 3, 3, 5])) == [0, 0, 0, 2, 2]
    assert lists(engine.segment_ids_to_row_splits([0, 0, 0, 2, 2])) == [0, 3, 3, 5]
    with pytest.raises(InvalidArgumentError, match="do not have one shape"):
        made([[[1, 2], [3]]], ragged_rank=1)
