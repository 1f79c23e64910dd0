"""The types of what users pass: one name for each kind of argument.

Those that belong to a class stand with it: `initializers.InitializerLike`, `losses.LossLike`, ...
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from laminar.engine.graph import DTypeLike as DTypeLike
from laminar.engine.graph import Shape as Shape
from laminar.engine.graph import ShapeLike as ShapeLike
from laminar.engine.graph import SizeLike as SizeLike
from laminar.engine.graph import SupportsArray as SupportsArray
from laminar.engine.graph import SupportsDLPack as SupportsDLPack
from laminar.engine.graph import TensorLike as TensorLike

# One axis, or several.
AxisLike: TypeAlias = int | Sequence[int]
# One number for all spatial axes, or one for each.
Ints: TypeAlias = int | Sequence[int]
DataFormat: TypeAlias = Literal["channels_last", "channels_first"]
Padding: TypeAlias = Literal["valid", "same"]
CausalPadding: TypeAlias = Literal["valid", "same", "causal"]
# A tensor, or tensors in lists, tuples and dicts.
TensorStructure: TypeAlias = TensorLike | Sequence["TensorStructure"] | Mapping[str, Any]
PathLike: TypeAlias = str | os.PathLike[str]
# How much a loop prints: nothing, a bar, a line for each epoch.
Verbose: TypeAlias = int | Literal["auto"]


class SupportsGetItem(Protocol):
    """Batches by number, as PyDataset has them.

    Examples:
        >>> data: laminar.typing.SupportsGetItem = [np.zeros((4, 2)), np.ones((4, 2))]
        >>> data[1].shape
        (4, 2)
    """

    def __getitem__(self, index: int, /) -> Any:
        """The batch of that number."""


# What models are trained on: tensors in structures, or batches: walked, by number, or made.
DataLike: TypeAlias = (
    TensorStructure | Iterable[Any] | SupportsGetItem | Callable[[], Iterable[Any]]
)
