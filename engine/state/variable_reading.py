"""What a variable is read as: a tensor, some of its rows, an array, Python's numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..graph import Tensor
from ..ops.array.gather import gather, gather_nd
from ..ops.core.convert import convert_to_tensor
from ..ops.core.naming import call_named


class VariableReading:
    """The reads that stand on `as_tensor` and `read_value`."""

    __slots__ = ()

    def as_tensor(self) -> Tensor:
        """The value now, as it is computed with."""
        raise NotImplementedError

    def read_value(self) -> Tensor:
        """The value now, as it is kept."""
        raise NotImplementedError

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """The rows of these numbers: (*shape of indices, *shape of a row).

        Their gradient is an `IndexedSlices`.
        """
        found: Tensor = call_named(name, gather, self.as_tensor(), convert_to_tensor(indices), 0)
        return found

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """The slices at the index tuples along the last axis of `indices`."""
        found: Tensor = call_named(name, gather_nd, self.as_tensor(), convert_to_tensor(indices))
        return found

    def __laminar_tensor__(self) -> Tensor:
        return self.as_tensor()

    def numpy(self) -> Any:
        """The value as a NumPy array of its own."""
        return self.read_value().numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.read_value(), dtype=dtype, copy=copy)

    def __bool__(self) -> bool:
        return bool(self.as_tensor())

    def __int__(self) -> int:
        return int(self.as_tensor())  # type: ignore[call-overload,no-any-return]  # an eager tensor

    def __float__(self) -> float:
        return float(self.as_tensor())  # type: ignore[arg-type]  # an eager tensor

    def __len__(self) -> int:
        return len(self.as_tensor())  # type: ignore[arg-type]  # tensors have a length

    def __iter__(self) -> Iterator[Any]:
        return iter(self.as_tensor())
