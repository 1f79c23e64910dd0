"""Losses over very many classes, of which a few are sampled in each step."""

from __future__ import annotations

from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor, int64
from laminar.engine.ops.array.axes import expand_dims
from laminar.engine.ops.array.join import concat
from laminar.engine.ops.array.shape import reshape
from laminar.engine.ops.core.basic import ones_like, zeros_like
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import equal, where
from laminar.engine.ops.math.elementary import log
from laminar.engine.ops.math.reduce import reduce_any, reduce_sum
from laminar.engine.ops.nn.losses import sigmoid_cross_entropy, softmax_cross_entropy
from laminar.ops.arguments import floating, tensor
from laminar.ops.indexing import take
from laminar.random.candidates import Candidates, log_uniform_candidate_sampler
from laminar.random.seeds import SeedLike
from laminar.typing import TensorLike

_IMPOSSIBLE = -1e37  # a logit whose exponential is 0


def sampled_softmax_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Candidates | None = None,
    remove_accidental_hits: bool = True,
    seed: SeedLike | None = None,
) -> Tensor:
    """Softmax cross-entropy over the true classes and a sample of the others.

    The logit of class k is inputs . weights[k] + biases[k] - log E(k), where E(k) is how often the
    sampler is expected to draw it; the true classes share the target equally. Only the rows of
    these classes are read and get gradients. For training: evaluate with all classes.

    Args:
        weights: (num_classes, features), usually a variable.
        biases: (num_classes,).
        labels: whole numbers, (batch, num_true).
        inputs: (batch, features).
        num_sampled: classes drawn for the whole batch.
        num_classes: how many there are.
        num_true: true classes of each example.
        sampled_values: what a sampler gave; by default `log_uniform_candidate_sampler` with
            unique=True, for classes in the order of how often they occur.
        remove_accidental_hits: whether a sampled class that is a true one of the example is left
            out for it.
        seed: of that sampler.

    Returns:
        (batch,).

    Raises:
        ShapeError: labels that are not (batch, num_true).

    Source: Jean et al., "On using very large target vocabulary for neural machine translation",
        ACL 2015, section 3.

    Examples:
        >>> weights, biases = np.zeros((100, 4), "float32"), np.zeros(100, "float32")
        >>> inputs, labels = np.ones((2, 4), "float32"), np.array([[3], [7]])
        >>> loss = laminar.losses.sampled_softmax_loss(
        ...     weights, biases, labels, inputs, num_sampled=5, num_classes=100
        ... )
        >>> loss.shape
        (2,)
    """
    logits, targets = _sampled_logits(
        (weights, biases),
        labels,
        inputs,
        num_true,
        sampled_values
        or log_uniform_candidate_sampler(labels, num_sampled, True, num_classes, seed),
        remove_accidental_hits,
    )
    return softmax_cross_entropy(targets, logits)


def nce_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Candidates | None = None,
    remove_accidental_hits: bool = False,
    seed: SeedLike | None = None,
) -> Tensor:
    """Noise-contrastive estimation: true classes are told from sampled ones by logistic regression.

    The sum over the true and the sampled classes of the logistic loss, with the logits of
    `sampled_softmax_loss`, whose arguments and errors these are.

    Returns:
        (batch,).

    Source: Gutmann and Hyvarinen, "Noise-contrastive estimation", AISTATS 2010; Mnih and Teh, "A
        fast and simple algorithm for training neural probabilistic language models", ICML 2012.

    Examples:
        >>> weights, biases = np.zeros((100, 4), "float32"), np.zeros(100, "float32")
        >>> inputs, labels = np.ones((2, 4), "float32"), np.array([[3], [7]])
        >>> loss = laminar.losses.nce_loss(
        ...     weights, biases, labels, inputs, num_sampled=5, num_classes=100
        ... )
        >>> loss.shape
        (2,)
    """
    logits, targets = _sampled_logits(
        (weights, biases),
        labels,
        inputs,
        num_true,
        sampled_values
        or log_uniform_candidate_sampler(labels, num_sampled, True, num_classes, seed),
        remove_accidental_hits,
    )
    return reduce_sum(sigmoid_cross_entropy(targets, logits), -1)


def _sampled_logits(
    table: tuple[TensorLike, TensorLike],
    labels: TensorLike,
    inputs: TensorLike,
    num_true: int,
    candidates: Candidates,
    remove_accidental_hits: bool,
) -> tuple[Tensor, Tensor]:
    """Logits of the true classes and of the sampled ones, (batch, num_true + num_sampled), and
    the share of the target that each has."""
    x, true = floating(inputs), cast(tensor(labels), int64)
    if len(true.shape) != 2 or true.shape[1] != num_true:
        raise ShapeError(
            f"a sampled loss: expected labels (batch, num_true={num_true}), got {true.spec}",
            remedy="labels[:, None] makes a column of a vector",
        )
    sampled, true_expected, sampled_expected = candidates
    weights, biases = table
    rows = take(weights, true, axis=0)
    true_logits = reduce_sum(expand_dims(x, 1) * rows, -1) + take(biases, true, axis=0)
    logits = matmul(x, take(weights, sampled, axis=0), transpose_b=True)
    logits = logits + take(biases, sampled, axis=0) - log(cast(sampled_expected, x.dtype))
    true_logits = true_logits - log(cast(true_expected, x.dtype))
    if remove_accidental_hits:
        hit = reduce_any(equal(expand_dims(true, 2), reshape(sampled, (1, 1, -1))), 1)
        logits = where(hit, zeros_like(logits) + _IMPOSSIBLE, logits)
    targets = concat([ones_like(true_logits) / float(num_true), zeros_like(logits)], 1)
    return concat([true_logits, logits], 1), targets
