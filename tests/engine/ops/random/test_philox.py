"""Random bits against the known answers, and distributions against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scipy import special, stats

from laminar.engine.errors import DTypeError, InvalidArgumentError
from laminar.engine.ops.random import distributions, philox, rejection

KEY = np.array([12345, 67890], np.uint32)
ALPHA = 1e-4  # a right generator fails a test of this level once in 10 000; the seeds are fixed
FLOATS = ["float32", "float64", "float16", "bfloat16"]


def key(seed: int) -> np.ndarray:
    return np.array([seed, 7], np.uint32)


# Bits


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    # The file kat_vectors of the authors' Random123 distribution, philox4x32 of 10 rounds.
    [
        ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([2**32 - 1] * 4, [2**32 - 1] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_known_answers(counter: list[int], key: list[int], expected: str) -> None:
    words = np.array([int(word, 16) for word in expected.split()], np.uint32)
    keys = np.array(key, np.uint32)
    number = sum(word << 32 * i for i, word in enumerate(counter))
    np.testing.assert_array_equal(philox.random_bits(np, keys, number, 4), words)
    halves = np.array([number % 2**64, number >> 64], np.uint64)
    np.testing.assert_array_equal(philox.random_bits(np, keys, halves, 4), words)
    index = np.array([number % 2**64], np.uint64)
    np.testing.assert_array_equal(philox.blocks_at(np, keys, index, number >> 64)[0], words)


@pytest.mark.parametrize("start", [0, 2**32 - 3, 2**64 - 3, 2**96 - 3, 2**128 - 3])
def test_blocks_are_numbered_modulo_2_128(start: int) -> None:
    """Also where the number of a block carries into its next word."""
    words = philox.random_bits(np, KEY, start, 24).reshape(6, 4)
    for i in range(6):
        one = philox.random_bits(np, KEY, (start + i) % 2**128, 4)
        np.testing.assert_array_equal(words[i], one)


def test_keys_and_counters_give_other_words() -> None:
    base = philox.random_bits(np, KEY, 0, 1000)
    for other in (
        philox.random_bits(np, KEY + np.uint32(1), 0, 1000),
        philox.random_bits(np, KEY[::-1], 0, 1000),
        philox.random_bits(np, KEY, 250, 1000),
    ):
        assert np.count_nonzero(base == other) < 3


def test_bits_look_random() -> None:
    words = philox.random_bits(np, KEY, 0, 1 << 20)
    counts = np.bincount(words.view(np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > ALPHA
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 32).sum(axis=0)
    deviations = (ones - len(words) / 2) / np.sqrt(len(words) / 4)
    assert np.abs(deviations).max() < 5
    # Neighbours within a block, and the same word of neighbouring blocks.
    for lag in (1, 2, 3, 4):
        assert abs(np.corrcoef(words[:-lag], words[lag:])[0, 1]) < 5e-3


# What is common to all distributions

Draw = Callable[[np.ndarray, int], np.ndarray]


def draw(fn: Callable[..., Any], *args: Any, **options: Any) -> Draw:
    return lambda key, n: np.asarray(fn(np, key, n, *args, **options))


DRAWS = [
    *(
        pytest.param(draw(fn, dtype), id=f"{fn.__name__}-{dtype}")
        for fn in (distributions.uniform, distributions.normal, distributions.truncated_normal)
        for dtype in FLOATS
    ),
    pytest.param(draw(distributions.randint, 0, 10), id="randint"),
    pytest.param(draw(distributions.randint, -5, 2**40, "int64"), id="randint-large"),
    pytest.param(draw(distributions.bernoulli, 0.3), id="bernoulli"),
    pytest.param(draw(rejection.gamma, 0.4), id="gamma-0.4"),
    pytest.param(draw(rejection.gamma, 3.0, "float64"), id="gamma-3"),
    pytest.param(draw(rejection.beta, 0.5, 2.0), id="beta"),
    pytest.param(draw(rejection.poisson, 3.0), id="poisson-3"),
    pytest.param(draw(rejection.poisson, 300.0), id="poisson-300"),
    pytest.param(draw(rejection.binomial, 10, 0.3), id="binomial-10"),
    pytest.param(draw(rejection.binomial, 1000, 0.7), id="binomial-1000"),
]


@pytest.mark.parametrize("fn", DRAWS)
def test_element_does_not_depend_on_what_else_is_drawn(
    fn: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fn(KEY, 5000)
    for n in (0, 1, 2, 3, 5, 17, 64, 1001, 4999):
        assert fn(KEY, n).tobytes() == whole[:n].tobytes()
    monkeypatch.setattr(philox, "_CPU_BLOCKS", 37)
    assert fn(KEY, 5000).tobytes() == whole.tobytes()


@pytest.mark.parametrize("fn", DRAWS)
def test_keys_give_other_numbers(fn: Draw) -> None:
    first, second = fn(key(1), 2000), fn(key(2), 2000)
    assert first.tobytes() != second.tobytes()
    correlation = np.corrcoef(first.astype(float), second.astype(float))[0, 1]
    assert abs(correlation) < 0.12


@pytest.mark.parametrize(
    "fn",
    [
        distributions.uniform,
        distributions.normal,
        distributions.truncated_normal,
        partial(distributions.randint, low=0, high=2**60, dtype="int64"),
        distributions.bernoulli,
        distributions.permutation,
    ],
)
def test_counter_says_where_the_stream_begins(fn: Callable[..., Any]) -> None:
    far = 2**64 - 5
    assert fn(np, KEY, 50, counter=far).tobytes() != fn(np, KEY, 50).tobytes()
    halves = np.array([far, 0], np.uint64)
    assert fn(np, KEY, 50, counter=far).tobytes() == fn(np, KEY, 50, counter=halves).tobytes()


# Each distribution


@pytest.mark.parametrize(("dtype", "bits"), [("float32", 24), ("float64", 53), ("float16", 11)])
def test_uniform(dtype: str, bits: int) -> None:
    x = distributions.uniform(np, KEY, 200_000, dtype)
    assert x.dtype == dtype
    assert x.min() >= 0
    assert x.max() < 1
    steps = x.astype(np.float64) * 2.0**bits
    np.testing.assert_array_equal(steps, np.floor(steps))
    assert np.any(steps % 2 == 1)
    # The middle of the step each number stands for.
    assert stats.kstest(x.astype(np.float64) + 2.0 ** -(bits + 1), "uniform").pvalue > ALPHA


def test_uniform_bfloat16() -> None:
    x = distributions.uniform(np, KEY, 200_000, "bfloat16")
    assert x.dtype == ml_dtypes.bfloat16
    counts = np.bincount((x.astype(np.float32) * 256).astype(int), minlength=256)
    assert len(counts) == 256
    assert stats.chisquare(counts).pvalue > ALPHA


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal(dtype: str) -> None:
    x = distributions.normal(np, KEY, 400_000, dtype).astype(np.float64)
    if dtype in ("float32", "float64"):
        assert stats.kstest(x, "norm").pvalue > ALPHA
        assert stats.kstest(x[1::2], "norm").pvalue > ALPHA
    assert abs(x.mean()) < 0.008
    assert abs(x.var() - 1) < 0.012
    assert abs(np.corrcoef(x[::2], x[1::2])[0, 1]) < 0.012
    tail = np.count_nonzero(np.abs(x) > 4) / len(x) / (2 * stats.norm.sf(4))
    assert 0.5 < tail < 1.6


def test_normal_at_the_ends_of_the_uniform_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of all zeros and all ones: the largest radius, and 0; nothing infinite."""
    ends = np.array([0, 0, 2**32 - 1, 2**32 - 1], np.uint32)
    monkeypatch.setattr(distributions, "random_bits", lambda *args: np.resize(ends, args[3]))
    single = distributions.normal(np, KEY, 8)
    assert np.isfinite(single).all()
    assert single[0] == pytest.approx(np.sqrt(2 * 33 * np.log(2)), rel=1e-6)
    double = distributions.normal(np, KEY, 4, "float64")
    assert np.isfinite(double).all()


@pytest.mark.parametrize(
    ("dtype", "ends"),
    # The least and the greatest number, as an unsigned and as a signed integer.
    [("float64", [0, 0, 2**32 - 1, 2**32 - 1]), ("float32", [2**31, 2**31 - 1] * 2)],
)
def test_truncated_normal_at_the_ends(
    dtype: str, ends: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = np.array(ends, np.uint32)
    monkeypatch.setattr(distributions, "random_bits", lambda *_: words)
    x = distributions.truncated_normal(np, KEY, 2, dtype)
    assert np.abs(x).max() <= 2
    np.testing.assert_allclose(x, [-2, 2], rtol=1e-7)


@pytest.mark.parametrize("dtype", FLOATS)
def test_truncated_normal(dtype: str) -> None:
    x = distributions.truncated_normal(np, KEY, 400_000, dtype).astype(np.float64)
    assert np.abs(x).max() <= 2
    if dtype in ("float32", "float64"):
        assert stats.kstest(x, stats.truncnorm(-2, 2).cdf).pvalue > ALPHA
    mean, variance = stats.truncnorm.stats(-2, 2)
    assert x.mean() == pytest.approx(mean, abs=0.007)
    assert x.var() == pytest.approx(variance, abs=0.008)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1.2e-7), ("float64", 1e-15)])
def test_truncated_normal_is_the_quantile_of_its_words(dtype: str, tolerance: float) -> None:
    x = distributions.truncated_normal(np, KEY, 20_000, dtype)
    if dtype == "float64":
        words = philox.random_bits(np, KEY, 0, 40_000).astype(np.uint64)
        whole = ((words[0::2] >> 5) << 26) + (words[1::2] >> 6)
        v = (2 * whole.astype(np.int64) + 1 - 2**53) * 2.0**-53
    else:
        words = philox.random_bits(np, KEY, 0, 20_000)
        v = (words.view(np.int32) + 0.5) / 2**31
    # Both are accurate relative to the number itself, also near 0.
    expected = np.sqrt(2) * special.erfinv(v * special.erf(np.sqrt(2)))
    np.testing.assert_allclose(x, expected, rtol=tolerance)


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (0, 10, "int32"),
        (-3, 4, "int8"),
        (0, 256, "uint8"),
        (-(2**31), 2**31, "int32"),
        (-5, 2**33 + 11, "int64"),
        (-(2**63), 2**63, "int64"),
        (2**63 + 1, 2**64, "uint64"),
        (0, 2**64, "uint64"),
        (7, 8, "int16"),
        (0, 3 * 2**30, "int64"),
        (0, 3 * 2**62, "uint64"),
    ],
)
def test_randint(low: int, high: int, dtype: str) -> None:
    x = distributions.randint(np, KEY, 100_000, low, high, dtype)
    assert x.dtype == dtype
    values = x.astype(object)
    assert min(values) >= low
    assert max(values) < high
    groups = min(high - low, 50)
    counts = np.bincount([(v - low) * groups // (high - low) for v in values], minlength=groups)
    borders = [-(-g * (high - low) // groups) for g in range(groups + 1)]
    expected = np.diff(np.array(borders, float))
    if groups > 1:
        expected *= len(x) / expected.sum()
        assert stats.chisquare(counts, expected).pvalue > ALPHA


@pytest.mark.parametrize("span", [2**32 + 1, 2**40 + 12345, 3 * 2**62, 2**64 - 1])
def test_randint_multiplies_exactly(span: int) -> None:
    words = philox.random_bits(np, KEY, 0, 400).astype(object).reshape(-1, 4)
    numbers = [int(w[0] + (w[1] << 32) + (w[2] << 64) + (w[3] << 96)) for w in words]
    x = distributions.randint(np, KEY, 100, 0, span, "uint64")
    assert x.astype(object).tolist() == [number * span >> 128 for number in numbers]


def test_randint_of_a_small_span_multiplies_exactly() -> None:
    words = philox.random_bits(np, KEY, 0, 200).astype(object).reshape(-1, 2)
    numbers = [int(w[0] + (w[1] << 32)) for w in words]
    for span in (3, 1000, 2**31 + 1, 2**32 - 1, 2**32):
        x = distributions.randint(np, KEY, 100, 0, span, "int64")
        assert x.tolist() == [number * span >> 64 for number in numbers]


@pytest.mark.parametrize(
    ("low", "high", "dtype", "error"),
    [
        (3, 3, "int32", InvalidArgumentError),
        (4, 3, "int32", InvalidArgumentError),
        (0, 2**31 + 1, "int32", InvalidArgumentError),
        (-1, 5, "uint8", InvalidArgumentError),
        (0, 5, "float32", DTypeError),
    ],
)
def test_randint_refuses(low: int, high: int, dtype: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="randint"):
        distributions.randint(np, KEY, 3, low, high, dtype)


@pytest.mark.parametrize(
    "fn", [distributions.uniform, distributions.normal, distributions.truncated_normal]
)
def test_only_floating_dtypes(fn: Callable[..., Any]) -> None:
    with pytest.raises(DTypeError, match="floating"):
        fn(np, KEY, 3, "int32")


def test_bernoulli() -> None:
    n = 100_000
    for p in (0.0, 0.01, 0.5, 0.9, 1.0):
        hits = int(distributions.bernoulli(np, key(3), n, p).sum())
        assert stats.binomtest(hits, n, p).pvalue > ALPHA
    each = distributions.bernoulli(np, KEY, n, np.repeat([0.0, 1.0], n // 2))
    assert each.dtype == bool
    assert not each[: n // 2].any()
    assert each[n // 2 :].all()


def test_permutation() -> None:
    for n in (0, 1, 2, 3, 1000):
        order = distributions.permutation(np, KEY, n)
        assert sorted(order) == list(range(n))
    orders = [tuple(distributions.permutation(np, key(seed), 4)) for seed in range(4800)]
    counts = np.unique(np.array(orders) @ [64, 16, 4, 1], return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > ALPHA


@pytest.mark.parametrize("classes", [1, 2, 5, 8, 33])
def test_categorical(classes: int) -> None:
    logits = np.stack([np.linspace(-1, 1, classes), np.zeros(classes)]).astype(np.float32)
    found = distributions.categorical(np, KEY, logits, 40_000)
    assert found.shape == (2, 40_000)
    assert found.dtype == np.int32
    for row, drawn in zip(special.softmax(logits.astype(float), axis=-1), found, strict=True):
        counts = np.bincount(drawn, minlength=classes)
        assert len(counts) == classes
        if classes > 1:
            assert stats.chisquare(counts, row / row.sum() * 40_000).pvalue > ALPHA


def test_categorical_never_draws_what_cannot_be() -> None:
    logits = np.full((3, 9), -np.inf)
    logits[0, 4] = logits[1, 0] = logits[1, 8] = logits[2, 3] = 0
    found = distributions.categorical(np, KEY, logits, 2000, "int64")
    assert set(found[0]) == {4}
    assert set(found[1]) == {0, 8}
    assert set(found[2]) == {3}


def test_categorical_at_the_end_of_the_uniform_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    last = np.float64(1 - 2.0**-53)
    monkeypatch.setattr(distributions, "uniform", lambda *_, **__: np.full(4, last))
    logits = np.log(np.array([[0.1, 0.2, 0.3], [0.3, 0.3, 1e-300]]))
    logits[1, 2] = -np.inf
    assert distributions.categorical(np, KEY, logits, 2).tolist() == [[2, 2], [1, 1]]


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 2.5, 100.0, 1e6])
def test_gamma(alpha: float) -> None:
    x = rejection.gamma(np, KEY, 60_000, alpha, "float64")
    assert stats.kstest(x, stats.gamma(alpha).cdf).pvalue > ALPHA


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.5), (1, 3), (20.0, 0.2), (0.001, 0.002)])
def test_beta(alpha: float, beta: float) -> None:
    x = rejection.beta(np, KEY, 60_000, alpha, beta, "float64")
    assert x.min() >= 0
    assert x.max() <= 1
    if min(alpha, beta) < 0.01:
        # Nearly all is at one end or the other.
        assert stats.binomtest(int((x > 0.5).sum()), len(x), 1 / 3).pvalue > ALPHA
    else:
        assert stats.kstest(x, stats.beta(alpha, beta).cdf).pvalue > ALPHA


def check_counts(x: np.ndarray, distribution: Any) -> None:
    """Chi-square over the values that are expected often enough, and the two tails."""
    low, high = (int(distribution.ppf(q)) for q in (2e-4, 1 - 2e-4))
    edges = np.unique(np.linspace(low - 0.5, high + 0.5, 40).round() - 0.5)
    expected = np.diff(np.concatenate([[0], distribution.cdf(edges), [1]])) * len(x)
    counts = np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1)
    keep = expected > 5
    rest = [counts[~keep].sum()], [max(expected[~keep].sum(), 1e-9)]
    counts, expected = np.append(counts[keep], rest[0]), np.append(expected[keep], rest[1])
    statistic = ((counts - expected) ** 2 / np.maximum(expected, 1)).sum()
    assert stats.chi2.sf(statistic, len(counts) - 1) > ALPHA


@pytest.mark.parametrize("mean", [0.0, 0.3, 5.0, 9.99, 10.0, 40.0, 1e4, 1e9])
def test_poisson(mean: float) -> None:
    x = rejection.poisson(np, KEY, 60_000, mean, "float64")
    np.testing.assert_array_equal(x, np.floor(x))
    if mean == 0:
        assert not x.any()
    else:
        check_counts(x, stats.poisson(mean))


@pytest.mark.parametrize(
    ("counts", "p"),
    [
        (1, 0.5),
        (7, 0.9),
        (30, 0.2),
        (25, 0.5),
        (100, 0.1),
        (1000, 0.77),
        (10**6, 0.3),
        (10**9, 1e-9),
    ],
)
def test_binomial(counts: int, p: float) -> None:
    x = rejection.binomial(np, KEY, 60_000, counts, p, "float64")
    assert x.min() >= 0
    assert x.max() <= counts
    check_counts(x, stats.binom(counts, p))


def test_certain_outcomes_of_binomial() -> None:
    x = rejection.binomial(np, KEY, 4, [0, 5, 5, 10**6], [0.5, 0.0, 1.0, 1.0])
    assert x.tolist() == [0, 0, 5, 10**6]


def test_parameters_of_each_element() -> None:
    """An element with its own parameters is what it would be if all had these."""
    n = 3000
    alphas = np.tile([0.2, 1.0, 50.0], n // 3)
    mixed = rejection.gamma(np, KEY, n, alphas)
    for i, alpha in enumerate((0.2, 1.0, 50.0)):
        np.testing.assert_array_equal(mixed[i::3], rejection.gamma(np, KEY, n, alpha)[i::3])
    means = np.tile([0.5, 20.0, 3000.0], n // 3)
    mixed = rejection.poisson(np, KEY, n, means)
    for i, mean in enumerate((0.5, 20.0, 3000.0)):
        np.testing.assert_array_equal(mixed[i::3], rejection.poisson(np, KEY, n, mean)[i::3])


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_parameters_out_of_range_give_nan(bad: float) -> None:
    good_and_bad = np.array([2.0, bad, 30.0])
    for x in (
        rejection.gamma(np, KEY, 3, good_and_bad),
        rejection.beta(np, KEY, 3, good_and_bad, 1.0),
        rejection.beta(np, KEY, 3, 1.0, good_and_bad),
        rejection.poisson(np, KEY, 3, good_and_bad),
        rejection.binomial(np, KEY, 3, good_and_bad, 0.5),
        rejection.binomial(np, KEY, 3, 100, [0.5, bad, 0.9]),
    ):
        assert np.isnan(x).tolist() == [False, True, False]


@pytest.mark.parametrize("fn", [rejection.gamma, rejection.poisson])
@pytest.mark.parametrize("dtype", FLOATS)
def test_dtype_of_what_is_drawn(fn: Callable[..., Any], dtype: str) -> None:
    x = fn(np, KEY, 10, 3.0, dtype)
    assert x.dtype == (ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    exact = fn(np, KEY, 10, 3.0, "float64")
    np.testing.assert_allclose(x.astype(float), exact, rtol=2.0**-8)
