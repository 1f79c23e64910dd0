"""Objects as plain data and back, in the form in which Keras 3 writes them to config.json.

What classes and functions that data can name, registration.py says.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

from laminar.engine.errors import (
    DataLossError,
    InvalidArgumentError,
    LaminarError,
    UnknownClassError,
    did_you_mean,
)
from laminar.engine.graph import DType, EagerTensor, Tensor, TensorShape, as_dtype
from laminar.engine.ops.core.convert import convert_to_tensor

from .file_reading import file_reading
from .recorded import is_read_by_us, is_recorded, recorded_config
from .registration import (
    builtin,
    checked_custom_objects,
    custom_object_scope,
    find_builtin,
    get_registered_object,
    is_in_memory,
    listing_of,
    registered_as,
    unknown_name,
)

# How deep a config may nest: a guard against files made to exhaust the stack.
_MAX_DEPTH = 200


# Writing


def serialize_keras_object(obj: Any) -> Any:
    """`obj` as data that JSON can hold.

    Raises:
        InvalidArgumentError: a lambda, or an object without `get_config`.

    Examples:
        >>> laminar.saving.serialize_keras_object(layers.Dense(3))["class_name"]
        'Dense'
    """
    if obj is None or isinstance(obj, bool | int | float | str) and not isinstance(obj, DType):
        return obj
    if isinstance(obj, DType):
        return str(obj)
    if isinstance(obj, TensorShape):
        return list(obj)
    if isinstance(obj, bytes):
        return {"class_name": "__bytes__", "config": {"value": obj.decode("latin-1")}}
    if isinstance(obj, np.generic):
        return obj.item()
    if isinstance(obj, np.ndarray):
        return _array_config("__numpy__", obj)
    if isinstance(obj, Tensor):
        return _array_config("__tensor__", obj.numpy())
    if isinstance(obj, list | tuple):  # JSON makes lists of tuples
        items = [serialize_keras_object(item) for item in obj]
        return tuple(items) if isinstance(obj, tuple) else items
    if isinstance(obj, Mapping) and not hasattr(obj, "get_config"):
        return serialize_dict(obj)
    if isinstance(obj, slice):
        parts = {"start": obj.start, "stop": obj.stop, "step": obj.step}
        return {"class_name": "__slice__", "config": serialize_dict(parts)}
    if obj is Ellipsis:
        return {"class_name": "__ellipsis__", "config": {}}
    if isinstance(obj, np.dtype | type) and not hasattr(obj, "get_config"):
        return str(as_dtype(obj))
    if getattr(obj, "is_keras_tensor", False):
        return obj.serialize()
    if isinstance(obj, FunctionType) or (callable(obj) and not hasattr(obj, "get_config")):
        return _function_config(obj)
    if hasattr(obj, "get_config"):
        return _object_config(obj)
    raise InvalidArgumentError(
        f"{obj!r} cannot be saved: it has no get_config()",
        remedy="write get_config() and from_config(), and register the class",
    )


def serialize_dict(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Each value of a mapping as data."""
    return {key: serialize_keras_object(value) for key, value in mapping.items()}


def _array_config(kind: str, value: Any) -> dict[str, Any]:
    return {"class_name": kind, "config": {"value": value.tolist(), "dtype": str(value.dtype)}}


def _function_config(fn: Any) -> dict[str, Any]:
    name = getattr(fn, "__name__", type(fn).__name__)
    if name == "<lambda>" and not is_in_memory():
        raise InvalidArgumentError(
            "a lambda cannot be saved: its code would have to be run from the file",
            remedy="use a named function, registered with register_keras_serializable()",
        )
    module, _ = listing_of(fn)
    return {
        "module": module or "builtins",
        "class_name": "function",
        "config": name,
        "registered_name": registered_as(fn, module, module),
    }


def _object_config(obj: Any) -> dict[str, Any]:
    kind = type(obj)
    listed, name = listing_of(kind)
    module = getattr(kind, "_keras_module", None) or listed
    data = {
        "module": module,
        "class_name": name,
        "config": config_of(obj),
        "registered_name": registered_as(kind, listed, module),
    }
    if hasattr(obj, "get_build_config"):
        build = obj.get_build_config()
        if build is not None:
            data["build_config"] = serialize_dict(build)
    if hasattr(obj, "get_compile_config"):
        compiled = obj.get_compile_config()
        if compiled:
            data["compile_config"] = serialize_dict(compiled)
    return data


def config_of(obj: Any) -> dict[str, Any]:
    """The config of an object as data."""
    config = recorded_config(obj) if is_recorded(type(obj)) else obj.get_config()
    try:
        return serialize_dict(config)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"the config of {type(obj).__name__} {getattr(obj, 'name', '')!r} holds what cannot be "
            f"saved: {error.message}",
            remedy=error.remedy,
        ) from error


# Reading


def deserialize_keras_object(
    config: Any,
    custom_objects: Mapping[str, Any] | None = None,
    safe_mode: bool = True,
    *,
    module_objects: Mapping[str, Any] | None = None,
    printable_module_name: str = "object",
) -> Any:
    """The object that `config` describes.

    Args:
        config: what `serialize_keras_object` gives; plain values stand for themselves.
        custom_objects: classes and functions by the names that the config uses.
        safe_mode: kept for Keras scripts; code in a file is refused in either case.
        module_objects: further names; they go before what other modules call so. A config that is
            one of these names stands for the function, or an object made without arguments.
        printable_module_name: kept for Keras scripts; errors name what was looked for.

    Raises:
        UnknownClassError: the config names a class or function that is not known.
        DataLossError: the config is not of the form that is written.
        InvalidArgumentError: `custom_objects` is no mapping.

    Examples:
        >>> config = laminar.saving.serialize_keras_object(layers.Dense(3))
        >>> laminar.saving.deserialize_keras_object(config).units
        3
    """
    custom = checked_custom_objects("deserialize_keras_object", custom_objects)
    if isinstance(config, str) and (config in custom or config in (module_objects or {})):
        if config in custom:
            return custom[config]
        named = (module_objects or {})[config]
        return named() if isinstance(named, type) else named
    reader = _Reader(custom, module_objects or {})
    return reader.read(config, 0)


class _Reader:
    def __init__(self, custom: Mapping[str, Any], module_objects: Mapping[str, Any]) -> None:
        self.custom = custom
        self.module_objects = module_objects

    def read(self, config: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise DataLossError(f"the config nests deeper than {_MAX_DEPTH} levels")
        if config is None or isinstance(config, bool | int | float | str):
            return config
        if isinstance(config, list | tuple):
            items = [self.read(item, depth + 1) for item in config]
            return tuple(items) if isinstance(config, tuple) else items
        if not isinstance(config, dict):
            return config
        if "class_name" not in config or "config" not in config:
            return {key: self.read(value, depth + 1) for key, value in config.items()}
        kind = config["class_name"]
        if not isinstance(kind, str):
            raise DataLossError(f"a class name must be a string, got {kind!r}")
        if kind.startswith("__"):
            return self._special(kind, config["config"], depth)
        if kind == "function":
            return self._function(config)
        return self._object(kind, config)

    def _special(self, kind: str, inner: Any, depth: int) -> Any:
        try:
            if kind == "__tuple__":
                return tuple(self.read(item, depth + 1) for item in inner["value"])
            if kind == "__bytes__":
                return inner["value"].encode("latin-1")
            if kind == "__numpy__":
                return np.array(inner["value"], dtype=as_dtype(inner["dtype"]).numpy)
            if kind == "__tensor__":
                tensor = convert_to_tensor(inner["value"], inner["dtype"])
                assert isinstance(tensor, EagerTensor)
                return tensor
            if kind == "__slice__":
                parts = inner.get("value", inner)
                return slice(parts["start"], parts["stop"], parts["step"])
            if kind == "__ellipsis__":
                return Ellipsis
        except (KeyError, TypeError, ValueError, AttributeError) as cause:
            raise DataLossError(f"a {kind} entry of the config is malformed: {inner!r}") from cause
        if kind == "__lambda__":
            raise InvalidArgumentError(
                "the config holds the code of a lambda, which laminar does not run",
                remedy="replace the Lambda layer by a class, or pass the function in "
                "custom_objects and save again",
            )
        raise DataLossError(f"the config has an entry of unknown kind {kind!r}")

    def _function(self, config: dict[str, Any]) -> Any:
        name = config["config"]
        if not isinstance(name, str):
            raise DataLossError(f"a function's name must be a string, got {name!r}")
        registered = config.get("registered_name") or name
        return self._find(str(registered), name, config.get("module"))

    def _object(self, kind: str, config: dict[str, Any]) -> Any:
        reading = file_reading()
        if reading is None or reading.substitute is None:
            return self._made(kind, config)
        try:
            return self._made(kind, config)
        except LaminarError as error:
            found = reading.substitute(config, error)
            if found is None:
                raise
            return found

    def _made(self, kind: str, config: dict[str, Any]) -> Any:
        registered = config.get("registered_name") or kind
        cls = self._find(str(registered), kind, config.get("module"))
        if not isinstance(cls, type) or not hasattr(cls, "from_config"):
            raise UnknownClassError(
                f"{kind!r} names {cls!r}, which cannot be made from a config",
                remedy="give the class the methods get_config() and from_config()",
            )
        inner = config["config"]
        if not isinstance(inner, dict):
            raise DataLossError(f"the config of {kind!r} must be a mapping, got {inner!r}")
        with custom_object_scope(self.custom):
            if is_read_by_us(cls):
                inner = {key: self.read(value, 1) for key, value in inner.items()}
            made = cls.from_config(inner)
            build = config.get("build_config")
            if build and hasattr(made, "build_from_config"):
                made.build_from_config(build)
            compiled = config.get("compile_config")
            if compiled and hasattr(made, "compile_from_config"):
                made.compile_from_config(compiled)
        return made

    def _find(self, registered: str, name: str, module: Any) -> Any:
        found = get_registered_object(registered, self.custom)
        if found is None:
            found = builtin(name, module) if isinstance(module, str) else None
            if found is None:
                found = self.module_objects.get(name) or find_builtin(name, module)
            if found is not None and registered not in (name, f"laminar>{name}", "function"):
                raise DataLossError(
                    f"the config names {registered!r}, which nobody registered, and means the "
                    f"built-in {name!r}",
                    remedy="register the class, or take 'registered_name' out of the config",
                )
        if found is None:
            raise unknown_name(name, module, self.custom)
        return found


def lookup(kind: str, identifier: Any, table: Mapping[str, Any]) -> Any:
    """What `get(identifier)` of a module does: an object by name, config or itself.

    Args:
        kind: what is looked for, for the error: "activation", "loss".
        identifier: a name, a config dict, a class, a callable, or None.
        table: the names of the module, with aliases.

    Raises:
        InvalidArgumentError: an unknown name, or something that is none of these.
    """
    if identifier is None:
        return None
    if isinstance(identifier, dict):
        return deserialize_keras_object(identifier, module_objects=table)
    if isinstance(identifier, str):
        found = get_registered_object(identifier)
        if found is None:
            found = table.get(identifier)
        if found is None:
            raise InvalidArgumentError(
                f"{kind}: {identifier!r} is not known",
                remedy=did_you_mean(identifier, table) or "pass a callable, or register the name",
            )
        return found() if isinstance(found, type) else found
    if isinstance(identifier, type):
        return identifier()
    if callable(identifier):
        return identifier
    raise InvalidArgumentError(
        f"{kind}: expected a name, a config or a callable, got {identifier!r}"
    )
