"""Errors of predicted numbers."""

from __future__ import annotations

from typing import Any, ClassVar

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, TensorShape
from laminar.engine.state import Variable

from .. import losses, ops
from ..dtype_policies import Policy
from ..losses.alignment import align, check_shapes
from ..typing import DTypeLike, TensorLike
from .metric import Metric
from .reduction import Mean, MeanMetricWrapper, weights_of

_AGGREGATIONS = (None, "uniform_average", "variance_weighted_average")


class MeanSquaredError(MeanMetricWrapper):
    """Mean of `losses.mean_squared_error`.

    Examples:
        >>> metric = laminar.metrics.MeanSquaredError()
        >>> metric.update_state([[1.0, 2.0]], [[2.0, 5.0]])
        >>> metric.result()
        Tensor(5., shape=(), dtype=float32)
    """

    def __init__(
        self, name: str | None = "mean_squared_error", dtype: DTypeLike | Policy | None = None
    ) -> None:
        super().__init__(losses.mean_squared_error, name, dtype)


class MeanAbsoluteError(MeanMetricWrapper):
    """Mean of `losses.mean_absolute_error`.

    Examples:
        >>> metric = laminar.metrics.MeanAbsoluteError()
        >>> metric.update_state([[1.0, 2.0]], [[2.0, 5.0]])
        >>> metric.result()
        Tensor(2., shape=(), dtype=float32)
    """

    def __init__(
        self, name: str | None = "mean_absolute_error", dtype: DTypeLike | Policy | None = None
    ) -> None:
        super().__init__(losses.mean_absolute_error, name, dtype)


class MeanAbsolutePercentageError(MeanMetricWrapper):
    """Mean of `losses.mean_absolute_percentage_error`.

    Examples:
        >>> metric = laminar.metrics.MeanAbsolutePercentageError()
        >>> metric.update_state([[1.0, 2.0]], [[1.1, 2.0]])
        >>> metric.result()
        Tensor(5., shape=(), dtype=float32)
    """

    def __init__(
        self,
        name: str | None = "mean_absolute_percentage_error",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(losses.mean_absolute_percentage_error, name, dtype)


class MeanSquaredLogarithmicError(MeanMetricWrapper):
    """Mean of `losses.mean_squared_logarithmic_error`.

    Examples:
        >>> metric = laminar.metrics.MeanSquaredLogarithmicError()
        >>> metric.update_state([[0.0]], [[1.0]])
        >>> metric.result()
        Tensor(0.4805, shape=(), dtype=float32)
    """

    def __init__(
        self,
        name: str | None = "mean_squared_logarithmic_error",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(losses.mean_squared_logarithmic_error, name, dtype)


class LogCoshError(MeanMetricWrapper):
    """Mean of `losses.log_cosh`.

    Examples:
        >>> metric = laminar.metrics.LogCoshError()
        >>> metric.update_state([[0.0]], [[1.0]])
        >>> metric.result()
        Tensor(0.4338, shape=(), dtype=float32)
    """

    def __init__(
        self, name: str | None = "logcosh", dtype: DTypeLike | Policy | None = None
    ) -> None:
        super().__init__(losses.log_cosh, name, dtype)


class RootMeanSquaredError(Mean):
    """sqrt(mean((y_true - y_pred)**2)), the mean over all values of all batches.

    Examples:
        >>> metric = laminar.metrics.RootMeanSquaredError()
        >>> metric.update_state([[0.0, 0.0]], [[3.0, 4.0]])
        >>> metric.result()
        Tensor(3.5355, shape=(), dtype=float32)
    """

    def __init__(
        self, name: str | None = "root_mean_squared_error", dtype: DTypeLike | Policy | None = None
    ) -> None:
        super().__init__(name, dtype)

    def update_state(  # type: ignore[override]  # the class tree is Keras's
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        weights = weights_of(y_pred, sample_weight, self.dtype)
        y_pred = ops.convert_to_tensor(y_pred, dtype=self.dtype)
        y_true, y_pred = align("root_mean_squared_error", y_true, y_pred)
        super().update_state(ops.square(y_pred - y_true), weights)

    def result(self) -> Any:
        return ops.sqrt(super().result())


def cosine_similarity(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Tensor:
    """The cosine of the angle between labels and predictions along `axis`."""
    return ops.negative(losses.cosine_similarity(y_true, y_pred, axis=axis))


class CosineSimilarity(MeanMetricWrapper):
    """Mean of the cosine of the angle between labels and predictions along `axis`.

    Examples:
        >>> metric = laminar.metrics.CosineSimilarity()
        >>> metric.update_state([[1.0, 0.0]], [[3.0, 4.0]])
        >>> metric.result()
        Tensor(0.6, shape=(), dtype=float32)
    """

    _unwritten: ClassVar[dict[str, Any]] = {"axis": -1}

    def __init__(
        self,
        name: str | None = "cosine_similarity",
        dtype: DTypeLike | Policy | None = None,
        axis: int = -1,
    ) -> None:
        super().__init__(cosine_similarity, name, dtype, axis=axis)


class R2Score(Metric):
    """1 - sum((y_true - y_pred)**2) / sum((y_true - mean(y_true))**2), of each output.

    Args:
        class_aggregation: None gives one score for each output; "uniform_average" their mean;
            "variance_weighted_average" weighs it by the variance of each output's labels.
        num_regressors: how many independent variables a linear model has, for the adjusted score
            1 - (1 - score) * (n - 1) / (n - num_regressors - 1), n counting the values of all
            outputs; 0 for the plain score. Where n is too small for it, the plain one is given.
        name: of the metric.
        dtype: of the sums.

    Raises:
        InvalidArgumentError: an argument has another value.

    Examples:
        >>> metric = laminar.metrics.R2Score()
        >>> metric.update_state([[1.0], [2.0], [3.0]], [[1.0], [2.0], [4.0]])
        >>> metric.result()
        Tensor(0.5, shape=(), dtype=float32)
    """

    squared_sum: Variable
    sum: Variable
    total_mse: Variable
    count: Variable

    def __init__(
        self,
        class_aggregation: str | None = "uniform_average",
        num_regressors: int = 0,
        name: str | None = "r2_score",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        if class_aggregation not in _AGGREGATIONS:
            raise InvalidArgumentError(
                f"R2Score: class_aggregation must be one of "
                f"{', '.join(map(repr, _AGGREGATIONS))}, got {class_aggregation!r}"
            )
        if num_regressors < 0:
            raise InvalidArgumentError(
                f"R2Score: num_regressors must be at least 0, got {num_regressors!r}"
            )
        self.class_aggregation = class_aggregation
        self.num_regressors = num_regressors
        self.num_samples = self.add_variable((), "zeros", name="num_samples")
        self._built = False

    def _build(self, shape: TensorShape) -> None:
        if shape.rank != 2 or shape[1] is None:
            raise ShapeError(f"R2Score: expected predictions (batch, outputs), got shape {shape}")
        outputs = (shape[1],)
        self.squared_sum = self.add_variable(outputs, "zeros", name="squared_sum")
        self.sum = self.add_variable(outputs, "zeros", name="sum")
        self.total_mse = self.add_variable(outputs, "zeros", name="residual")
        self.count = self.add_variable(outputs, "zeros", name="count")
        self._built = True

    def update_state(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        """Add a batch.

        Args:
            y_true: (batch, outputs).
            y_pred: (batch, outputs).
            sample_weight: (batch,) or (batch, 1).

        Raises:
            ShapeError: other shapes.
        """
        weights = weights_of(y_pred, sample_weight, self.dtype)
        y_true = ops.convert_to_tensor(y_true, dtype=self.dtype)
        y_pred = ops.convert_to_tensor(y_pred, dtype=self.dtype)
        check_shapes("R2Score", y_true, y_pred)
        if not self._built:
            self._build(y_pred.shape)
        weights = ops.ones((1, 1), dtype=self.dtype) if weights is None else weights
        if len(weights.shape) < 2:
            weights = ops.reshape(weights, (-1, 1))
        weights = ops.broadcast_to(weights, ops.shape(y_true))
        weighted = y_true * weights
        self.sum.assign_add(ops.sum(weighted, axis=0))
        self.squared_sum.assign_add(ops.sum(y_true * weighted, axis=0))
        self.total_mse.assign_add(ops.sum(ops.square(y_true - y_pred) * weights, axis=0))
        self.count.assign_add(ops.sum(weights, axis=0))
        self.num_samples.assign_add(ops.cast(ops.size(y_true), self.dtype))

    def result(self) -> Any:
        if not self._built:
            return ops.zeros((), dtype=self.dtype)
        total = self.sum.value
        spread = self.squared_sum.value - total * ops.divide_no_nan(total, self.count.value)
        score = 1.0 - self.total_mse.value / spread
        score = ops.where(ops.isinf(score), ops.zeros_like(score), score)
        if self.class_aggregation == "uniform_average":
            score = ops.mean(score)
        elif self.class_aggregation == "variance_weighted_average":
            score = ops.sum(score * spread) / ops.sum(spread)
        if self.num_regressors == 0:
            return score
        n, p = self.num_samples.value, float(self.num_regressors)
        freedom = n - p - 1.0
        adjusted = 1.0 - (1.0 - score) * ops.divide_no_nan(n - 1.0, freedom)
        return ops.where(ops.greater(freedom, 0.0), adjusted, score)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "class_aggregation": self.class_aggregation,
            "num_regressors": self.num_regressors,
        }
