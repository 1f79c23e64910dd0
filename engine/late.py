"""What is loaded when it is first asked for: names of packages, and functions of rooms above.

A late package lists its names in `__init__.pyi`, where type checkers look, too:

    from .adam import Adam as Adam
    from . import schedules as schedules

Its `__init__.py` has

    __getattr__, __dir__, __all__ = late(__name__, __file__)

and no imports. So `from .optimizers import Adam` loads the one module that has it, and
`from . import optimizers` none: `optimizers.Adam` does, where it stands and when it is reached.

What a room needs of one above it, which it may not import, is `later`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple


class _Package(ModuleType):
    """A package some of whose names are those of modules in it, such as `functions.function`.

    Python binds a module to its name in the package when it is loaded; here the name stays free
    for what the package says that it is.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, ModuleType) or name not in self.__all__:
            super().__setattr__(name, value)


def late(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, the `__dir__` and the `__all__` of a package.

    Args:
        package: its name.
        file: of its `__init__.py`; beside it is the stub.

    Raises:
        AttributeError: of a name that the package does not have.
    """
    homes = read_stub(f"{file.removesuffix('c')}i")
    inside = {home.module.split(".")[1] for home in homes.values() if home.module[0] == "."}
    if any(name in inside and home.attribute for name, home in homes.items()):
        sys.modules[package].__class__ = _Package

    def get(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = _full_name(home.module, package)
        value: Any = load(module)
        if home.attribute:
            try:
                value = getattr(value, home.attribute)
            except AttributeError:  # a module that has not been loaded
                value = load(f"{module}.{home.attribute}")
        vars(sys.modules[package])[name] = value
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes} - {late.__name__})

    return get, names, list(homes)


class Home(NamedTuple):
    """What has a name: a module, or an attribute of one. The module is given as in an import."""

    module: str
    attribute: str


def read_stub(path: str) -> dict[str, Home]:
    """What has each of the names that a stub imports."""
    homes = {}
    with open(path, encoding="utf-8") as file:
        statements = f"\n{file.read()}".split("\nfrom ")[1:]
    for statement in statements:
        module, _, names = statement.partition("\n\n")[0].partition(" import ")
        for item in names.strip("()\n ").rstrip(",").split(","):
            attribute, _, name = item.split()
            inside = module.strip(".")  # what of "." is a module
            homes[name] = Home(module, attribute) if inside else Home(module + attribute, "")
    return homes


def load(module: str) -> ModuleType:
    """A module, by its full name.

    The packages around it are loaded before it: of two threads that begin at different ends,
    Python would give one a module that is not complete.
    """
    end = module.find(".")
    while end >= 0:
        importlib.import_module(module[:end])
        end = module.find(".", end + 1)
    return importlib.import_module(module)


def later(module: str, name: str) -> Callable[..., Any]:
    """A function of a room above, which is loaded when it is first called.

    Args:
        module: its full name.
        name: of the function.
    """
    found: list[Callable[..., Any]] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        if not found:
            found.append(getattr(load(module), name))
        return found[0](*args, **kwargs)

    return call


def _full_name(module: str, package: str) -> str:
    """The full name of a module that is given from `package` on."""
    tail = module.lstrip(".")
    level = len(module) - len(tail)
    return module if level == 0 else ".".join([*package.split(".")[: 1 - level or None], tail])
