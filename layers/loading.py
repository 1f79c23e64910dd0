"""Layers as plain data, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.serialization import deserialize_keras_object, serialize_keras_object

from .layer import Layer


def serialize(layer: Any) -> Any:
    """A layer as data that JSON can hold.

    Args:
        layer: a layer.

    Returns:
        a dict with its class and config, as JSON can hold it.

    Raises:
        InvalidArgumentError: the layer holds something that cannot be saved, such as a lambda.

    Examples:
        >>> layers.serialize(layers.Flatten(name="flat"))["config"]["name"]
        'flat'
    """
    return serialize_keras_object(layer)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The layer that `serialize` described.

    Args:
        config: what `serialize` gave.
        custom_objects: classes and functions by name, besides those of laminar and those that are
            registered.

    Returns:
        a layer.

    Raises:
        InvalidArgumentError: the config describes something else.
        NotFoundError: the class of the layer is not known.

    Examples:
        >>> layer = layers.deserialize(layers.serialize(layers.Dense(3, name="scores")))
        >>> layer.name, layer.units
        ('scores', 3)
    """
    found = deserialize_keras_object(config, custom_objects)
    if not isinstance(found, Layer):
        raise InvalidArgumentError(f"deserialize: the config describes no layer, but {found!r}")
    return found
