"""CandidateSampler: the draw itself; the probabilities are in tests/laminar/test_sampled_losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Graph
from laminar.engine.ops.core.basic import constant
from laminar.engine.ops.random.candidates import candidate_sampler
from laminar.engine.ops.random.distributions import uniform
from laminar.engine.ops.random.random_state import initial_state, stream
from laminar.engine.runtime import Session


def draw(unique: bool, seed: int = 5, num_sampled: int = 7) -> Any:
    return candidate_sampler.many(
        initial_state(seed),
        num_sampled=num_sampled,
        range_max=9,
        unique=unique,
        distribution="uniform",
    )


def test_unique_classes_are_the_first_ones_of_the_tries() -> None:
    """The stream's numbers times nine, one by one; each class where it comes first."""
    u = uniform(np, n=400, dtype="float64", **stream(initial_state(5)))
    tries = (u * 9).astype(int).tolist()
    sampled, count = draw(unique=False)
    assert sampled.numpy().tolist() == tries[:7]
    assert int(count) == 7
    sampled, count = draw(unique=True)
    assert sampled.numpy().tolist() == list(dict.fromkeys(tries))[:7]
    assert len(set(tries[: int(count)])) == 7
    assert len(set(tries[: int(count) - 1])) == 6


def test_all_classes_are_found() -> None:
    sampled, _ = draw(unique=True, num_sampled=9)
    assert sorted(sampled.numpy().tolist()) == list(range(9))


def test_a_graph_draws_the_same() -> None:
    with Graph().as_default() as graph:
        state = constant(initial_state(5))
        sampled, _ = candidate_sampler.many(
            state, num_sampled=7, range_max=9, unique=True, distribution="uniform"
        )
    with Session(graph=graph) as session:
        found = session.run(sampled)
    np.testing.assert_array_equal(found, draw(unique=True)[0])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"distribution": "normal"}, "distribution is one of"),
        ({"distribution": "weights"}, "with 0 tensors of weights"),
        ({"num_sampled": 10}, "cannot draw 10 different classes of 9"),
        ({"num_sampled": 0}, "cannot draw 0 different classes of 9"),
    ],
)
def test_mistakes(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "num_sampled": 7,
        "range_max": 9,
        "unique": True,
        "distribution": "uniform",
    }
    with pytest.raises(InvalidArgumentError, match=message):
        candidate_sampler.many(initial_state(5), **(given | changed))
