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

    def _serialize(self) -> tuple[Any, ...]:
        """What tells specs of one class apart, and what one is made of; a shape stands first."""
        raise NotImplementedError

    @property
    def _component_specs(self) -> Any:
        """The specs of the tensors that a value is made of."""
        raise NotImplementedError

    def _to_components(self, value: Any) -> Any:
        """The tensors that a value is made of."""
        raise NotImplementedError

    def _from_components(self, components: Any) -> Any:
        """The value of its tensors, or of arrays."""
        raise NotImplementedError

    def _batched(self, shape: TensorShape) -> Self:
        """The same of another shape."""
        made: Any = type(self)
        found: Self = made(shape, *self._serialize()[1:])
        return found

    def _batch(self, batch_size: int | None) -> Self:
        """The spec of so many values side by side."""
        return self._batched(TensorShape([batch_size]).concatenate(self._serialize()[0]))

    def _unbatch(self) -> Self:
        """The spec of one of the values that stand side by side."""
        shape = self._serialize()[0]
        return self._batched(TensorShape(None if shape.rank is None else shape[1:]))

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
            for mine, theirs in zip(self._serialize(), other._serialize(), strict=True)
        )

    def most_specific_compatible_type(self, other: Any) -> Self:
        """The narrowest spec that describes what either of two specs describes.

        Raises:
            InvalidArgumentError: there is none.
        """
        if type(other) is type(self):
            pairs = list(zip(self._serialize(), other._serialize(), strict=True))
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
        return type(other) is type(self) and self._serialize() == other._serialize()

    def __hash__(self) -> int:
        return hash((type(self), self._serialize()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._serialize()!r}"


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

    def _serialize(self) -> tuple[Any, ...]:
        return (self._shape, self._dtype)

    @property
    def _component_specs(self) -> list[engine.TensorSpec]:
        return [
            engine.TensorSpec([None, self.rank], engine.int64),
            engine.TensorSpec([None], self._dtype),
            engine.TensorSpec([self.rank], engine.int64),
        ]

    def _to_components(self, value: Any) -> list[Any]:
        return list(value)

    def _from_components(self, components: Any) -> Any:
        return SparseValues(*components)

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
        self._values_dtype = as_dtype(dtype)
        self._indices_dtype = as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else as_dtype(dense_shape_dtype)
        self._indices_shape = TensorShape(indices_shape).with_rank(1)

    @property
    def value_type(self) -> type[Any]:
        """IndexedSlices."""
        return IndexedSlices

    def _serialize(self) -> tuple[Any, ...]:
        return (
            self._shape,
            self._values_dtype,
            self._indices_dtype,
            self._dense_shape_dtype,
            self._indices_shape,
        )

    @property
    def _component_specs(self) -> tuple[engine.TensorSpec, ...]:
        rest = None if self._shape.rank is None else [*self._indices_shape, *self._shape[1:]]
        specs = [
            engine.TensorSpec(rest, self._values_dtype),
            engine.TensorSpec(self._indices_shape, self._indices_dtype),
        ]
        if self._dense_shape_dtype is not None:
            specs.append(engine.TensorSpec([self._shape.rank], self._dense_shape_dtype))
        return tuple(specs)

    def _to_components(self, value: Any) -> tuple[Any, ...]:
        parts = (value.values, value.indices)
        return parts if self._dense_shape_dtype is None else (*parts, value.dense_shape)

    def _from_components(self, components: Any) -> Any:
        return IndexedSlices(*components)

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

    def _serialize(self) -> tuple[Any, ...]:
        return (self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype)

    @property
    def _component_specs(self) -> list[engine.TensorSpec]:
        rank, outer = self._shape.rank, self._ragged_rank
        rows = None if rank is None or self._shape[0] is None else self._shape[0] + 1
        flat = None if rank is None else [None, *self._shape[outer + 1 :]]
        more = [engine.TensorSpec([None], self._row_splits_dtype)] * (outer - 1)
        first = engine.TensorSpec([rows], self._row_splits_dtype)
        return [engine.TensorSpec(flat, self._dtype), first, *more]

    def _to_components(self, value: Any) -> list[Any]:
        return [value.flat_values, *value.nested_row_splits]

    def _from_components(self, components: Any) -> Any:
        return engine.RaggedTensor(components[0], components[1:])

    def _batched(self, shape: TensorShape) -> Self:
        rank = self._ragged_rank + (shape.rank or 0) - (self._shape.rank or 0)
        return type(self)(shape, self._dtype, rank, self._row_splits_dtype)

    @classmethod
    def of(cls, value: Any) -> Self:
        """The spec of a ragged tensor."""
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)

    from_value = of
