"""The arguments of layers: checking them, keeping them, making weights and configs from them.

The options of a weight called `kernel` are `kernel_initializer`, `kernel_regularizer` and
`kernel_constraint`; a layer keeps each as an attribute of that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from laminar import activations, constraints, initializers, regularizers
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.state import Variable
from laminar.initializers import InitializerLike
from laminar.naming import who

from .layer import Layer

# An option is looked up, and written, by the module that the end of its name stands for.
_MODULES: dict[str, Any] = {
    "activation": activations,
    "initializer": initializers,
    "regularizer": regularizers,
    "constraint": constraints,
}


Choice = TypeVar("Choice", bound=str)


def keep(layer: Layer, **options: Any) -> None:
    """Keep options of weights as attributes: names, configs and callables become objects."""
    for name, value in options.items():
        setattr(layer, name, _MODULES[name.rpartition("_")[2]].get(value))


def make_weight(
    layer: Layer,
    name: str,
    shape: Sequence[int | None],
    options: str | None = None,
    *,
    initializer: InitializerLike | None = None,
    trainable: bool = True,
    autocast: bool = True,
) -> Variable:
    """Make a weight with the options that the layer has kept for it.

    Args:
        layer: the owner.
        name: of the weight.
        shape: of the weight.
        options: under which name its options are kept, by default its own.
        initializer: instead of the one that is kept.
        trainable: whether training changes it.
        autocast: whether it is read in the compute dtype.
    """
    prefix = options or name
    return layer.add_weight(
        shape,
        initializer or getattr(layer, f"{prefix}_initializer"),
        trainable=trainable,
        autocast=autocast,
        regularizer=getattr(layer, f"{prefix}_regularizer", None),
        constraint=getattr(layer, f"{prefix}_constraint", None),
        name=name,
    )


def config_of(layer: Layer, *names: str) -> dict[str, Any]:
    """Attributes of a layer as data for its config."""
    config: dict[str, Any] = {}
    for name in names:
        value = getattr(layer, name)
        module = _MODULES.get(name.rpartition("_")[2])
        config[name] = value if module is None else module.serialize(value)
    return config


def whole(layer: Layer, name: str, value: Any, least: int = 1) -> int:
    """`value` if it is a whole number of at least `least`.

    Raises:
        DTypeError: it is something else than a whole number.
        InvalidArgumentError: it is less.
    """
    expected = f"{who(layer)}: {name} must be a whole number of at least {least}, got {value!r}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise DTypeError(expected)
    if int(value) < least:
        raise InvalidArgumentError(expected)
    return int(value)


def each_axis(layer: Layer, name: str, value: Any, rank: int, least: int = 1) -> tuple[int, ...]:
    """One whole number for each of `rank` axes: `value` repeated, or its items.

    Raises:
        DTypeError: neither a whole number nor `rank` of them.
        InvalidArgumentError: one is below `least`.
    """
    if hasattr(value, "__index__"):
        return (whole(layer, name, value, least),) * rank
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != rank:
        raise DTypeError(
            f"{who(layer)}: {name} must be a whole number"
            + (f", or {rank} of them" if rank > 1 else "")
            + f", got {value!r}"
        )
    return tuple(whole(layer, name, item, least) for item in value)


def one_of(layer: Layer, name: str, value: Any, choices: Sequence[Choice]) -> Choice:
    """`value` in lower case, if it is one of `choices`.

    Raises:
        InvalidArgumentError: it is not.
    """
    found = value.lower() if isinstance(value, str) else value
    for choice in choices:
        if found == choice:
            return choice
    raise InvalidArgumentError(
        f"{who(layer)}: {name} must be one of {', '.join(map(repr, choices))}, got {value!r}"
    )


def fraction(layer: Layer, name: str, value: Any, *, below_one: bool = False) -> float:
    """`value` if it is a number from 0 to 1.

    Raises:
        InvalidArgumentError: it is not.
    """
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else -1.0
    if not 0 <= number <= 1 or (below_one and number == 1):
        raise InvalidArgumentError(
            f"{who(layer)}: {name} must be from 0 to 1{', and below 1' if below_one else ''}, "
            f"got {value!r}"
        )
    return number


def at_least_0(layer: Layer, name: str, value: Any) -> float:
    """`value` if it is a number of at least 0.

    Raises:
        InvalidArgumentError: it is not.
    """
    if not isinstance(value, int | float) or value < 0:
        raise InvalidArgumentError(
            f"{who(layer)}: {name} must be a number of at least 0, got {value!r}"
        )
    return value


def known_dim(layer: Layer, shape: Sequence[int | None], axis: int, what: str) -> int:
    """The size along `axis`, which sizes a weight.

    Raises:
        ShapeError: there is no such axis, or its size is unknown.
    """
    if not -len(shape) <= axis < len(shape):
        raise ShapeError(
            f"{who(layer)}: axis {axis} ({what}) does not exist in the input shape {tuple(shape)}"
        )
    size = shape[axis]
    if size is None:
        raise ShapeError(
            f"{who(layer)}: {what} (axis {axis}) sizes the weights, but it is unknown in the "
            f"input shape {tuple(shape)}",
            remedy="give Input a full shape (the batch alone may be unknown)",
        )
    return size
