"""CandidateSampler: classes drawn to stand for all others in a loss over very many.

The op is the draw; how often a class is to be expected follows from its probability and the number
of tries (`laminar/random/candidates.py`).
"""

from __future__ import annotations

import math
from typing import Any

from ...errors import InvalidArgumentError
from ...graph import Array, TensorSpec, int64
from ..core.registry import define, no_gradient
from .distributions import uniform
from .random_state import STATE, check_state, stream

DISTRIBUTIONS = ("uniform", "log_uniform", "weights")


@define("CandidateSampler", dtypes=STATE)
def candidate_sampler(
    state: TensorSpec,
    *cumulative: TensorSpec,
    num_sampled: int,
    range_max: int,
    unique: bool,
    distribution: str,
) -> tuple[TensorSpec, TensorSpec]:
    """`num_sampled` classes from 0 to `range_max` - 1, int64, and in how many tries they came.

    P(k) = 1 / range_max ("uniform"), log((k + 2) / (k + 1)) / log(range_max + 1) ("log_uniform",
    Zipf's law for classes in the order of their frequency), or proportional to the steps of
    `cumulative`, float64 (range_max,) ("weights"). With `unique`, a class that has come before is
    thrown away and another one tried.
    """
    check_state("CandidateSampler", state)
    if distribution not in DISTRIBUTIONS or (distribution == "weights") != bool(cumulative):
        raise InvalidArgumentError(
            f"CandidateSampler: distribution is one of {DISTRIBUTIONS}, got {distribution!r} "
            f"with {len(cumulative)} tensors of weights"
        )
    if num_sampled < 1 or range_max < 1 or (unique and num_sampled > range_max):
        raise InvalidArgumentError(
            f"CandidateSampler: cannot draw {num_sampled} {'different ' if unique else ''}classes "
            f"of {range_max}",
            remedy="draw fewer, or with unique=False" if unique else None,
        )
    return TensorSpec((num_sampled,), int64), TensorSpec((), int64)


@candidate_sampler.reference
def _kernel(
    xp: Any,
    state: Array,
    *cumulative: Array,
    num_sampled: int,
    range_max: int,
    unique: bool,
    distribution: str,
) -> tuple[Array, Array]:
    key, (low, part) = stream(state).values()

    def classes(begin: int, n: int) -> Array:
        """Tries `begin` to `begin + n`, each from two words of the stream; `begin` is even."""
        u = uniform(xp, key, n, "float64", counter=(low + begin // 2, part))
        if distribution == "uniform":
            found = u * range_max
        elif distribution == "log_uniform":
            found = xp.exp(u * math.log1p(range_max)) - 1.0
        else:
            found = xp.searchsorted(cumulative[0], u * cumulative[0][-1], side="right")
        return xp.minimum(found.astype("int64"), range_max - 1)

    if not unique:
        return classes(0, num_sampled), xp.asarray(num_sampled, dtype="int64")
    count = num_sampled + num_sampled % 2
    tried = classes(0, count)
    while True:
        _, first = xp.unique(tried, return_index=True)
        if len(first) >= num_sampled:
            places = xp.sort(first)[:num_sampled]
            return tried[places], xp.asarray(places[-1] + 1, dtype="int64")
        tried = xp.concatenate([tried, classes(len(tried), len(tried))])


candidate_sampler.grad(no_gradient)
