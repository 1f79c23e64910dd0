"""laminar under the name of Keras.

    import laminar.compat.keras as keras           # for a script of one's own

    import laminar.compat.keras
    laminar.compat.keras.install()                 # for packages that import Keras themselves
    import keras_tuner

After `install()`, `import keras` gives laminar: each module of Keras is one that looks names up in
laminar's. Private paths (`keras.src.layers.core.dense`) lead to the public names behind them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import laminar
from laminar.engine.errors import FailedPreconditionError, UnimplementedError

# Of the Keras whose names laminar has: packages ask for it.
__version__ = "3.15.1"

# Where names behind private paths are looked for, once the rooms on the path do not have them.
_ROOMS = (
    *("layers", "models", "losses", "metrics", "optimizers", "callbacks", "saving", "utils"),
    *("backend", "ops", "random", "initializers", "regularizers", "constraints", "activations"),
    *("config", "dtype_policies", "quantizers", "tree", "distribution"),
)
# Private names of Keras that packages use, and what does the same here.
_PRIVATE = {
    "LossFunctionWrapper": "losses.loss.LossFunctionWrapper",
    "any_symbolic_tensors": "layers.symbolic.any_symbolic",
    "auto_name": "naming.auto_name",
    "get_keras_mask": "layers.masking.get_mask",
    "set_keras_mask": "layers.masking.set_mask",
    "to_snake_case": "naming.to_snake_case",
}


def version() -> str:
    """The version of the Keras whose names laminar has."""
    return __version__


def install() -> None:
    """Let `import keras`, in this process, give laminar from now on.

    Raises:
        FailedPreconditionError: Keras itself has been imported.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if "keras" in sys.modules:
        raise FailedPreconditionError(
            "laminar.compat.keras.install(): Keras itself has been imported already",
            remedy="call it before anything imports keras",
        )
    sys.meta_path.insert(0, _Finder())


def uninstall() -> None:
    """Let `import keras` give what it gave before `install`."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    for name in [name for name, module in sys.modules.items() if isinstance(module, _Alias)]:
        del sys.modules[name]


class _Finder(MetaPathFinder, Loader):
    """Finds `keras` and the modules in it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of Keras that laminar has, or that stands on a private path."""
        keras, *rest = fullname.split(".")
        if keras != "keras" or not (rest[:1] == ["src"] or _module(rest) is not None):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module, which looks names up."""
        return _Alias(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""


class _Alias(ModuleType):
    """A module of Keras, whose names are looked up in laminar."""

    def __getattr__(self, name: str) -> Any:
        path = self.__name__.split(".")[1:]
        is_private = path[:1] == ["src"]
        path = path[1:] if is_private else path
        if name in ("__version__", "version") and path in ([], ["version"]):
            return globals()[name]
        if name == "__all__":
            return sorted({n for n in self.__dir__() if not n.startswith("_") and _has(self, n)})
        if not name.startswith("__"):
            for home in _homes(path, is_private):
                if _has(home, name):
                    return getattr(home, name)
            if is_private and name in _PRIVATE:
                module, _, found = _PRIVATE[name].rpartition(".")
                return getattr(importlib.import_module(f"laminar.{module}"), found)
        raise AttributeError(
            f"module {self.__name__!r} has no attribute {name!r}: laminar stands in the place of "
            f"Keras here, and has no such name"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What is imported from a private path and is not there is taken for a module."""
        raise AttributeError(f"laminar has nothing in the place of Keras's private {self.__name__}")

    def __dir__(self) -> list[str]:
        path = self.__name__.split(".")[1:]
        home = _module(path[1:] if path[:1] == ["src"] else path)
        return sorted({*vars(self), *(() if home is None else dir(home))})


def _module(path: Sequence[str]) -> ModuleType | None:
    """The module of laminar at a path below the top; None where there is none."""
    found: Any = laminar
    for name in path:
        found = getattr(found, name, None)
        if not isinstance(found, ModuleType):
            return None
    return found if isinstance(found, ModuleType) else None


def _has(module: ModuleType, name: str) -> bool:
    try:
        return hasattr(module, name)
    except UnimplementedError:  # what needs a package that is not installed
        return False


def _homes(path: Sequence[str], is_private: bool) -> list[ModuleType]:
    """The modules of laminar in which a name of Keras's module at `path` may be, first choices
    first: that module itself; for a private path, those above it, and all rooms."""
    paths = [path]
    if is_private:
        paths += [path[:end] for end in range(len(path) - 1, -1, -1)]
        paths += [[room] for room in _ROOMS]
    return [home for home in map(_module, paths) if home is not None]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("laminar").__getattr__(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(laminar)})
