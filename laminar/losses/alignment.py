"""Bring labels and predictions to one rank; shapes that only broadcasting joins are remarkable."""

from __future__ import annotations

from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor, TensorShape
from laminar.engine.source import warn

from .. import ops
from ..typing import TensorLike


def squeeze_or_expand_to_same_rank(
    x1: Tensor, x2: Tensor, expand_rank_1: bool = True
) -> tuple[Tensor, Tensor]:
    """Remove or add a last axis of size 1 where the ranks differ by one.

    Args:
        x1: any shape.
        x2: any shape.
        expand_rank_1: whether [n] against [n, 1] becomes [n, 1] on both sides rather than [n].

    Returns:
        Both, of one rank if an axis of size 1 made up the difference, else as they came.

    Examples:
        >>> y_true, y_pred = laminar.losses.squeeze_or_expand_to_same_rank(
        ...     ops.ones((3,)), ops.ones((3, 1))
        ... )
        >>> y_true.shape, y_pred.shape
        ((3, 1), (3, 1))
    """
    r1, r2 = x1.shape.rank, x2.shape.rank
    if r1 is None or r2 is None or abs(r1 - r2) != 1:
        return x1, x2
    if r1 < r2:
        longer, shorter = _same_rank(x2, x1, expand_rank_1)
        return shorter, longer
    return _same_rank(x1, x2, expand_rank_1)


def _same_rank(longer: Tensor, shorter: Tensor, expand_rank_1: bool) -> tuple[Tensor, Tensor]:
    if longer.shape[-1] != 1:
        return longer, shorter
    if expand_rank_1 and len(shorter.shape) == 1:
        return longer, ops.expand_dims(shorter, axis=-1)
    return ops.squeeze(longer, axis=-1), shorter


def fit_from_front(x: Tensor, like: Tensor) -> Tensor:
    """Weights that belong to the first axes of `like`, in a form that broadcasts to it.

    Axes of size 1 are added at the end of `x`; one that `x` has more than `like` is removed.
    """
    r, rank = x.shape.rank, like.shape.rank
    if not r or rank is None:  # a number broadcasts as it is
        return x
    if r == rank + 1 and x.shape[-1] == 1:
        return ops.squeeze(x, axis=-1)
    for _ in range(rank - r):
        x = ops.expand_dims(x, axis=-1)
    return x


def align(who: str, y_true: TensorLike, y_pred: TensorLike) -> tuple[Tensor, Tensor]:
    """Labels and predictions as tensors of the dtype of `y_pred`, of one rank.

    Those whose shapes differ and that broadcast do so, as everywhere in arithmetic, with a warning:
    each label is then compared with several predictions, which is seldom meant.

    Raises:
        ShapeError: the shapes differ and do not broadcast; see `check_shapes`.
    """
    y_pred = ops.convert_to_tensor(y_pred)
    y_true = ops.convert_to_tensor(y_true, dtype=y_pred.dtype)
    labels, predictions = squeeze_or_expand_to_same_rank(y_true, y_pred)
    check_shapes(who, labels, predictions, broadcasts=who not in _STRICT)
    return labels, predictions


# Keras broadcasts in all losses but these, which are not arithmetic of labels and predictions.
_STRICT = ("binary_crossentropy", "categorical_crossentropy")


def check_shapes(who: str, y_true: Tensor, y_pred: Tensor, *, broadcasts: bool = False) -> None:
    """Refuse labels that do not belong to the predictions, as far as the shapes are known.

    A label without axes, and inner axes of size 1, broadcast. Another last axis or another rank
    does not: there broadcasting would compare each label with the predictions for all others.

    Args:
        broadcasts: whether that is a warning, where the shapes do broadcast.

    Raises:
        ShapeError: the shapes differ in rank, in the batch, or in another axis.
    """
    true, pred = y_true.shape, y_pred.shape
    if true.rank is None or pred.rank is None or not true:
        return
    reason = _difference(true, pred)
    if reason and broadcasts and can_broadcast(true, pred):
        warn(
            f"{who}: y_true {y_true.spec} and y_pred {y_pred.spec} are broadcast against each "
            f"other ({reason}); {_remedy(who, true, pred)}"
        )
    elif reason:
        raise ShapeError(
            f"{who}: y_true and y_pred must have the same shape, "
            f"got y_true {y_true.spec} and y_pred {y_pred.spec} ({reason})",
            remedy=_remedy(who, true, pred),
        )


def _difference(true: TensorShape, pred: TensorShape) -> str:
    if len(true) != len(pred):
        return f"{len(true)} against {len(pred)} axes"
    last = len(pred) - 1
    for axis, (a, b) in enumerate(zip(true, pred, strict=True)):
        if a is None or b is None or a == b:
            continue
        if 1 in (a, b) and (axis < last or last == 0):
            continue
        return f"batch sizes {a} and {b}" if axis == 0 else f"axis {axis}: {a} against {b}"
    return ""


def can_broadcast(true: TensorShape, pred: TensorShape) -> bool:
    """Whether it is known that the shapes broadcast; unknown sizes are equal on the same axis."""
    same = len(true) == len(pred)
    pairs = zip(reversed(true), reversed(pred), strict=False)
    return all(1 in (a, b) or (a == b and (same or a is not None)) for a, b in pairs)


def _remedy(who: str, true: TensorShape, pred: TensorShape) -> str:
    classes = pred[-1] if pred else None
    batch = true[0], pred[0] if pred else None
    if None not in batch and batch[0] != batch[1] and 1 not in batch:
        return "give x and y with one row per sample; check that the model keeps the batch axis"
    if classes != 1 and looks_like_class_numbers(true, pred):
        if "categorical" in who:
            return (
                "the labels look like class numbers: use sparse_categorical_crossentropy, or make "
                f"them one-hot: utils.to_categorical(y, {classes})"
            )
        return (
            f"give the last layer 1 unit instead of {classes}; if the labels are class numbers, "
            "use sparse_categorical_crossentropy"
        )
    if len(true) == len(pred):
        return f"make the model's last layer give {true[-1]} values, or the labels {pred[-1]}"
    return "give labels of the shape of the model's output"


def looks_like_class_numbers(true: TensorShape, pred: TensorShape) -> bool:
    """Whether labels have one number where predictions have a row of scores."""
    if len(true) == len(pred) and true[-1] == 1:
        true = TensorShape(true[:-1])
    return true.is_compatible_with(pred[:-1])
