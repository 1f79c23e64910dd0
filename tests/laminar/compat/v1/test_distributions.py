"""`tf.distributions`, against SciPy: densities, moments, entropies, divergences and draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import laminar.compat.v1 as tf
from laminar.engine.errors import AlreadyExistsError, UnimplementedError

ds = tf.distributions


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(x: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(x, feed)


A, B = np.array([0.5, 2.0, 3.5]), np.array([1.0, 1.5, 4.0])

CONTINUOUS: list[Any] = [
    pytest.param(lambda: ds.Normal(A, B), scipy.stats.norm(A, B), id="normal"),
    pytest.param(lambda: ds.Uniform(A, A + B), scipy.stats.uniform(A, B), id="uniform"),
    pytest.param(lambda: ds.Laplace(A, B), scipy.stats.laplace(A, B), id="laplace"),
    pytest.param(lambda: ds.Gamma(A, B), scipy.stats.gamma(A, scale=1 / B), id="gamma"),
    pytest.param(lambda: ds.Exponential(B), scipy.stats.expon(scale=1 / B), id="exponential"),
    pytest.param(lambda: ds.Beta(A, B), scipy.stats.beta(A, B), id="beta"),
    pytest.param(lambda: ds.StudentT(A + 3, A, B), scipy.stats.t(A + 3, A, B), id="student"),
]
INVERTIBLE = ("Normal", "Uniform", "Laplace", "Exponential")


@pytest.mark.parametrize(("make", "reference"), CONTINUOUS)
def test_continuous(make: Any, reference: Any) -> None:
    d = make()
    x = reference.ppf([[0.1], [0.4], [0.9]])
    assert (d.batch_shape, d.event_shape) == ((3,), ())
    wanted = [
        (d.log_prob(x), reference.logpdf(x)),
        (d.prob(x), reference.pdf(x)),
        (d.cdf(x), reference.cdf(x)),
        (d.survival_function(x), reference.sf(x)),
        (d.entropy(), reference.entropy()),
        (d.mean(), reference.mean()),
        (d.variance(), reference.var()),
        (d.stddev(), reference.std()),
    ]
    if type(d).__name__ in INVERTIBLE:
        wanted.append((d.quantile([[0.1], [0.4], [0.9]]), x))
    draws = d.sample(3000, seed=1)
    *found, drawn = run([*(value for value, _ in wanted), draws])
    for value, (_, expected) in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.broadcast_to(value, np.shape(expected)), expected, rtol=1e-6)
    for i in range(3):
        other = [np.ravel(p)[i] for p in reference.args]
        kwds = {k: v[i] for k, v in reference.kwds.items()}
        column = reference.dist(*other, **kwds)
        assert scipy.stats.kstest(drawn[:, i], column.cdf).pvalue > 1e-4


def test_modes() -> None:
    found = run(
        [
            ds.Normal(A, B).mode(),
            ds.Gamma(A, B).mode(),
            ds.Beta(A, B).mode(),
            ds.Bernoulli(probs=[0.2, 0.7]).mode(),
            ds.Categorical(logits=[[1.0, 3.0, 2.0]]).mode(),
        ]
    )
    expected: list[Any] = [A, [np.nan, 1 / 1.5, 2.5 / 4], [np.nan, 1 / 1.5, 2.5 / 5.5], [0, 1], [1]]
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, wanted)


PAIRS: list[Any] = [
    ("Normal", lambda a, b: scipy.stats.norm(a, b), 1.0, 0.7, -1.0, 1.5),
    ("Gamma", lambda a, b: scipy.stats.gamma(a, scale=1 / b), 2.0, 0.7, 3.0, 1.5),
    ("Beta", scipy.stats.beta, 2.0, 1.7, 3.0, 1.5),
]


@pytest.mark.parametrize(("name", "reference", "a", "b", "c", "d"), PAIRS)
def test_divergences(name: str, reference: Any, a: float, b: float, c: float, d: float) -> None:
    p, q = reference(a, b), reference(c, d)
    low, high = p.ppf([1e-12, 1 - 1e-12])
    expected, _ = scipy.integrate.quad(
        lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), low, high, limit=200
    )
    one, other = getattr(ds, name)(np.float64(a), b), getattr(ds, name)(np.float64(c), d)
    found = run([ds.kl_divergence(one, other), one.cross_entropy(other), one.entropy()])
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)
    np.testing.assert_allclose(found[1], found[0] + found[2], rtol=1e-6)


def test_classes() -> None:
    p = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])
    q = np.array([[0.1, 0.8, 0.1], [0.5, 0.25, 0.25]])
    d = ds.Categorical(probs=p)
    other = ds.Categorical(logits=np.log(q))
    assert (d.batch_shape, d.event_shape, d.dtype) == ((2,), (), tf.int32)
    shown = [d.log_prob([2, 0]), d.prob([[1, 1], [0, 2]]), other.entropy()]
    found = run([*shown, other.kl_divergence(ds.Categorical(logits=np.log(q[::-1])))])
    expected = [
        np.log([0.5, 0.6]),
        [[0.3, 0.4], [0.2, 0.0]],
        -(q * np.log(q)).sum(1),
        (q * np.log(q / q[::-1])).sum(1),
    ]
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-6)
    drawn = run(d.sample([50, 40], seed=2))
    assert drawn.shape == (50, 40, 2)
    shares = [(drawn == k).mean((0, 1)) for k in range(3)]
    np.testing.assert_allclose(np.transpose(shares), p, atol=0.05)


def test_counts_and_truths() -> None:
    p = np.array([0.2, 0.3, 0.5])
    d, reference = ds.Multinomial(4.0, probs=p), scipy.stats.multinomial(4, p)
    x = [[1.0, 1, 2], [0, 0, 4]]
    coin = ds.Bernoulli(logits=[-1.0, 0.5], dtype=tf.int64)
    odds = 1 / (1 + np.exp([1.0, -0.5]))
    truth = scipy.stats.bernoulli(odds)
    found = run(
        [d.log_prob(x), d.mean(), d.variance(), d.sample(2000, seed=3), coin.log_prob([1, 0]),
         coin.entropy(), coin.variance(), coin.sample(2000, seed=4), coin.kl_divergence(coin)]
    )  # fmt: skip
    expected = [
        reference.logpmf(x), 4 * p, 4 * p * (1 - p), None, truth.logpmf([1, 0]), truth.entropy(),
        truth.var(), None, [0, 0],
    ]  # fmt: skip
    for value, wanted in zip(found, expected, strict=True):
        if wanted is not None:
            np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(found[3].sum(-1), 4)
    np.testing.assert_allclose(found[3].mean(0), 4 * p, atol=0.15)
    assert found[7].dtype == np.int64
    np.testing.assert_allclose(found[7].mean(0), odds, atol=0.05)


def test_vectors_of_shares() -> None:
    a = np.array([0.5, 2.0, 3.0])
    d, reference = ds.Dirichlet(a), scipy.stats.dirichlet(a)
    x = np.array([0.2, 0.3, 0.5])
    found = run(
        [d.log_prob(x), d.entropy(), d.mean(), d.variance(), d.sample(2000, seed=5),
         d.kl_divergence(ds.Dirichlet(a)), d.kl_divergence(ds.Dirichlet(np.ones(3)))]
    )  # fmt: skip
    assert (d.batch_shape, d.event_shape) == ((), (3,))
    np.testing.assert_allclose(found[0], reference.logpdf(x))
    np.testing.assert_allclose(found[1], reference.entropy())
    np.testing.assert_allclose(found[2], reference.mean())
    np.testing.assert_allclose(found[3], reference.var())
    np.testing.assert_allclose(found[4].sum(-1), 1)
    np.testing.assert_allclose(found[4].mean(0), reference.mean(), atol=0.03)
    np.testing.assert_allclose(found[5], 0, atol=1e-12)
    # The uniform density is 2 everywhere: the divergence is log(1/2) - entropy.
    np.testing.assert_allclose(found[6], -np.log(2) - reference.entropy())


def test_draws_depend_on_parameters_where_they_can() -> None:
    loc, rate = tf.constant(1.0), tf.constant(2.0)
    moved = tf.gradients(ds.Normal(loc, 2.0).sample(5, seed=1), loc)[0]
    assert run(moved) == 5
    assert tf.gradients(ds.Bernoulli(logits=rate, dtype=tf.float32).sample(5), rate) == [None]
    size = tf.placeholder(tf.int32, [])
    assert run(ds.Normal(0.0, 1.0).sample(size), {size: 4}).shape == (4,)
    x = tf.placeholder(tf.float32, [None])
    drawn, shape = run(
        [ds.Normal(x, 1.0).sample(2), ds.Normal(x, 1.0).batch_shape_tensor()], {x: [1, 2, 3]}
    )
    assert drawn.shape == (2, 3)
    assert shape.tolist() == [3]


def test_pairs_without_a_formula() -> None:
    with pytest.raises(UnimplementedError, match="no divergence of Normal from Gamma"):
        ds.kl_divergence(ds.Normal(0.0, 1.0), ds.Gamma(1.0, 1.0))
    with pytest.raises(AlreadyExistsError):
        ds.RegisterKL(ds.Normal, ds.Normal)(lambda a, b, name: 0)
    with pytest.raises(UnimplementedError, match="Dirichlet has no cdf"):
        ds.Dirichlet([1.0, 2.0]).cdf([0.5, 0.5])
    with pytest.raises(ValueError, match="give logits or probs"):
        ds.Bernoulli()
    with pytest.raises(AttributeError):
        ds.Normal(0.0, 1.0).rate  # noqa: B018  # it raises
