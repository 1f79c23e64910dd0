"""Optimizers: rules that turn gradients into updates, and the learning rates they follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laminar.registration import list_builtins
from laminar.serialization import deserialize_keras_object, lookup, serialize_keras_object

from . import legacy as legacy
from . import schedules as schedules
from .adadelta import Adadelta as Adadelta
from .adafactor import Adafactor as Adafactor
from .adagrad import Adagrad as Adagrad
from .adam import Adam as Adam
from .adamax import Adamax as Adamax
from .adamw import AdamW as AdamW
from .clipping import clip_by_global_norm as clip_by_global_norm
from .clipping import clip_by_norm as clip_by_norm
from .clipping import clip_by_value as clip_by_value
from .clipping import global_norm as global_norm
from .ftrl import Ftrl as Ftrl
from .lamb import Lamb as Lamb
from .lion import Lion as Lion
from .loss_scale import LossScaleOptimizer as LossScaleOptimizer
from .multi import MultiOptimizer as MultiOptimizer
from .multi import OptimizerMap as OptimizerMap
from .muon import Muon as Muon
from .nadam import Nadam as Nadam
from .optimizer import Optimizer as Optimizer
from .optimizer import OptimizerLike as OptimizerLike
from .rmsprop import RMSprop as RMSprop
from .schedule_free_adamw import ScheduleFreeAdamW as ScheduleFreeAdamW
from .sgd import SGD as SGD

# The rules that are imported above.
_OPTIMIZERS: dict[str, type[Optimizer]] = {
    name: value
    for name, value in globals().items()
    if isinstance(value, type) and issubclass(value, Optimizer) and value is not Optimizer
}
_ALIASES = {name.lower(): cls for name, cls in _OPTIMIZERS.items()}
list_builtins(
    "keras.optimizers", {**_OPTIMIZERS, "Optimizer": Optimizer, "OptimizerMap": OptimizerMap}
)


def serialize(optimizer: Optimizer) -> Any:
    """The optimizer as data, without its variables.

    Args:
        optimizer: an optimizer.

    Returns:
        a dict with its class and config, as JSON can hold it.

    Examples:
        >>> laminar.optimizers.serialize(laminar.optimizers.SGD(0.5))["config"]["learning_rate"]
        0.5
    """
    return serialize_keras_object(optimizer)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The optimizer that `serialize` described; class names in lower case are known too.

    Args:
        config: what `serialize` gave.
        custom_objects: classes and functions by name, besides those of laminar and those that are
            registered.

    Returns:
        an optimizer.

    Raises:
        UnknownClassError: nothing of that name is known.

    Examples:
        >>> config = laminar.optimizers.serialize(laminar.optimizers.SGD(0.5))
        >>> laminar.optimizers.deserialize(config).learning_rate.numpy()
        array(0.5, dtype=float32)
    """
    return deserialize_keras_object(
        config, custom_objects, module_objects={**_OPTIMIZERS, **_ALIASES}
    )


def get(identifier: OptimizerLike) -> Any:
    """An optimizer by its name ("adam", "RMSprop"), by its config, or the optimizer itself.

    Args:
        identifier: an optimizer, its name, class or config.

    Returns:
        an optimizer.

    Raises:
        InvalidArgumentError: the name is not known, or it is none of these.

    Examples:
        >>> laminar.optimizers.get("adam").name
        'adam'
    """
    if isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, str) and identifier.lower() in _ALIASES:
        identifier = identifier.lower()
    return lookup("optimizer", identifier, {**_OPTIMIZERS, **_ALIASES})
