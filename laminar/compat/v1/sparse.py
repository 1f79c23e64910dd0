"""`tf.sparse`, and the same at the top as `sparse_...`."""

from __future__ import annotations

from .face import OWN, Line, face


def _reduction(name: str) -> Line:
    return (
        "sp_input, axis|reduction_axes=None, keepdims|keep_dims=False, name=None",
        f"engine:{name}(sp_input, axis, keepdims, name)",
    )


_TO_DENSE: Line = (
    "sp_input, default_value=None, validate_indices=True, name=None",
    "engine:sparse_tensor_to_dense(sp_input, default_value, validate_indices, name)",
)
_MATMUL: Line = (
    "sp_a, b, adjoint_a=False, adjoint_b=False, name=None",
    "engine:sparse_dense_matmul(sp_a, b, adjoint_a, adjoint_b, name)",
)
NAMES: dict[str, Line] = {
    "SparseConditionalAccumulator": (
        "dtype, shape=None, shared_name=None, name='sparse_conditional_accumulator', "
        "reduction_type='MEAN'",
        "engine:SparseConditionalAccumulator(dtype, shape, shared_name, name, reduction_type)",
    ),
    "SparseTensor": ".sparse_tensors:SparseTensor",
    "add": ".sparse_tensors:sparse_add",
    "concat": ".sparse_tensors:sparse_concat",
    "expand_dims": ("sp_input, axis=None, name=None", ".sparse_tensors:sparse_expand_dims"),
    "eye": (OWN, ".sparse_tensors:sparse_eye"),
    "fill_empty_rows": (
        "sp_input, default_value, name=None",
        "engine:sparse_fill_empty_rows(sp_input, default_value, name)",
    ),
    "from_dense": ("tensor, name=None", "engine:sparse_from_dense"),
    "mask": ".sparse_tensors:sparse_mask",
    "matmul": _MATMUL,
    "maximum": ("sp_a, sp_b, name=None", "engine:sparse_maximum(sp_a, sp_b, name)"),
    "merge": ".sparse_tensors:sparse_merge",
    "minimum": ("sp_a, sp_b, name=None", "engine:sparse_minimum(sp_a, sp_b, name)"),
    "placeholder": (
        "dtype, shape=None, name=None",
        "engine:sparse_placeholder(dtype, shape, name)",
    ),
    "reduce_max": _reduction("sparse_reduce_max"),
    "reduce_max_sparse": _reduction("sparse_reduce_max_sparse"),
    "reduce_sum": _reduction("sparse_reduce_sum"),
    "reduce_sum_sparse": _reduction("sparse_reduce_sum_sparse"),
    "reorder": ("sp_input, name=None", "engine:sparse_reorder(sp_input, name)"),
    "reset_shape": ("sp_input, new_shape=None", "engine:sparse_reset_shape"),
    "reshape": ("sp_input, shape, name=None", "engine:sparse_reshape(sp_input, shape, name)"),
    "retain": ("sp_input, to_retain", "engine:sparse_retain"),
    "segment_mean": ".sparse_tensors:sparse_segment_mean",
    "segment_sqrt_n": ".sparse_tensors:sparse_segment_sqrt_n",
    "segment_sum": ".sparse_tensors:sparse_segment_sum",
    "slice": (
        "sp_input, start, size, name=None",
        "engine:sparse_slice(sp_input, start, size, name)",
    ),
    "softmax": ("sp_input, name=None", "engine:sparse_softmax(sp_input, name)"),
    "sparse_dense_matmul": _MATMUL,
    "split": ".sparse_tensors:sparse_split",
    "to_dense": _TO_DENSE,
    "to_indicator": (
        "sp_input, vocab_size, name=None",
        "engine:sparse_to_indicator(sp_input, vocab_size, name)",
    ),
    "transpose": ("sp_input, perm=None, name=None", "engine:sparse_transpose(sp_input, perm)"),
}
# At the top of `tf`.
_UNDER_OTHER_NAMES: dict[str, str] = {
    "sparse_tensor_to_dense": "to_dense",
    "sparse_tensor_dense_matmul": "matmul",
}
TOP: dict[str, Line] = {
    **{
        f"sparse_{name}": line
        for name, line in NAMES.items()
        if name[0].islower()
        and name not in ("from_dense", "matmul", "sparse_dense_matmul", "to_dense", "eye")
    },
    **{name: NAMES[own] for name, own in _UNDER_OTHER_NAMES.items()},
    "SparseTensor": ".sparse_tensors:SparseTensor",
    "SparseTensorValue": ".sparse_tensors:SparseTensorValue",
    "sparse_to_dense": ".sparse_tensors:sparse_to_dense",
    "deserialize_many_sparse": ".sparse_tensors:deserialize_many_sparse",
    "serialize_many_sparse": ".sparse_tensors:serialize_many_sparse",
    "serialize_sparse": ".sparse_tensors:serialize_sparse",
    "convert_to_tensor_or_sparse_tensor": ".sparse_tensors:convert_to_tensor_or_sparse_tensor",
}

__getattr__, __dir__ = face(__name__, NAMES)
