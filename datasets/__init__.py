"""Dataset: the way of examples to a model. And data sets to try things out with.

Each of these has `load_data() -> ((x_train, y_train), (x_test, y_test))`. `digits` ships with the
package; the others are downloaded on first use, checked against their SHA-256 and kept in
~/.laminar/datasets (LAMINAR_HOME names another home than ~/.laminar). Nothing that is read can run
code.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    from .dataset import AUTOTUNE as AUTOTUNE
    from .dataset import Dataset as Dataset
    from .graph_iterators import GraphIterator as GraphIterator
    from .iteration import DatasetIterator as DatasetIterator
    from .mini_batches import DataSets as DataSets
    from .mini_batches import MiniBatches as MiniBatches
    from .mini_batches import read_data_sets as read_data_sets

__all__ = [
    "AUTOTUNE",
    "DataSets",
    "Dataset",
    "DatasetIterator",
    "GraphIterator",
    "MiniBatches",
    "boston_housing",
    "california_housing",
    "cifar10",
    "cifar100",
    "digits",
    "fashion_mnist",
    "imdb",
    "mnist",
    "read_data_sets",
    "reuters",
]

# name -> the module that has it
_NAMES = {
    "AUTOTUNE": "dataset",
    "Dataset": "dataset",
    "DatasetIterator": "iteration",
    "GraphIterator": "graph_iterators",
    "DataSets": "mini_batches",
    "MiniBatches": "mini_batches",
    "read_data_sets": "mini_batches",
}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f".{_NAMES[name]}", __name__), name)
    if name in __all__:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
