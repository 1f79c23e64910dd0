"""IndexedSlices: a tensor that is zero but for some rows, as the gradient of what is looked up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from ...errors import DTypeError, ShapeError
from ...graph import INTEGER, DType, Operators, OpView, Tensor, TensorShape, TensorSpec
from ..core.basic import identity, zeros_like
from ..core.convert import convert_to_tensor
from ..math.arithmetic import add
from ..math.cast import cast, cast_op
from ..math.compare import equal, less, where
from .creation import arange
from .first_occurrence import first_occurrence, sum_repeats
from .gather import gather_grad, gather_op
from .join import concat
from .shape import dim_of, reshape


class IndexedSlices(Operators):
    """The tensor t of `dense_shape` with t[indices[k]] = the sum of the rows `values[k]` there.

    It stands for t wherever a tensor is expected, at the price of making t; `optimizer.apply` uses
    the rows alone where it can.

    Args:
        values: (n, q...), or (i..., q...) for indices (i...).
        indices: (n,) whole numbers, from the end where they are negative; one may come often.
        dense_shape: (rows, q...), known.

    Raises:
        DTypeError: the indices are no whole numbers.
        ShapeError: the values are not one row for each index.

    Examples:
        >>> slices = engine.IndexedSlices(
        ...     engine.constant([[1.0], [2.0]]), engine.constant([2, 0]), (3, 1)
        ... )
        >>> engine.convert_to_tensor(slices)
        Tensor([[2.],
                [0.],
                [1.]], shape=(3, 1), dtype=float32)
    """

    __slots__ = ("__weakref__", "_indices", "_shape", "_values")

    def __init__(self, values: Any, indices: Any, dense_shape: Any) -> None:
        self._values = convert_to_tensor(values)
        self._indices = convert_to_tensor(indices)
        self._shape = TensorShape(dense_shape)
        if self._indices.dtype not in INTEGER:
            raise DTypeError(
                f"IndexedSlices: the indices must be whole numbers, got {self._indices.spec}"
            )
        if not self._shape.is_fully_defined or not self._shape.rank:
            raise ShapeError(f"IndexedSlices: dense_shape must be known, got {self._shape}")
        if self._indices.shape.rank is None:
            raise ShapeError("IndexedSlices: the number of axes of the indices must be known")
        expected = TensorShape([*self._indices.shape, *self._shape[1:]])
        if not expected.is_compatible_with(self._values.shape):
            raise ShapeError(
                f"IndexedSlices: indices {self._indices.spec} of rows of {self._shape} need values "
                f"of shape {expected}, got {self._values.spec}"
            )

    @property
    def values(self) -> Tensor:
        """The rows, (n, q...)."""
        if self._indices.shape.rank == 1:
            return self._values
        return reshape(self._values, [-1, *self._shape[1:]])

    @property
    def indices(self) -> Tensor:
        """Which rows they are, (n,), counted from the front."""
        flat = self._indices
        if flat.shape.rank != 1:
            flat = reshape(flat, [-1])
        if flat.dtype.startswith("u"):
            return flat
        rows = convert_to_tensor(self._shape[0], flat.dtype)
        return where(less(flat, zeros_like(flat)), add(flat, rows), flat)

    @property
    def dense_shape(self) -> TensorShape:
        """The shape of the tensor that it stands for."""
        return self._shape

    @property
    def shape(self) -> TensorShape:
        """The same, under the name that tensors have."""
        return self._shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._values.dtype

    @property
    def spec(self) -> TensorSpec:
        """Shape and dtype together."""
        return TensorSpec(self._shape, self.dtype)

    def map(self, fn: Callable[[Tensor], Tensor]) -> Self:
        """The same rows of what `fn` makes of their elements; it keeps zeros zero."""
        return self._copy(fn(self._values))

    def _copy(self, values: Tensor) -> Self:
        return type(self)(values, self._indices, self._shape)

    def combined(self) -> CombinedSlices:
        """The same with one row for each index: the rows of equal indices are added in order."""
        indices = self.indices
        first = first_occurrence(indices)
        count = first.shape[0]
        order = arange(dim_of(first, axis=0) if count is None else count)
        places = where(equal(first, order), indices, convert_to_tensor(-1, indices.dtype))
        return CombinedSlices(sum_repeats(self.values, first), indices, self._shape, places)

    def graph_element(self, graph: Any) -> Any:
        """The tensor that stands for it among the fetches of a graph."""
        with graph.as_default():
            return self.__laminar_tensor__()

    def __laminar_tensor__(self) -> Tensor:
        return gather_grad(self._values, self._indices, shape=self._shape, axis=0, batch_dims=0)

    def numpy(self) -> Any:
        """The tensor as a NumPy array."""
        return self.__laminar_tensor__().numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.__laminar_tensor__(), dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return int(self._shape[0] or 0)

    def __repr__(self) -> str:
        return f"<IndexedSlices {self.spec}: rows {self._values.spec} at {self._indices.spec}>"


class CombinedSlices(IndexedSlices):
    """IndexedSlices in which each index has one row that is not zero.

    Args:
        values: (n, q...).
        indices: (n,), from the front.
        dense_shape: (rows, q...).
        places: (n,): the index of that row, and -1 for those that repeat it.
    """

    __slots__ = ("places",)

    def __init__(self, values: Any, indices: Any, dense_shape: Any, places: Tensor) -> None:
        super().__init__(values, indices, dense_shape)
        self.places = places

    def _copy(self, values: Tensor) -> Self:
        return type(self)(values, self._indices, self._shape, self.places)

    def combined(self) -> CombinedSlices:
        """Itself."""
        return self


def mapped(x: Any, fn: Callable[[Any], Any]) -> Any:
    """`fn` of a tensor, or of the rows of IndexedSlices; it is elementwise and keeps zeros zero."""
    return x.map(fn) if isinstance(x, IndexedSlices) else fn(x)


def sum_slices(parts: Sequence[Any]) -> Any:
    """The sum of tensors and IndexedSlices: IndexedSlices if all are."""
    first, *others = parts
    if not others:
        return first
    if all(isinstance(part, IndexedSlices) for part in parts):
        kinds = {part.indices.dtype for part in parts}
        indices = [p.indices if len(kinds) == 1 else cast(p.indices, "int64") for p in parts]
        return IndexedSlices(
            concat([p.values for p in parts], 0), concat(indices, 0), first.dense_shape
        )
    total = convert_to_tensor(first)
    for part in others:
        total = add(total, convert_to_tensor(part))
    return total


@gather_op.rows
def _gather_rows(op: OpView, dy: Any) -> IndexedSlices | None:
    x, indices = op.inputs
    by_rows = op.attrs["axis"] == 0 and op.attrs["batch_dims"] == 0
    known = x.shape.is_fully_defined and indices.shape.rank is not None and dy.shape.rank
    if not (by_rows and known) or 0 in x.shape:
        return None
    return IndexedSlices(convert_to_tensor(dy), indices, x.shape)


@identity.rows
def _identity_rows(op: OpView, dy: Any) -> Any:
    return dy


@cast_op.rows
def _cast_rows(op: OpView, dy: Any) -> Any:
    return mapped(dy, lambda values: cast(values, op.inputs[0].dtype))
