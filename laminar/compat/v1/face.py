"""How the modules of this package get their names: tables of (name, signature, what computes it).

A line of a table is one of

    "name": "room:thing"                                   the thing itself
    "name": ("x, axis|dim=None, name=None", "room:thing")  a function, or a class, of that signature
    "name": (OWN, "room:thing")                            likewise, of the signature that it has

where room is a module of laminar ("ops", "engine", ...), ".module" one of this package, and "op"
the table of ops. The signature is that of TensorFlow 1: `a|b` are two names of one argument, and
defaults are Python's literals. The thing is called with the arguments in their order, without
`name` and without hints (`HINTS`); a list of its own, "room:thing(x, other=axis)", says otherwise.
Such calls build in the default graph, unless eager execution is on. A thing is looked up when it is
first used.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from laminar.engine.errors import did_you_mean

Line: TypeAlias = "str | tuple[str, str]"
OWN = "*"
UNARY = "x, name=None"
BINARY = "x, y, name=None"


def face(
    package: str, table: Mapping[str, Line], itself: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a module whose names are those of a table.

    Args:
        package: the module.
        table: its names.
        itself: names of the module in itself, such as "experimental".

    Raises:
        AttributeError: of an unknown name; it names those that are near.
    """

    def get(name: str) -> Any:
        if name in itself:
            return sys.modules[package]
        line = table.get(name)
        if line is None:
            if name.startswith("__"):
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            near = did_you_mean(name, known())
            hint = f"; {near}" if near else ""
            raise AttributeError(
                f"{package} has nothing for TensorFlow's {name!r}{hint}",
                name=name,
                obj=sys.modules[package],
            )
        adapting = importlib.import_module(".adapting", __package__)  # with all of the engine
        found = adapting.adapted(name, package, line)
        setattr(sys.modules[package], name, found)
        return found

    def known() -> list[str]:
        module = sys.modules[package]
        own = [n for n in vars(module).get("__all__", ()) if not n.startswith("_")]
        return sorted({*table, *own, *itself})

    return get, known
