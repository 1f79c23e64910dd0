"""Sparse tensors, where TensorFlow 1 has other arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar import engine
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor, as_dtype
from laminar.engine.ops.array.gather import gather
from laminar.engine.ops.array.join import stack
from laminar.engine.ops.array.search import find_sorted, nonzero
from laminar.engine.ops.array.segment import segment_sum
from laminar.engine.ops.array.sort import sort
from laminar.engine.ops.core.basic import ones_like, zeros_like
from laminar.engine.ops.io.sparse_rows import deserialize_many_sparse as deserialize
from laminar.engine.ops.math.arithmetic import divide
from laminar.engine.ops.math.elementary import sqrt
from laminar.engine.state.sparse_rows import pack_sparse

from .adapting import in_graph, v1
from .segments import in_order
from .values import is_value, symbol, tensor


class _Kind(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, engine.SparseValues)


class SparseTensor(engine.SparseValues, metaclass=_Kind):
    """SparseValues of tensors: arrays become constants of the graph."""

    __slots__ = ()

    def __new__(cls, indices: Any, values: Any, dense_shape: Any) -> engine.SparseValues:  # type: ignore[misc]  # they are its kind
        with in_graph():
            return engine.SparseValues(
                symbol(indices, "int64"), symbol(values), symbol(dense_shape, "int64")
            )

    @classmethod
    def from_value(cls, value: Any) -> engine.SparseValues:
        """One of tensors, of three parts of any kind."""
        return cls(*value)


class SparseTensorValue(engine.SparseValues, metaclass=_Kind):
    """SparseValues of arrays, as a session takes and gives them."""

    __slots__ = ()

    def __new__(cls, indices: Any, values: Any, dense_shape: Any) -> engine.SparseValues:  # type: ignore[misc]  # they are its kind
        return engine.SparseValues(np.asarray(indices), np.asarray(values), np.asarray(dense_shape))


@v1()
def serialize_sparse(sp_input: Any) -> Tensor:
    """A sparse tensor as three strings: it, and two that are empty (TensorFlow has one a part)."""
    return _texts(sp_input, many=False)


@v1()
def serialize_many_sparse(sp_input: Any) -> Tensor:
    """The rows of a sparse tensor along its first axis, each as three strings: (n, 3)."""
    return _texts(sp_input, many=True)


def _texts(sp_input: Any, many: bool) -> Tensor:
    packed, _ = pack_sparse(sp_input, many)
    text = symbol(packed)
    empty = zeros_like(text)
    return stack([text, empty, empty], -1)


@v1()
def deserialize_many_sparse(serialized_sparse: Any, dtype: Any, rank: int | None = None) -> Any:
    """The sparse tensors of (n, 3) strings as one, along a new first axis."""
    texts = tensor(serialized_sparse)[..., 0]
    found = deserialize.many(texts, dtype=as_dtype(dtype), rank=rank)
    return engine.SparseValues(*found)


@v1()
def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: Any = None) -> Any:
    """A sparse tensor as it is; anything else as a tensor."""
    if isinstance(value, engine.SparseValues):
        if dtype is not None and value.dtype != as_dtype(dtype):
            raise InvalidArgumentError(f"a sparse tensor of {value.dtype} is no {dtype}")
        return SparseTensor(*value)
    return symbol(value, dtype)


@v1(thresh="threshold")
def sparse_add(a: Any, b: Any, threshold: Any = 0) -> Any:
    """a + b, of which at least one is sparse; sums below the threshold are left out."""
    if not isinstance(a, engine.SparseValues) and not isinstance(b, engine.SparseValues):
        raise TypeError("sparse_add: at least one of the two must be a SparseTensor")
    return engine.sparse_add(a, b, threshold)


@v1(concat_dim="axis", expand_nonconcat_dim="expand_nonconcat_dims")
def sparse_concat(
    axis: int | None = None,
    sp_inputs: Any = None,
    name: str | None = None,
    expand_nonconcat_dims: bool = False,
) -> Any:
    """Sparse tensors one behind the other along an axis."""
    if axis is None:
        raise InvalidArgumentError("sparse_concat: axis is missing")
    if isinstance(sp_inputs, engine.SparseValues):
        sp_inputs = [sp_inputs]
    if not isinstance(sp_inputs, list | tuple):
        raise TypeError(f"sparse_concat: expected a list of SparseTensors, got {sp_inputs!r}")
    return engine.sparse_concat(axis, sp_inputs, expand_nonconcat_dims, name)


def sparse_expand_dims(sp_input: Any, axis: int | None) -> Any:
    """With one more axis, at the end by default."""
    return engine.sparse_expand_dims(sp_input, -1 if axis is None else axis)


@v1()
def sparse_eye(num_rows: int, num_columns: int | None = None, dtype: Any = "float32") -> Any:
    """Ones on the diagonal."""
    columns = num_rows if num_columns is None else num_columns
    places = np.arange(min(num_rows, columns), dtype=np.int64)
    return SparseTensor(
        np.stack([places, places], 1),
        np.ones(len(places), as_dtype(dtype).numpy),
        np.asarray([num_rows, columns]),
    )


@v1(split_dim="axis")
def sparse_split(
    keyword_required: Any = None,
    sp_input: Any = None,
    num_split: int | None = None,
    axis: int | None = None,
    name: str | None = None,
) -> Any:
    """Parts along an axis; the first ones are longer by one where need be."""
    if sp_input is None or num_split is None or axis is None:
        raise InvalidArgumentError("sparse_split: sp_input=, num_split= and axis= are needed")
    return engine.sparse_split(sp_input, num_split, axis, name)


@v1()
def sparse_merge(
    sp_ids: Any,
    sp_values: Any,
    vocab_size: Any,
    name: str | None = None,
    already_sorted: bool = False,
) -> Any:
    """Values at the places that numbers name."""
    return engine.sparse_merge(sp_ids, sp_values, vocab_size, name, already_sorted)


@v1()
def sparse_mask(a: Any, mask_indices: Any) -> engine.IndexedSlices:
    """Slices without those whose index is among `mask_indices`."""
    masked = tensor(mask_indices, a.indices.dtype)
    zero = tensor(0, "int64")
    (kept,) = nonzero(engine.lookup("Less")(find_sorted(sort(masked), a.indices), zero))
    return engine.IndexedSlices(gather(a.values, kept), gather(a.indices, kept), a.dense_shape)


@v1()
def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
) -> Tensor:
    """The dense array of places, a shape and values, or one value for all places.

    A vector of places is of one axis, and a scalar is one place.
    """
    indices, shape = tensor(sparse_indices), tensor(output_shape)
    if indices.shape.rank in (0, 1):
        indices = engine.lookup("Reshape")(indices, shape=(-1, 1))
    values = tensor(sparse_values)
    default = tensor(default_value, values.dtype)
    if is_value(default_value) and default_value == 0 and values.dtype == "string":
        default = tensor("")
    return engine.lookup("SparseToDense")(
        engine.lookup("Cast")(indices, dtype="int64"),
        engine.lookup("Cast")(shape, dtype="int64"),
        values,
        default,
        static=engine.TensorShape(None),
        validate=validate_indices,
    )


def _rows_of_segments(
    data: Any, indices: Any, segment_ids: Any, num_segments: Any
) -> tuple[Tensor, Tensor]:
    ids = in_order("sparse_segment", segment_ids)
    rows = gather(tensor(data), tensor(indices))
    counts = segment_sum(engine.lookup("Cast")(ones_like(ids), dtype=rows.dtype), ids, num_segments)
    return segment_sum(rows, ids, num_segments), counts


def _over(total: Tensor, counts: Tensor) -> Tensor:
    ones = ones_like(counts)
    least = engine.lookup("Maximum")(counts, ones)
    rank = len(total.shape)
    return divide(total, engine.lookup("Reshape")(least, shape=(-1, *[1] * (rank - 1))))


@v1()
def sparse_segment_sum(
    data: Any, indices: Any, segment_ids: Any, num_segments: Any = None
) -> Tensor:
    """The sums of the rows data[indices] that share a number."""
    return _rows_of_segments(data, indices, segment_ids, num_segments)[0]


@v1()
def sparse_segment_mean(
    data: Any, indices: Any, segment_ids: Any, num_segments: Any = None
) -> Tensor:
    """The means of the rows data[indices] that share a number."""
    return _over(*_rows_of_segments(data, indices, segment_ids, num_segments))


@v1()
def sparse_segment_sqrt_n(
    data: Any, indices: Any, segment_ids: Any, num_segments: Any = None
) -> Tensor:
    """As `sparse_segment_sum`, over the root of how many rows share the number."""
    total, counts = _rows_of_segments(data, indices, segment_ids, num_segments)
    return _over(total, sqrt(counts))
