"""Functions as they are traced: with control flow that tensors can decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..graph import building
from ..late import later
from ..source import is_own_file

_MARK = "__laminar_autograph__"
_convert = later("laminar.engine.autograph", "convert")

_F = TypeVar("_F", bound=Callable[..., Any])


def do_not_convert(fn: _F) -> _F:
    """Leave a function, and what it calls, as it is when it is traced: a decorator.

    Examples:
        >>> twice = engine.do_not_convert(lambda x: x + x)
        >>> twice(3)
        6
    """
    setattr(fn, _MARK, False)
    return fn


def is_to_be_converted(fn: Callable[..., Any]) -> bool:
    """Whether nobody has asked to leave the function as it is."""
    return bool(getattr(fn, _MARK, True))


def converted(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` as `laminar.engine.autograph` rewrites it; that is loaded for a function of the user."""
    code = getattr(getattr(fn, "__func__", fn), "__code__", None)
    if code is not None and is_own_file(code.co_filename):
        return fn
    found: Callable[..., Any] = _convert(fn)
    return found


def converted_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` as it is, on values; while a graph is built, `converted`."""
    return fn if building() is None else converted(fn)
