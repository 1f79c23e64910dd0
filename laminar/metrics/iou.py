"""Intersection over union: how well predicted regions cover the true ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor, float64, int32

from .. import ops
from ..dtype_policies import Policy
from ..losses.alignment import fit_from_front
from ..typing import DTypeLike, TensorLike
from .metric import Metric
from .reduction import weights_of


class IoU(Metric):
    """Mean, over some classes, of tp / (tp + fp + fn), all elements of all batches counting.

    Args:
        num_classes: how many classes there are.
        target_class_ids: the classes that count.
        name: of the metric.
        dtype: of the counts, int32 by default: weights are then cut to whole numbers.
        ignore_class: a label (such as -1 or 255) of elements that do not count.
        sparse_y_true: whether labels are class numbers, or scores along `axis`.
        sparse_y_pred: whether predictions are class numbers, or scores along `axis`.
        axis: that of the scores.

    Raises:
        InvalidArgumentError: a class is no class number.

    Examples:
        >>> metric = laminar.metrics.IoU(num_classes=2, target_class_ids=[0])
        >>> metric.update_state([0, 0, 1, 1], [0, 1, 0, 1])
        >>> metric.result()
        Tensor(0.3333, shape=(), dtype=float32)
    """

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        super().__init__(name=name, dtype=dtype or "int32")
        wrong = [i for i in target_class_ids if not 0 <= i < num_classes]
        if wrong:
            raise InvalidArgumentError(
                f"{type(self).__name__}: target_class_ids must be from 0 to {num_classes - 1}, "
                f"got {wrong}"
            )
        self.num_classes = num_classes
        self.target_class_ids = list(target_class_ids)
        self.ignore_class = ignore_class
        self.sparse_y_true = sparse_y_true
        self.sparse_y_pred = sparse_y_pred
        self.axis = axis
        self.total_cm = self.add_variable(
            (num_classes, num_classes), "zeros", self.dtype, name="total_confusion_matrix"
        )

    def update_state(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        """Add a batch.

        Args:
            y_true: class numbers, or scores along `axis`.
            y_pred: class numbers, or scores along `axis`.
            sample_weight: a number, or weights of the shape of the class numbers.
        """
        weights = weights_of(y_pred, sample_weight, self.dtype)
        true = _classes(y_true, self.sparse_y_true, self.axis)
        pred = ops.reshape(_classes(y_pred, self.sparse_y_pred, self.axis), (-1,))
        if weights is None:
            weights = ops.ones_like(true, dtype=self.dtype)
        weights = ops.broadcast_to(fit_from_front(weights, true), ops.shape(true))
        weights = ops.reshape(weights, (-1,))
        true = ops.reshape(true, (-1,))
        if self.ignore_class is not None:
            counts = ops.not_equal(true, self.ignore_class)
            zeros = ops.zeros_like(true)
            true, pred = ops.where(counts, true, zeros), ops.where(counts, pred, zeros)
            weights = ops.where(counts, weights, ops.zeros_like(weights))
        sums = ops.segment_sum(
            weights, true * self.num_classes + pred, num_segments=self.num_classes**2
        )
        self.total_cm.assign_add(ops.reshape(sums, (self.num_classes, self.num_classes)))

    def result(self) -> Any:
        matrix = self.total_cm.value
        matrix = ops.cast(matrix, "float64" if self.dtype == float64 else "float32")
        targets = ops.convert_to_tensor(self.target_class_ids, dtype="int32")
        hits = ops.take(ops.diagonal(matrix), targets, axis=0)
        sizes = ops.sum(matrix, axis=0) + ops.sum(matrix, axis=1)
        union = ops.take(sizes, targets, axis=0) - hits
        present = ops.sum(ops.cast(ops.greater(union, 0.0), union.dtype))
        return ops.divide_no_nan(ops.sum(ops.divide_no_nan(hits, union)), present)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "target_class_ids": self.target_class_ids,
            "ignore_class": self.ignore_class,
            "sparse_y_true": self.sparse_y_true,
            "sparse_y_pred": self.sparse_y_pred,
            "axis": self.axis,
        }


def _classes(y: TensorLike, sparse: bool, axis: int) -> Tensor:
    y = ops.convert_to_tensor(y)
    return ops.cast(y if sparse else ops.argmax(y, axis=axis), int32)


class BinaryIoU(IoU):
    """`IoU` of the classes 0 and 1, predictions being above a threshold or not.

    Args:
        target_class_ids: the classes that count.
        threshold: from it on, a prediction means 1.
        name: of the metric.
        dtype: see `IoU`.

    Examples:
        >>> metric = laminar.metrics.BinaryIoU(target_class_ids=[1], threshold=0.5)
        >>> metric.update_state([0, 1, 1], [0.2, 0.9, 0.4])
        >>> metric.result()
        Tensor(0.5, shape=(), dtype=float32)
    """

    def __init__(
        self,
        target_class_ids: Sequence[int] = (0, 1),
        threshold: float = 0.5,
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = threshold

    def update_state(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        weights = weights_of(y_pred, sample_weight, self.dtype)
        y_pred = ops.convert_to_tensor(y_pred)
        y_pred = ops.cast(ops.greater_equal(y_pred, self.threshold), int32)
        super().update_state(y_true, y_pred, weights)

    def get_config(self) -> dict[str, Any]:
        return {
            "target_class_ids": self.target_class_ids,
            "threshold": self.threshold,
            "name": self.name,
            "dtype": str(self.dtype),
        }


class MeanIoU(IoU):
    """`IoU` of all classes; the arguments are those of `IoU`.

    Args:
        num_classes: how many classes there are.
        name: of the metric.
        dtype: of the counts, int32 by default: weights are then cut to whole numbers.
        ignore_class: a label (such as -1 or 255) of elements that do not count.
        sparse_y_true: whether labels are class numbers, or scores along `axis`.
        sparse_y_pred: whether predictions are class numbers, or scores along `axis`.
        axis: that of the scores.

    Examples:
        >>> metric = laminar.metrics.MeanIoU(num_classes=2)
        >>> metric.update_state([0, 0, 1, 1], [0, 1, 0, 1])
        >>> metric.result()
        Tensor(0.3333, shape=(), dtype=float32)
    """

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        super().__init__(
            num_classes,
            range(num_classes),
            name,
            dtype,
            ignore_class,
            sparse_y_true,
            sparse_y_pred,
            axis,
        )

    def get_config(self) -> dict[str, Any]:
        given = super().get_config()
        del given["target_class_ids"]
        return given


class OneHotIoU(IoU):
    """`IoU` with one-hot labels; the arguments are those of `IoU`.

    Args:
        num_classes: how many classes there are.
        target_class_ids: the classes that count.
        name: of the metric.
        dtype: of the counts, int32 by default: weights are then cut to whole numbers.
        ignore_class: a label (such as -1 or 255) of elements that do not count.
        sparse_y_pred: whether predictions are class numbers, or scores along `axis`.
        axis: that of the scores.

    Examples:
        >>> metric = laminar.metrics.OneHotIoU(num_classes=2, target_class_ids=[1])
        >>> metric.update_state([[0, 1], [1, 0]], [[0.2, 0.8], [0.4, 0.6]])
        >>> metric.result()
        Tensor(0.5, shape=(), dtype=float32)
    """

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(
            num_classes, target_class_ids, name, dtype, ignore_class, False, sparse_y_pred, axis
        )

    def get_config(self) -> dict[str, Any]:
        given = super().get_config()
        del given["sparse_y_true"]
        return given


class OneHotMeanIoU(MeanIoU):
    """`MeanIoU` with one-hot labels; the arguments are those of `IoU`.

    Args:
        num_classes: how many classes there are.
        name: of the metric.
        dtype: of the counts, int32 by default: weights are then cut to whole numbers.
        ignore_class: a label (such as -1 or 255) of elements that do not count.
        sparse_y_pred: whether predictions are class numbers, or scores along `axis`.
        axis: that of the scores.

    Examples:
        >>> metric = laminar.metrics.OneHotMeanIoU(num_classes=2)
        >>> metric.update_state([[0, 1], [1, 0]], [[0.2, 0.8], [0.9, 0.1]])
        >>> metric.result()
        Tensor(1., shape=(), dtype=float32)
    """

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis)

    def get_config(self) -> dict[str, Any]:
        given = super().get_config()
        del given["sparse_y_true"]
        return given
