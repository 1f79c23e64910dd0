"""`tf.Module`: an object that has variables, its own and those of the modules in it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from laminar import engine

from .adapting import in_graph


class Module:
    """The base of objects with variables.

    Args:
        name: of it, a word; by default that of its class, in snake_case.

    Raises:
        ValueError: the name is none.
    """

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", type(self).__name__).lower()
        if not name.isidentifier():
            raise ValueError(
                f"{name!r} is no name of a module: a word is needed, such as 'dense_1'"
            )
        self._name = name

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name

    @property
    def name_scope(self) -> AbstractContextManager[Any]:
        """A scope of its name, for `with`."""
        return engine.name_scope(self._name)

    @property
    def variables(self) -> tuple[Any, ...]:
        """Its variables and those of the modules in it, by the names of attributes."""
        return tuple(_once(v for v in _walk(self) if isinstance(v, engine.Variable)))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """Those that are trained."""
        return tuple(v for v in self.variables if v.trainable)

    @property
    def submodules(self) -> tuple[Any, ...]:
        """The modules in it."""
        return tuple(_once(m for m in _walk(self) if isinstance(m, Module) and m is not self))

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method whose operations and variables stand in the scope of its module's name."""

        @functools.wraps(method)
        def scoped(self: Any, *args: Any, **kwargs: Any) -> Any:
            with in_graph(), self.name_scope:
                return method(self, *args, **kwargs)

        return scoped


def _walk(root: Any) -> Iterator[Any]:
    """What is reached from a module by attributes and containers, each object once."""
    seen: set[int] = set()

    def reach(x: Any) -> Iterator[Any]:
        if isinstance(x, list | tuple):
            for item in x:
                yield from reach(item)
        elif isinstance(x, dict):
            for key in sorted(x, key=str):
                yield from reach(x[key])
        elif isinstance(x, engine.Variable | Module) and id(x) not in seen:
            seen.add(id(x))
            yield x
            if isinstance(x, Module):
                yield from reach(vars(x))

    yield from reach(root)


def _once(items: Iterator[Any]) -> list[Any]:
    return list({id(x): x for x in items}.values())
