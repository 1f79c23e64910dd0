"""Connectionist temporal classification: sequences of labels whose times are not known."""

from __future__ import annotations

from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor, int32

from .. import ops
from ..dtype_policies import Policy
from ..typing import DTypeLike, TensorLike
from .loss import ClassNumberLoss
from .reduction import Reduction


def ctc(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """-log of the probability of all alignments of the labels with the frames.

    Class 0 is the blank, and 0 in `y_true` is padding after the labels.

    Args:
        y_true: class numbers: (batch, labels).
        y_pred: logits: (batch, frames, classes).

    Returns:
        (batch,).

    Raises:
        ShapeError: other numbers of axes, or batch sizes that differ.

    Source: Graves et al., "Connectionist temporal classification", 2006, section 4.1.

    Examples:
        >>> frames = np.zeros((1, 4, 3), "float32")  # three classes, equally probable
        >>> laminar.losses.ctc([[1, 2]], frames)
        Tensor([1.6864], shape=(1,), dtype=float32)
    """
    y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
    true, pred = y_true.shape, y_pred.shape
    if true.rank not in (2, None) or pred.rank not in (3, None):
        raise ShapeError(
            f"ctc: expected labels (batch, labels) and logits (batch, frames, classes), "
            f"got y_true {y_true.spec} and y_pred {y_pred.spec}",
            remedy="pad the label sequences of a batch with 0 to one length",
        )
    labels = ops.cast(y_true, int32)
    num_labels = ops.sum(ops.cast(ops.not_equal(labels, 0), int32), axis=-1)
    batch, frames = ops.shape(y_pred)[:2]
    num_frames = ops.broadcast_to(ops.cast(ops.convert_to_tensor(frames), int32), (batch,))
    return ops.ctc_loss(labels, y_pred, num_labels, num_frames, mask_index=0)


class CTC(ClassNumberLoss):
    """CTC loss; see `ctc` and, for the arguments, `Loss`.

    Args:
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> frames = np.zeros((1, 4, 3), "float32")
        >>> laminar.losses.CTC()([[1, 2]], frames)
        Tensor(1.6864, shape=(), dtype=float32)
    """

    def __init__(
        self,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "ctc",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(ctc, reduction, name, dtype)
