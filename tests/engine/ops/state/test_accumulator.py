"""Accumulators as ops."""

from __future__ import annotations

import numpy as np
import pytest

from laminar.engine import (
    ConditionalAccumulator,
    FIFOQueue,
    Graph,
    Session,
    SparseConditionalAccumulator,
    constant,
    placeholder,
)
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError

from .test_queue import Runs


def test_the_mean_of_gradients_and_stale_ones() -> None:
    sums = ConditionalAccumulator("float32", (2,))
    assert bool(sums.apply_grad([1.0, 2.0], local_step=0))
    assert bool(sums.apply_grad([3.0, 6.0], local_step=0))
    assert int(sums.num_accumulated().numpy()) == 2
    assert sums.take_grad(2).numpy().tolist() == [2.0, 4.0]
    assert not bool(sums.apply_grad([1.0, 1.0], local_step=0))
    sums.set_global_step(7)
    assert not bool(sums.apply_grad([1.0, 1.0], local_step=6))
    assert bool(sums.apply_grad([1.0, 1.0], local_step=7))


def test_what_was_added_is_dropped_and_who_has_left_is_not_waited_for() -> None:
    sums = ConditionalAccumulator("float32", ())
    sums.apply_grad(1.0, local_step=0)
    sums.reset(5)
    assert int(sums.num_accumulated().numpy()) == 0
    assert not bool(sums.apply_grad(2.0, local_step=4))
    assert bool(sums.apply_grad(3.0, local_step=5))
    assert int(sums.leave(1, 2).numpy()) == 1
    assert sums.take_grad(2).numpy() == 3.0


def test_a_take_waits_in_a_session() -> None:
    graph = Graph()
    with graph.as_default():
        sums = ConditionalAccumulator("float32", (), reduction_type="SUM")
        value = placeholder("float32", ())
        give, take = sums.apply_grad(value), sums.take_grad(2)
    assert take.shape == ()
    with Session(graph=graph) as session:
        waiting = Runs(lambda: session.run(take))
        assert session.run(give, {value: 1.0})
        assert waiting.is_blocked
        assert session.run(give, {value: 2.0})
        assert waiting.join() == 3.0


def test_eight_gradients_averaged_equal_one_step_over_the_joined_batch() -> None:
    rng = np.random.default_rng(0)
    x, weights, y = rng.normal(size=(8, 4, 3)), rng.normal(size=3), rng.normal(size=(8, 4))

    def gradient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(2 * x.T @ (x @ weights - y) / len(x))

    whole = gradient(x.reshape(32, 3), y.reshape(32))
    queue, sums = FIFOQueue(8, "float64", [(3,)]), ConditionalAccumulator("float64", (3,))
    for part, target in zip(x, y, strict=True):
        queue.enqueue(gradient(part, target))
        sums.apply_grad(gradient(part, target))
    np.testing.assert_allclose(queue.dequeue_many(8).numpy().mean(0), whole, rtol=1e-12)
    np.testing.assert_allclose(sums.take_grad(8).numpy(), whole, rtol=1e-12)


def test_rows() -> None:
    sums = SparseConditionalAccumulator("float32", (4, 2))
    sums.apply_grad([2, 0], [[1.0, 1.0], [2.0, 2.0]])
    sums.apply_grad([2], [[3.0, 5.0]])
    indices, values = sums.take_grad(2)
    assert indices.numpy().tolist() == [0, 2]
    assert values.numpy().tolist() == [[2, 2], [2, 3]]


def test_mistakes() -> None:
    with pytest.raises(DTypeError, match="mean"):
        ConditionalAccumulator("int32")
    with pytest.raises(InvalidArgumentError, match="reduction_type"):
        ConditionalAccumulator("float32", reduction_type="MAX")
    sums = ConditionalAccumulator("float32", (2,))
    with pytest.raises(ShapeError):
        sums.apply_grad([1.0])
    with pytest.raises(DTypeError):
        sums.apply_grad(constant([1, 2]))
    with pytest.raises(ShapeError, match="local_step"):
        sums.apply_grad([1.0, 2.0], local_step=[1, 2])
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        sums.take_grad(0)
    with pytest.raises(InvalidArgumentError, match="no rows"):
        SparseConditionalAccumulator("float32", ()).take_grad(1)
