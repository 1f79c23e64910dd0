"""Cross-entropies computed from logits, each as one op: exact where a probability rounds to 0."""

from __future__ import annotations

from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import (
    FLOATING,
    INTEGER,
    Array,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    canonical_axis,
)
from ..array.axes import expand_dims
from ..core.basic import ones_like
from ..core.elementwise import elementwise
from ..core.kernels import HOST
from ..core.late_checks import require
from ..core.op_def import Grads, OpDef
from ..core.registry import define, no_gradient
from ..math.arithmetic import add, multiply, negative, subtract
from ..math.elementary import sigmoid
from ..math.reduce import reduce_sum
from .softmax import shifted, through_log_softmax, through_softmax


@define(
    "SparseSoftmaxCrossEntropy",
    dtypes={"labels": INTEGER, "logits": FLOATING},
    same_dtype=False,
)
def _sparse(labels: TensorSpec, logits: TensorSpec) -> tuple[TensorSpec, ...]:
    """loss[...] = -log(p[..., labels[...]]) with p = softmax(logits) over the last axis; and p."""
    if logits.shape.rank is None:
        return TensorSpec(labels.shape, logits.dtype), logits
    if not logits.shape:
        raise ShapeError(f"SparseSoftmaxCrossEntropy: logits must have a class axis, got {logits}")
    rows = TensorShape(logits.shape[:-1])
    if not rows.is_compatible_with(labels.shape):
        raise ShapeError(
            f"SparseSoftmaxCrossEntropy: labels must have the shape of the logits without the "
            f"class axis, {rows}; labels are {labels}, logits {logits}",
            remedy="drop an axis of size 1 from the labels with squeeze, or use "
            "softmax_cross_entropy for one-hot labels",
        )
    rows = rows.merge_with(labels.shape)
    return TensorSpec(rows, logits.dtype), TensorSpec([*rows, logits.shape[-1]], logits.dtype)


@define(
    "SparseSoftmaxCrossEntropyGrad",
    dtypes={"labels": INTEGER, "p": FLOATING, "dloss": FLOATING},
    same_dtype=False,
)
def _sparse_grad_op(labels: TensorSpec, p: TensorSpec, dloss: TensorSpec) -> TensorSpec:
    """dlogits[..., k] = (p[..., k] - (1 if k = labels[...] else 0)) * dloss[...]."""
    return TensorSpec(p.shape, p.dtype)


@_sparse.reference
def _sparse_kernel(xp: Any, labels: Array, logits: Array) -> tuple[Array, Array]:
    classes = logits.shape[-1]
    _check_labels(xp, labels, classes)
    labels = _within(xp, labels, classes)
    y = shifted(xp, logits, (-1,))
    p = xp.exp(y)
    total = xp.sum(p, axis=-1, keepdims=True)
    p /= total
    chosen = y.reshape(-1, classes)[xp.arange(labels.size), labels.reshape(-1)]
    loss = xp.log(total[..., 0]) - chosen.reshape(labels.shape)
    return loss.astype(logits.dtype, copy=False), p.astype(logits.dtype, copy=False)


def _check_labels(xp: Any, labels: Array, classes: int) -> None:
    bad = (labels < 0) | (labels >= classes)

    def not_a_class() -> InvalidArgumentError:
        place = tuple(int(i) for i in xp.unravel_index(int(xp.argmax(bad)), labels.shape))
        return InvalidArgumentError(
            f"sparse cross-entropy: the label {int(labels[place])} at {place} is not one of "
            f"the {classes} classes 0 to {classes - 1}",
            remedy="count classes from 0, and give the output one column per class",
        )

    require(xp, ~xp.any(bad), not_a_class)


def _within(xp: Any, labels: Array, classes: int) -> Array:
    """The labels; where nobody has looked at them yet, none that is out of range."""
    return labels if xp is HOST else xp.clip(labels, 0, classes - 1)


@define("CheckLabels", dtypes=INTEGER)
def check_labels(labels: TensorSpec, *, classes: int) -> TensorSpec:
    """The labels themselves; an error at run time unless all are in [0, classes)."""
    return labels


@check_labels.reference
def _check_labels_kernel(xp: Any, labels: Array, *, classes: int) -> Array:
    _check_labels(xp, labels, classes)
    return labels


check_labels.grad(no_gradient)


@_sparse_grad_op.reference
def _sparse_grad_kernel(xp: Any, labels: Array, p: Array, dloss: Array) -> Array:
    dlogits = p.copy()
    rows = dlogits.reshape(-1, p.shape[-1])
    rows[xp.arange(labels.size), _within(xp, labels, p.shape[-1]).reshape(-1)] -= 1
    dlogits *= dloss[..., None]
    return dlogits


@_sparse.grad
def _sparse_grad(op: OpView, dloss: Tensor | None, dp: Tensor | None) -> Grads:
    labels, _ = op.inputs
    p = op.outputs[1]
    direct = None if dloss is None else _sparse_grad_op(labels, p, dloss)
    if dp is None:
        return None, direct
    through = through_softmax(p, dp, (-1,))
    return None, through if direct is None else add(direct, through)


@_sparse_grad_op.grad
def _sparse_grad_grad(op: OpView, ddlogits: Tensor) -> Grads:
    labels, p, dloss = op.inputs
    slope = _sparse_grad_op(labels, p, ones_like(dloss))
    return (
        None,
        multiply(ddlogits, expand_dims(dloss, -1)),
        reduce_sum(multiply(ddlogits, slope), -1),
    )


def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """-log(softmax(logits)[label]) of each example.

    Args:
        labels: (...), integers: the number of the class, from 0.
        logits: (..., classes), floating; half types are computed in float32.

    Returns:
        (...), dtype of the logits.

    Raises:
        ShapeError: the shapes do not fit.
        InvalidArgumentError: at run time, a label is not the number of a class.
    """
    return _sparse.many(labels, logits)[0]


@define("SoftmaxCrossEntropy", dtypes=FLOATING)
def _dense(labels: TensorSpec, logits: TensorSpec, *, axis: int) -> tuple[TensorSpec, ...]:
    """loss = -(sum of labels * l over `axis`) with l = log(softmax(logits)); and l.

    A label of 0 adds 0 even where l is infinite.
    """
    if not labels.shape.is_compatible_with(logits.shape):
        raise ShapeError(
            f"SoftmaxCrossEntropy: labels are {labels}, but logits {logits}: "
            f"the shapes must be equal",
            remedy="give one probability per class (one_hot), or use "
            "sparse_softmax_cross_entropy for the numbers of the classes",
        )
    shape = labels.shape.merge_with(logits.shape)
    if shape.rank is None:
        return TensorSpec(None, logits.dtype), logits
    axis = canonical_axis("SoftmaxCrossEntropy", axis, len(shape))
    rows = [d for i, d in enumerate(shape) if i != axis]
    return TensorSpec(rows, logits.dtype), TensorSpec(shape, logits.dtype)


@_dense.reference
def _dense_kernel(xp: Any, labels: Array, logits: Array, *, axis: int) -> tuple[Array, Array]:
    y = shifted(xp, logits, (axis,))
    y = y - xp.log(xp.sum(xp.exp(y), axis=axis, keepdims=True))
    weights = labels.astype(y.dtype, copy=False)
    terms = xp.where(weights == 0, y.dtype.type(0), weights * y)
    loss = -xp.sum(terms, axis=axis)
    return loss.astype(logits.dtype, copy=False), y.astype(logits.dtype, copy=False)


@_dense.grad
def _dense_grad(op: OpView, dloss: Tensor | None, dy: Tensor | None) -> Grads:
    labels, _ = op.inputs
    y, axis = op.outputs[1], op.attrs["axis"]
    dlabels: Tensor | None = None
    if dloss is not None:
        step = negative(expand_dims(dloss, axis))
        dlabels = multiply(step, y)
        direct = multiply(step, labels)
        dy = direct if dy is None else add(dy, direct)
    return dlabels, None if dy is None else through_log_softmax(y, dy, (axis,))


def softmax_cross_entropy(labels: Tensor, logits: Tensor, axis: int = -1) -> Tensor:
    """-(sum of labels * log(softmax(logits))) of each example.

    Args:
        labels: probabilities of the classes along `axis`; they need not add up to 1.
        logits: floating, shape and dtype of the labels; half types are computed in float32.
        axis: the class axis.

    Returns:
        The losses, without the class axis.

    Raises:
        ShapeError: the shapes differ.
    """
    return _dense.many(labels, logits, axis=axis)[0]


sigmoid_cross_entropy: OpDef = elementwise(
    "SigmoidCrossEntropy",
    "loss = -labels * log(p) - (1 - labels) * log(1 - p) with p = sigmoid(logits), "
    "computed as max(x, 0) - x * labels + log(1 + exp(-|x|)).",
    scalar=lambda s, labels, logits: (
        s.max(logits, 0) - logits * labels + s.log1p(s.exp(-s.abs(logits)))
    ),
    grad=lambda op, dy: (
        negative(multiply(dy, op.inputs[1])),
        multiply(dy, subtract(sigmoid(op.inputs[1]), op.inputs[0])),
    ),
    dtypes=FLOATING,
)
