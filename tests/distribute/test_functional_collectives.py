"""The collectives that programs call, by threads for processes; and one run of real processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine, ops
from laminar.distribute import all_gather, all_reduce, barrier, broadcast, reduce_scatter
from laminar.distribute.collectives.group import Group, SingleGroup
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from tests.distribute.mpi_runs import found_by, needs_mpi, run
from tests.distribute.test_collectives import by_all

VALUES = np.random.default_rng(0).normal(size=(3, 6))  # of three processes


def gradient_of(call: Callable[[Any], Any], x: Any, weights: Any) -> tuple[Any, Any]:
    """A value, and the gradient of the weighted sum of its elements."""
    x = ops.convert_to_tensor(x)
    with laminar.GradientTape() as tape:
        tape.watch(x)
        y = call(x)
        total = ops.sum(y * weights)
    return np.asarray(y), np.asarray(tape.gradient(total, x))


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("op", ["sum", "mean", "prod", "max", "min"])
def test_reductions_and_their_gradients(op: str, traced: bool) -> None:
    """Each process weighs its result by its number + 1: the loss is the sum over all of them."""

    def compute(group: Group) -> Any:
        def step(x: Any) -> Any:
            return gradient_of(lambda v: all_reduce(v, op, group=group), x, group.rank + 1.0)

        def traced_step(x: Any) -> Any:
            with laminar.GradientTape() as tape:
                tape.watch(x)
                y = all_reduce(x, op, group=group)
                total = ops.sum(y * (group.rank + 1.0))
            return y, tape.gradient(total, x)

        mine = VALUES[group.rank]
        return laminar.function(traced_step)(ops.array(mine)) if traced else step(mine)

    expected = getattr(np, op)(VALUES, axis=0)
    slopes = {
        "sum": np.ones_like(VALUES),
        "mean": np.full_like(VALUES, 1 / 3),
        "prod": expected / VALUES,
    }.get(op, (expected == VALUES).astype(float))
    for rank, (y, dx) in enumerate(by_all(3, compute)):
        np.testing.assert_allclose(y, expected, rtol=1e-12)
        np.testing.assert_allclose(dx, 6.0 * slopes[rank], rtol=1e-12)


def test_the_gradient_of_a_product_with_zeros() -> None:
    values = np.array([[2.0, 0.0, 0.0], [3.0, 5.0, 0.0]])

    def compute(group: Group) -> Any:
        return gradient_of(lambda v: all_reduce(v, "prod", group=group), values[group.rank], 1.0)[1]

    np.testing.assert_allclose(by_all(2, compute), 2.0 * values[::-1])  # of two losses
    alone = gradient_of(lambda v: all_reduce(v, "prod"), values[0], 1.0)[1]
    np.testing.assert_allclose(alone, [1.0, 1.0, 1.0])


def test_equal_extremes_share_the_gradient() -> None:
    def compute(group: Group) -> Any:
        return gradient_of(lambda v: all_reduce(v, "max", group=group), np.ones(2), 1.0)[1]

    np.testing.assert_allclose(by_all(4, compute), np.ones((4, 2)))  # 4 losses, 4 that share


def test_rows_of_all_and_shares_of_sums() -> None:
    def compute(group: Group) -> Any:
        own = VALUES[: group.rank + 1]  # 1, 2 and 3 rows
        rows, drows = gradient_of(
            lambda v: all_gather(v, group=group), own, np.arange(6.0)[:, None]
        )
        share, dshare = gradient_of(
            lambda v: reduce_scatter(v, group=group), VALUES[group.rank], group.rank + 1.0
        )
        return rows, drows, share, dshare

    for rank, (rows, drows, share, dshare) in enumerate(by_all(3, compute)):
        np.testing.assert_array_equal(rows, VALUES[[0, 0, 1, 0, 1, 2]])
        begin = [0, 1, 3][rank]
        weights = 3 * np.arange(6.0)[begin : begin + rank + 1, None]
        np.testing.assert_allclose(drows, np.broadcast_to(weights, drows.shape))
        np.testing.assert_allclose(share, VALUES.sum(0)[2 * rank : 2 * rank + 2], rtol=1e-12)
        np.testing.assert_allclose(dshare, [1, 1, 2, 2, 3, 3])


def test_the_value_of_one_process() -> None:
    def compute(group: Group) -> Any:
        return gradient_of(
            lambda v: broadcast(v, 1, group=group), VALUES[group.rank], group.rank + 1.0
        )

    for rank, (y, dx) in enumerate(by_all(3, compute)):
        np.testing.assert_array_equal(y, VALUES[1])
        np.testing.assert_array_equal(dx, np.full(6, 6.0 if rank == 1 else 0.0))


def test_they_keep_their_order_in_a_graph() -> None:
    def compute(group: Group) -> Any:
        with engine.Graph().as_default(), engine.Session() as session:
            x = engine.placeholder("float32", (2,))
            total = all_reduce(x, group=group)
            with engine.control_dependencies([barrier(group=group)]):
                rows = all_gather(total, group=group)
            return session.run(rows, {x: [group.rank, 1.0]})

    for found in by_all(2, compute):
        np.testing.assert_array_equal(found, [1, 2, 1, 2])


def test_a_disagreement_is_one_error_everywhere_and_all_go_on() -> None:
    def compute(group: Group) -> Any:
        with pytest.raises(InvalidArgumentError, match=r"worker 0: .*\[2\]; worker 1: .*\[3\]"):
            all_reduce(np.ones(2 + group.rank), group=group)
        call = broadcast if group.rank else all_gather
        with pytest.raises(InvalidArgumentError, match=r"all_gather .*; worker 1: broadcast"):
            call(np.ones(2), group=group)
        return all_reduce(1.0, group=group).numpy()

    assert by_all(2, compute) == [2.0, 2.0]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        pytest.param(lambda g: all_reduce([1.0], "median", group=g), InvalidArgumentError, id="op"),
        pytest.param(lambda g: all_reduce([1], "mean", group=g), DTypeError, id="mean of ints"),
        pytest.param(lambda g: all_reduce(["a"], group=g), DTypeError, id="strings"),
        pytest.param(lambda g: all_gather(1.0, group=g), ShapeError, id="no rows"),
        pytest.param(lambda g: reduce_scatter(1.0, group=g), ShapeError, id="no shares"),
        pytest.param(lambda g: broadcast(1.0, 1, group=g), InvalidArgumentError, id="root"),
    ],
)
def test_bad_arguments(call: Callable[[Group], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(SingleGroup())


def test_a_process_that_is_alone() -> None:
    np.testing.assert_array_equal(all_reduce([1.0, 2.0], "mean"), [1.0, 2.0])
    np.testing.assert_array_equal(reduce_scatter(np.arange(4)), np.arange(4))
    assert barrier() is None


@needs_mpi
@pytest.mark.slow
def test_real_processes(tmp_path: Path) -> None:
    code, text = run(2, "collective_calls.py", str(tmp_path))
    assert code == 0, text
    for found in found_by(tmp_path):
        np.testing.assert_array_equal(found["total"], [1, 4])
        np.testing.assert_array_equal(found["most"], [1, 2])
        np.testing.assert_array_equal(found["rows"], [0, 1, 1])
        np.testing.assert_array_equal(found["first"], [0, 2])
