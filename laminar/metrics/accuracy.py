"""How often predictions are right."""

from __future__ import annotations

from typing import Any, ClassVar

from laminar.engine.graph import Tensor, int32, int64

from .. import config, ops
from ..dtype_policies import Policy
from ..losses.alignment import align, check_shapes
from ..losses.crossentropy import class_numbers
from ..typing import DTypeLike, TensorLike
from .reduction import MeanMetricWrapper


def accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """1 where y_true = y_pred, else 0; in the shape of `y_pred`.

    Raises:
        ShapeError: the shapes differ.
    """
    return _as_float(ops.equal(*align("accuracy", y_true, y_pred)))


def binary_accuracy(y_true: TensorLike, y_pred: TensorLike, threshold: float = 0.5) -> Tensor:
    """1 where y_true = (1 if y_pred > threshold else 0), else 0; in the shape of `y_pred`.

    Raises:
        ShapeError: the shapes differ.

    Examples:
        >>> laminar.metrics.binary_accuracy([1, 0, 1], [0.9, 0.6, 0.7])
        Tensor([1., 0., 1.], shape=(3,), dtype=float32)
    """
    y_pred = ops.convert_to_tensor(y_pred)
    if not y_pred.dtype.is_floating:  # the threshold lies between two of the values
        y_pred = ops.cast(y_pred, config.floatx())
    y_true, y_pred = align("binary_accuracy", y_true, y_pred)
    predicted = ops.cast(ops.greater(y_pred, ops.cast(threshold, y_pred.dtype)), y_true.dtype)
    return _as_float(ops.equal(y_true, predicted))


def categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """1 where the largest of `y_true` and of `y_pred` along the last axis are in one place, else 0.

    Args:
        y_true: one-hot labels, shape of `y_pred`.
        y_pred: scores: (batch, ..., classes).

    Returns:
        (batch, ...).

    Raises:
        ShapeError: the shapes differ.

    Examples:
        >>> laminar.metrics.categorical_accuracy([[0, 1], [1, 0]], [[0.1, 0.9], [0.2, 0.8]])
        Tensor([1., 0.], shape=(2,), dtype=float32)
    """
    y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
    check_shapes("categorical_accuracy", y_true, y_pred)
    return _as_float(ops.equal(ops.argmax(y_true, axis=-1), ops.argmax(y_pred, axis=-1)))


def sparse_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """1 where the largest of `y_pred` along the last axis stands at place `y_true`, else 0.

    Args:
        y_true: class numbers: (batch, ...), or with a last axis of size 1.
        y_pred: scores: (batch, ..., classes).

    Returns:
        (batch, ...).

    Raises:
        ShapeError: the shapes do not belong together.

    Examples:
        >>> laminar.metrics.sparse_categorical_accuracy([1, 0], [[0.1, 0.9], [0.2, 0.8]])
        Tensor([1., 0.], shape=(2,), dtype=float32)
    """
    y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
    labels = class_numbers("sparse_categorical_accuracy", y_true, y_pred, broadcasts=True)
    best = ops.argmax(y_pred, axis=-1)
    return _as_float(ops.equal(ops.cast(labels, int64), ops.cast(best, int64)))


def top_k_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike, k: int = 5) -> Tensor:
    """1 where the class of a one-hot label is among the `k` largest scores, else 0.

    Shapes as in `categorical_accuracy`; of equal scores all count.

    Examples:
        >>> laminar.metrics.top_k_categorical_accuracy([[0, 0, 1]], [[0.1, 0.6, 0.3]], k=2)
        Tensor([1.], shape=(1,), dtype=float32)
    """
    y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
    check_shapes("top_k_categorical_accuracy", y_true, y_pred)
    return _in_top_k(ops.argmax(y_true, axis=-1), y_pred, k)


def sparse_top_k_categorical_accuracy(
    y_true: TensorLike, y_pred: TensorLike, k: int = 5, from_sorted_ids: bool = False
) -> Tensor:
    """1 where a class number is among the `k` largest scores, else 0.

    Args:
        y_true: class numbers: (batch, ...), or with a last axis of size 1.
        y_pred: scores: (batch, ..., classes); or the class numbers, best first.
        k: how many count.
        from_sorted_ids: whether `y_pred` are class numbers.

    Returns:
        (batch, ...).

    Raises:
        ShapeError: the shapes do not belong together.

    Examples:
        >>> from laminar.metrics import sparse_top_k_categorical_accuracy
        >>> sparse_top_k_categorical_accuracy([2, 0], [[0.1, 0.6, 0.3], [0.1, 0.6, 0.3]], k=2)
        Tensor([1., 0.], shape=(2,), dtype=float32)
    """
    y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
    labels = class_numbers("sparse_top_k_categorical_accuracy", y_true, y_pred)
    if from_sorted_ids:
        first = ops.cast(y_pred[..., :k], labels.dtype)
        return _as_float(ops.any(ops.equal(ops.expand_dims(labels, axis=-1), first), axis=-1))
    return _in_top_k(labels, y_pred, k)


def _in_top_k(labels: Tensor, y_pred: Tensor, k: int) -> Tensor:
    if len(y_pred.shape) == 2:
        return _as_float(ops.in_top_k(ops.cast(labels, int32), y_pred, k=k))
    flat = ops.reshape(y_pred, (-1, ops.shape(y_pred)[-1]))
    found = ops.in_top_k(ops.reshape(ops.cast(labels, int32), (-1,)), flat, k=k)
    return _as_float(ops.reshape(found, ops.shape(labels)))


def _as_float(x: TensorLike) -> Tensor:
    return ops.cast(x, config.floatx())


class Accuracy(MeanMetricWrapper):
    """How often predictions equal labels.

    Examples:
        >>> metric = laminar.metrics.Accuracy()
        >>> metric.update_state([1, 2, 3], [1, 2, 0])
        >>> metric.result()
        Tensor(0.6667, shape=(), dtype=float32)
    """

    def __init__(
        self, name: str | None = "accuracy", dtype: DTypeLike | Policy | None = None
    ) -> None:
        super().__init__(accuracy, name, dtype)


class BinaryAccuracy(MeanMetricWrapper):
    """How often predictions are on the right side of a threshold; see `binary_accuracy`.

    Examples:
        >>> metric = laminar.metrics.BinaryAccuracy()
        >>> metric.update_state([[1], [0]], [[0.9], [0.6]])
        >>> metric.result()
        Tensor(0.5, shape=(), dtype=float32)
    """

    def __init__(
        self,
        name: str | None = "binary_accuracy",
        dtype: DTypeLike | Policy | None = None,
        threshold: float = 0.5,
    ) -> None:
        super().__init__(binary_accuracy, name, dtype, threshold=threshold)


class CategoricalAccuracy(MeanMetricWrapper):
    """How often the best score is that of the one-hot label; see `categorical_accuracy`.

    Examples:
        >>> metric = laminar.metrics.CategoricalAccuracy()
        >>> metric.update_state([[0, 1], [1, 0]], [[0.1, 0.9], [0.2, 0.8]])
        >>> metric.result()
        Tensor(0.5, shape=(), dtype=float32)
    """

    def __init__(
        self, name: str | None = "categorical_accuracy", dtype: DTypeLike | Policy | None = None
    ) -> None:
        super().__init__(categorical_accuracy, name, dtype)


class SparseCategoricalAccuracy(MeanMetricWrapper):
    """How often the best score is that of the class; see `sparse_categorical_accuracy`.

    Examples:
        >>> metric = laminar.metrics.SparseCategoricalAccuracy()
        >>> metric.update_state([1, 0], [[0.1, 0.9], [0.2, 0.8]])
        >>> metric.result()
        Tensor(0.5, shape=(), dtype=float32)
    """

    def __init__(
        self,
        name: str | None = "sparse_categorical_accuracy",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(sparse_categorical_accuracy, name, dtype)


class TopKCategoricalAccuracy(MeanMetricWrapper):
    """How often a one-hot label is among the k best; see `top_k_categorical_accuracy`.

    Examples:
        >>> metric = laminar.metrics.TopKCategoricalAccuracy(k=2)
        >>> metric.update_state([[0, 0, 1]], [[0.1, 0.6, 0.3]])
        >>> metric.result()
        Tensor(1., shape=(), dtype=float32)
    """

    def __init__(
        self,
        k: int = 5,
        name: str | None = "top_k_categorical_accuracy",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(top_k_categorical_accuracy, name, dtype, k=k)
        self.k = k


class SparseTopKCategoricalAccuracy(MeanMetricWrapper):
    """How often a class is among the k best; see `sparse_top_k_categorical_accuracy`.

    Examples:
        >>> metric = laminar.metrics.SparseTopKCategoricalAccuracy(k=2)
        >>> metric.update_state([2, 0], [[0.1, 0.6, 0.3], [0.1, 0.6, 0.3]])
        >>> metric.result()
        Tensor(0.5, shape=(), dtype=float32)
    """

    _unwritten: ClassVar[dict[str, Any]] = {"from_sorted_ids": False}

    def __init__(
        self,
        k: int = 5,
        name: str | None = "sparse_top_k_categorical_accuracy",
        dtype: DTypeLike | Policy | None = None,
        from_sorted_ids: bool = False,
    ) -> None:
        super().__init__(
            sparse_top_k_categorical_accuracy,
            name,
            dtype,
            k=k,
            from_sorted_ids=from_sorted_ids,
        )
        self.k = k
        self.from_sorted_ids = from_sorted_ids
