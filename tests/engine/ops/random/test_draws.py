from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, Tensor
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.nn.dropout import dropout
from laminar.engine.ops.random.draws import (
    random_bernoulli,
    random_beta,
    random_binomial,
    random_categorical,
    random_gamma,
    random_int,
    random_normal,
    random_permutation,
    random_poisson,
    random_shuffle,
    random_truncated_normal,
    random_uniform,
)
from laminar.engine.ops.random.random_state import (
    initial_state,
    next_state,
    random_fold,
    random_split,
)
from laminar.engine.runtime import Session

from ..derivatives import check_third
from ..harness import check_op

Array = np.ndarray[Any, Any]
Draw = Callable[[Tensor, Any], Tensor]

N = 20000


def state(seed: int = 1) -> Tensor:
    return convert_to_tensor(initial_state(seed))


DRAWS = [
    pytest.param(random_uniform, id="uniform"),
    pytest.param(random_normal, id="normal"),
    pytest.param(random_truncated_normal, id="truncated"),
    pytest.param(lambda s, shape: random_int(s, shape, -3, 1000), id="int"),
    pytest.param(random_bernoulli, id="bernoulli"),
    pytest.param(lambda s, shape: random_gamma(s, shape, 2.0), id="gamma"),
    pytest.param(lambda s, shape: random_beta(s, shape, 2.0, 3.0), id="beta"),
    pytest.param(lambda s, shape: random_binomial(s, shape, 50.0, 0.5), id="binomial"),
    pytest.param(lambda s, shape: random_poisson(s, shape, 5.0), id="poisson"),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_draw_is_a_function_of_the_state(draw: Draw) -> None:
    x = draw(state(), (4, 25)).numpy()
    assert x.shape == (4, 25)
    np.testing.assert_array_equal(x, draw(state(), (4, 25)).numpy())
    for other in (state(2), next_state(state()), random_fold(state(), convert_to_tensor(0))):
        assert np.any(x != draw(other, (4, 25)).numpy())
    assert draw(state(), (0, 3)).numpy().shape == (0, 3)
    assert draw(state(), ()).numpy().shape == ()


@pytest.mark.parametrize("draw", DRAWS)
def test_a_draw_in_a_graph_has_the_same_bits(draw: Draw) -> None:
    graph = Graph()
    with graph.as_default():
        given, like = placeholder("uint32", [4]), placeholder("float32", [None, 2])
        known = draw(given, (3, 2))
        assert known.shape == (3, 2)
        unknown = draw(given, (dim_of(like, axis=0), 2))
        assert unknown.shape == (None, 2)
    with Session(graph=graph) as session:
        values = session.run([known, unknown], {given: initial_state(1), like: np.zeros((3, 2))})
    for value in values:
        np.testing.assert_array_equal(value, draw(state(), (3, 2)).numpy())


CONTINUOUS = [
    pytest.param(random_uniform, stats.uniform(), id="uniform"),
    pytest.param(
        lambda s, n, dtype: random_uniform(s, n, -2, 3, dtype),
        stats.uniform(-2, 5),
        id="uniform-bounds",
    ),
    pytest.param(random_normal, stats.norm(), id="normal"),
    pytest.param(
        lambda s, n, dtype: random_normal(s, n, 1.5, 0.5, dtype),
        stats.norm(1.5, 0.5),
        id="normal-mean",
    ),
    pytest.param(random_truncated_normal, stats.truncnorm(-2, 2), id="truncated"),
    pytest.param(lambda s, n, dtype: random_gamma(s, n, 0.7, dtype), stats.gamma(0.7), id="gamma"),
    pytest.param(
        lambda s, n, dtype: random_beta(s, n, 2, 0.5, dtype), stats.beta(2, 0.5), id="beta"
    ),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("draw", "distribution"), CONTINUOUS)
def test_continuous_distributions(draw: Any, distribution: Any, dtype: str) -> None:
    x = draw(state(), (N,), dtype=dtype)
    assert x.dtype == dtype
    assert stats.kstest(x.numpy().astype("float64"), distribution.cdf).pvalue > 1e-3


DISCRETE = [
    pytest.param(
        lambda s, n: random_int(s, n, -2, 5), stats.randint(-2, 5), range(-2, 5), id="int"
    ),
    pytest.param(
        lambda s, n: random_bernoulli(s, n, 0.3), stats.bernoulli(0.3), range(2), id="bool"
    ),
    pytest.param(
        lambda s, n: random_binomial(s, n, 6, 0.4),
        stats.binom(6, 0.4),
        range(7),
        id="binomial",
    ),
    pytest.param(
        lambda s, n: random_poisson(s, n, 2.5), stats.poisson(2.5), range(9), id="poisson"
    ),
]


@pytest.mark.parametrize(("draw", "distribution", "values"), DISCRETE)
def test_discrete_distributions(draw: Any, distribution: Any, values: range) -> None:
    x = draw(state(), (N,)).numpy().astype("float64")
    counts = np.array([np.sum(x == v) for v in values])
    expected = N * distribution.pmf(np.array(values))
    rest = N - expected.sum()
    if rest > 1:
        counts, expected = np.append(counts, N - counts.sum()), np.append(expected, rest)
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("draw", [random_uniform, random_normal, random_truncated_normal])
def test_half_types(draw: Any, dtype: str) -> None:
    x = draw(state(), (N,), dtype=dtype)
    wide = x.numpy().astype("float64")
    exact = {random_uniform: (0.5, 12**-0.5), random_normal: (0, 1)}.get(draw, (0, 0.8796))
    assert x.dtype == dtype
    assert abs(wide.mean() - exact[0]) < 0.03
    assert abs(wide.std() - exact[1]) < 0.03


def test_parameters_broadcast_to_the_shape() -> None:
    p = convert_to_tensor(np.array([0.0, 0.25, 1.0], "float32"))
    x = random_bernoulli(state(), (N, 3), p).numpy().mean(0)
    np.testing.assert_allclose(x, [0, 0.25, 1], atol=0.02)
    alpha = convert_to_tensor(np.array([[1.0], [20.0]]))
    x = random_gamma(state(), (2, N), alpha).numpy().mean(1)
    np.testing.assert_allclose(x, [1, 20], rtol=0.05)


def test_gradients_flow_to_mean_and_deviation() -> None:
    given = convert_to_tensor(initial_state(3))
    noise = random_normal(given, (4, 3), dtype="float64").numpy()
    inputs = [np.array([0.5, 1.0, -1.0]), np.array(2.0)]
    check_op(
        lambda mean, stddev: random_normal(given, (4, 3), mean, stddev, "float64"),
        lambda mean, stddev: mean + stddev * noise,
        inputs,
    )


def test_integer_bounds_known_at_run_time_only() -> None:
    graph = Graph()
    with graph.as_default():
        high = placeholder("int32", [])
        x = random_int(convert_to_tensor(initial_state(0)), (500,), 3, high, "int64")
    with Session(graph=graph) as session:
        assert set(session.run(x, {high: 6}).tolist()) == {3, 4, 5}
        with pytest.raises(InvalidArgumentError, match="expected low < high"):
            session.run(x, {high: 3})


def test_the_whole_range_of_64_bits() -> None:
    x = random_int(state(), (1000,), -(2**63), 2**63, "int64").numpy()
    assert x.min() < -(2**62) < 2**62 < x.max()


def test_categorical() -> None:
    p = np.array([[0.1, 0.6, 0.3, 0.0], [0.25, 0.25, 0.25, 0.25]])
    with np.errstate(divide="ignore"):
        logits = convert_to_tensor(np.log(p) + 3)
    x = random_categorical(state(), logits, N)
    assert (x.dtype, x.shape) == ("int32", (2, N))
    counts = np.array([np.bincount(row, minlength=4) for row in x.numpy()])
    assert counts[0, 3] == 0
    assert stats.chisquare(counts[0, :3], N * p[0, :3]).pvalue > 1e-3
    assert stats.chisquare(counts[1], N * p[1]).pvalue > 1e-3
    with pytest.raises(ShapeError, match=r"logits must be \(batch, classes\)"):
        random_categorical(state(), convert_to_tensor(np.zeros(3)), 2)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_shuffle(axis: int) -> None:
    x = np.random.default_rng(0).normal(size=(5, 4, 3))
    given = convert_to_tensor(initial_state(5))
    order = random_permutation(given, x.shape[axis]).numpy()
    assert sorted(order) == list(range(x.shape[axis]))
    check_op(
        lambda x: random_shuffle(given, x, axis),
        lambda x: np.take(x, order, axis),
        [x],
        dtypes=["bfloat16"],
    )


def test_every_order_is_as_likely() -> None:
    states = random_split(state(), 6000).numpy()
    orders = [
        tuple(random_permutation(convert_to_tensor(s), 3).numpy().tolist()) for s in states[:1500]
    ]
    counts = [orders.count(order) for order in sorted(set(orders))]
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-3


def test_strings_can_be_shuffled() -> None:
    words = convert_to_tensor(["a", "b", "c"])
    assert sorted(random_shuffle(state(), words).numpy().tolist()) == [b"a", b"b", b"c"]


DROPOUT = [
    pytest.param((50, 40), None, (50, 40), id="each"),
    pytest.param((50, 40, 3), (None, None, 1), (50, 40, 1), id="channels-together"),
    pytest.param((2, 50, 40), (1, None, 40), (1, 50, 40), id="batch-together"),
    pytest.param((0, 3), None, (0, 3), id="empty"),
]


@pytest.mark.parametrize(("shape", "noise_shape", "choices"), DROPOUT)
def test_dropout(shape: Any, noise_shape: Any, choices: Any) -> None:
    given = convert_to_tensor(initial_state(7))
    ones = dropout(convert_to_tensor(np.ones(shape)), given, 0.25, noise_shape).numpy()
    kept = ones != 0
    first = kept[tuple(slice(0, n) for n in choices)]
    np.testing.assert_array_equal(kept, np.broadcast_to(first, shape))
    np.testing.assert_allclose(ones, kept / 0.75)
    if kept.size:
        assert stats.binomtest(int(first.sum()), first.size, 0.75).pvalue > 1e-3
    check_op(
        lambda x: dropout(x, given, 0.25, noise_shape),
        lambda x: x * kept / 0.75,
        [np.random.default_rng(0).normal(size=shape)],
        dtypes=["float32", "float16", "bfloat16"],
    )


def test_dropout_of_none_and_of_all() -> None:
    x = convert_to_tensor(np.ones((3, 4), "float32"))
    assert dropout(x, state(), 0) is x
    assert not dropout(x, state(), 1).numpy().any()


def test_states() -> None:
    assert initial_state(2**33 + 5).tolist() == [5, 2, 0, 0]
    assert next_state(state(5)).numpy().tolist() == [5, 0, 1, 0]
    last = convert_to_tensor(np.array([5, 0, 2**32 - 1, 0], "uint32"))
    assert next_state(last).numpy().tolist() == [5, 0, 0, 1]
    assert next_state(last, 2).numpy().tolist() == [5, 0, 1, 1]
    end = convert_to_tensor(np.array([5, 0, 2**32 - 1, 2**32 - 1], "uint32"))
    assert next_state(end).numpy().tolist() == [5, 0, 0, 0]


def test_split_states_differ() -> None:
    states = random_split(state(), 1000)
    assert (states.dtype, states.shape) == ("uint32", (1000, 4))
    assert len({tuple(s) for s in states.numpy().tolist()}) == 1000
    again = random_fold(state(), convert_to_tensor(np.array([[7, 3]])))
    np.testing.assert_array_equal(again.numpy()[0], states.numpy()[[7, 3]])
    # What is drawn from neighbours is not related.
    x, y = (random_normal(convert_to_tensor(s), (N,)).numpy() for s in states.numpy()[:2])
    assert abs(np.corrcoef(x, y)[0, 1]) < 4 / np.sqrt(N)


ERRORS = [
    pytest.param(
        lambda s: random_uniform(s, (2,), dtype="int32"),
        DTypeError,
        "RandomUniform: expected a floating dtype, got int32",
        id="uniform-integers",
    ),
    pytest.param(
        lambda s: random_int(s, (2,), 5, 5),
        InvalidArgumentError,
        "RandomInt: expected low < high, got low=5 and high=5",
        id="no-integer",
    ),
    pytest.param(
        lambda s: random_int(s, (2,), 0, 5, "float32"),
        DTypeError,
        "RandomInt: expected an integer dtype, got float32",
        id="floating-integers",
    ),
    pytest.param(
        lambda s: random_gamma(s, (2,), convert_to_tensor(np.ones(3))),
        ShapeError,
        "RandomGamma: the shapes [3] and [2] do not broadcast (axis -1: 3 against 2)",
        id="parameter",
    ),
    pytest.param(
        lambda s: random_gamma(s, (), convert_to_tensor(np.ones(3))),
        ShapeError,
        "RandomGamma: the parameter float64[3] does not broadcast to the shape []",
        id="parameter-larger",
    ),
    pytest.param(
        lambda s: random_normal(random_split(s, 2), (2,)),
        ShapeError,
        "RandomNormal: the state of a random generator is uint32[4], got uint32[2, 4]",
        id="state",
    ),
    pytest.param(
        lambda s: random_normal(convert_to_tensor(np.zeros(4)), (2,)),
        DTypeError,
        "RandomNormal: state must be one of uint32, got float64[4]",
        id="state-type",
    ),
    pytest.param(
        lambda s: dropout(convert_to_tensor(np.ones(3)), s, 1.5),
        InvalidArgumentError,
        "Dropout: the rate must be from 0 to 1, got 1.5",
        id="rate",
    ),
    pytest.param(
        lambda s: dropout(convert_to_tensor(np.ones((3, 2))), s, 0.5, (2,)),
        ShapeError,
        "Dropout: noise_shape must have 1 or the size of x on each axis; "
        "x is float64[3, 2], noise_shape [2]",
        id="noise-shape",
    ),
    pytest.param(
        lambda s: initial_state(-1),
        InvalidArgumentError,
        "a seed is a whole number from 0 to 2**64 - 1, got -1",
        id="seed",
    ),
]


@pytest.mark.parametrize(("fn", "kind", "message"), ERRORS)
def test_errors(fn: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        fn(state())
    assert caught.value.message == message  # type: ignore[attr-defined]  # all are LaminarErrors


def test_third_derivatives() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4))
    given = convert_to_tensor(initial_state(7))
    kept = dropout(convert_to_tensor(np.ones(x.shape)), given, 0.25).numpy()
    check_third(lambda x: dropout(x, given, 0.25), lambda x: x * kept, [x])
    order = random_permutation(given, 3).numpy()
    check_third(lambda x: random_shuffle(given, x), lambda x: x[order], [x])
