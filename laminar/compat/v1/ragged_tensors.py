"""Ragged tensors under TensorFlow's names and with its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laminar import engine
from laminar.engine.graph import Tensor
from laminar.engine.ops.ragged.ragged_creation import ragged_arrays
from laminar.engine.ops.ragged.ragged_dense import ragged_from_sparse, ragged_from_tensor
from laminar.engine.ops.ragged.ragged_structure import stack_dynamic_partitions as by_partition

from .adapting import in_graph, v1
from .values import as_kind, static, symbol


def symbols(x: Any) -> Any:
    """A ragged tensor of symbols of the graph that is being built; anything else likewise."""
    if not isinstance(x, engine.RaggedTensor):
        return symbol(x)
    return engine.RaggedTensor(symbol(x.flat_values), [symbol(s) for s in x.nested_row_splits])


class _Kind(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, engine.RaggedTensor)


def _constructor(name: str) -> Any:
    make = getattr(engine.RaggedTensor, name)

    def construct(
        cls: type, values: Any, rows: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        with in_graph():
            return make(symbols(values), rows, validate=validate)

    construct.__doc__ = make.__doc__
    return classmethod(construct)


class RaggedTensor(engine.RaggedTensor, metaclass=_Kind):
    """Ragged tensors, made in the default graph; see `laminar.engine.RaggedTensor`."""

    __slots__ = ()

    from_row_splits = _constructor("from_row_splits")
    from_row_lengths = _constructor("from_row_lengths")
    from_row_starts = _constructor("from_row_starts")
    from_row_limits = _constructor("from_row_limits")
    from_nested_row_splits = _constructor("from_nested_row_splits")
    from_nested_row_lengths = _constructor("from_nested_row_lengths")

    @classmethod
    def from_value_rowids(  # type: ignore[override]  # TensorFlow has a name in between
        cls,
        values: Any,
        value_rowids: Any,
        nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> engine.RaggedTensor:
        """Of values and the number of the row of each, which rise."""
        with in_graph():
            return engine.RaggedTensor.from_value_rowids(
                symbols(values), value_rowids, nrows, validate
            )

    @classmethod
    def from_nested_value_rowids(  # type: ignore[override]  # likewise
        cls,
        flat_values: Any,
        nested_value_rowids: Any,
        nested_nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> engine.RaggedTensor:
        """Of the innermost values and the numbers of rows of all ragged axes."""
        with in_graph():
            return engine.RaggedTensor.from_nested_value_rowids(
                symbols(flat_values), nested_value_rowids, nested_nrows, validate
            )

    @classmethod
    def from_tensor(  # type: ignore[override]  # likewise
        cls,
        tensor: Any,
        lengths: Any = None,
        padding: Any = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: Any = "int64",
    ) -> engine.RaggedTensor:
        """The rows of a tensor, without what stands behind their lengths, or is padding."""
        with in_graph():
            kind = as_kind(row_splits_dtype)
            return ragged_from_tensor(symbol(tensor), lengths, padding, ragged_rank, kind)

    @classmethod
    def from_sparse(  # type: ignore[override]  # likewise
        cls, st_input: Any, name: str | None = None, row_splits_dtype: Any = "int64"
    ) -> engine.RaggedTensor:
        """The rows of a sparse matrix whose values stand at the beginnings of its rows."""
        with in_graph():
            return ragged_from_sparse(st_input, as_kind(row_splits_dtype))


class RaggedTensorValue(engine.RaggedTensor, metaclass=_Kind):
    """A ragged tensor of arrays, as a session takes and gives it."""

    __slots__ = ()

    def __new__(cls, values: Any, row_splits: Any) -> engine.RaggedTensor:  # type: ignore[misc]  # they are its kind
        splits = np.asarray(row_splits)
        if isinstance(values, engine.RaggedTensor):
            return engine.RaggedTensor(values.flat_values, (splits, *values.nested_row_splits))
        return engine.RaggedTensor(np.asarray(values), (splits,))


@v1()
def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = "int64",
) -> Any:
    """A ragged tensor of nested lists; see `laminar.engine.ragged_constant`."""
    return symbols(
        engine.ragged_constant(pylist, dtype, ragged_rank, inner_shape, as_kind(row_splits_dtype))
    )


def constant_value(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    row_splits_dtype: Any = "int64",
) -> Any:
    """As `constant`, of arrays, for a session to be fed."""
    return ragged_arrays(pylist, dtype, ragged_rank, inner_shape, as_kind(row_splits_dtype))


@v1()
def placeholder(
    dtype: Any, ragged_rank: int, value_shape: Any = None, name: str | None = None
) -> Any:
    """What a step is fed a ragged value for."""
    return engine.ragged_placeholder(dtype, ragged_rank, value_shape, name)


@v1()
def range(  # its name there
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = "int64",
) -> engine.RaggedTensor:
    """For each row the numbers from `starts` to before `limits`, of 0 to `starts` without these."""
    first = symbol(starts)
    last = None if limits is None else symbol(limits)
    kind = as_kind(row_splits_dtype)
    return engine.ragged_numbers(first, last, symbol(deltas), dtype, kind)


@v1()
def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `op` makes of the flat values of ragged arguments, in their rows."""
    return engine.map_flat_values(op, *args, **kwargs)


@v1()
def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The elements of `data` where `mask` is True, in ragged rows."""
    return engine.ragged_boolean_mask(symbols(data), symbols(mask))


@v1()
def stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Tensors of different sizes, or ragged ones, along a new axis."""
    return engine.ragged_stack([symbols(x) for x in values], axis)


@v1()
def stack_dynamic_partitions(
    data: Any, partitions: Any, num_partitions: Any, name: str | None = None
) -> Any:
    """Row k holds the elements of `data` whose number in `partitions` is k, in their order."""
    return by_partition(symbols(data), symbols(partitions), static(num_partitions))


@v1()
def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The number of the row of each value."""
    return engine.row_splits_to_segment_ids(symbol(splits, "int64"), out_type)


@v1()
def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Tensor:
    """Where the values of each number begin, of numbers that rise."""
    return engine.segment_ids_to_row_splits(symbol(segment_ids, "int64"), num_segments, out_type)


def map_rows(fn: Callable[..., Any], elems: Any, name: str | None = None) -> Any:
    """fn(row) for the rows of a ragged tensor, side by side; the results are of one shape."""
    numbers = engine.ragged_numbers(elems.nrows()).flat_values
    return engine.map_slices(lambda i: fn(elems[i]), numbers, name=name)
