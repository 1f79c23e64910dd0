"""Generators and draws."""

from __future__ import annotations

import gc
import random as python_random
import weakref
from typing import Any

import numpy as np
import pytest

from laminar import random
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.functions import function
from laminar.engine.graph import Graph, TensorSpec
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.runtime import Session
from laminar.engine.state import Variable, global_variables_initializer
from laminar.random import SeedGenerator

DRAWS: dict[str, Any] = {
    "uniform": lambda seed: random.uniform((50,), seed=seed),
    "normal": lambda seed: random.normal((50,), seed=seed),
    "truncated_normal": lambda seed: random.truncated_normal((50,), seed=seed),
    "randint": lambda seed: random.randint((50,), 0, 1000, seed=seed),
    "categorical": lambda seed: random.categorical(np.zeros((1, 9), "float32"), 50, seed=seed),
    "gamma": lambda seed: random.gamma((50,), 2.0, seed=seed),
    "beta": lambda seed: random.beta((50,), 2.0, 3.0, seed=seed),
    "binomial": lambda seed: random.binomial((50,), 100, 0.5, seed=seed),
    "shuffle": lambda seed: random.shuffle(np.arange(50), seed=seed),
    "dropout": lambda seed: random.dropout(np.ones((50,), "float32"), 0.5, seed=seed),
}


@pytest.mark.parametrize("name", DRAWS)
def test_an_int_repeats_and_a_generator_does_not(name: str) -> None:
    draw = DRAWS[name]
    first, again, other = (draw(s).numpy() for s in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    generator, twin = SeedGenerator(7), SeedGenerator(7)
    one, two = draw(generator).numpy(), draw(generator).numpy()
    assert (one != two).any()
    np.testing.assert_array_equal([one, two], [draw(twin).numpy(), draw(twin).numpy()])


@pytest.mark.parametrize(
    ("draw", "mean", "deviation"),
    [
        (lambda: random.uniform((20000,), -1, 3, seed=1), 1.0, 4 / 12**0.5),
        (lambda: random.normal((20000,), 2, 0.5, seed=1), 2.0, 0.5),
        (lambda: random.truncated_normal((20000,), 0, 1, seed=1), 0.0, 0.87962566),
        (lambda: random.gamma((20000,), 3.0, seed=1), 3.0, 3**0.5),
        (lambda: random.beta((20000,), 2.0, 3.0, seed=1), 0.4, 0.2),
        (lambda: random.binomial((20000,), 10, 0.3, seed=1), 3.0, 2.1**0.5),
        (lambda: random.dropout(np.ones(20000, "float32"), 0.2, seed=1), 1.0, 0.5),
    ],
)
def test_moments(draw: Any, mean: float, deviation: float) -> None:
    x = draw().numpy().astype("float64")
    assert abs(x.mean() - mean) < 5 * deviation / 20000**0.5
    assert x.std() == pytest.approx(deviation, rel=0.05)


def test_set_random_seed_begins_everything_anew() -> None:
    def program() -> list[Any]:
        random.set_random_seed(5)
        return [
            random.normal((3,)).numpy().tolist(),
            random.uniform((3,)).numpy().tolist(),
            random.make_default_seed(),
            SeedGenerator().next().numpy().tolist(),
            np.random.random(),
            python_random.random(),
        ]

    first = program()
    assert first == program()
    assert first[0] != first[1]
    random.set_random_seed(6)
    assert random.normal((3,)).numpy().tolist() != first[0]


def test_a_traced_function_draws_anew_each_time_it_runs() -> None:
    generator = SeedGenerator(3)

    @function
    def draw() -> Any:
        return random.uniform((4,)), random.uniform((4,), seed=generator)

    random.set_random_seed(1)
    first = [y.numpy() for y in draw()]
    second = [y.numpy() for y in draw()]
    assert (first[0] != second[0]).all()
    assert (first[1] != second[1]).all()
    random.set_random_seed(1)
    np.testing.assert_array_equal(draw()[0].numpy(), first[0])
    twin = SeedGenerator(3)
    np.testing.assert_array_equal(random.uniform((4,), seed=twin).numpy(), first[1])


def test_a_session_draws_anew_each_time_it_runs() -> None:
    graph = Graph()
    with graph.as_default():
        y = random.uniform((4,))
        init = global_variables_initializer()
    with Session(graph=graph) as session:
        session.run(init)
        first = session.run(y)
        assert (first != session.run(y)).all()


def test_a_graph_that_has_drawn_goes_with_its_last_reference() -> None:
    graph = Graph()
    with graph.as_default():
        Variable(random.normal((2,)))
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None


def test_shapes_known_at_run_time() -> None:
    graph = function(
        lambda x: (random.normal((x.shape[1], 2)), random.dropout(x, 0.5, seed=1)),
        input_signature=[TensorSpec([None, 3], "float32")],
    )
    noise, kept = graph(np.ones((4, 3), "float32"))
    assert noise.shape == (3, 2)
    assert kept.shape == (4, 3)


def test_dropout_of_whole_rows_and_at_the_limits() -> None:
    x = np.ones((40, 5), "float32")
    y = random.dropout(x, 0.5, noise_shape=(40, 1), seed=0).numpy()
    assert set(np.unique(y)) == {0.0, 2.0}
    assert (y == y[:, :1]).all()
    np.testing.assert_array_equal(random.dropout(x, 0.0).numpy(), x)
    np.testing.assert_array_equal(random.dropout(x, 1.0).numpy(), 0 * x)
    with pytest.raises(InvalidArgumentError, match="the rate must be from 0 to 1, got 2"):
        random.dropout(x, 2)


def test_shuffle_keeps_the_elements_and_categorical_the_odds() -> None:
    x = np.arange(12).reshape(3, 4)
    y = random.shuffle(x, axis=1, seed=3).numpy()
    np.testing.assert_array_equal(np.sort(y, 1), x)
    logits = np.array([[0.0, -np.inf, 0.0]], "float32")
    drawn = random.categorical(logits, 200, seed=1).numpy()
    assert set(np.unique(drawn)) == {0, 2}


def test_types() -> None:
    assert random.normal((2,), dtype="float16").dtype == "float16"
    assert random.randint((2,), 0, 5).dtype == "int32"
    assert random.randint((2,), 0, 5, dtype="uint8").dtype == "uint8"
    with pytest.raises(InvalidArgumentError, match="uniform: dtype must be a floating type"):
        random.uniform((2,), dtype="int32")
    with pytest.raises(InvalidArgumentError, match="randint: dtype must be an integer type"):
        random.randint((2,), 0, 5, dtype="float32")


def test_configs() -> None:
    generator = SeedGenerator(11, name="own")
    assert generator.get_config() == {"seed": 11, "name": "own"}
    twin = SeedGenerator.from_config(generator.get_config())
    np.testing.assert_array_equal(twin.next().numpy(), generator.next().numpy())
    assert not generator.state.trainable


@pytest.mark.parametrize("seed", ["x", 1.5, True])
def test_other_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="whole number"):
        random.normal((2,), seed=seed)
    with pytest.raises(InvalidArgumentError, match="must be a whole number"):
        SeedGenerator(seed)
    with pytest.raises(InvalidArgumentError, match="expected a whole number"):
        random.set_random_seed(seed)


def test_logits_must_be_a_matrix() -> None:
    with pytest.raises(ShapeError, match=r"logits must be \(batch, classes\)"):
        random.categorical(np.zeros(3, "float32"), 2)


def test_a_state_is_a_seed() -> None:
    state = random.draw_seed(7)
    found = random.uniform((3,), seed=state)
    np.testing.assert_array_equal(found, random.uniform((3,), seed=7))
    with pytest.raises(InvalidArgumentError, match="seed: expected"):
        random.draw_seed(convert_to_tensor([1, 2]))
