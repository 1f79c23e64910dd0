"""Configs for the user's own classes, from the arguments that their instances were made with."""

from __future__ import annotations

import inspect
from typing import Any, Self

from laminar.engine.errors import InvalidArgumentError


class Recorded:
    """Base of what files can hold: a class that writes no `get_config` gets one all the same.

    The config is that of laminar's class it derives from, with the arguments of its constructor.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remember the arguments, of classes that need it."""
        instance = super().__new__(cls)
        if is_recorded(cls):
            object.__setattr__(instance, "_laminar_init_arguments", (args, kwargs))
        return instance


def is_recorded(kind: type[Any]) -> bool:
    """Whether a class is the user's own and leaves `get_config` to laminar's."""
    return not is_ours(kind) and is_ours(_owner(kind, "get_config"))


def is_read_by_us(kind: type[Any]) -> bool:
    """Whether the recorded arguments of a class are made again before its constructor gets them."""
    return is_recorded(kind) and is_ours(_owner(kind, "from_config"))


def recorded_config(obj: Any) -> dict[str, Any]:
    """The config of an object whose class `is_recorded`; its values may be objects.

    Raises:
        InvalidArgumentError: it was made with more positional arguments than it has names for.
    """
    kind = type(obj)
    try:
        known = dict(obj.get_config())
    except NotImplementedError:  # a base that says nothing of itself
        known = {}
    arguments = getattr(obj, "_laminar_init_arguments", None)
    if arguments is None:
        return known
    signature = inspect.signature(kind.__init__)
    args, kwargs = arguments
    bound = signature.bind(obj, *args, **kwargs)
    bound.apply_defaults()
    given: dict[str, Any] = {}
    takes_all = False
    for parameter, value in list(bound.arguments.items())[1:]:
        form = signature.parameters[parameter].kind
        if form is inspect.Parameter.VAR_KEYWORD:
            takes_all = True
            given |= value
        elif form is not inspect.Parameter.VAR_POSITIONAL:
            given[parameter] = value
        elif value:
            raise InvalidArgumentError(
                f"{kind.__name__} was made with more arguments than its constructor names: {value}",
                remedy=f"give {kind.__name__} a get_config(), or name the parameters",
            )
    takes_all = takes_all or any(
        p.kind is inspect.Parameter.VAR_KEYWORD for p in signature.parameters.values()
    )
    kept = {key: value for key, value in known.items() if takes_all or key in given}
    return kept | {key: value for key, value in given.items() if key not in kept}


def _owner(kind: type[Any], method: str) -> type[Any]:
    """The class that defines a method of `kind`; `kind` itself if none does."""
    return next((base for base in kind.__mro__ if method in vars(base)), kind)


def is_ours(kind: type[Any]) -> bool:
    """Whether a class is laminar's own."""
    return kind.__module__.partition(".")[0] == "laminar"
