"""Data sets dealt out to workers: what all have together is the whole, batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.datasets import Dataset
from laminar.datasets.dealing import dealt
from laminar.engine.errors import InvalidArgumentError


def batches(dataset: Dataset) -> list[list[Any]]:
    return [np.asarray(batch).tolist() for batch in dataset.as_numpy_iterator()]


def made(size: int, batch_size: int, *, drop_remainder: bool = False) -> Dataset:
    return (
        Dataset.range(size)
        .shuffle(size, seed=3)
        .map(lambda x: x * 10)
        .batch(batch_size, drop_remainder)
        .map(lambda x: x + 1)
        .prefetch(2)
    )


@pytest.mark.parametrize("size", [8, 9, 10, 11, 12, 23])
@pytest.mark.parametrize(("batch_size", "count"), [(4, 2), (4, 3), (3, 3), (5, 2)])
@pytest.mark.parametrize("drop_remainder", [False, True])
def test_batches_together_are_those_of_the_whole(
    size: int, batch_size: int, count: int, drop_remainder: bool
) -> None:
    whole = made(size, batch_size, drop_remainder=drop_remainder)
    for _ in range(2):  # each walk has another order
        place = whole.walks
        expected = batches(whole)
        parts = []
        for index in range(count):
            whole.begin_at(place)
            part = dealt(whole, "element", count, index)
            assert part.cardinality() == len(got := batches(part))
            parts.append(got)
        assert whole.walks == place + 1
        for k, batch in enumerate(expected):
            own = [part[k] if k < len(part) else [] for part in parts]
            assert own == [batch[i::count] for i in range(count)]
        assert all(len(part) <= len(expected) for part in parts)


def test_elements_are_chosen_before_they_are_mapped() -> None:
    seen: list[int] = []

    def look(x: Any) -> Any:
        seen.append(int(x))
        return x

    batches(dealt(Dataset.range(10).map(look).map(look).batch(4), "element", 2, 1))
    assert seen == [k for k in (1, 3, 5, 7, 9) for _ in range(2)]


def test_a_walk_goes_on_where_it_was() -> None:
    part = dealt(made(23, 5), "element", 2, 1)
    walk = part.as_numpy_iterator()
    next(walk)
    state = walk.state()
    rest = [np.asarray(b).tolist() for b in walk]
    part.begin_at(0)
    again = part.as_numpy_iterator()
    again.restore(state)
    assert [np.asarray(b).tolist() for b in again] == rest


def test_repeated_data() -> None:
    whole = Dataset.range(6).batch(4).repeat(2)
    assert batches(dealt(whole, "element", 2, 0)) == [[0, 2], [4], [0, 2], [4]]
    assert batches(dealt(whole, "element", 2, 1)) == [[1, 3], [5], [1, 3], [5]]


def test_files(tmp_path: Path) -> None:
    names = []
    for k in range(5):
        names.append(tmp_path / f"{k}.txt")
        names[-1].write_text(f"{k}a\n{k}b\n")
    lines = Dataset.from_text_lines(names).map(lambda t: t).batch(4)
    found = [batches(dealt(lines, "file", 2, i)) for i in range(2)]
    assert found[0] == [[b"0a", b"0b"], [b"2a", b"2b"], [b"4a", b"4b"]]
    assert found[1] == [[b"1a", b"1b"], [b"3a", b"3b"]]
    listed = Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)
    joined = listed.interleave(Dataset.from_text_lines, cycle_length=1).batch(4)
    assert [batches(dealt(joined, "file", 2, i)) for i in range(2)] == found


@pytest.mark.parametrize(
    ("dataset", "by", "said"),
    [
        (Dataset.range(6), "element", "no batches are made by Dataset.batch"),
        (Dataset.range(6).batch(2), "element", "its batches of 2 are for 3 workers"),
        (Dataset.range(6).batch(3), "file", "it reads no files"),
        (Dataset.range(6).padded_batch(3), "element", "no batches are made by Dataset.batch"),
    ],
)
def test_what_cannot_be_dealt_out(dataset: Dataset, by: str, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        dealt(dataset, by, 3, 0)
