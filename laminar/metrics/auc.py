"""AUC: the area under the ROC curve, or under that of precision and recall."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, TensorShape

from .. import ops
from ..dtype_policies import Policy
from ..serialization import deserialize_keras_object
from ..typing import DTypeLike, TensorLike
from .confusion import count_confusion
from .curve import CurveMetric, precision_of, recall_of
from .metric import Metric
from .thresholds import are_spread_evenly, check_thresholds, spread_thresholds, with_ends

_CURVES = ("ROC", "PR", "PRGAIN")
_METHODS = ("interpolation", "minoring", "majoring")


class AUC(CurveMetric):
    """The area under a curve that the thresholds trace, between 0 and 1.

    Args:
        num_thresholds: how many thresholds, spread evenly over [0, 1]; the more, the closer.
        curve: "ROC": rate of true positives over rate of false positives; "PR": precision over
            recall; "PRGAIN": precision gain over recall gain.
        summation_method: height of the curve between two thresholds: "interpolation" (the mean of
            both, for "PR" the interpolation of true positives), "minoring" (the smaller one) or
            "majoring" (the larger one).
        name: of the metric.
        dtype: of the counts.
        thresholds: the thresholds between 0 and 1, instead of `num_thresholds` even ones.
        multi_label: whether the last axis of the predictions holds labels whose areas are computed
            each by itself and averaged.
        num_labels: how many labels; by default known from the first batch.
        label_weights: one weight for each label: of its area with `multi_label`, else of its
            counts.
        from_logits: whether predictions are sigmoid(y_pred).

    Raises:
        InvalidArgumentError: an argument has another value.

    Source: Davis and Goadrich, "The relationship between precision-recall and ROC curves", 2006,
        section 4 (interpolation); Flach and Kull, "Precision-recall-gain curves", 2015, section 3.

    Examples:
        >>> metric = laminar.metrics.AUC()
        >>> metric.update_state([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
        >>> metric.result()
        Tensor(0.75, shape=(), dtype=float32)
    """

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
        thresholds: float | Sequence[float] | None = None,
        multi_label: bool = False,
        num_labels: int | None = None,
        label_weights: TensorLike | None = None,
        from_logits: bool = False,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.curve = _one_of("curve", curve, _CURVES, str.upper)
        self.summation_method = _one_of("summation_method", summation_method, _METHODS, str.lower)
        if thresholds is None:
            if num_thresholds < 2:
                raise InvalidArgumentError(
                    f"AUC: num_thresholds must be at least 2, got {num_thresholds!r}"
                )
            self._init_thresholds: list[float] | None = None
            inner = spread_thresholds(num_thresholds)
            self._evenly = True
        else:
            inner = sorted(check_thresholds("AUC", thresholds, 0.5))
            self._init_thresholds = inner
            self._evenly = are_spread_evenly([0.0, *inner, 1.0])
        self._thresholds = with_ends(inner)
        self.num_thresholds = len(self._thresholds)
        self.multi_label = multi_label
        self.num_labels = num_labels
        self.from_logits = from_logits
        if num_labels is not None and not multi_label:
            raise InvalidArgumentError(
                "AUC: num_labels is for multi_label=True", remedy="leave it out"
            )
        self.label_weights = None
        if label_weights is not None:
            self.label_weights = np.asarray(label_weights, dtype=self.dtype.numpy)
            if num_labels is not None and self.label_weights.shape != (num_labels,):
                raise ShapeError(
                    f"AUC: expected {num_labels} label_weights, "
                    f"got shape {self.label_weights.shape}"
                )
        self._built = False
        if not multi_label or num_labels is not None:
            self._build(num_labels)

    @property
    def thresholds(self) -> list[float]:
        """All thresholds, ascending: the first below all probabilities, the last above all."""
        return list(self._thresholds)

    def _build(self, num_labels: int | None) -> None:
        self._built = True
        labels = () if num_labels is None else (num_labels,)
        self._add_counts((self.num_thresholds, *labels))

    def update_state(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        """Add a batch.

        Args:
            y_true: 0 and 1 (any other value counts as 1), shape of `y_pred`.
            y_pred: probabilities, or logits with `from_logits`: (batch, ...), with `multi_label`
                (batch, labels).
            sample_weight: weights that broadcast to `y_pred` from the first axis on.

        Raises:
            ShapeError: the shapes do not fit.
        """
        shape = ops.convert_to_tensor(y_pred).shape
        if not self._built:
            self._build(_known_labels(shape))
        if self.multi_label:
            _check_labels(shape, self.true_positives.shape[-1])
        self._count(
            count_confusion(
                "AUC",
                y_true,
                y_pred,
                self._thresholds,
                dtype=self.true_positives.dtype,
                evenly=self._evenly,
                from_logits=self.from_logits,
                sample_weight=sample_weight,
                multi_label=self.multi_label,
                label_weights=None if self.multi_label else self.label_weights,
            )
        )

    def result(self) -> Any:
        counts = self._counts()
        if self.curve == "PR" and self.summation_method == "interpolation":
            return self._average(ops.sum(self._interpolate_pr(), axis=0))
        if self.curve == "ROC":
            fp, tn = counts.false_positives, counts.true_negatives
            x, y = ops.divide_no_nan(fp, fp + tn), recall_of(counts)
        elif self.curve == "PR":
            x, y = recall_of(counts), precision_of(counts)
        else:
            # Flach and Kull, equations 1 and 2: gain = 1 - (labels 1 / labels 0) * (errors / hits).
            # A recall gain below 0 counts as 0.
            hits = counts.true_positives
            odds = ops.divide_no_nan(
                hits + counts.false_negatives, counts.false_positives + counts.true_negatives
            )
            gain = ops.maximum(1.0 - odds * ops.divide_no_nan(counts.false_negatives, hits), 0.0)
            x = ops.where(ops.greater(hits, 0.0), gain, ops.zeros_like(gain))
            y = 1.0 - odds * ops.divide_no_nan(counts.false_positives, hits)
        if self.summation_method == "interpolation":
            heights = (y[:-1] + y[1:]) / 2.0
        elif self.summation_method == "minoring":
            heights = ops.minimum(y[:-1], y[1:])
        else:
            heights = ops.maximum(y[:-1], y[1:])
        return self._average(ops.sum((x[:-1] - x[1:]) * heights, axis=0))

    def _interpolate_pr(self) -> Tensor:
        """The area between each two thresholds, true positives being linear in all positives.

        Davis and Goadrich, section 4: with p = tp + fp and tp = intercept + slope * p, the
        area is the integral of tp / p over tp / (tp + fn) in closed form.
        """
        tp, fp, _, fn = self._counts()
        p = tp + fp
        d_tp, d_p = tp[:-1] - tp[1:], p[:-1] - p[1:]
        slope = ops.divide_no_nan(d_tp, ops.maximum(d_p, 0.0))
        intercept = tp[1:] - slope * p[1:]
        both = ops.logical_and(ops.greater(p[:-1], 0.0), ops.greater(p[1:], 0.0))
        ratio = ops.divide_no_nan(p[:-1], ops.maximum(p[1:], 0.0))
        ratio = ops.where(both, ratio, ops.ones_like(ratio))
        area = slope * (d_tp + intercept * ops.log(ratio))
        return ops.divide_no_nan(area, ops.maximum(tp[1:] + fn[1:], 0.0))

    def _average(self, area: Tensor) -> Tensor:
        """The area, or the mean of those of the labels."""
        if not self.multi_label:
            return area
        if self.label_weights is None:
            return ops.mean(area)
        return ops.divide_no_nan(
            ops.sum(area * self.label_weights), ops.sum(ops.convert_to_tensor(self.label_weights))
        )

    def get_config(self) -> dict[str, Any]:
        weights = None if self.label_weights is None else self.label_weights.tolist()
        given = {
            **super().get_config(),
            "num_thresholds": self.num_thresholds,
            "curve": self.curve,
            "summation_method": self.summation_method,
            "multi_label": self.multi_label,
            "num_labels": self.num_labels,
            "label_weights": weights,
            "from_logits": self.from_logits,
        }
        if self._init_thresholds is not None:
            given["thresholds"] = self._init_thresholds
        return given

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Metric:
        return cls(**deserialize_keras_object(config))  # label_weights may be a saved tensor


def _one_of(name: str, value: str, known: Sequence[str], spelling: Callable[[str], str]) -> str:
    """`value`, spelled as the known values are.

    Raises:
        InvalidArgumentError: it is none of them.
    """
    found = spelling(str(value))
    if found not in known:
        raise InvalidArgumentError(f"AUC: {name} must be one of {', '.join(known)}, got {value!r}")
    return found


def _known_labels(shape: TensorShape) -> int:
    """The number of labels in a batch of predictions (batch, labels).

    Raises:
        ShapeError: it is unknown.
    """
    labels = shape[-1] if shape.rank == 2 else None
    if labels is None:
        raise ShapeError(
            f"AUC: expected predictions (batch, labels), got shape {shape}",
            remedy="say how many labels there are: AUC(multi_label=True, num_labels=...)",
        )
    return labels


def _check_labels(shape: TensorShape, labels: int | None) -> None:
    if not shape.is_compatible_with((None, labels)):
        raise ShapeError(
            f"AUC: expected predictions (batch, {labels}), got shape {shape}",
            remedy="multi_label=True needs one column for each label",
        )
