"""Generalized cross-entropy: between cross-entropy and absolute error, for noisy labels."""

from __future__ import annotations

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor, int64

from .. import ops
from ..dtype_policies import Policy
from ..typing import DTypeLike, TensorLike
from .crossentropy import class_numbers
from .loss import ClassNumberLoss
from .reduction import Reduction

_WHO = "categorical_generalized_cross_entropy"


def categorical_generalized_cross_entropy(
    y_true: TensorLike, y_pred: TensorLike, q: float
) -> Tensor:
    """(1 - p[y_true]**q) / q along the last axis.

    Args:
        y_true: class numbers: (batch, ...), or with a last axis of size 1.
        y_pred: probabilities p: (batch, ..., classes).
        q: between 0 (cross-entropy) and 1 (absolute error), both excluded.

    Returns:
        (batch, ...).

    Raises:
        InvalidArgumentError: another `q`.
        ShapeError: the shapes do not belong together.

    Source: Zhang and Sabuncu, "Generalized cross entropy loss for training deep neural networks
        with noisy labels", 2018, arXiv:1805.07836, equation 6.

    Examples:
        >>> from laminar.losses import categorical_generalized_cross_entropy
        >>> categorical_generalized_cross_entropy([1], [[0.5, 0.5]], q=0.5)
        Tensor([0.5858], shape=(1,), dtype=float32)
    """
    check_q(q)
    y_pred = ops.convert_to_tensor(y_pred)
    y_true = class_numbers(_WHO, ops.convert_to_tensor(y_true), y_pred)
    labels = ops.expand_dims(ops.cast(y_true, int64), axis=-1)
    p = ops.squeeze(ops.take_along_axis(y_pred, labels, axis=-1), axis=-1)
    loss: Tensor = (1.0 - ops.power(p, q)) / q
    return loss


def check_q(q: float) -> None:
    """Raise InvalidArgumentError unless 0 < q < 1."""
    if not 0 < q < 1:
        raise InvalidArgumentError(f"{_WHO}: q must be between 0 and 1, both excluded; got {q!r}")


class CategoricalGeneralizedCrossEntropy(ClassNumberLoss):
    """Cross-entropy that bears noisy labels; see `categorical_generalized_cross_entropy`.

    Args:
        q: between 0 (cross-entropy) and 1 (absolute error), both excluded.
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.CategoricalGeneralizedCrossEntropy(q=0.5)([1], [[0.5, 0.5]])
        Tensor(0.5858, shape=(), dtype=float32)
    """

    def __init__(
        self,
        q: float = 0.5,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "categorical_generalized_cross_entropy",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        check_q(q)
        super().__init__(categorical_generalized_cross_entropy, reduction, name, dtype, q=q)
