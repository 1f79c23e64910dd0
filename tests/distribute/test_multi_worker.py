"""What several processes train is what one process trains, and the same in each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.distribute import MultiWorker
from laminar.distribute.multi_worker import shares_of
from laminar.engine.errors import InvalidArgumentError
from tests.distribute.mpi_runs import found_by, needs_mpi, run
from tests.distribute.workers import MAKERS, X, Y

pytestmark = [needs_mpi, pytest.mark.slow]


@pytest.fixture(scope="module", params=[2, 3])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the workers have found and say; what they train together is the same in all."""
    folder = tmp_path_factory.mktemp("workers")
    code, text = run(request.param, "workers.py", str(folder))
    assert code == 0, text
    found = found_by(folder)
    assert len(found) == request.param
    one = {name: value for own in found for name, value in own.items() if "/one/" in name}
    first, *others = ({k: v for k, v in own.items() if "/one/" not in k} for own in found)
    for other in others:
        assert other.keys() == first.keys()
        for name, value in other.items():
            np.testing.assert_array_equal(value, first[name], err_msg=name)
    return first | one | {"said": text}


@pytest.mark.parametrize("case", [*MAKERS, "normalized", "own_data", "dealt"])
def test_it_is_training_by_one_process(found: dict[str, Any], case: str) -> None:
    """The bits are the same in all workers; the values those of one, with a short last batch.

    `own_data` is batches of 5, 3 and 2 rows, which are one batch together.
    """
    own = {k.removeprefix(f"{case}/"): v for k, v in found.items() if k.startswith(f"{case}/")}
    one = {k.removeprefix("one/"): v for k, v in own.items() if k.startswith("one/")}
    both = {k.removeprefix("all/"): v for k, v in own.items() if k.startswith("all/")}
    assert one.keys() == both.keys()
    assert len(one) >= 4
    for name, value in one.items():
        np.testing.assert_allclose(both[name], value, rtol=2e-5, atol=2e-6, err_msg=name)


def test_steps_are_those_of_numpy(found: dict[str, Any]) -> None:
    """float64, batches of 25, the last of 3; each loss is the mean over the epoch's examples."""
    w, b, losses = np.ones((20, 1)), np.zeros(1), []
    x, y = X.astype("float64"), Y[:, None].astype("float64")
    for _ in range(3):
        total = 0.0
        for i in range(0, 103, 25):
            error = x[i : i + 25] @ w + b - y[i : i + 25]
            total += float((error**2).sum())
            w = w - 0.125 * 2 * x[i : i + 25].T @ error / len(error)
            b = b - 0.125 * 2 * error.mean(axis=0)
        losses.append(total / 103)
    np.testing.assert_allclose(found["float64/weights/0"], w, rtol=1e-11)
    np.testing.assert_allclose(found["float64/weights/1"], b, rtol=1e-11)
    np.testing.assert_allclose(found["float64/logs/loss"], losses, rtol=1e-6)


def test_random_numbers_differ_and_generators_do_not(found: dict[str, Any]) -> None:
    rows = found["random/seen"]
    assert set(np.unique(rows)) == {0.0, 2.0}
    assert len(np.unique(rows, axis=0)) == 4  # no two of 200 numbers are the same by chance
    first, second = found["random/states"]
    np.testing.assert_array_equal(second[:2], first[:2])  # the key
    assert second[2] == first[2] + 1  # draws


def test_data_that_ends_early_is_told_of(found: dict[str, Any]) -> None:
    """Once for each loop: training and validation."""
    assert "the data of worker 1 ended after 4 batches" in found["said"]


@pytest.mark.parametrize("number", [0, 5])
def test_workers_that_are_left_go_on(number: int, tmp_path: Path) -> None:
    """A worker is killed between two steps, or in its k-th sum; training is that of one process."""
    options = ("--with-ft", "ulfm")
    code, text = run(3, "elastic_workers.py", str(number), str(tmp_path), options=options)
    if "--with-ft" in text and "unrecognized" in text:
        pytest.skip("this MPI has no fault tolerance")
    assert code == 0, text
    assert "worker 1 of 3 died; the 2 that are left go on" in text
    found = found_by(tmp_path)
    assert len(found) == (2 if number else 1)
    for other in found:
        assert other["size"] == len(found)
        for name in [k for k in other if k.startswith("one/")]:
            both = name.replace("one/", "all/")
            np.testing.assert_allclose(other[both], other[name], rtol=1e-5, atol=1e-7)
            np.testing.assert_array_equal(other[both], found[0][both])


def test_a_process_by_itself() -> None:
    strategy = MultiWorker()
    assert (strategy.rank, strategy.num_replicas, strategy.is_first) == (0, 1, True)
    assert not strategy.shares_batches


@pytest.mark.parametrize(
    "arguments",
    [{"auto_shard": "rows"}, {"bucket_bytes": 0}, {"bucket_bytes": True}, {"timeout_seconds": -1}],
)
def test_wrong_arguments(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=f"MultiWorker: {next(iter(arguments))}"):
        MultiWorker(**arguments)


def test_shares_differ_by_one_at_most() -> None:
    for rows in range(30):
        shares = shares_of(rows, 7)
        assert shares.sum() == rows
        assert shares.max() - shares.min() <= 1
