"""Specs of values that are made of several tensors."""

from __future__ import annotations

from typing import Any, Self

from laminar import engine
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import DType, TensorShape, as_dtype
from laminar.engine.ops.array.indexed_slices import IndexedSlices
from laminar.engine.ops.sparse.sparse_values import SparseValues


class TypeSpec:
    """What is known of a value before there is one: the base of such specs."""

    def _fields(self) -> tuple[Any, ...]:
        """What tells specs of one class apart; a shape stands first."""
        raise NotImplementedError

    @property
    def value_type(self) -> type[Any]:
        """The class of the values that the spec describes."""
        raise NotImplementedError

    @classmethod
    def of(cls, value: Any) -> Self:
        """The spec of a value."""
        raise NotImplementedError

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or what another spec describes, could be described by this spec."""
        other = spec_or_value
        if not isinstance(other, TypeSpec):
            if not isinstance(other, self.value_type):
                return False
            other = self.of(other)
        return type(other) is type(self) and all(
            _compatible(mine, theirs)
            for mine, theirs in zip(self._fields(), other._fields(), strict=True)
        )

    def most_specific_compatible_type(self, other: Any) -> Self:
        """The narrowest spec that describes what either of two specs describes.

        Raises:
            InvalidArgumentError: there is none.
        """
        if type(other) is type(self):
            pairs = list(zip(self._fields(), other._fields(), strict=True))
            if all(a == b or isinstance(a, TensorShape) for a, b in pairs):
                return type(self)(
                    *(
                        a.most_specific_compatible_shape(b) if isinstance(a, TensorShape) else a
                        for a, b in pairs
                    )
                )
        raise InvalidArgumentError(f"no spec describes both {self} and {other}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypeSpec):
            return NotImplemented
        return type(other) is type(self) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((type(self), self._fields()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._fields()!r}"


def _compatible(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, TensorShape):
        return mine.is_compatible_with(theirs)
    return bool(mine == theirs)


class SparseTensorSpec(TypeSpec):
    """The spec of a SparseTensor: its dense shape and the type of its values."""

    def __init__(self, shape: Any = None, dtype: Any = engine.float32) -> None:
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)

    @property
    def shape(self) -> TensorShape:
        """The dense shape, as far as it is known."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The type of the values."""
        return self._dtype

    @property
    def rank(self) -> int | None:
        """The number of axes, or None."""
        return self._shape.rank

    @property
    def value_type(self) -> type[Any]:
        """SparseTensor."""
        return SparseValues

    def _fields(self) -> tuple[Any, ...]:
        return (self._shape, self._dtype)

    @classmethod
    def of(cls, value: Any) -> Self:
        """The spec of a sparse tensor."""
        return cls(value.shape, value.values.dtype)

    from_value = of


class IndexedSlicesSpec(TypeSpec):
    """The spec of IndexedSlices.

    Args:
        shape: of the dense tensor, as far as it is known.
        dtype: of the values.
        indices_dtype: of the indices.
        dense_shape_dtype: of the dense shape, None where there is none.
        indices_shape: of the indices, a vector.
    """

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = engine.float32,
        indices_dtype: Any = engine.int64,
        dense_shape_dtype: Any = None,
        indices_shape: Any = None,
    ) -> None:
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._indices_dtype = as_dtype(indices_dtype)
        self._shape_dtype = None if dense_shape_dtype is None else as_dtype(dense_shape_dtype)
        self._indices_shape = TensorShape(indices_shape).with_rank(1)

    @property
    def value_type(self) -> type[Any]:
        """IndexedSlices."""
        return IndexedSlices

    def _fields(self) -> tuple[Any, ...]:
        return (
            self._shape,
            self._dtype,
            self._indices_dtype,
            self._shape_dtype,
            self._indices_shape,
        )

    @classmethod
    def of(cls, value: Any) -> Self:
        """The spec of IndexedSlices, whose dense shape is known here."""
        return cls(value.shape, value.dtype, value.indices.dtype, engine.int64, value.indices.shape)


class RaggedTensorSpec(TypeSpec):
    """The spec of a ragged tensor.

    Args:
        shape: None for ragged axes, as far as it is known.
        dtype: of the values.
        ragged_rank: the number of ragged axes; by default all but the first.
        row_splits_dtype: of the splits.

    Raises:
        ValueError: the number of ragged axes is not below that of all.
    """

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = engine.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = engine.int64,
    ) -> None:
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._row_splits_dtype = as_dtype(row_splits_dtype)
        rank = self._shape.rank
        if ragged_rank is None:
            if rank is None:
                raise ValueError("RaggedTensorSpec: give ragged_rank where the shape is unknown")
            ragged_rank = rank - 1
        if rank is not None and not 0 <= ragged_rank < rank:
            raise ValueError(f"RaggedTensorSpec: {ragged_rank} of {rank} axes cannot be ragged")
        self._ragged_rank = ragged_rank

    @property
    def value_type(self) -> type[Any]:
        """RaggedTensor."""
        return engine.RaggedTensor

    def _fields(self) -> tuple[Any, ...]:
        return (self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype)

    @classmethod
    def of(cls, value: Any) -> Self:
        """The spec of a ragged tensor."""
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)

    from_value = of
