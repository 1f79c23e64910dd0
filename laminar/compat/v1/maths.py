"""Arithmetic that differs from laminar's own in its arguments or its types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar import ops
from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor, bool_, float64
from laminar.engine.ops.array import creation, index, segment
from laminar.engine.ops.array.gather import scatter_nd
from laminar.engine.ops.array.join import stack
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.linalg import matmul as products
from laminar.engine.ops.linalg.products import tensordot as contract
from laminar.engine.ops.math import cumulative, reduce
from laminar.engine.ops.math.cast import cast as cast_tensor
from laminar.engine.ops.sparse.sparse_values import SparseValues

from .adapting import v1
from .values import as_kind, axes, operands, static, symbol, tensor


def _reduction(name: str, fn: Callable[..., Tensor], empty: Any = None) -> Callable[..., Any]:
    @v1(reduction_indices="axis", keep_dims="keepdims")
    def reduction(input_tensor: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
        (x,) = operands(input_tensor, empty=empty)
        return fn(x, axes(axis), bool(keepdims))

    reduction.__doc__ = fn.__doc__
    reduction.__name__ = reduction.__qualname__ = name
    return reduction


def _mean(x: Tensor, axis: Any, keepdims: bool) -> Any:
    """The mean over some axes; of whole numbers, without its fraction."""
    if not x.dtype.is_integer:
        return reduce.reduce_mean(x, axis, keepdims)
    total = reduce.reduce_sum(x, axis, keepdims)
    return truncatediv(total, cast_tensor(lookup("Size")(x) // lookup("Size")(total), x.dtype))


reduce_sum = _reduction("reduce_sum", reduce.reduce_sum)
reduce_mean = _reduction("reduce_mean", _mean)
reduce_prod = _reduction("reduce_prod", reduce.reduce_prod)
reduce_max = _reduction("reduce_max", reduce.reduce_max)
reduce_min = _reduction("reduce_min", reduce.reduce_min)
reduce_all = _reduction("reduce_all", reduce.reduce_all, bool_)
reduce_any = _reduction("reduce_any", reduce.reduce_any, bool_)
reduce_logsumexp = _reduction("reduce_logsumexp", reduce.logsumexp)
reduce_variance = _reduction("reduce_variance", reduce.reduce_variance)
reduce_std = _reduction("reduce_std", reduce.reduce_std)
reduce_euclidean_norm = _reduction("reduce_euclidean_norm", reduce.euclidean_norm)


@v1(reduction_indices="axis", keep_dims="keepdims", input="input_tensor")
def count_nonzero(
    input_tensor: Any, axis: Any = None, keepdims: bool | None = None, dtype: Any = "int64"
) -> Tensor:
    """How many numbers over some axes are not 0."""
    found = reduce.count_nonzero(tensor(input_tensor), axes(axis), bool(keepdims))
    return cast_tensor(found, as_kind(dtype))


def _position(fn: Callable[..., Tensor]) -> Callable[..., Any]:
    @v1(dimension="axis")
    def position(input: Any, axis: Any = None, output_type: Any = "int64") -> Tensor:
        return cast_tensor(fn(tensor(input), static(0 if axis is None else axis)), output_type)

    return position


argmax = _position(reduce.argmax)
argmin = _position(reduce.argmin)


@v1()
def cast(x: Any, dtype: Any) -> Any:
    """`x` in another element type; of sparse values and slices, their values."""
    if hasattr(x, "_replace") and "values" in x._fields:
        return x._replace(values=cast_tensor(tensor(x.values), dtype))
    return cast_tensor(symbol(x), as_kind(dtype))


@v1()
def truediv(x: Any, y: Any) -> Tensor:
    """x / y; integers are divided as float64, those of up to 16 bits as float32."""
    a, b = operands(x, y)
    if a.dtype.is_integer:
        kind = float64 if a.dtype.size > 2 else as_kind("float32")
        a, b = cast_tensor(a, kind), cast_tensor(b, kind)
    return lookup("Div")(a, b)


@v1()
def div(x: Any, y: Any) -> Tensor:
    """x / y, as Python 2 divides: integers give the integer below."""
    a, b = operands(x, y)
    return lookup("FloorDiv" if a.dtype.is_integer else "Div")(a, b)


@v1()
def squared_difference(x: Any, y: Any) -> Tensor:
    """|x - y|**2: of complex numbers too, as a complex number."""
    a, b = operands(x, y)
    difference = lookup("Sub")(a, b)
    if difference.dtype.is_complex:
        return lookup("Mul")(lookup("Conj")(difference), difference)
    return lookup("Square")(difference)


@v1()
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
) -> Tensor:
    """The product of matrices, each transposed or adjoint before as is said."""
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise ValueError("matmul: a matrix is transposed or adjoint, not both")
    x, y = operands(a, b)
    x = products.adjoint(x) if adjoint_a else x
    y = products.adjoint(y) if adjoint_b else y
    return lookup("MatMul")(x, y, transpose_a=transpose_a, transpose_b=transpose_b)


@v1()
def tensordot(a: Any, b: Any, axes: Any) -> Tensor:
    """The sum over products along some axes of each."""
    x, y = operands(a, b)
    return contract(x, y, static(axes))


@v1()
def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None) -> Tensor:
    """start, start + delta, ... below limit."""
    return symbol(creation.arange(static(start), static(limit), static(delta), dtype))


@v1()
def linspace(start: Any, stop: Any, num: Any) -> Tensor:
    """`num` numbers from start to stop."""
    low, high = operands(start, stop)
    return symbol(creation.linspace(low, high, static(num)))


def _running(fn: Callable[..., Tensor]) -> Callable[..., Any]:
    @v1()
    def running(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
        return fn(tensor(x), static(axis), exclusive=exclusive, reverse=reverse)

    return running


cumsum = _running(cumulative.cumsum)
cumprod = _running(cumulative.cumprod)
cumulative_logsumexp = _running(cumulative.logcumsumexp)


@v1()
def scalar_mul(scalar: Any, x: Any) -> Tensor:
    """scalar * x."""
    y = tensor(x)
    return lookup("Mul")(tensor(scalar, y.dtype), y)


@v1()
def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = "int32",
    weights: Any = None,
) -> Tensor:
    """How often class i (row) was predicted as class j (column)."""
    truth, found = (cast_tensor(tensor(x), "int64") for x in (labels, predictions))
    size = num_classes
    if size is None:
        size = lookup("Maximum")(reduce_max(truth), reduce_max(found)) + 1
    each = lookup("OnesLike")(truth) if weights is None else tensor(weights)
    return scatter_nd(stack([truth, found], 1), cast_tensor(each, as_kind(dtype)), [size, size])


@v1()
def absolute(x: Any) -> Any:
    """|x|, real for complex numbers; a sparse tensor has it at its places."""
    if isinstance(x, SparseValues):
        return x.with_values(ops.abs(x.values))
    return ops.abs(x)


@v1()
def approximate_equal(x: Any, y: Any, tolerance: float = 1e-5) -> Tensor:
    """Whether |x - y| < tolerance, of tensors of one shape."""
    a, b = operands(x, y)
    if not a.shape.is_compatible_with(b.shape):
        raise ShapeError(f"approximate_equal: expected equal shapes, got {a.shape} and {b.shape}")
    return lookup("Less")(lookup("Abs")(lookup("Sub")(a, b)), tensor(tolerance, a.dtype))


@v1()
def multiply_no_nan(x: Any, y: Any) -> Tensor:
    """x * y, and 0 wherever y is 0."""
    return lookup("MulNoNan")(*operands(x, y))


@v1()
def reciprocal_no_nan(x: Any) -> Tensor:
    """1 / x, and 0 where x is 0."""
    y = tensor(x)
    return lookup("DivNoNan")(lookup("OnesLike")(y), y)


@v1()
def truncatediv(x: Any, y: Any) -> Tensor:
    """x / y of integers, rounded towards 0."""
    a, b = operands(x, y)
    return lookup("FloorDiv")(lookup("Sub")(a, lookup("TruncMod")(a, b)), b)


@v1()
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = "int32",
) -> Tensor:
    """How often each number occurs, or the sums of the weights."""
    numbers = tensor(arr)
    size = lookup("Maximum")(reduce_max(numbers) + 1, tensor(0, numbers.dtype))
    if minlength is not None:
        size = lookup("Maximum")(size, tensor(minlength, numbers.dtype))
    if maxlength is not None:
        limit = tensor(maxlength, numbers.dtype)
        below = index.boolean_mask(numbers, lookup("Less")(numbers, limit))
        size = lookup("Minimum")(size, limit)
        if weights is not None:
            weights = index.boolean_mask(tensor(weights), lookup("Less")(numbers, limit))
        numbers = below
    if weights is None:
        return cast_tensor(segment.bincount(numbers, None, size), as_kind(dtype))
    return segment.bincount(numbers, tensor(weights), size)
