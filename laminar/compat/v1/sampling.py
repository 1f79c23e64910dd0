"""Classes drawn to stand for all others, and generators that a program keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laminar import engine, losses
from laminar import random as own_random
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor, as_dtype, float32, int64
from laminar.engine.ops.array.creation import arange
from laminar.engine.ops.array.search import argwhere
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.random import draws
from laminar.engine.state.random_source import draw_state
from laminar.random.candidates import Candidates
from laminar.random.seeds import SeedGenerator

from .adapting import v1
from .values import static, symbol


@v1()
def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Any = (),
    seed: int | None = None,
) -> Any:
    """Classes with probabilities proportional to counts^distortion.

    Args:
        true_classes: (batch, num_true), int64.
        num_true: accepted: it is the shape.
        num_sampled: how many are drawn, for the whole batch.
        unique: whether a class is drawn once at most.
        range_max: the number of classes.
        vocab_file: lines whose last field, behind a comma, is the count of a class.
        distortion: the exponent.
        num_reserved_ids: the first so many classes, which are never drawn.
        num_shards: only each so manieth class is drawn,
        shard: from this one on.
        unigrams: the counts, instead of a file.
        seed: for the same classes in each session.

    Returns:
        (sampled, true_expected_count, sampled_expected_count).

    Raises:
        InvalidArgumentError: there are no counts, or both kinds, or not as many as classes.
    """
    counts = [float(n) for n in unigrams]
    if bool(vocab_file) == bool(counts):
        raise InvalidArgumentError(
            "fixed_unigram_candidate_sampler: give one of vocab_file and unigrams"
        )
    if vocab_file:
        with open(vocab_file, encoding="utf-8") as file:
            counts = [float(line.rsplit(",", 1)[-1]) for line in file if line.strip()]
    whole = np.array([0.0] * num_reserved_ids + counts)
    if len(whole) != range_max:
        raise InvalidArgumentError(
            f"fixed_unigram_candidate_sampler: {len(whole)} counts, with those reserved, are not "
            f"those of {range_max} classes"
        )
    whole[np.arange(range_max) % num_shards != shard] = 0
    return own_random.fixed_unigram_candidate_sampler(
        symbol(true_classes), num_sampled, unique, range_max, whole, distortion, draw_state(seed)
    )


def _sampler(kind: str) -> Callable[..., Any]:
    draw = getattr(own_random, f"{kind}_candidate_sampler")

    @v1()
    def sample(
        true_classes: Any,
        num_true: int,
        num_sampled: int,
        unique: bool,
        range_max: int,
        seed: int | None = None,
    ) -> Any:
        given = (num_sampled, unique, range_max)
        return draw(symbol(true_classes), *given, seed=draw_state(seed))

    sample.__doc__ = draw.__doc__
    sample.__name__ = sample.__qualname__ = f"{kind}_candidate_sampler"
    return sample


uniform_candidate_sampler = _sampler("uniform")
log_uniform_candidate_sampler = _sampler("log_uniform")


def _sampled_loss(loss: Callable[..., Any], removes: bool) -> Callable[..., Any]:
    @v1()
    def compute(
        weights: Any,
        biases: Any,
        labels: Any,
        inputs: Any,
        num_sampled: int,
        num_classes: int,
        num_true: int = 1,
        sampled_values: Any = None,
        remove_accidental_hits: bool = removes,
        partition_strategy: str = "mod",
        name: str | None = None,
        seed: int | None = None,
    ) -> Any:
        given = (weights, biases, labels, inputs, num_sampled, num_classes, num_true)
        state = draw_state(seed) if sampled_values is None else None
        return loss(*given, sampled_values, remove_accidental_hits, seed=state)

    compute.__doc__ = loss.__doc__
    return compute


sampled_softmax_loss = _sampled_loss(losses.sampled_softmax_loss, True)
nce_loss = _sampled_loss(losses.nce_loss, False)


@v1()
def all_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: int | None = None
) -> Candidates:
    """All classes, from 0 to below `num_sampled`, each of which is expected once."""
    ones = cast(lookup("OnesLike")(symbol(true_classes, "int64")), float32)
    sampled = symbol(arange(num_sampled, dtype="int64"))
    return Candidates(sampled, ones, cast(lookup("OnesLike")(sampled), float32))


@v1()
def compute_accidental_hits(
    true_classes: Any, sampled_candidates: Any, num_true: int, seed: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Where a sampled class is one of the true classes of an example.

    Args:
        true_classes: (batch, num_true), int64.
        sampled_candidates: (num_sampled), int64.
        num_true: accepted: it is the shape.
        seed: accepted.

    Returns:
        (rows int32, numbers among the sampled int64, weights float32): the weights, the least
        number there is, added to the logits of these, leave them out.
    """
    true, sampled = symbol(true_classes, "int64"), symbol(sampled_candidates, "int64")
    hits = lookup("Any")(lookup("Equal")(true[:, :, None], sampled[None, None, :]), axis=(1,))
    places = argwhere(hits)
    least = symbol(float(np.finfo(np.float32).min))
    weights = lookup("OnesLike")(cast(places[:, 0], float32)) * least
    return cast(places[:, 0], "int32"), places[:, 1], weights


class Generator:
    """Draws random numbers, other ones with each call, from a state of its own.

    The numbers are those of laminar's generator (Philox), not TensorFlow's. The state belongs to
    the generator, so sessions share it.

    Args:
        seed: fixes all numbers that follow.
    """

    def __init__(self, seed: int | None = None) -> None:
        with engine.eager_scope():
            self._seeds = SeedGenerator(seed)

    @classmethod
    def from_seed(cls, seed: int, alg: Any = None) -> Generator:
        """One whose numbers a seed fixes."""
        return cls(int(static(seed)))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """One whose numbers nothing fixes."""
        return cls(int.from_bytes(np.random.default_rng().bytes(4), "little"))

    @property
    def state(self) -> Any:
        """The variable with the state."""
        return self._seeds.state

    def reset_from_seed(self, seed: int) -> None:
        """Begin anew."""
        with engine.eager_scope():
            self._seeds.state.assign(SeedGenerator(int(seed)).state)

    @v1()
    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32"
    ) -> Tensor:
        """Normal numbers."""
        x = draws.random_normal(self._seeds.next(), static(shape), 0.0, 1.0, as_dtype(dtype))
        found: Tensor = x * symbol(stddev, x.dtype) + symbol(mean, x.dtype)
        return found

    @v1()
    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32"
    ) -> Tensor:
        """Normal numbers, drawn again where they are more than two standard deviations off."""
        state = self._seeds.next()
        x = draws.random_truncated_normal(state, static(shape), 0.0, 1.0, as_dtype(dtype))
        found: Tensor = x * symbol(stddev, x.dtype) + symbol(mean, x.dtype)
        return found

    @v1()
    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = "float32"
    ) -> Tensor:
        """Numbers uniform in [minval, maxval), whole ones for a type of whole numbers."""
        kind = as_dtype(dtype)
        if kind.is_integer:
            if maxval is None:
                raise ValueError("Generator.uniform: whole numbers need maxval")
            bounds = (static(minval), static(maxval))
            return draws.random_int(self._seeds.next(), static(shape), *bounds, kind)
        high = 1.0 if maxval is None else maxval
        return draws.random_uniform(self._seeds.next(), static(shape), minval, high, kind)

    @v1()
    def uniform_full_int(self, shape: Any, dtype: Any = "uint64") -> Tensor:
        """Whole numbers uniform among all of a type."""
        kind = as_dtype(dtype)
        bits = self.uniform(shape, 0, 1 << 32, int64)
        if kind.size == 8:
            bits = lookup("LeftShift")(bits, symbol(32, int64)) + self.uniform(
                shape, 0, 1 << 32, int64
            )
        return cast(bits, kind)

    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds for stateless draws, (2, count)."""
        found: Tensor = self.uniform_full_int([2, count], int64)
        return found

    def split(self, count: int = 1) -> list[Generator]:
        """Generators of other numbers, which this one's state fixes; it is computed at once."""
        with engine.eager_scope():
            numbers = draws.random_int(self._seeds.next(), [count], 0, 1 << 31, int64).numpy()
        return [type(self)(int(n)) for n in numbers]


class _Global:
    """The generator of the process, once somebody has asked for it."""

    generator: Generator | None = None


def get_global_generator() -> Generator:
    """The generator of the process."""
    if _Global.generator is None:
        _Global.generator = Generator.from_non_deterministic_state()
    return _Global.generator


def set_global_generator(generator: Generator) -> None:
    """Make another one that of the process."""
    _Global.generator = generator


def create_rng_state(seed: int, alg: Any = None) -> Any:
    """The state of a generator of that seed, an array."""
    return Generator.from_seed(seed).state.numpy()
