"""`tf.metrics`: values that batches add to, in local variables; each gives (value, update)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import engine
from laminar.engine.graph import Tensor, get_default_graph
from laminar.engine.ops.array import creation
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.state import GraphKeys

from .adapting import v1
from .maths import reduce_sum
from .values import operands, tensor
from .variables import variable_scope


def kept_count(name: str, shape: Sequence[int] = ()) -> engine.Variable:
    """A local variable of zeros, in the scope of a metric."""
    scope = engine.get_variable_scope().name
    with engine.name_scope(None):
        return engine.Variable(
            creation.zeros(list(shape), "float32"),
            trainable=False,
            name=f"{scope}/{name}" if scope else name,
            collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
        )


def listed(value: Any, update: Any, metrics: Any, updates: Any) -> tuple[Any, Any]:
    """Both, once each is in its collections."""
    for keys, item in ((metrics, value), (updates, update)):
        for key in [keys] if isinstance(keys, str) else keys or ():
            get_default_graph().root.add_to_collection(key, item)
    return value, update


def _ratio(total: Any, count: Any) -> Any:
    return lookup("DivNoNan")(tensor(total), tensor(count))


@v1()
def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The weighted mean of all values of all batches."""
    with variable_scope(name, "mean"):
        total, count = kept_count("total"), kept_count("count")
        x = cast(tensor(values), "float32")
        w = lookup("OnesLike")(x)
        if weights is not None:
            w = w * like_rank(cast(tensor(weights), "float32"), x)
        new_total = total.assign_add(reduce_sum(x * w))
        with engine.control_dependencies([x]):
            new_count = count.assign_add(reduce_sum(w))
        value, update = _ratio(total, count), _ratio(new_total, new_count)
        return listed(value, update, metrics_collections, updates_collections)


def like_rank(w: Tensor, x: Tensor) -> Any:
    """Weights with as many axes as what they weigh."""
    rank, own = x.shape.rank, w.shape.rank
    if own is not None and rank is not None and own == rank + 1:
        return lookup("Squeeze")(w, axis=(-1,))
    if own and rank is not None and own < rank:
        return lookup("ExpandDims")(w, axis=tuple(range(own, rank)))
    return w


@v1()
def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """How often predictions equal labels."""
    y = tensor(predictions)
    t = cast(tensor(labels), y.dtype)
    if t.shape.rank is not None and y.shape.rank is not None and t.shape.rank != y.shape.rank:
        longer = t if t.shape.rank > y.shape.rank else y
        shorter = lookup("Squeeze")(longer, axis=(-1,))
        t, y = (shorter, y) if longer is t else (t, shorter)
    hits = cast(lookup("Equal")(y, t), "float32")
    found: tuple[Any, Any] = mean(
        hits, weights, metrics_collections, updates_collections, name or "accuracy"
    )
    return found


def _error(kind: str) -> Any:
    @v1()
    def error(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        y, t = operands(predictions, labels)
        each = lookup("Abs")(y - t) if kind == "mean_absolute_error" else lookup("Square")(y - t)
        if kind != "root_mean_squared_error":
            found: tuple[Any, Any] = mean(
                each, weights, metrics_collections, updates_collections, name or kind
            )
            return found
        value, update = mean(each, weights, None, None, name or kind)
        root = lookup("Sqrt")
        return listed(root(value), root(update), metrics_collections, updates_collections)

    error.__doc__ = f"The {kind.replace('_', ' ')} of predictions."
    return error


mean_absolute_error = _error("mean_absolute_error")
mean_squared_error = _error("mean_squared_error")
root_mean_squared_error = _error("root_mean_squared_error")


def _counted(kind: str, label: bool, prediction: bool) -> Any:
    @v1()
    def counted(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        with variable_scope(name, kind):
            count = kept_count("count")
            update = count.assign_add(_hits(labels, predictions, weights, label, prediction))
            value = engine.identity(count.as_tensor())
            return listed(value, update, metrics_collections, updates_collections)

    counted.__doc__ = f"How many {kind.replace('_', ' ')} there are."
    return counted


def _hits(labels: Any, predictions: Any, weights: Any, label: bool, prediction: bool) -> Any:
    t, y = (cast(tensor(x), "bool") for x in (labels, predictions))
    t = t if label else lookup("LogicalNot")(t)
    y = y if prediction else lookup("LogicalNot")(y)
    hits = cast(lookup("LogicalAnd")(t, y), "float32")
    if weights is not None:
        hits = hits * like_rank(cast(tensor(weights), "float32"), hits)
    return reduce_sum(hits)


true_positives = _counted("true_positives", True, True)
false_positives = _counted("false_positives", False, True)
true_negatives = _counted("true_negatives", False, False)
false_negatives = _counted("false_negatives", True, False)


def _rate(kind: str, other: str, label: bool, prediction: bool) -> Any:
    """Of what `kind` is about, the part that are true positives."""

    @v1()
    def rate(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        with variable_scope(name, kind):
            right, wrong = kept_count("true_positives/count"), kept_count(f"{other}/count")
            new_right = right.assign_add(_hits(labels, predictions, weights, True, True))
            new_wrong = wrong.assign_add(_hits(labels, predictions, weights, label, prediction))
            value = _ratio(right, right + wrong)
            update = _ratio(new_right, new_right + new_wrong)
            return listed(value, update, metrics_collections, updates_collections)

    rate.__doc__ = f"The {kind} of predictions."
    return rate


precision = _rate("precision", "false_positives", False, True)
recall = _rate("recall", "false_negatives", True, False)
