"""Sums and means over all batches, and the mean of any function of labels and predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from laminar.engine.functions import converted_in_graph
from laminar.engine.graph import DType, Tensor
from laminar.layers.masking import get_mask

from .. import ops
from ..dtype_policies import Policy
from ..losses.alignment import squeeze_or_expand_to_same_rank
from ..losses.reduction import apply_mask
from ..serialization import deserialize_keras_object, serialize_keras_object
from ..typing import DTypeLike, TensorLike
from .metric import Metric

_NEVER = object()  # equal to no value of an option


def weights_of(y_pred: TensorLike, sample_weight: TensorLike | None, dtype: DType) -> Any:
    """The weights of predictions: `sample_weight`, and 0 where the mask of `y_pred` is false.

    None when there are neither weights nor a mask.
    """
    if sample_weight is not None:
        sample_weight = ops.convert_to_tensor(sample_weight, dtype=dtype)
    return apply_mask(sample_weight, get_mask(y_pred), dtype, reduction="sum")


def reduce_to_samplewise_values(
    values: TensorLike,
    sample_weight: TensorLike | None,
    reduce_fn: Callable[..., Tensor],
    dtype: DType,
) -> tuple[Tensor, Tensor | None]:
    """One weighted value and one weight for each sample.

    Args:
        values: (batch, ...), or a number.
        sample_weight: weights that broadcast to `values` from the first axis on, or None.
        reduce_fn: `ops.mean` or `ops.sum`: how the other axes are reduced.
        dtype: type of the results.

    Returns:
        values * sample_weight (the values without weights), and the weights or None: (batch,).
    """
    weights = weights_of(values, sample_weight, dtype)
    found = ops.cast(values, dtype)
    if weights is not None:
        found, weights = squeeze_or_expand_to_same_rank(found, weights)
        rank = len(weights.shape)
        found = _reduce(found, rank, reduce_fn)
        weights = ops.broadcast_to(weights, ops.shape(found))
        found = found * weights
        weights = _reduce(weights, 1, reduce_fn)
    return _reduce(found, 1, reduce_fn), weights


def _reduce(x: Tensor, first: int, reduce_fn: Callable[..., Tensor]) -> Tensor:
    """Reduce the axes from `first` on."""
    axes = tuple(range(first, len(x.shape)))
    return reduce_fn(x, axis=axes) if axes else x


class Sum(Metric):
    """The weighted sum of all values.

    Args:
        name: of the metric.
        dtype: of the sum.

    Examples:
        >>> metric = laminar.metrics.Sum()
        >>> metric.update_state([1.0, 3.0])
        >>> metric.result()
        Tensor(4., shape=(), dtype=float32)
    """

    def __init__(self, name: str | None = "sum", dtype: DTypeLike | Policy | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_variable((), "zeros", self.dtype, name="total")

    def update_state(self, values: TensorLike, sample_weight: TensorLike | None = None) -> None:
        values, _ = reduce_to_samplewise_values(
            values, sample_weight, reduce_fn=ops.sum, dtype=self.dtype
        )
        self.total.assign_add(ops.sum(values))

    def result(self) -> Any:
        return ops.cast(self.total.value, self.dtype)


class Mean(Metric):
    """The weighted mean of all values: sum(values * weights) / sum(weights).

    The axes of a sample's values are averaged first.

    Args:
        name: of the metric.
        dtype: of the mean.

    Examples:
        >>> metric = laminar.metrics.Mean()
        >>> metric.update_state([1.0, 3.0])
        >>> metric.update_state(8.0)
        >>> metric.result()
        Tensor(4., shape=(), dtype=float32)
    """

    def __init__(self, name: str | None = "mean", dtype: DTypeLike | Policy | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_variable((), "zeros", self.dtype, name="total")
        self.count = self.add_variable((), "zeros", self.dtype, name="count")

    def update_state(self, values: TensorLike, sample_weight: TensorLike | None = None) -> None:
        values, weights = reduce_to_samplewise_values(
            values, sample_weight, reduce_fn=ops.mean, dtype=self.dtype
        )
        self.total.assign_add(ops.sum(values))
        if weights is not None:
            self.count.assign_add(ops.sum(weights))
        elif len(values.shape):
            self.count.assign_add(ops.cast(ops.shape(values)[0], self.dtype))
        else:
            self.count.assign_add(ops.ones((), dtype=self.dtype))

    def result(self) -> Any:
        return ops.divide_no_nan(self.total.value, self.count.value)


class MeanMetricWrapper(Mean):
    """The weighted mean of a function of labels and predictions.

    A mask on the predictions, or on what the function gives, leaves the masked values out, with
    sample weights or without.

    Args:
        fn: (y_true, y_pred, **options) -> (batch, ...).
        name: of the metric; by default that of the function.
        dtype: of the mean.
        **kwargs: options of the function.

    Examples:
        >>> error = lambda y_true, y_pred: ops.abs(y_true - y_pred)
        >>> metric = laminar.metrics.MeanMetricWrapper(error)
        >>> metric.update_state(np.array([1.0, 2.0]), np.array([2.0, 5.0]))
        >>> metric.result()
        Tensor(2., shape=(), dtype=float32)
    """

    # Options that Keras never writes to a config: here they are written unless they are these.
    _unwritten: ClassVar[dict[str, Any]] = {}

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self._fn = fn
        self._fn_kwargs = kwargs

    def __getattr__(self, name: str) -> Any:
        # only what the instance has not is looked for here: its options can be read
        options = self.__dict__.get("_fn_kwargs", {})
        if name in options:
            return options[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def update_state(  # type: ignore[override]  # the class tree is Keras's
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        weights = weights_of(y_pred, sample_weight, self.dtype)
        fn = converted_in_graph(self._fn)
        super().update_state(fn(y_true, y_pred, **self._fn_kwargs), weights)

    def get_config(self) -> dict[str, Any]:
        given = super().get_config()
        if type(self) is MeanMetricWrapper:
            options = serialize_keras_object(self._fn_kwargs)
            return {**given, "fn": serialize_keras_object(self._fn), **options}
        written = {k: v for k, v in self._fn_kwargs.items() if self._unwritten.get(k, _NEVER) != v}
        return given | written

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Metric:
        return cls(**deserialize_keras_object(config))
