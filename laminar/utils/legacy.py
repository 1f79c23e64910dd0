"""Objects as {"class_name": ..., "config": ...}, the form of Keras 2 that packages still use."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from laminar.engine.errors import InvalidArgumentError, NotFoundError
from laminar.registration import custom_object_scope, get_registered_name, get_registered_object

# Marks a config that stands inside another one for an object, not for a dict.
_INNER = "__passive_serialization__"


def serialize_keras_object(instance: Any) -> Any:
    """An object as its class and config; a function as its name.

    Raises:
        InvalidArgumentError: it has neither a config nor a name.
    """
    if instance is None:
        return None
    instance = inspect.unwrap(instance) if callable(instance) else instance
    if hasattr(instance, "get_config"):
        config = {key: _written(value) for key, value in instance.get_config().items()}
        return {"class_name": get_registered_name(type(instance)), "config": config}
    if hasattr(instance, "__name__"):
        return get_registered_name(instance)
    raise InvalidArgumentError(
        f"serialize_keras_object: {instance!r} has no get_config()", remedy="give its class one"
    )


def _written(value: Any) -> Any:
    if not hasattr(value, "get_config"):
        return getattr(value, "__name__", value)
    return serialize_keras_object(value) | {_INNER: True}


def deserialize_keras_object(
    identifier: Any,
    module_objects: Mapping[str, Any] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    printable_module_name: str = "object",
) -> Any:
    """The object that a name or a config stands for.

    Args:
        identifier: what `serialize_keras_object` gave; a class that is named is made without
            arguments.
        module_objects: the classes and functions that can be named; nothing else can be, but what
            is registered or in a `custom_object_scope`.
        custom_objects: more of them, which go first.
        printable_module_name: what is looked for, for errors.

    Raises:
        NotFoundError: a name that is not known.
        InvalidArgumentError: another form.
    """
    if identifier is None or inspect.isfunction(identifier):
        return identifier

    def named(name: str) -> Any:
        found = get_registered_object(name, custom_objects, module_objects)
        if found is None:
            raise NotFoundError(
                f"there is no {printable_module_name} {name!r}",
                remedy=f"custom_objects={{{name!r}: ...}}, or use custom_object_scope",
            )
        return found

    if isinstance(identifier, str):
        found = named(identifier)
        return found() if inspect.isclass(found) else found
    if not isinstance(identifier, dict) or not {"class_name", "config"} <= identifier.keys():
        raise InvalidArgumentError(
            f"{printable_module_name}: expected a name, or a dict with class_name and config, "
            f"got {identifier!r}"
        )
    kind, config = named(str(identifier["class_name"])), identifier["config"]
    if isinstance(config, dict):
        config = {
            key: deserialize_keras_object(value, module_objects, custom_objects)
            if isinstance(value, dict) and value.get(_INNER)
            else value
            for key, value in config.items()
        }
    with custom_object_scope(custom_objects or {}):
        return kind.from_config(config) if hasattr(kind, "from_config") else kind(**config)
