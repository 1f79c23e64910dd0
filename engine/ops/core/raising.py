"""Raise: an exception of the user's program, where a graph comes to it.

`raise` in a branch that a tensor chooses is such an operation. It holds the names of the
exception's classes, so that graphs with it can be written: in the program that traced it, what is
raised is an instance of that class; in another, of the first of them that Python itself has.

`_classes` has the user's exception classes by name, while they exist.
"""

from __future__ import annotations

import builtins
import weakref
from collections.abc import Sequence
from typing import Any, ClassVar

from ...errors import InvalidArgumentError, LaminarError
from ...graph import ANY, TensorShape, TensorSpec, as_dtype
from .registry import define, no_gradient

_classes: weakref.WeakValueDictionary[str, type[Exception]] = weakref.WeakValueDictionary()
_PYTHONS = "builtins."


class RaisedError(LaminarError):
    """An exception of the user's program that a graph raises; it is of its class, too."""

    kind: ClassVar[type[Exception]]
    __setattr__ = Exception.__setattr__  # also where the class is a frozen dataclass

    def __init__(self, message: str, **place: Any) -> None:
        # A class of the user's may want other arguments: it is not initialized as one of them.
        Exception.__init__(self, message)
        self.message = message
        self.remedy = place.get("remedy")
        self.location = place.get("location")
        self.layer = place.get("layer", "")

    def __reduce__(self) -> Any:
        place = {"remedy": self.remedy, "location": self.location, "layer": self.layer}
        return (_rebuilt, (_names_of(self.kind), self.message, place))


def _rebuilt(kinds: Sequence[str], message: str, place: dict[str, Any]) -> LaminarError:
    return _error_class(kinds)(message, **place)


@define("Raise", dtypes=ANY, stateful=True)
def raise_op(*, kinds: tuple[str, ...], message: str, shape: TensorShape, dtype: str) -> TensorSpec:
    """Never there: the exception of the classes `kinds` is raised when it is to be computed."""
    return TensorSpec(shape, as_dtype(dtype))


@raise_op.effect
def _raise(
    context: Any, *, kinds: tuple[str, ...], message: str, shape: TensorShape, dtype: str
) -> Any:
    raise _error_class(kinds)(message)


raise_op.grad(no_gradient)


def raised_attrs(error: Exception) -> dict[str, Any]:
    """What a Raise says of an exception; `shape` and `dtype` are those of what is expected."""
    kinds = _names_of(type(error))
    for kind, name in zip(type(error).__mro__, kinds, strict=False):
        if not name.startswith(_PYTHONS):
            _classes[name] = kind
    message = error.message if isinstance(error, LaminarError) else str(error)
    return {"kinds": kinds, "message": message or kinds[0].rpartition(".")[2]}


def _names_of(kind: type[Exception]) -> tuple[str, ...]:
    """The classes of an exception below Exception itself, the narrowest first."""
    below = [k for k in kind.__mro__ if issubclass(k, Exception) and k is not Exception]
    return tuple(f"{k.__module__}.{k.__qualname__}" for k in below) or (f"{_PYTHONS}Exception",)


def _error_class(kinds: Sequence[str]) -> type[LaminarError]:
    """The narrowest class that is known here, as one of laminar's errors."""
    kind = next((k for k in map(_known, kinds) if k is not None), InvalidArgumentError)
    if issubclass(kind, LaminarError):
        return kind
    try:
        return type(kind.__name__, (RaisedError, kind), {"kind": kind})
    except TypeError:  # a class whose instances have a layout of their own
        return type(kind.__name__, (RaisedError,), {"kind": kind})


def _known(name: str) -> type[Exception] | None:
    if not name.startswith(_PYTHONS):
        return _classes.get(name)
    found = getattr(builtins, name.removeprefix(_PYTHONS), None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None
