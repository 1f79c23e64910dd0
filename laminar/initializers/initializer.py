"""The base of all initializers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from laminar.engine.errors import UnimplementedError
from laminar.engine.graph import Tensor

from ..recorded import Recorded


class Initializer(Recorded):
    """Makes the first value of a variable. Abstract: a subclass defines `__call__`.

    Examples:
        >>> class Diagonal(laminar.initializers.Initializer):
        ...     def __call__(self, shape, dtype=None):
        ...         return 2 * ops.eye(*shape, dtype=dtype)
        >>> layers.Dense(2, kernel_initializer=Diagonal())(np.array([[1.0, 3.0]]))
        Tensor([[2., 6.]], shape=(1, 2), dtype=float32)
    """

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        """A tensor of `shape`; `dtype` is by default the default float."""
        raise UnimplementedError(f"{type(self).__name__} does not define __call__()")

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make an equal one."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """The initializer that `get_config` described."""
        return cls(**config)

    def clone(self) -> Initializer:
        """Another initializer with the same config."""
        return type(self).from_config(self.get_config())


# A name, an initializer, its class, a function of shape and dtype, a config, or the values.
InitializerLike: TypeAlias = (
    str
    | Initializer
    | Callable[..., Any]
    | Mapping[str, Any]
    | Tensor
    | np.ndarray[Any, Any]
    | np.generic
)
