"""Which classes and functions files may name.

Each is found by its name in closed tables alone: the built-in ones (each room lists its own with
`list_builtins`), those registered by the program, and `custom_objects`. Nothing is ever imported or
run because a file says so.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from laminar.engine.errors import (
    InvalidArgumentError,
    UnknownClassError,
)
from laminar.engine.late import load

# _builtins[module as Keras names it][name] is a class or function; see list_builtins.
_builtins: dict[str, Mapping[str, Any]] = {}
# What lists them: loaded when a config names something that no loaded room has.
_LISTING_ROOMS = (
    "activations constraints regularizers layers optimizers losses metrics models distillation "
    "utils.feature_space applications.layer_scale applications.scaled_sum"
)
_registered: dict[str, Any] = {}  # "package>Name" -> class or function
_names: dict[Any, str] = {}  # the same, the other way round


class _Scopes(threading.local):
    def __init__(self) -> None:
        self.custom: list[Mapping[str, Any]] = []
        self.kept: dict[str, Any] | None = None  # see in_memory


_scopes = _Scopes()


def list_builtins(module: str, table: Mapping[str, Any]) -> None:
    """Let files name these classes and functions of a room, under Keras's name for its module.

    A config can call whatever is listed: the table has what is meant to be in configs, and no more.

    What Keras does not have goes under laminar's own name, such as "laminar.layers": files then say
    whose it is, and Keras's loader asks for it by name.

    Args:
        module: such as "keras.layers".
        table: classes with `from_config`, and functions of tensors, by name.
    """
    _builtins[module] = table


def register_keras_serializable(
    package: str = "Custom", name: str | None = None
) -> Callable[[Any], Any]:
    """Decorator: let files name this class or function, as `package>name`.

    Raises:
        InvalidArgumentError: a class without `get_config`.

    Examples:
        >>> @laminar.saving.register_keras_serializable("mine")
        ... class Twice(layers.Layer):
        ...     def call(self, x):
        ...         return 2 * x
        >>> laminar.saving.get_registered_name(Twice)
        'mine>Twice'
        >>> layer = layers.deserialize(layers.serialize(Twice(name="twice")))
        >>> layer(np.array([1.0]))
        Tensor([2.], shape=(1,), dtype=float32)
    """

    def decorate(target: Any) -> Any:
        if isinstance(target, type) and not hasattr(target, "get_config"):
            raise InvalidArgumentError(
                f"{target.__name__} cannot be registered: it has no get_config()",
                remedy="derive it from a laminar class, or write get_config and from_config",
            )
        registered = f"{package}>{name or target.__name__}"
        previous = _registered.get(registered)
        if previous is not None:
            _names.pop(previous, None)
        _registered[registered] = target
        _names[target] = registered
        return target

    return decorate


def get_custom_objects() -> dict[str, Any]:
    """The registered classes and functions by name; changing it changes what files may name.

    Examples:
        >>> def scale(x):
        ...     return 2 * x
        >>> laminar.saving.get_custom_objects()["scale"] = scale
        >>> laminar.saving.get_registered_object("scale") is scale
        True
        >>> del laminar.saving.get_custom_objects()["scale"]
    """
    return _registered


def checked_custom_objects(who: str, custom_objects: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The table itself; InvalidArgumentError for what maps no names to classes and functions."""
    if custom_objects is None:
        return {}
    if not isinstance(custom_objects, Mapping):
        given = list(custom_objects) if isinstance(custom_objects, list | tuple | set) else []
        names = [getattr(item, "__name__", "MyLayer") for item in given or ["MyLayer"]]
        raise InvalidArgumentError(
            f"{who}: custom_objects must map names to classes and functions, "
            f"got {custom_objects!r}",
            remedy=f"custom_objects={{{', '.join(f'{name!r}: {name}' for name in names)}}}",
        )
    return custom_objects


@contextmanager
def custom_object_scope(custom_objects: Mapping[str, Any]) -> Iterator[None]:
    """Let files name these classes and functions inside the block.

    Examples:
        >>> double = lambda x: 2 * x
        >>> with laminar.saving.custom_object_scope({"double": double}):
        ...     laminar.activations.get("double") is double
        True
    """
    _scopes.custom.append(checked_custom_objects("custom_object_scope", custom_objects))
    try:
        yield
    finally:
        _scopes.custom.pop()


CustomObjectScope = custom_object_scope


@contextmanager
def in_memory() -> Iterator[None]:
    """Let configs made and read inside the block hold any function and class, lambdas too.

    They name what the block has seen itself; outside of it they mean nothing.
    """
    before, kept = _scopes.kept, dict[str, Any]()
    _scopes.kept = kept
    try:
        with custom_object_scope(kept):
            yield
    finally:
        _scopes.kept = before


def is_in_memory() -> bool:
    """Whether such a block is around."""
    return _scopes.kept is not None


def get_registered_name(obj: Any) -> str:
    """The name under which a class or function is registered, else its own.

    Examples:
        >>> laminar.saving.get_registered_name(layers.Dense)
        'Dense'
    """
    return _names.get(obj, getattr(obj, "__name__", type(obj).__name__))


def get_registered_object(
    name: str,
    custom_objects: Mapping[str, Any] | None = None,
    module_objects: Mapping[str, Any] | None = None,
) -> Any:
    """The class or function of that name in scopes, `custom_objects`, or the registry; or None.

    "package>Name" was registered with that package; scopes and `custom_objects` may have it as
    "Name". In the registry, a name without a package is one of "Custom".

    Examples:
        >>> laminar.saving.get_registered_object("nobody's") is None
        True
    """
    short = name.rpartition(">")[2]
    tables = [custom_objects or {}, *reversed(_scopes.custom), _registered, module_objects or {}]
    for table in tables:
        for candidate in (name, short):
            if candidate in table:
                return table[candidate]
    return _registered.get(f"Custom>{name}")


def listing_of(target: Any) -> tuple[str | None, str]:
    """The module that lists a built-in, and under which name; no module, and its own name."""
    name = getattr(target, "__name__", "")
    for module, namespace in _builtins.items():
        if namespace.get(name) is target:
            return module, name
    # Keras lists GroupedQueryAttention under another name than its own.
    # Tables that are no dicts make classes by need, under their own names.
    for module, namespace in _builtins.items():
        for listed, value in namespace.items() if isinstance(namespace, dict) else ():
            if value is target and isinstance(target, type) and not listed.startswith("_"):
                return module, listed
    return None, name


def registered_as(target: Any, listed: str | None, module: str | None) -> str | None:
    """The name in files under which a reader must know a class or function; None for Keras's.

    Args:
        target: the class or function.
        listed: the module that lists it.
        module: the one that files name.
    """
    if listed is None:
        if _scopes.kept is None or target in _names:
            return get_registered_name(target)
        key = f"memory>{len(_scopes.kept)}"
        _scopes.kept[key] = target
        return key
    is_ours = module is not None and module.startswith("laminar.")
    return f"laminar>{target.__name__}" if is_ours else None


def builtin(name: str, module: str) -> Any:
    """The built-in class or function that Keras calls `module.name`; None if there is none."""
    found = None if name.startswith("_") else _builtins.get(module, {}).get(name)
    return found if callable(found) else None


def find_builtin(name: str, module: Any) -> Any:
    """A built-in of that name, in the module that is named or else in any."""
    hinted = [module] if isinstance(module, str) else []
    for is_complete in (False, True):
        if is_complete:
            for room in _LISTING_ROOMS.split():
                load(f"laminar.{room}")
        found = (builtin(name, m) for m in [*hinted, *_builtins])
        first = next((obj for obj in found if obj is not None), None)
        if first is not None:
            return first
    return None


def unknown_names(config: Any, custom_objects: Mapping[str, Any]) -> dict[str, list[str]]:
    """The classes and functions that a config names and no table holds, each with near names."""
    found: dict[str, list[str]] = {}
    todo = [config]
    while todo:
        value = todo.pop()
        if isinstance(value, list | tuple):
            todo.extend(reversed(value))
        elif isinstance(value, dict):
            todo.extend(reversed(value.values()))
            kind = value.get("class_name")
            name = value.get("config") if kind == "function" else kind
            if not isinstance(name, str) or name.startswith("__") or "config" not in value:
                continue
            registered = value.get("registered_name") or name
            if (
                get_registered_object(str(registered), custom_objects) is None
                and find_builtin(name, value.get("module")) is None
            ):
                found[str(registered)] = _near(name, custom_objects)
    return found


def _near(name: str, custom: Iterable[str]) -> list[str]:
    """Known names that are like `name`."""
    known = {n for table in _builtins.values() for n in table if not n.startswith("_")}
    known |= {n.rpartition(">")[2] for n in [*custom, *_registered]}
    return difflib.get_close_matches(name.rpartition(">")[2], known, 3)


def unknown_name(name: str, module: Any, custom: Iterable[str]) -> UnknownClassError:
    """The error for a class or function that no table holds, with near names."""
    near = _near(name, custom)
    hint = f"did you mean {', '.join(near)}? Or " if near else ""
    return UnknownClassError(
        f"the config names {name!r}"
        + (f" of module {module!r}" if isinstance(module, str) else "")
        + ", which laminar does not know",
        remedy=f"{hint}pass it: custom_objects={{{name!r}: {name}}}",
    )
