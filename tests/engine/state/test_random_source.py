"""Draws of a graph that need no variable."""

from __future__ import annotations

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.state.random_source import DEFAULT_GRAPH_SEED, draw_state


def test_a_session_goes_on_and_a_new_one_begins_again() -> None:
    with eng.Graph().as_default() as graph:
        graph.seed = 1
        first, second = draw_state(7), draw_state()
        runs = []
        for _ in range(2):
            with eng.Session() as session:
                runs.append([session.run([first, second]) for _ in range(3)])
    states = np.array(runs)
    np.testing.assert_array_equal(states[0], states[1])
    np.testing.assert_array_equal(states[0, :, :, 2], [[0, 0], [1, 1], [2, 2]])  # the draws
    assert not np.array_equal(states[0, 0, 0, :2], states[0, 0, 1, :2])  # the keys


def test_in_a_function() -> None:
    @eng.function
    def draw() -> eng.Tensor:
        return draw_state(3)

    assert [draw().numpy()[2] for _ in range(3)] == [0, 1, 2]
    np.testing.assert_array_equal(draw_state(3), draw_state(3))


def test_seeds() -> None:
    with eng.Graph().as_default() as graph:
        assert eng.get_seed(None) == (None, None)
        assert eng.get_seed(5) == (DEFAULT_GRAPH_SEED, 5)
        graph.seed = 9
        eng.no_op()
        assert eng.get_seed(None) == (9, 1)
        assert eng.get_seed(5) == (9, 5)
        with pytest.raises(InvalidArgumentError, match="must be a whole number"):
            eng.get_seed("x")  # type: ignore[arg-type]  # what is refused
