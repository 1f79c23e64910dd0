"""Between sparse and dense arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...graph import (
    ANY,
    BOOLEAN,
    INTEGER,
    Array,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    bool_,
    int64,
    string,
)
from ..array.gather import gather_nd
from ..array.join import stack
from ..array.search import nonzero
from ..array.shape import shape_of, static_shape
from ..core.basic import constant, zeros_like
from ..core.convert import convert_to_tensor
from ..core.op_def import Grads
from ..core.registry import define
from ..math.arithmetic import subtract
from ..math.cast import cast_op
from ..math.compare import not_equal
from ..math.reduce import reduce_sum
from .sparse_places import check_places
from .sparse_values import SparseValues, as_sparse, check_sparse


@define(
    "SparseToDense",
    dtypes={"indices": INTEGER, "dense_shape": INTEGER, "values": ANY, "default": ANY},
    same_dtype=False,
)
def sparse_to_dense_op(
    indices: TensorSpec,
    dense_shape: TensorSpec,
    values: TensorSpec,
    default: TensorSpec,
    *,
    static: TensorShape,
    validate: bool,
) -> TensorSpec:
    """`default` everywhere but at indices[k], where it is values[k], or the scalar `values`.

    `validate`: whether the places must be in row-major order, without repeats.
    """
    if default.shape.rank not in (None, 0):
        raise ShapeError(f"SparseToDense: the default value must be a scalar, got {default}")
    if values.dtype != default.dtype:
        raise ShapeError(f"SparseToDense: values {values} and the default {default} differ in type")
    if values.shape.rank not in (None, 0, 1):
        raise ShapeError(f"SparseToDense: the values must be a vector or a scalar, got {values}")
    check_sparse("SparseToDense", indices, dense_shape)
    return TensorSpec(static, values.dtype)


@sparse_to_dense_op.kernel("cpu")
def _kernel(
    indices: Array,
    dense_shape: Array,
    values: Array,
    default: Array,
    *,
    static: TensorShape,
    validate: bool,
) -> Array:
    check_places("SparseToDense", indices, dense_shape, ordered=validate)
    if values.ndim and len(values) != len(indices):
        raise ShapeError(f"SparseToDense: {len(values)} values for {len(indices)} indices")
    y = np.full(tuple(dense_shape.tolist()), default, values.dtype)
    y[tuple(indices.T)] = values
    return y


@sparse_to_dense_op.grad
def _grad(op: OpView, dy: Tensor) -> Grads:
    indices, _, values, _ = op.inputs
    dvalues = gather_nd(dy, indices)
    total = reduce_sum(dvalues)
    return None, None, dvalues if values.shape.rank else total, subtract(reduce_sum(dy), total)


def sparse_tensor_to_dense(
    sparse: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """The dense array of a sparse one.

    Args:
        sparse: SparseValues of any type.
        default_value: what stands where there is no value; 0, False or "" by default.
        validate_indices: whether places out of order or repeated are refused.
        name: of the operation.

    Raises:
        InvalidArgumentError: a place lies outside, or out of order.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_tensor_to_dense(s, default_value=-1)
        Tensor([[-1,  5],
                [ 7, -1]], shape=(2, 2), dtype=int32)
    """
    x = as_sparse("sparse_to_dense", sparse)
    kind = x.values.dtype
    if default_value is None:
        default_value = "" if kind == string else False if kind == bool_ else 0
    default = convert_to_tensor(default_value, kind)
    attrs = {"static": static_shape(x.dense_shape), "validate": validate_indices}
    return sparse_to_dense_op(x.indices, x.dense_shape, x.values, default, name=name, **attrs)


def sparse_from_dense(x: Any, name: str | None = None) -> SparseValues:
    """The elements of an array that are not zero, False or "".

    Args:
        x: a tensor with at least one axis.
        name: not used.

    Returns:
        the elements in row-major order, at int64 places.

    Raises:
        ShapeError: `x` is a scalar.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> s.indices, s.values
        (Tensor([[0, 1],
                [1, 0]], shape=(2, 2), dtype=int64), Tensor([5, 7], shape=(2,), dtype=int32))
    """
    x = convert_to_tensor(x)
    if x.shape.rank == 0:
        raise ShapeError("sparse_from_dense: expected a tensor with axes, got a scalar")
    empty = constant("", string) if x.dtype == string else zeros_like(x)
    there = x if x.dtype in BOOLEAN else not_equal(x, empty)
    indices = cast_op(stack(nonzero(there), 1), dtype=int64)
    return SparseValues(indices, gather_nd(x, indices), shape_of(x, dtype=int64))
