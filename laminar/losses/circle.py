"""Circle loss: embeddings of one class together, of different classes apart."""

from __future__ import annotations

from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor
from laminar.layers.masking import set_mask

from .. import ops
from ..dtype_policies import Policy
from ..typing import DTypeLike, TensorLike
from .loss import ClassNumberLoss
from .reduction import Reduction


def circle(
    y_true: TensorLike,
    y_pred: TensorLike,
    ref_labels: TensorLike | None = None,
    ref_embeddings: TensorLike | None = None,
    remove_diagonal: bool = True,
    gamma: float = 80,
    margin: float = 0.4,
) -> Tensor:
    """softplus(log(sum(exp(a))) + log(sum(exp(b)))) for each sample.

    With s the cosine of the angle between a sample and a reference, and m the margin:
    a = gamma * max(s + m, 0) * (s - m) over the references of other classes,
    b = gamma * max(1 + m - s, 0) * (1 - m - s) over those of the same class.

    Args:
        y_true: class numbers: (batch,) or (batch, 1).
        y_pred: embeddings of length 1: (batch, size).
        ref_labels: classes of the references, by default `y_true`.
        ref_embeddings: the references: (references, size), by default `y_pred`.
        remove_diagonal: whether sample i is not compared with reference i.
        gamma: scale.
        margin: m.

    Returns:
        (batch,); 0 where there is no pair of the same class, or none of different ones. These have
        no part in the mean of a `Circle`.

    Raises:
        ShapeError: `y_pred` is no matrix, or has another batch size than `y_true`.

    Source: Sun et al., "Circle loss: a unified perspective of pair similarity optimization", 2020,
        arXiv:2002.10857, equations 4 to 8.

    Examples:
        >>> embeddings = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], "float32")
        >>> laminar.losses.circle([0, 0, 1], embeddings, gamma=2.0)
        Tensor([0.4518, 0.7763, 0.    ], shape=(3,), dtype=float32)
    """
    y_pred, labels = ops.convert_to_tensor(y_pred), ops.convert_to_tensor(y_true)
    if y_pred.shape.rank not in (2, None) or not labels.shape.is_compatible_with(
        y_pred.shape[:1] if labels.shape.rank == 1 else (*y_pred.shape[:1], 1)
    ):
        raise ShapeError(
            f"circle: expected labels (batch,) and embeddings (batch, size), "
            f"got y_true {labels.spec} and y_pred {y_pred.spec}",
            remedy="give one class number and one vector for each sample",
        )
    labels = ops.reshape(labels, (-1,))
    references = labels if ref_labels is None else ops.reshape(ref_labels, (-1,))
    others = y_pred if ref_embeddings is None else ops.convert_to_tensor(ref_embeddings)
    # Rounding can put a cosine above 1.
    cosine = ops.minimum(ops.matmul(y_pred, ops.transpose(others)), 1.0)
    same = ops.equal(ops.expand_dims(labels, 1), ops.expand_dims(references, 0))
    different = ops.logical_not(same)
    if remove_diagonal:
        rows = ops.arange(ops.shape(cosine)[0])
        columns = ops.arange(ops.shape(cosine)[1])
        itself = ops.equal(ops.expand_dims(rows, 1), ops.expand_dims(columns, 0))
        same = ops.logical_and(same, ops.logical_not(itself))
    apart = gamma * ops.relu(cosine + margin) * (cosine - margin)
    together = gamma * ops.relu(1.0 + margin - cosine) * (1.0 - margin - cosine)
    values = ops.softplus(_log_sum_exp(apart, different) + _log_sum_exp(together, same))
    set_mask(values, values > 0)  # a sample without a pair does not count in the mean
    return values


def _log_sum_exp(x: Tensor, where: Tensor) -> Tensor:
    """log(sum(exp(x))) along the last axis over the elements that count."""
    return ops.logsumexp(ops.where(where, x, ops.full_like(x, -1e9)), axis=-1)


class Circle(ClassNumberLoss):
    """Circle loss; see `circle` and, for the other arguments, `Loss`.

    Args:
        gamma: scale.
        margin: m.
        remove_diagonal: whether a sample is not compared with itself.
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> embeddings = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], "float32")
        >>> laminar.losses.Circle(gamma=2.0)([0, 0, 1], embeddings)
        Tensor(0.6141, shape=(), dtype=float32)
    """

    def __init__(
        self,
        gamma: float = 80.0,
        margin: float = 0.4,
        remove_diagonal: bool = True,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "circle",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(
            circle,
            reduction,
            name,
            dtype,
            gamma=gamma,
            margin=margin,
            remove_diagonal=remove_diagonal,
        )
