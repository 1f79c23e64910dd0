"""Learning rates that change with the number of steps taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laminar.registration import list_builtins
from laminar.serialization import deserialize_keras_object, lookup, serialize_keras_object

from .cosine_schedules import CosineDecay as CosineDecay
from .cosine_schedules import CosineDecayRestarts as CosineDecayRestarts
from .cosine_schedules import OneCycle as OneCycle
from .decay_schedules import ExponentialDecay as ExponentialDecay
from .decay_schedules import InverseTimeDecay as InverseTimeDecay
from .decay_schedules import PiecewiseConstantDecay as PiecewiseConstantDecay
from .decay_schedules import PolynomialDecay as PolynomialDecay
from .schedule import LearningRateSchedule as LearningRateSchedule

_SCHEDULES: dict[str, type[LearningRateSchedule]] = {
    cls.__name__: cls
    for cls in (
        CosineDecay,
        CosineDecayRestarts,
        ExponentialDecay,
        InverseTimeDecay,
        OneCycle,
        PiecewiseConstantDecay,
        PolynomialDecay,
    )
}
list_builtins(
    "keras.optimizers.schedules",
    {name: cls for name, cls in _SCHEDULES.items() if cls is not OneCycle},
)
list_builtins("laminar.optimizers.schedules", {"OneCycle": OneCycle})


def serialize(learning_rate_schedule: LearningRateSchedule) -> Any:
    """The schedule as data.

    Args:
        learning_rate_schedule: a schedule.

    Returns:
        a dict with its class and config, as JSON can hold it.

    Examples:
        >>> from laminar.optimizers import schedules
        >>> schedules.serialize(schedules.CosineDecay(0.1, decay_steps=100))["class_name"]
        'CosineDecay'
    """
    return serialize_keras_object(learning_rate_schedule)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The schedule that `serialize` described.

    Args:
        config: what `serialize` gave.
        custom_objects: classes and functions by name, besides those of laminar and those that are
            registered.

    Returns:
        a schedule.

    Raises:
        UnknownClassError: nothing of that name is known.

    Examples:
        >>> from laminar.optimizers import schedules
        >>> config = schedules.serialize(schedules.CosineDecay(0.1, decay_steps=100))
        >>> schedules.deserialize(config).decay_steps
        100
    """
    return deserialize_keras_object(config, custom_objects, module_objects=_SCHEDULES)


def get(identifier: Any) -> Any:
    """A schedule by its config, or the schedule itself.

    Args:
        identifier: a schedule, its name, class or config.

    Returns:
        a schedule.

    Raises:
        InvalidArgumentError: it is neither.

    Examples:
        >>> from laminar.optimizers import schedules
        >>> rate = schedules.CosineDecay(0.1, decay_steps=100)
        >>> schedules.get(rate) is rate
        True
    """
    return lookup("learning-rate schedule", identifier, _SCHEDULES)
