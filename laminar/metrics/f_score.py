"""F-scores: precision and recall in one number."""

from __future__ import annotations

from typing import Any

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, TensorShape
from laminar.engine.state import Variable

from .. import ops
from ..dtype_policies import Policy
from ..losses.alignment import check_shapes
from ..typing import DTypeLike, TensorLike
from .metric import Metric
from .reduction import weights_of

_AVERAGES = (None, "micro", "macro", "weighted")


class FBetaScore(Metric):
    """(1 + beta**2) * precision * recall / (beta**2 * precision + recall), of each class.

    Args:
        average: None gives one score for each class; "micro" counts all classes together; "macro"
            is the mean of the classes' scores; "weighted" weighs it by the labels of each class.
        beta: how many times as much recall matters as precision.
        threshold: above it a prediction means 1; None takes the largest score of each row.
        name: of the metric.
        dtype: of the counts.

    Raises:
        InvalidArgumentError: an argument has another value.

    Examples:
        >>> metric = laminar.metrics.FBetaScore(beta=2.0, threshold=0.5)
        >>> metric.update_state([[1, 0], [1, 1]], [[0.9, 0.8], [0.2, 0.7]])
        >>> metric.result()
        Tensor([0.5556, 0.8333], shape=(2,), dtype=float32)
    """

    true_positives: Variable
    false_positives: Variable
    false_negatives: Variable
    intermediate_weights: Variable

    def __init__(
        self,
        average: str | None = None,
        beta: float = 1.0,
        threshold: float | None = None,
        name: str | None = "fbeta_score",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        who = type(self).__name__
        if average not in _AVERAGES:
            raise InvalidArgumentError(
                f"{who}: average must be one of {', '.join(map(repr, _AVERAGES))}, got {average!r}"
            )
        if not isinstance(beta, float) or beta <= 0:
            raise InvalidArgumentError(
                f"{who}: beta must be a float above 0, got {beta!r}",
                remedy="beta=1.0 weighs precision and recall alike",
            )
        if threshold is not None and not (isinstance(threshold, float) and 0 < threshold <= 1):
            raise InvalidArgumentError(
                f"{who}: threshold must be a float above 0 and at most 1, got {threshold!r}"
            )
        self.average = average
        self.beta = beta
        self.threshold = threshold
        self._built = False

    def _build(self, shape: TensorShape) -> None:
        who = type(self).__name__
        if shape.rank != 2 or shape[-1] is None:
            raise ShapeError(f"{who}: expected predictions (batch, classes), got shape {shape}")
        counts = () if self.average == "micro" else (shape[-1],)
        for kind in _COUNTS:
            setattr(self, kind, self.add_variable(counts, "zeros", self.dtype, name=kind))
        self._built = True

    def update_state(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        """Add a batch.

        Args:
            y_true: 0 and 1: (batch, classes).
            y_pred: scores: (batch, classes).
            sample_weight: (batch,).

        Raises:
            ShapeError: other shapes.
        """
        weights = weights_of(y_pred, sample_weight, self.dtype)
        y_true = ops.convert_to_tensor(y_true, dtype=self.dtype)
        y_pred = ops.convert_to_tensor(y_pred, dtype=self.dtype)
        check_shapes(type(self).__name__, y_true, y_pred)
        if not self._built:
            self._build(y_pred.shape)
        if self.threshold is None:
            largest = ops.greater_equal(y_pred, ops.max(y_pred, axis=-1, keepdims=True))
            # A row of zeros predicts nothing.
            chosen = ops.logical_and(largest, ops.greater(ops.abs(y_pred), 1e-9))
        else:
            chosen = ops.greater(y_pred, ops.cast(self.threshold, self.dtype))
        y_pred = ops.cast(chosen, self.dtype)
        if weights is not None and len(weights.shape) < 2:
            weights = ops.reshape(weights, (-1, 1))

        def total(x: Tensor) -> Tensor:
            weighted = x if weights is None else x * weights
            return ops.sum(weighted, axis=None if self.average == "micro" else 0)

        self.true_positives.assign_add(total(y_pred * y_true))
        self.false_positives.assign_add(total(y_pred * (1.0 - y_true)))
        self.false_negatives.assign_add(total((1.0 - y_pred) * y_true))
        self.intermediate_weights.assign_add(total(y_true))

    def result(self) -> Any:
        if not self._built:
            return ops.zeros((), dtype=self.dtype)
        hits = self.true_positives.value
        precision = ops.divide_no_nan(hits, hits + self.false_positives.value)
        recall = ops.divide_no_nan(hits, hits + self.false_negatives.value)
        beta_2 = self.beta**2
        score = (1.0 + beta_2) * ops.divide_no_nan(precision * recall, beta_2 * precision + recall)
        if self.average == "weighted":
            labels = self.intermediate_weights.value
            return ops.sum(score * ops.divide_no_nan(labels, ops.sum(labels)))
        return score if self.average is None else ops.mean(score)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "average": self.average,
            "beta": self.beta,
            "threshold": self.threshold,
        }


_COUNTS = ("true_positives", "false_positives", "false_negatives", "intermediate_weights")


class F1Score(FBetaScore):
    """2 * precision * recall / (precision + recall): `FBetaScore` with beta = 1.

    Args:
        average: None gives one score for each class; "micro", "macro" or "weighted" one for all, as
            in `FBetaScore`.
        threshold: above it a prediction means 1; None takes the largest score of each row.
        name: of the metric.
        dtype: of the counts.

    Examples:
        >>> metric = laminar.metrics.F1Score(threshold=0.5)
        >>> metric.update_state([[1, 0], [1, 1]], [[0.9, 0.8], [0.2, 0.7]])
        >>> metric.result()
        Tensor([0.6667, 0.6667], shape=(2,), dtype=float32)
    """

    def __init__(
        self,
        average: str | None = None,
        threshold: float | None = None,
        name: str | None = "f1_score",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(average=average, threshold=threshold, name=name, dtype=dtype)

    def get_config(self) -> dict[str, Any]:
        given = super().get_config()
        del given["beta"]
        return given
