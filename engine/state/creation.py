"""Who makes variables, and who is told: functions around a block get each to be made in it."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from ..errors import ArgumentTypeError, FailedPreconditionError

# Called with the next creator, and the arguments of the variable by name; gives the variable.
Creator: TypeAlias = Callable[..., Any]


class _Local(threading.local):
    """The creators around what this thread runs, the outermost first; who lists what it makes."""

    def __init__(self) -> None:
        self.creators: list[Creator] = []
        self.made: list[list[Any]] = []


_local = _Local()
_told: list[Callable[[Any], None]] = []


@contextmanager
def variables_made() -> Iterator[list[Any]]:
    """A list that receives the variables made inside."""
    made: list[Any] = []
    _local.made.append(made)
    try:
        yield made
    finally:
        _local.made.pop()


@contextmanager
def variables_of_nobody() -> Iterator[None]:
    """Inside, variables are made for no function that is being traced."""
    before, _local.made = _local.made, []
    try:
        yield
    finally:
        _local.made = before


def tell_of_new_variables(tell: Callable[[Any], None]) -> None:
    """Call `tell` with each variable that is made from now on."""
    _told.append(tell)


def announce(variable: Any) -> None:
    """Tell all who want to know that a variable has been made."""
    for made in _local.made:
        made.append(variable)
    for tell in _told:
        tell(variable)


class CreatedByScopes(type):
    """The class of classes of variables: asks the creators around before it makes one."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not _local.creators:
            return super().__call__(*args, **kwargs)
        initialize: Callable[..., None] = cls.__init__  # type: ignore[misc]  # of this very class
        bound = inspect.signature(initialize).bind(None, *args, **kwargs)
        bound.apply_defaults()
        _, *named = bound.arguments.items()  # all but `self`
        return created(super().__call__, dict(named))


def created(make: Creator, arguments: dict[str, Any]) -> Any:
    """What the creators around make, where `make` is the last that they can ask."""
    outside = _local.creators
    made = make
    for creator in outside:
        made = _asking(creator, made)
    _local.creators = []  # each is asked once for a variable, however it is made
    try:
        return made(**arguments)
    finally:
        _local.creators = outside


def _asking(creator: Creator, following: Creator) -> Creator:
    def make(**arguments: Any) -> Any:
        return creator(following, **arguments)

    return make


@contextmanager
def variable_creator_scope(creator: Creator) -> Iterator[None]:
    """Have `creator(next_creator, **arguments)` make the variables of the block.

    The innermost is asked first; it gives what `next_creator(**arguments)` gives, with arguments
    changed as it likes, or a variable of its own.

    Args:
        creator: gets the arguments of `Variable` by name.

    Raises:
        InvalidArgumentError: it cannot be called.
        FailedPreconditionError: blocks are not left in the order of entering.

    Examples:
        >>> def told(next_creator, **arguments):
        ...     print("makes", arguments["name"])
        ...     return next_creator(**arguments)
        >>> with engine.variable_creator_scope(told):
        ...     v = engine.Variable(1.0, name="v")
        makes v
    """
    if not callable(creator):
        raise ArgumentTypeError(
            f"variable_creator_scope: expected a function, got {creator!r}",
            remedy="def creator(next_creator, **arguments): return next_creator(**arguments)",
        )
    before = _local.creators
    here = _local.creators = [*before, creator]
    yield_ended = False
    try:
        yield
        yield_ended = True
    finally:
        if yield_ended and _local.creators is not here:
            raise FailedPreconditionError(
                "variable_creator_scope: blocks must be left in the order of entering"
            )
        _local.creators = before
