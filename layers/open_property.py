"""Properties that give way to an attribute of the instance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class open_property(Generic[T]):  # noqa: N801  # used as `property` is
    """A property, except that an instance can have an attribute of its name instead.

    For names that programs like to give to attributes of their own, such as `inputs`: what is
    computed is for users to read, and laminar itself asks elsewhere.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> open_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...
    def __get__(self, instance: object | None, owner: type[Any]) -> open_property[T] | T:
        """What the function gives for the instance; the descriptor itself for the class."""
        return self if instance is None else self.compute(instance)
