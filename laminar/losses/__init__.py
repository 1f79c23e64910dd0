"""Losses: how far predictions are from labels, as functions and as objects with a reduction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import registration as _registration
from .. import serialization as _serialization
from .alignment import squeeze_or_expand_to_same_rank as squeeze_or_expand_to_same_rank
from .circle import Circle as Circle
from .circle import circle as circle
from .crossentropy import BinaryCrossentropy as BinaryCrossentropy
from .crossentropy import CategoricalCrossentropy as CategoricalCrossentropy
from .crossentropy import SparseCategoricalCrossentropy as SparseCategoricalCrossentropy
from .crossentropy import binary_crossentropy as binary_crossentropy
from .crossentropy import categorical_crossentropy as categorical_crossentropy
from .crossentropy import sparse_categorical_crossentropy as sparse_categorical_crossentropy
from .ctc import CTC as CTC
from .ctc import ctc as ctc
from .divergence import KLDivergence as KLDivergence
from .divergence import Poisson as Poisson
from .divergence import kl_divergence as kl_divergence
from .divergence import poisson as poisson
from .focal import BinaryFocalCrossentropy as BinaryFocalCrossentropy
from .focal import CategoricalFocalCrossentropy as CategoricalFocalCrossentropy
from .focal import binary_focal_crossentropy as binary_focal_crossentropy
from .focal import categorical_focal_crossentropy as categorical_focal_crossentropy
from .generalized import CategoricalGeneralizedCrossEntropy as CategoricalGeneralizedCrossEntropy
from .generalized import (
    categorical_generalized_cross_entropy as categorical_generalized_cross_entropy,
)
from .hinge import CategoricalHinge as CategoricalHinge
from .hinge import Hinge as Hinge
from .hinge import SquaredHinge as SquaredHinge
from .hinge import categorical_hinge as categorical_hinge
from .hinge import hinge as hinge
from .hinge import squared_hinge as squared_hinge
from .loss import Loss as Loss
from .loss import LossFunctionWrapper as LossFunctionWrapper
from .loss import LossLike as LossLike
from .overlap import Dice as Dice
from .overlap import Tversky as Tversky
from .overlap import dice as dice
from .overlap import tversky as tversky
from .regression import CosineSimilarity as CosineSimilarity
from .regression import Huber as Huber
from .regression import LogCosh as LogCosh
from .regression import MeanAbsoluteError as MeanAbsoluteError
from .regression import MeanAbsolutePercentageError as MeanAbsolutePercentageError
from .regression import MeanSquaredError as MeanSquaredError
from .regression import MeanSquaredLogarithmicError as MeanSquaredLogarithmicError
from .regression import cosine_similarity as cosine_similarity
from .regression import huber as huber
from .regression import log_cosh as log_cosh
from .regression import mean_absolute_error as mean_absolute_error
from .regression import mean_absolute_percentage_error as mean_absolute_percentage_error
from .regression import mean_squared_error as mean_squared_error
from .regression import mean_squared_logarithmic_error as mean_squared_logarithmic_error
from .sampled import nce_loss as nce_loss
from .sampled import sampled_softmax_loss as sampled_softmax_loss

_FUNCTIONS = (
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_generalized_cross_entropy,
    categorical_hinge,
    circle,
    cosine_similarity,
    ctc,
    dice,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
    tversky,
)
_CLASSES = (
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CTC,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    CategoricalGeneralizedCrossEntropy,
    CategoricalHinge,
    Circle,
    CosineSimilarity,
    Dice,
    Hinge,
    Huber,
    KLDivergence,
    LogCosh,
    Loss,
    LossFunctionWrapper,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    SparseCategoricalCrossentropy,
    SquaredHinge,
    Tversky,
)
_SHORT = {
    "bce": binary_crossentropy,
    "kld": kl_divergence,
    "mae": mean_absolute_error,
    "mape": mean_absolute_percentage_error,
    "mse": mean_squared_error,
    "msle": mean_squared_logarithmic_error,
}
# What files may name.
_LISTED: dict[str, Any] = {each.__name__: each for each in (*_FUNCTIONS, *_CLASSES)}
# What `get` knows by name.
_BY_NAME: dict[str, Any] = {
    **_LISTED,
    **_SHORT,
    **{name.upper(): fn for name, fn in _SHORT.items()},
}


def get(identifier: LossLike | None) -> Any:
    """The loss that a name, a config, a class or a callable means; None for None.

    Args:
        identifier: such as "mse", "mean_squared_error" (a function), "MeanSquaredError" (an
            object), `serialize(loss)`, a `Loss` class, or any callable (itself).

    Returns:
        a loss, or the function; None for None.

    Raises:
        InvalidArgumentError: an unknown name (the message lists near ones), or no identifier.

    Examples:
        >>> laminar.losses.get("mse")([1.0, 2.0], [1.0, 4.0])
        Tensor(2., shape=(), dtype=float32)
    """
    return _serialization.lookup("loss", identifier, _BY_NAME)


def serialize(loss: LossLike) -> Any:
    """A loss, or a loss function, as plain data.

    Args:
        loss: a loss, or a registered function.

    Returns:
        a dict with its class and config, as JSON can hold it; for a function its name.

    Examples:
        >>> laminar.losses.serialize(laminar.losses.Huber(delta=2.0))["config"]["delta"]
        2.0
    """
    return _serialization.serialize_keras_object(loss)


def deserialize(name: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The loss that `serialize` described, or that has this name.

    Args:
        name: a config or a name.
        custom_objects: further classes and functions by name.

    Returns:
        a loss, or the function.

    Raises:
        UnknownClassError: nothing of that name is known.

    Examples:
        >>> laminar.losses.deserialize("mean_squared_error")([1.0, 2.0], [1.0, 4.0])
        Tensor(2., shape=(), dtype=float32)
    """
    with _registration.custom_object_scope(custom_objects or {}):
        return get(name)


_registration.list_builtins("keras.losses", _LISTED)
