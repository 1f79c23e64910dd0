"""Candidate sampling: a few classes that stand for very many in a loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, float32, float64, int64
from laminar.engine.ops.array.gather import gather
from laminar.engine.ops.core.basic import ones_like
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.elementary import expm1, log, log1p
from laminar.engine.ops.random.candidates import candidate_sampler
from laminar.ops.arguments import tensor, whole

from ..typing import TensorLike
from .seeds import SeedLike, draw_seed


class Candidates(NamedTuple):
    """What a sampler gives.

    Attributes:
        sampled: int64, (num_sampled,).
        true_expected_count: how often each class of `true_classes` is to be expected among them,
            float32, of their shape.
        sampled_expected_count: the same of the sampled classes.

    Examples:
        >>> from laminar.random import uniform_candidate_sampler
        >>> drawn = uniform_candidate_sampler([[0]], num_sampled=2, unique=True, range_max=4)
        >>> drawn.true_expected_count
        Tensor([[0.4375]], shape=(1, 1), dtype=float32)
    """

    sampled: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def uniform_candidate_sampler(
    true_classes: TensorLike,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: SeedLike | None = None,
) -> Candidates:
    """Classes with the probability 1 / range_max each.

    Args:
        true_classes: whole numbers, (batch, num_true): the classes of the examples.
        num_sampled: how many are drawn, for the whole batch.
        unique: whether a class is drawn once at most. The expected counts are then
            1 - (1 - P(k))^tries, else num_sampled P(k).
        range_max: the number of classes.
        seed: a number, a `SeedGenerator`, or None for the global generator.

    Raises:
        InvalidArgumentError: more different classes are asked for than there are.

    Source: Jean et al., "On using very large target vocabulary for neural machine translation",
        ACL 2015; the expected counts as in TensorFlow's candidate samplers.

    Examples:
        >>> from laminar.random import uniform_candidate_sampler
        >>> drawn = uniform_candidate_sampler([[0]], num_sampled=4, unique=True, range_max=4)
        >>> ops.sort(drawn.sampled)
        Tensor([0, 1, 2, 3], shape=(4,), dtype=int64)
    """
    return _sample("uniform", true_classes, num_sampled, unique, range_max, seed)


def log_uniform_candidate_sampler(
    true_classes: TensorLike,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: SeedLike | None = None,
) -> Candidates:
    """Classes with the probability log((k + 2) / (k + 1)) / log(range_max + 1).

    That is about Zipf's law, for words in the order of how often they occur. Arguments and errors:
    see `uniform_candidate_sampler`.

    Examples:
        >>> from laminar.random import log_uniform_candidate_sampler
        >>> drawn = log_uniform_candidate_sampler([[0]], num_sampled=4, unique=True, range_max=4)
        >>> ops.sort(drawn.sampled)
        Tensor([0, 1, 2, 3], shape=(4,), dtype=int64)
    """
    return _sample("log_uniform", true_classes, num_sampled, unique, range_max, seed)


def fixed_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_sampled: int,
    unique: bool,
    range_max: int,
    unigrams: TensorLike,
    distortion: float = 1.0,
    seed: SeedLike | None = None,
) -> Candidates:
    """Classes with probabilities proportional to unigrams^distortion.

    Args:
        true_classes: see `uniform_candidate_sampler`, as the other arguments are.
        num_sampled: the same.
        unique: the same.
        range_max: the same.
        unigrams: how often each class occurs, (range_max,), at least 0 and not all 0.
        distortion: 0.75 for word vectors (Mikolov et al., NIPS 2013, section 2.2).
        seed: the same.

    Examples:
        >>> drawn = laminar.random.fixed_unigram_candidate_sampler(
        ...     [[1]], num_sampled=3, unique=True, range_max=3, unigrams=[4, 2, 1]
        ... )
        >>> ops.sort(drawn.sampled)
        Tensor([0, 1, 2], shape=(3,), dtype=int64)
    """
    counts = np.asarray(unigrams, "float64")
    if counts.shape != (range_max,):
        raise ShapeError(
            f"fixed_unigram_candidate_sampler: expected {range_max} unigrams, got the shape "
            f"{counts.shape}"
        )
    weights = np.where(counts > 0, np.abs(counts), 0) ** distortion * (counts > 0)
    if (counts < 0).any() or not np.isfinite(weights).all() or not weights.any():
        raise InvalidArgumentError(
            "fixed_unigram_candidate_sampler: unigrams must be at least 0, finite, and not all 0"
        )
    return _sample("weights", true_classes, num_sampled, unique, range_max, seed, weights)


def _sample(
    distribution: str,
    true_classes: TensorLike,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: SeedLike | None,
    weights: np.ndarray | None = None,
) -> Candidates:
    inputs = [] if weights is None else [tensor(np.cumsum(weights))]
    sampled, tries = candidate_sampler.many(
        draw_seed(seed),
        *inputs,
        num_sampled=whole(distribution, "num_sampled", num_sampled),
        range_max=whole(distribution, "range_max", range_max),
        unique=bool(unique),
        distribution=distribution,
    )

    def expected(classes: Tensor) -> Tensor:
        p = _probability(distribution, classes, range_max, weights)
        n = cast(tries, float64)
        return cast(-expm1(n * log1p(-p)) if unique else n * p, float32)

    return Candidates(sampled, expected(cast(tensor(true_classes), int64)), expected(sampled))


def _probability(
    distribution: str, classes: Tensor, range_max: int, weights: np.ndarray | None
) -> Any:
    if weights is not None:
        return gather(tensor(weights / weights.sum()), classes, 0)
    k = cast(classes, float64)
    if distribution == "uniform":
        return ones_like(k) / range_max
    return log((k + 2.0) / (k + 1.0)) / float(np.log1p(range_max))
