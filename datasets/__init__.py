"""Data sets, each with `load_data() -> ((x_train, y_train), (x_test, y_test))`.

`digits` ships with the package; the others are downloaded on first use, checked against their
SHA-256 and kept in ~/.laminar/datasets (LAMINAR_HOME names another home than ~/.laminar).
Nothing that is read can run code.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import (
        boston_housing,
        california_housing,
        cifar10,
        cifar100,
        digits,
        fashion_mnist,
        imdb,
        mnist,
        reuters,
    )

__all__ = [
    "boston_housing",
    "california_housing",
    "cifar10",
    "cifar100",
    "digits",
    "fashion_mnist",
    "imdb",
    "mnist",
    "reuters",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
