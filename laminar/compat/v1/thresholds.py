"""`tf.metrics`: what depends on the threshold from which a prediction counts as positive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import gather as gathering
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast

from .adapting import v1
from .maths import reduce_sum
from .streaming import kept_count, like_rank, listed
from .values import static, tensor
from .variables import variable_scope

_EPSILON = 1e-7
_KINDS = {
    "tp": "true_positives",
    "fn": "false_negatives",
    "tn": "true_negatives",
    "fp": "false_positives",
}


class _Counts(NamedTuple):
    """How many predictions of each kind there are at each threshold: of all batches, or with now.

    Attributes:
        tp, fn, tn, fp: true and false positives and negatives, one number for each threshold;
            None where nobody asks.
    """

    tp: Any = None
    fn: Any = None
    tn: Any = None
    fp: Any = None


def _counted(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, kinds: Sequence[str]
) -> tuple[_Counts, _Counts]:
    """The counts before the batch, and with it."""
    y, t = cast(tensor(predictions), "float32"), cast(tensor(labels), "bool")
    w = None
    if weights is not None:
        given = like_rank(cast(tensor(weights), "float32"), y)
        w = ops.reshape(given + lookup("ZerosLike")(y), (1, -1))
    flat, truth = ops.reshape(y, (1, -1)), ops.reshape(t, (1, -1))
    positive = lookup("Greater")(flat, ops.reshape(tensor(list(thresholds), "float32"), (-1, 1)))
    negative, untrue = lookup("LogicalNot")(positive), lookup("LogicalNot")(truth)
    pairs = {
        "tp": (positive, truth),
        "fn": (negative, truth),
        "tn": (negative, untrue),
        "fp": (positive, untrue),
    }
    before, after = {}, {}
    for kind in kinds:
        hits = cast(lookup("LogicalAnd")(*pairs[kind]), "float32")
        total = kept_count(_KINDS[kind], [len(thresholds)])
        after[kind] = total.assign_add(reduce_sum(hits if w is None else hits * w, 1))
        before[kind] = total.as_tensor()
    return _Counts(**before), _Counts(**after)


def _metric(
    kind: str, doc: str, kinds: Sequence[str], of: Callable[[_Counts], Any]
) -> Callable[..., Any]:
    @v1()
    def metric(
        labels: Any,
        predictions: Any,
        thresholds: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        with variable_scope(name, kind):
            points = list(static(thresholds))
            before, after = _counted(labels, predictions, points, weights, kinds)
            return listed(of(before), of(after), metrics_collections, updates_collections)

    metric.__name__ = metric.__qualname__ = kind
    metric.__doc__ = doc
    return metric


def _share(part: Any, other: Any) -> Any:
    return part / (_EPSILON + part + other)


precision_at_thresholds = _metric(
    "precision_at_thresholds",
    "Of what is predicted positive, the part that is, for each threshold.",
    ("tp", "fp"),
    lambda c: _share(c.tp, c.fp),
)
recall_at_thresholds = _metric(
    "recall_at_thresholds",
    "Of what is positive, the part that is predicted so, for each threshold.",
    ("tp", "fn"),
    lambda c: _share(c.tp, c.fn),
)
true_positives_at_thresholds = _metric(
    "true_positives",
    "The true positives, for each threshold.",
    ("tp",),
    lambda c: c.tp,
)
false_negatives_at_thresholds = _metric(
    "false_negatives",
    "The false negatives, for each threshold.",
    ("fn",),
    lambda c: c.fn,
)
true_negatives_at_thresholds = _metric(
    "true_negatives",
    "The true negatives, for each threshold.",
    ("tn",),
    lambda c: c.tn,
)
false_positives_at_thresholds = _metric(
    "false_positives",
    "The false positives, for each threshold.",
    ("fp",),
    lambda c: c.fp,
)


def _evenly(count: int, last: float) -> list[float]:
    inner = [(i + 1) / (count - 1) for i in range(count - 2)]
    return [-_EPSILON, *inner, last]


def _interpolated(c: _Counts) -> Any:
    """The area under precision by recall, where precision between two points is no line.

    Source: Davis and Goadrich, "The relationship between precision-recall and ROC curves", 2006.
    """
    step = c.tp[:-1] - c.tp[1:]
    p = c.tp + c.fp
    ratio, zero = lookup("DivNoNan"), tensor(0.0)
    slope = ratio(step, ops.maximum(p[:-1] - p[1:], zero))
    rest = c.tp[1:] - slope * p[1:]
    both = lookup("LogicalAnd")(p[:-1] > 0.0, p[1:] > 0.0)
    growth = ops.where(both, ratio(p[:-1], ops.maximum(p[1:], zero)), 1.0)
    area = slope * (step + rest * ops.log(growth))
    return reduce_sum(ratio(area, ops.maximum(c.tp[1:] + c.fn[1:], zero)))


_HEIGHTS: dict[str, Callable[[Any, Any], Any]] = {
    "trapezoidal": lambda a, b: (a + b) / 2.0,
    "minoring": lambda a, b: ops.minimum(a, b),
    "majoring": lambda a, b: ops.maximum(a, b),
}


@v1()
def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Any = None,
) -> tuple[Any, Any]:
    """The area under a curve of points, one for each threshold.

    Args:
        labels, predictions: of one shape; bools, and numbers from 0 to 1.
        weights: how much each counts.
        num_thresholds: how many points there are.
        metrics_collections, updates_collections: where the two results are listed.
        curve: "ROC", recall by the rate of false positives, or "PR", precision by recall.
        name: of the scope of the counts.
        summation_method: "trapezoidal", "minoring", "majoring", or for PR
            "careful_interpolation".
        thresholds: those between 0 and 1, instead of evenly spaced ones.
    """
    if curve not in ("ROC", "PR"):
        raise ValueError(f"auc: curve is ROC or PR, got {curve!r}")
    careful = summation_method == "careful_interpolation"
    if summation_method not in _HEIGHTS and not (careful and curve == "PR"):
        raise ValueError(f"auc: {summation_method!r} is no way to sum for {curve}")
    if num_thresholds < 2:
        raise ValueError(f"auc: num_thresholds is at least 2, got {num_thresholds}")
    points = _evenly(num_thresholds, 1.0 + _EPSILON)
    if thresholds is not None:
        points = [-_EPSILON, *sorted(thresholds), 1.0 + _EPSILON]
    least = 1e-6

    def area(c: _Counts) -> Any:
        if careful:
            return _interpolated(c)
        recall = (c.tp + least) / (c.tp + c.fn + least)
        x = c.fp / (c.fp + c.tn + least) if curve == "ROC" else recall
        y = recall if curve == "ROC" else (c.tp + least) / (c.tp + c.fp + least)
        return reduce_sum((x[:-1] - x[1:]) * _HEIGHTS[summation_method](y[:-1], y[1:]))

    with variable_scope(name, "auc"):
        before, after = _counted(labels, predictions, points, weights, tuple(_KINDS))
        return listed(area(before), area(after), metrics_collections, updates_collections)


def _at_least(kind: str, given: str, doc: str, of: Callable[[_Counts, float], Any]) -> Any:
    @v1(**{given: "target"})
    def metric(
        labels: Any,
        predictions: Any,
        target: float,
        weights: Any = None,
        num_thresholds: int = 200,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        if not 0 <= target <= 1:
            raise ValueError(f"{kind}: {given} is from 0 to 1, got {target}")
        points = _evenly(num_thresholds, 1.0 - _EPSILON)
        with variable_scope(name, kind):
            before, after = _counted(labels, predictions, points, weights, tuple(_KINDS))
            values = (of(before, target), of(after, target))
            return listed(*values, metrics_collections, updates_collections)

    metric.__name__ = metric.__qualname__ = kind
    metric.__doc__ = doc
    return metric


def _sensitivity(c: _Counts, target: float) -> Any:
    apart = ops.abs(_share(c.tn, c.fp) - target)
    place = lookup("ArgMin")(apart, axis=0)
    return _share(_one(c.tp, place), _one(c.fn, place))


def _specificity(c: _Counts, target: float) -> Any:
    apart = ops.abs(_share(c.tp, c.fn) - target)
    place = lookup("ArgMin")(ops.flip(apart, 0), axis=0)  # of those that are as near, the last
    return _share(_one(ops.flip(c.tn, 0), place), _one(ops.flip(c.fp, 0), place))


def _one(x: Tensor, place: Any) -> Any:
    return gathering.gather(x, place)


sensitivity_at_specificity = _at_least(
    "sensitivity_at_specificity",
    "specificity",
    "The recall at the threshold at which the specificity is nearest to the one given.",
    _sensitivity,
)
specificity_at_sensitivity = _at_least(
    "specificity_at_sensitivity",
    "sensitivity",
    "The specificity at the last threshold at which the recall is nearest to the one given.",
    _specificity,
)
