"""Metrics: quantities that are gathered over the batches of an epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import registration as _registration
from .. import serialization as _serialization
from ..losses import binary_crossentropy as binary_crossentropy
from ..losses import binary_focal_crossentropy as binary_focal_crossentropy
from ..losses import categorical_crossentropy as categorical_crossentropy
from ..losses import categorical_focal_crossentropy as categorical_focal_crossentropy
from ..losses import categorical_hinge as categorical_hinge
from ..losses import hinge as hinge
from ..losses import huber as huber
from ..losses import kl_divergence as kl_divergence
from ..losses import log_cosh as log_cosh
from ..losses import mean_absolute_error as mean_absolute_error
from ..losses import mean_absolute_percentage_error as mean_absolute_percentage_error
from ..losses import mean_squared_error as mean_squared_error
from ..losses import mean_squared_logarithmic_error as mean_squared_logarithmic_error
from ..losses import poisson as poisson
from ..losses import sparse_categorical_crossentropy as sparse_categorical_crossentropy
from ..losses import squared_hinge as squared_hinge
from ..naming import to_snake_case as _to_snake_case
from .accuracy import Accuracy as Accuracy
from .accuracy import BinaryAccuracy as BinaryAccuracy
from .accuracy import CategoricalAccuracy as CategoricalAccuracy
from .accuracy import SparseCategoricalAccuracy as SparseCategoricalAccuracy
from .accuracy import SparseTopKCategoricalAccuracy as SparseTopKCategoricalAccuracy
from .accuracy import TopKCategoricalAccuracy as TopKCategoricalAccuracy
from .accuracy import binary_accuracy as binary_accuracy
from .accuracy import categorical_accuracy as categorical_accuracy
from .accuracy import sparse_categorical_accuracy as sparse_categorical_accuracy
from .accuracy import sparse_top_k_categorical_accuracy as sparse_top_k_categorical_accuracy
from .accuracy import top_k_categorical_accuracy as top_k_categorical_accuracy
from .auc import AUC as AUC
from .correlation import ConcordanceCorrelation as ConcordanceCorrelation
from .correlation import PearsonCorrelation as PearsonCorrelation
from .correlation import concordance_correlation as concordance_correlation
from .correlation import pearson_correlation as pearson_correlation
from .curve import PrecisionAtRecall as PrecisionAtRecall
from .curve import RecallAtPrecision as RecallAtPrecision
from .curve import SensitivityAtSpecificity as SensitivityAtSpecificity
from .curve import SpecificityAtSensitivity as SpecificityAtSensitivity
from .f_score import F1Score as F1Score
from .f_score import FBetaScore as FBetaScore
from .hinges import CategoricalHinge as CategoricalHinge
from .hinges import Hinge as Hinge
from .hinges import SquaredHinge as SquaredHinge
from .iou import BinaryIoU as BinaryIoU
from .iou import IoU as IoU
from .iou import MeanIoU as MeanIoU
from .iou import OneHotIoU as OneHotIoU
from .iou import OneHotMeanIoU as OneHotMeanIoU
from .metric import Metric as Metric
from .metric import MetricLike as MetricLike
from .precision_recall import FalseNegatives as FalseNegatives
from .precision_recall import FalsePositives as FalsePositives
from .precision_recall import Precision as Precision
from .precision_recall import Recall as Recall
from .precision_recall import TrueNegatives as TrueNegatives
from .precision_recall import TruePositives as TruePositives
from .probabilistic import BinaryCrossentropy as BinaryCrossentropy
from .probabilistic import CategoricalCrossentropy as CategoricalCrossentropy
from .probabilistic import KLDivergence as KLDivergence
from .probabilistic import Poisson as Poisson
from .probabilistic import SparseCategoricalCrossentropy as SparseCategoricalCrossentropy
from .reduction import Mean as Mean
from .reduction import MeanMetricWrapper as MeanMetricWrapper
from .reduction import Sum as Sum
from .regression import CosineSimilarity as CosineSimilarity
from .regression import LogCoshError as LogCoshError
from .regression import MeanAbsoluteError as MeanAbsoluteError
from .regression import MeanAbsolutePercentageError as MeanAbsolutePercentageError
from .regression import MeanSquaredError as MeanSquaredError
from .regression import MeanSquaredLogarithmicError as MeanSquaredLogarithmicError
from .regression import R2Score as R2Score
from .regression import RootMeanSquaredError as RootMeanSquaredError

_CLASSES: tuple[type[Metric], ...] = (
    AUC,
    Accuracy,
    BinaryAccuracy,
    BinaryCrossentropy,
    BinaryIoU,
    CategoricalAccuracy,
    CategoricalCrossentropy,
    CategoricalHinge,
    ConcordanceCorrelation,
    CosineSimilarity,
    F1Score,
    FBetaScore,
    FalseNegatives,
    FalsePositives,
    Hinge,
    IoU,
    KLDivergence,
    LogCoshError,
    Mean,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanIoU,
    MeanMetricWrapper,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Metric,
    OneHotIoU,
    OneHotMeanIoU,
    PearsonCorrelation,
    Poisson,
    Precision,
    PrecisionAtRecall,
    R2Score,
    Recall,
    RecallAtPrecision,
    RootMeanSquaredError,
    SensitivityAtSpecificity,
    SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy,
    SparseTopKCategoricalAccuracy,
    SpecificityAtSensitivity,
    SquaredHinge,
    Sum,
    TopKCategoricalAccuracy,
    TrueNegatives,
    TruePositives,
)
_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    binary_accuracy,
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_accuracy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_hinge,
    concordance_correlation,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    pearson_correlation,
    poisson,
    sparse_categorical_accuracy,
    sparse_categorical_crossentropy,
    sparse_top_k_categorical_accuracy,
    squared_hinge,
    top_k_categorical_accuracy,
)
_SHORT: dict[str, type[Metric]] = {
    "bce": BinaryCrossentropy,
    "mae": MeanAbsoluteError,
    "mape": MeanAbsolutePercentageError,
    "mse": MeanSquaredError,
    "msle": MeanSquaredLogarithmicError,
}
# What `get` knows by name.
_BY_NAME: dict[str, type[Metric]] = {
    **{each.__name__: each for each in _CLASSES},
    **{_to_snake_case(each.__name__): each for each in _CLASSES},
    **_SHORT,
    **{name.upper(): each for name, each in _SHORT.items()},
}


def get(identifier: MetricLike | None) -> Any:
    """The metric that a name, a config, a class or a callable means; None for None.

    Args:
        identifier: such as "mse", "AUC", "binary_accuracy" (each a new object),
            `serialize(metric)`, a `Metric` class, or any callable (itself).

    Returns:
        a metric, or the function; None for None.

    Raises:
        InvalidArgumentError: an unknown name (the message lists near ones), or no identifier.

    Examples:
        >>> laminar.metrics.get("AUC").name
        'auc'
    """
    return _serialization.lookup("metric", identifier, _BY_NAME)


def serialize(metric: MetricLike) -> Any:
    """A metric, or a function, as plain data.

    Args:
        metric: a metric, or a registered function.

    Returns:
        a dict with its class and config, as JSON can hold it; for a function its name.

    Examples:
        >>> laminar.metrics.serialize(laminar.metrics.Mean(name="loss"))["config"]["name"]
        'loss'
    """
    return _serialization.serialize_keras_object(metric)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The metric that `serialize` described, or that has this name.

    Args:
        config: a config or a name.
        custom_objects: further classes and functions by name.

    Returns:
        a metric, or the function.

    Raises:
        UnknownClassError: nothing of that name is known.

    Examples:
        >>> config = laminar.metrics.serialize(laminar.metrics.Mean(name="loss"))
        >>> laminar.metrics.deserialize(config).name
        'loss'
    """
    with _registration.custom_object_scope(custom_objects or {}):
        return get(config)


_registration.list_builtins(
    "keras.metrics",
    {**{fn.__name__: fn for fn in _FUNCTIONS}, **{each.__name__: each for each in _CLASSES}},
)
