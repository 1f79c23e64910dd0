"""Connectionist temporal classification: the loss of a sequence of labels without its timing.

Source: Graves, Fernandez, Gomez and Schmidhuber, "Connectionist temporal classification", ICML
    2006: equations 6 to 8 (forward variables), 9 to 11 (backward variables), 14 and 15 (gradient).
"""

from __future__ import annotations

from typing import Any

from ...errors import ShapeError, UnimplementedError
from ...graph import INTEGER, Array, OpView, Tensor, TensorShape, TensorSpec, float32, float64
from ..array.axes import expand_dims
from ..array.runs import combined_by_row
from ..core.entries import whole
from ..core.kernels import HOST
from ..core.op_def import Grads
from ..core.registry import define
from ..math.arithmetic import multiply

# Stands for the logarithm of 0: so low that it never matters beside a possible path, and finite, so
# that labels that do not fit into the time give a large loss instead of infinity.
_IMPOSSIBLE = -1e5


@define(
    "CtcLoss",
    dtypes={
        "log_probs": {float32, float64},
        "labels": INTEGER,
        "label_lengths": INTEGER,
        "lengths": INTEGER,
    },
    same_dtype=False,
)
def _ctc_loss(
    log_probs: TensorSpec,
    labels: TensorSpec,
    label_lengths: TensorSpec,
    lengths: TensorSpec,
    *,
    blank: int,
) -> tuple[TensorSpec, TensorSpec]:
    """-log of the probability that (batch, time, classes) spell (batch, labels); and its gradient.

    A path of one class for each step spells what is left when runs are merged and blanks dropped.
    """
    if log_probs.shape.rank not in (3, None) or labels.shape.rank not in (2, None):
        raise ShapeError(
            f"CtcLoss: expected log_probs (batch, time, classes) and labels (batch, length), "
            f"got {log_probs} and {labels}"
        )
    if log_probs.shape.rank is None:
        return TensorSpec(None, log_probs.dtype), log_probs
    batch = TensorShape(log_probs.shape[:1])
    for x in (label_lengths, lengths):
        if not x.shape.is_compatible_with(batch):
            raise ShapeError(f"CtcLoss: expected one length for each example, got {x}")
    return TensorSpec(batch, log_probs.dtype), log_probs


@_ctc_loss.reference
def _ctc_loss_kernel(
    xp: Any, log_probs: Array, labels: Array, label_lengths: Array, lengths: Array, *, blank: int
) -> tuple[Array, Array]:
    batch, time, _ = log_probs.shape
    rows = xp.arange(batch)
    # The states of a path: blank, label, blank, label, ..., blank.
    states = 2 * labels.shape[1] + 1
    spelled = xp.full((batch, states), blank, xp.int64)
    counts = xp.arange(labels.shape[1]) < label_lengths[:, None]
    spelled[:, 1::2] = xp.where(counts, labels, blank)  # what pads the labels may be anything
    may_skip = xp.zeros((batch, states), bool)
    may_skip[:, 2:] = spelled[:, 2:] != spelled[:, :-2]
    end = 2 * label_lengths.astype(xp.int64)
    emit = xp.take_along_axis(log_probs, spelled[:, None, :], axis=2)  # (batch, time, states)
    lives = xp.arange(time)[None, :] < lengths[:, None]

    forward = xp.full((batch, time, states), _IMPOSSIBLE, log_probs.dtype)
    before = xp.full((batch, states), _IMPOSSIBLE, log_probs.dtype)
    before[:, 0] = 0  # one step ahead of the beginning, from which the first two states follow
    for t in range(time):
        step = xp.logaddexp(before, _moved(xp, before, 1))
        if t:
            step = xp.where(may_skip, xp.logaddexp(step, _moved(xp, before, 2)), step)
        before = xp.where(lives[:, t, None], step + emit[:, t], before)
        forward[:, t] = before
    last_label = xp.where(end > 0, before[rows, xp.maximum(end - 1, 0)], _IMPOSSIBLE)
    loss = -xp.logaddexp(before[rows, end], last_label)

    gradient = xp.zeros_like(log_probs)
    after = xp.full((batch, states), _IMPOSSIBLE, log_probs.dtype)
    after[rows, end] = 0
    after[rows, xp.maximum(end - 1, 0)] = 0
    skip_ahead = xp.zeros_like(may_skip)
    skip_ahead[:, :-2] = may_skip[:, 2:]
    flat = (rows[:, None] * log_probs.shape[2] + spelled).reshape(-1)
    for t in range(time - 1, -1, -1):
        share = xp.exp(xp.minimum(forward[:, t] + after + loss[:, None], 0))
        share = xp.where(lives[:, t, None], share, 0)
        counted = _counted(xp, flat, share.reshape(-1), gradient[:, t].size)
        gradient[:, t] = -counted.reshape(gradient[:, t].shape)
        ahead = after + emit[:, t]
        step = xp.logaddexp(ahead, _moved(xp, ahead, -1))
        step = xp.where(skip_ahead, xp.logaddexp(step, _moved(xp, ahead, -2)), step)
        after = xp.where(lives[:, t, None], step, after)
    return loss.astype(log_probs.dtype, copy=False), gradient


def _counted(xp: Any, cells: Array, amounts: Array, count: int) -> Array:
    """For each of `count` cells the sum of the amounts that name it."""
    if xp is HOST:
        return xp.bincount(cells, amounts, count)
    found, is_named = combined_by_row(xp, amounts, cells, count, xp.add)
    return xp.where(is_named, found, 0)


def _moved(xp: Any, x: Array, places: int) -> Array:
    """`x` moved along its last axis, with the impossible where nothing comes from."""
    y = xp.full_like(x, _IMPOSSIBLE)
    if places > 0:
        y[:, places:] = x[:, :-places]
    else:
        y[:, :places] = x[:, -places:]
    return y


@_ctc_loss.grad
def _ctc_loss_grad(op: OpView, dloss: Tensor | None, dgradient: Tensor | None) -> Grads:
    if dgradient is not None:
        raise UnimplementedError("CtcLoss has no second derivative")
    if dloss is None:
        return None, None, None, None
    slope = op.outputs[1]
    return multiply(slope, expand_dims(dloss, (1, 2))), None, None, None


def ctc_loss(
    log_probs: Tensor, labels: Tensor, label_lengths: Tensor, lengths: Tensor, blank: int = 0
) -> Tensor:
    """The loss of connectionist temporal classification, for each example.

    Args:
        log_probs: (batch, time, classes), logarithms of probabilities, float32 or float64.
        labels: (batch, length), class numbers other than `blank`.
        label_lengths: (batch,), how many labels count.
        lengths: (batch,), how many steps count.
        blank: the class that stands for no label.

    Returns:
        (batch,); about 1e5 where the labels do not fit into the steps.
    """
    blank = whole("ctc_loss", "the blank", blank)
    return _ctc_loss.many(log_probs, labels, label_lengths, lengths, blank=blank)[0]
