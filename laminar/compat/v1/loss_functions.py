"""`tf.losses`: weighted losses, which the graph lists under `GraphKeys.LOSSES`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from laminar import engine
from laminar.engine.graph import Tensor, get_default_graph
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.state import GraphKeys

from . import neural
from .adapting import under, v1
from .maths import reduce_sum
from .values import dims_of, operands, symbol, tensor

_abs, _log, _square = lookup("Abs"), lookup("Log"), lookup("Square")


_Function: TypeAlias = Callable[..., Any]


class Reduction:
    """How the losses of the elements become one number."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All of them."""
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS)


_USUAL = Reduction.SUM_BY_NONZERO_WEIGHTS


def _divided(total: Tensor, by: Tensor) -> Any:
    return lookup("DivNoNan")(total, by)


@v1()
def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _USUAL,
) -> Any:
    """The losses times their weights, reduced; listed under `loss_collection`.

    Args:
        losses: of the elements.
        weights: a number, or a tensor that broadcasts to the losses.
        scope: names the operations.
        loss_collection: where the graph lists the result; None for nowhere.
        reduction: one of `Reduction`: of the sum, over the number of weights that are not 0.
    """
    if reduction not in Reduction.all():
        raise ValueError(f"compute_weighted_loss: {reduction!r} is no Reduction")
    with engine.name_scope(scope, "weighted_loss"):
        each = cast(tensor(losses), "float32")
        w = cast(tensor(weights, "float32"), "float32")
        rank, own = each.shape.rank, w.shape.rank
        if own and rank == own + 1 and each.shape[-1] == 1:
            each = lookup("Squeeze")(each, axis=(-1,))
        elif own and rank is not None and own == rank + 1 and w.shape[-1] == 1:
            w = lookup("Squeeze")(w, axis=(-1,))
        weighed = each * w
        if reduction == Reduction.NONE:
            found = weighed
        else:
            found = reduce_sum(weighed)
            spread = lookup("OnesLike")(each) * w
            if reduction == Reduction.MEAN:
                found = _divided(found, reduce_sum(spread))
            elif reduction == _USUAL:
                present = cast(lookup("NotEqual")(spread, tensor(0.0)), "float32")
                found = _divided(found, reduce_sum(present))
            elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                found = _divided(found, cast(lookup("Size")(each), "float32"))
    add_loss(found, loss_collection)
    return found


def _loss(
    weights_at: int = 2, **aliases: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a loss of what says the losses of the elements: `compute_weighted_loss` of those.

    Args:
        weights_at: where `weights` stands among the arguments.
        aliases: as for `v1`.
    """

    def decorate(elements: Callable[..., Any]) -> Callable[..., Any]:
        def weighted(**given: Any) -> Any:
            common = {p.name: given.pop(p.name) for p in (weights, *rest) if p.name in given}
            return compute_weighted_loss(elements(**given), **common)

        own = [*inspect.signature(elements).parameters.values()]
        _, weights, *rest = inspect.signature(compute_weighted_loss).parameters.values()
        whole = inspect.Signature([*own[:weights_at], weights, *own[weights_at:], *rest])
        return v1(**aliases)(under(whole, functools.wraps(elements)(weighted)))

    return decorate


@_loss()
def absolute_difference(
    labels: Any,
    predictions: Any,
) -> Any:
    """|predictions - labels|."""
    y, t = operands(predictions, labels)
    return _abs(y - t)


@_loss()
def mean_squared_error(
    labels: Any,
    predictions: Any,
) -> Any:
    """(predictions - labels)**2."""
    y, t = operands(predictions, labels)
    return _square(y - t)


@_loss()
def huber_loss(
    labels: Any,
    predictions: Any,
    delta: float = 1.0,
) -> Any:
    """Half the square of an error up to `delta`, linear beyond."""
    y, t = operands(predictions, labels)
    error = _abs(y - t)
    small = lookup("Minimum")(error, tensor(delta, error.dtype))
    return small * small * 0.5 + (error - small) * delta


@_loss()
def log_loss(
    labels: Any,
    predictions: Any,
    epsilon: float = 1e-7,
) -> Any:
    """-labels * log(predictions + epsilon) - (1 - labels) * log(1 - predictions + epsilon)."""
    y, t = operands(predictions, labels)
    return -t * _log(y + epsilon) - (1 - t) * _log(1 - y + epsilon)


@_loss()
def hinge_loss(
    labels: Any,
    logits: Any,
) -> Any:
    """max(1 - y * logits, 0), where y is -1 or 1 for the labels 0 and 1."""
    x, t = operands(logits, labels)
    return lookup("Relu")(1 - (2 * t - 1) * x)


@_loss(3, dim="axis")
def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
) -> Any:
    """1 - sum(labels * predictions), of vectors of length 1 along `axis`."""
    if axis is None:
        raise ValueError("cosine_distance: give axis")
    y, t = operands(predictions, labels)
    return 1 - reduce_sum(y * t, axis, keepdims=True)


@_loss()
def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    label_smoothing: float = 0,
) -> Any:
    """Of each class by itself; labels are moved towards 1/2 by `label_smoothing`."""
    x, t = operands(logits, multi_class_labels)
    if label_smoothing:
        t = t * (1 - label_smoothing) + 0.5 * label_smoothing
    return neural.sigmoid_cross_entropy_with_logits(labels=t, logits=x)


@_loss()
def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    label_smoothing: float = 0,
) -> Any:
    """Of each row; labels are moved towards equal shares by `label_smoothing`."""
    x = tensor(logits)
    t = cast(tensor(onehot_labels), x.dtype)
    if label_smoothing:
        t = t * (1 - label_smoothing) + label_smoothing / int(t.shape[-1] or 1)
    return neural.softmax_cross_entropy_with_logits_v2(labels=t, logits=x)


@_loss()
def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
) -> Any:
    """Of each row, whose label is the number of its class."""
    x, t = tensor(logits), tensor(labels)
    if t.shape.rank is not None and t.shape.rank == x.shape.rank:
        t = lookup("Squeeze")(t, axis=(-1,))
    return neural.sparse_softmax_cross_entropy_with_logits(labels=t, logits=x)


def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Have the graph list a loss."""
    if loss_collection and hasattr(loss, "graph"):
        loss.graph.root.add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """The losses that the default graph lists."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The penalties that the default graph lists."""
    return get_losses(scope, GraphKeys.REGULARIZATION_LOSSES)


@v1()
def get_regularization_loss(scope: str | None = None) -> Any:
    """Their sum, 0 without any."""
    found = get_regularization_losses(scope)
    return lookup("AddN")(*found) if found else engine.constant(0.0)


@v1()
def get_total_loss(add_regularization_losses: bool = True, scope: str | None = None) -> Any:
    """The sum of all losses, and penalties."""
    found = get_losses(scope)
    if add_regularization_losses:
        found += get_regularization_losses(scope)
    return lookup("AddN")(*(tensor(x) for x in found))


@v1()
def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None
) -> Any:
    """The sum of the losses of examples over their number in all replicas.

    Args:
        per_example_loss: (batch, ...).
        sample_weight: what each is multiplied with.
        global_batch_size: the number of examples; by default that of these.
    """
    losses = symbol(per_example_loss)
    if sample_weight is not None:
        losses = losses * symbol(sample_weight, losses.dtype)
    count = dims_of(losses)[0] if global_batch_size is None else global_batch_size
    return reduce_sum(losses) / cast(symbol(count), losses.dtype)


@v1()
def scale_regularization_loss(regularization_loss: Any) -> Any:
    """The sum of the losses, as one replica adds it, of which there is one in a process."""
    return reduce_sum(symbol(regularization_loss))
