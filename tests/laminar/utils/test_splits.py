"""split_dataset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import ops, utils
from laminar.datasets import Dataset
from laminar.engine.errors import InvalidArgumentError

X = np.arange(10)

SIZES = [
    ({"left_size": 0.8}, 8, 2),
    ({"left_size": 0.25}, 2, 8),  # as Python rounds: to the even number
    ({"right_size": 0.3}, 7, 3),
    ({"left_size": 3}, 3, 7),
    ({"right_size": 4}, 6, 4),
    ({"left_size": 2, "right_size": 3}, 2, 3),
    ({"left_size": 0.5, "right_size": 0.2}, 5, 2),
]


@pytest.mark.parametrize(("options", "left", "right"), SIZES)
def test_sizes(options: dict[str, Any], left: int, right: int) -> None:
    first, second = utils.split_dataset(X, **options)
    assert (len(first), len(second)) == (left, right)
    assert [int(n) for n in first] == list(X[:left])
    assert [int(n) for n in second] == list(X[10 - right :])


def test_structures_stay_together() -> None:
    data = {"x": X.reshape(10, 1), "y": (X * 10, ops.array(X))}
    left, right = utils.split_dataset(data, left_size=0.5, shuffle=True, seed=1)
    found = []
    for row in (*left, *right):
        assert row["x"].shape == (1,)
        assert [int(y) for y in row["y"]] == [int(row["x"][0]) * 10, int(row["x"][0])]
        found.append(int(row["x"][0]))
    assert sorted(found) == list(X)
    assert found != list(X)


class Numbered:
    """What torch calls a data set."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        return X[i : i + 1] * 2, X[i]


@pytest.mark.parametrize("data", [Numbered(), iter([Numbered()[i] for i in range(10)])])
def test_data_sets_of_others_are_read(data: Any) -> None:
    left, right = utils.split_dataset(data, left_size=0.2, preferred_backend="torch")
    assert (len(left), len(right)) == (2, 8)
    assert [(x.shape, int(x[0]), int(y)) for x, y in left] == [((1,), 0, 0), ((1,), 2, 1)]


def test_the_seed_fixes_the_order() -> None:
    def draw(seed: int | None) -> list[int]:
        left, _ = utils.split_dataset(X, left_size=0.5, shuffle=True, seed=seed)
        return [int(n) for n in left]

    assert draw(3) == draw(3)
    assert draw(3) != draw(4)
    utils.set_random_seed(7)
    first = draw(None)
    assert draw(None) != first
    utils.set_random_seed(7)
    assert draw(None) == first


BAD = [
    (X, {}, "neither left_size nor right_size"),
    (X, {"left_size": 0}, "left_size must be a fraction between 0 and 1 or a number"),
    (X, {"left_size": 10}, "left_size must be .* examples below 10, got 10"),
    (X, {"right_size": 1.0}, "right_size must be .* got 1.0"),
    (X, {"right_size": "1"}, "right_size must be"),
    (X, {"left_size": 6, "right_size": 0.5}, "are 11 examples, there are 10"),
    (X[:1], {"left_size": 0.5}, "of 1 examples the first part is empty"),
    (X, {"right_size": 0.01}, "of 10 examples the second part is empty"),
    ((X, X[:5]), {"left_size": 0.5}, "the same number of rows"),
    ([1, 2, 3], {"left_size": 0.5}, "the same number of rows"),
    ((), {"left_size": 0.5}, "the same number of rows"),
    (3, {"left_size": 0.5}, "expected arrays or a Dataset"),
]


@pytest.mark.parametrize(("data", "options", "message"), BAD)
def test_errors(data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        utils.split_dataset(data, **options)


def test_a_dataset_in_two_parts() -> None:
    for data in (Dataset.range(10), Dataset.from_generator(lambda: iter(range(10)))):
        left, right = utils.split_dataset(data, left_size=0.7)
        assert [int(n) for n in left] == list(range(7))
        assert [int(n) for n in right] == [7, 8, 9]
        left, right = utils.split_dataset(data, right_size=4, shuffle=True, seed=1)
        parts = [sorted(int(n) for n in part) for part in (left, right)]
        assert sorted(sum(parts, [])) == list(range(10))
        assert parts == [sorted(int(n) for n in part) for part in (left, right)]
        assert parts[1] != [6, 7, 8, 9]
    with pytest.raises(InvalidArgumentError, match="has no end"):
        utils.split_dataset(Dataset.range(3).repeat(), left_size=0.5)
