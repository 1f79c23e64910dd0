"""Making and moving arrays, where that differs from laminar's own in arguments or types."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from laminar import ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, TensorShape, as_dtype
from laminar.engine.ops.array import creation, diagonal, index, join, scatter, search, slicing
from laminar.engine.ops.array import gather as gathering
from laminar.engine.ops.array import shape as shapes
from laminar.engine.ops.array.unique import unique_with_counts
from laminar.engine.ops.core import basic, checks
from laminar.engine.ops.core.arrays import to_array
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.reduce import reduce_prod
from laminar.engine.ops.sparse.sparse_values import SparseValues

from .adapting import v1
from .values import as_kind, dims_of, operands, static, symbol, tensor


@v1()
def constant(
    value: Any, dtype: Any = None, shape: Any = None, name: Any = None, verify_shape: bool = False
) -> Any:
    """A constant; where `shape` has more elements, the last value fills up."""
    if isinstance(value, Tensor):
        value = value.numpy()
    array, kind = to_array(value, None if dtype is None else as_dtype(dtype))
    if shape is not None:
        wanted = tuple(static(shape))
        size = int(np.prod(wanted))
        if (verify_shape and wanted != array.shape) or array.size > size:
            raise TypeError(f"constant: a value of shape {array.shape} for the shape {wanted}")
        flat = array.reshape(-1)
        if flat.size < size:
            flat = np.concatenate([flat, np.repeat(flat[-1:], size - flat.size)])
        array = flat.reshape(wanted)
    return basic.constant(array, kind, None, name)


@v1()
def convert_to_tensor(
    value: Any, dtype: Any = None, name: Any = None, preferred_dtype: Any = None
) -> Any:
    """A tensor of `value`; a tensor of another type than `dtype` is refused.

    Raises:
        ValueError: the types differ.
    """
    found = symbol(value, dtype)
    if dtype is not None and found.dtype != as_dtype(dtype):
        raise ValueError(f"convert_to_tensor: {found!r} is {found.dtype}, asked for {dtype}")
    return found


@v1()
def zeros(shape: Any, dtype: Any = "float32") -> Any:
    """Zeros; of strings, empty ones."""
    return symbol(creation.zeros(static(shape), as_kind(dtype)))


@v1()
def ones(shape: Any, dtype: Any = "float32") -> Any:
    """Ones."""
    return symbol(creation.ones(static(shape), as_kind(dtype)))


@v1()
def fill(dims: Any, value: Any) -> Any:
    """One value everywhere."""
    x = tensor(value)
    if x.shape.rank not in (None, 0):
        raise ShapeError(f"fill: the value must be one element, got {x.spec}")
    return symbol(creation.full(static(dims), x, x.dtype))


def _like(name: str, op: str) -> Callable[..., Any]:
    @v1()
    def like(tensor: Any, dtype: Any = None, optimize: bool = True) -> Tensor:
        found = lookup(op)(symbol(tensor))
        return found if dtype is None else cast(found, as_kind(dtype))

    like.__name__ = like.__qualname__ = name
    return like


zeros_like = _like("zeros_like", "ZerosLike")
ones_like = _like("ones_like", "OnesLike")


@v1()
def shape(input: Any, name: Any = None, out_type: Any = "int32") -> Any:
    """The sizes of the axes, of a sparse tensor too."""
    if isinstance(input, SparseValues):
        return basic.identity(cast(tensor(input.dense_shape), as_kind(out_type)), name=name)
    return lookup("Shape")(tensor(input), dtype=as_kind(out_type), name=name)


@v1()
def size(input: Any, name: Any = None, out_type: Any = "int32") -> Any:
    """The number of elements; of a sparse tensor, as if it were dense."""
    if isinstance(input, SparseValues):
        total = reduce_prod(cast(tensor(input.dense_shape), as_kind(out_type)))
        return basic.identity(total, name=name)
    return basic.identity(cast(lookup("Size")(tensor(input)), as_kind(out_type)), name=name)


@v1()
def rank(input: Any) -> Any:
    """The number of axes, of a sparse tensor too."""
    if isinstance(input, SparseValues):
        return cast(lookup("Size")(tensor(input.dense_shape)), "int32")
    return lookup("Rank")(tensor(input))


@v1()
def shape_n(input: Any, out_type: Any = "int32") -> list[Tensor]:
    """The shapes of several tensors."""
    return [shape(x, out_type=out_type) for x in input]


@v1()
def reshape(tensor: Any, shape: Any) -> Any:
    """The same elements in another shape; -1 stands for what is left."""
    return shapes.reshape(symbol(tensor), static(shape))


@v1()
def concat(values: Any, axis: Any) -> Any:
    """Tensors one after the other along an axis."""
    found = values if isinstance(values, list | tuple) else [values]
    return join.concat(operands(*found), static(axis))


@v1()
def stack(values: Any, axis: int = 0) -> Any:
    """Tensors side by side along a new axis."""
    given = values if isinstance(values, list | tuple) else unstack(values)
    return join.stack(operands(*given), axis)


@v1()
def unstack(value: Any, num: int | None = None, axis: int = 0) -> list[Tensor]:
    """The tensors along an axis."""
    return list(join.unstack(symbol(value), num, axis))


@v1(split_dim="axis")
def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None
) -> list[Tensor]:
    """Parts along an axis: so many, or of these sizes."""
    return list(join.split(symbol(value), static(num_or_size_splits), static(axis)))


@v1()
def gather(
    params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: int = 0
) -> Any:
    """The slices of `params` at `indices` along an axis."""
    place = batch_dims if axis is None else static(axis)
    return gathering.gather(tensor(params), tensor(indices), place, batch_dims)


@v1()
def gather_nd(params: Any, indices: Any, batch_dims: int = 0) -> Any:
    """The slices of `params` at index tuples."""
    x, where_ = tensor(params), symbol(indices)
    for axis in range(batch_dims):
        numbers = creation.arange(dims_of(x)[axis])
        ones_ = [1] * axis + [-1] + [1] * (len(where_.shape) - 1 - axis)
        first = ops.broadcast_to(
            shapes.reshape(cast(numbers, where_.dtype), ones_), [*dims_of(where_)[:-1], 1]
        )
        where_ = join.concat([where_[..., :axis], first, where_[..., axis:]], -1)
    return gathering.gather_nd(x, where_)


@v1()
def scatter_nd(indices: Any, updates: Any, shape: Any) -> Any:
    """Zeros of a shape with updates added at index tuples."""
    return gathering.scatter_nd(tensor(indices), tensor(updates), static(shape))


def _scattered(fn: Callable[..., Tensor]) -> Callable[..., Any]:
    @v1()
    def scattered(tensor: Any, indices: Any, updates: Any) -> Tensor:
        x = symbol(tensor)
        return fn(x, symbol(indices), symbol(updates, x.dtype))

    return scattered


tensor_scatter_update = _scattered(scatter.scatter_update)
tensor_scatter_add = _scattered(scatter.scatter_add)
tensor_scatter_max = _scattered(scatter.scatter_max)
tensor_scatter_min = _scattered(scatter.scatter_min)
tensor_scatter_sub = _scattered(lambda x, i, u: scatter.scatter_add(x, i, -u))


@v1()
def slice(input_: Any, begin: Any, size: Any) -> Any:
    """The block that begins at `begin`; a size of -1 goes on to the end."""
    return slicing.slice_at(symbol(input_), static(begin), static(size))


@v1()
def transpose(a: Any, perm: Any = None, conjugate: bool = False) -> Any:
    """The axes in another order, by default the opposite one."""
    x = tensor(a)
    return ops.transpose(ops.conj(x) if conjugate else x, static(perm))


@v1()
def tile(input: Any, multiples: Any) -> Any:
    """Repeated along each axis."""
    return ops.tile(symbol(input), static(multiples))


@v1()
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """x where the condition holds, else y; without these, the places where it holds.

    A condition with one axis chooses rows.
    """
    if (x is None) != (y is None):
        raise ValueError("where: give both x and y, or none of them")
    chosen = tensor(condition)
    if x is None:
        return search.argwhere(chosen)
    first, second = operands(x, y)
    rank, own = first.shape.rank, chosen.shape.rank
    if rank is not None and own == 1 and rank > 1:
        chosen = shapes.reshape(chosen, [-1] + [1] * (rank - 1))
    return ops.where(chosen, first, second)


@v1(dim="axis")
def expand_dims(input: Any, axis: Any = None) -> Any:
    """One more axis, of size 1."""
    found = static(axis)
    if isinstance(found, list):
        if np.size(found) != 1:
            raise ShapeError(f"expand_dims: axis must be a single number, got {found}")
        found = np.ravel(found).tolist()[0]
    return ops.expand_dims(symbol(input), found)


@v1(squeeze_dims="axis")
def squeeze(input: Any, axis: Any = None) -> Any:
    """Without axes of size 1: these, or all."""
    found = static(axis)
    if isinstance(found, list):
        found = tuple(found) or None
    return ops.squeeze(symbol(input), found)


@v1()
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
) -> Any:
    """Vectors with one value at an index and another elsewhere."""
    given = next((v.dtype for v in (on_value, off_value) if hasattr(v, "dtype")), None)
    kind = as_kind(dtype, given or "float32")
    place = -1 if axis is None else axis
    if on_value is None and off_value is None and kind not in ("bool", "string"):
        return creation.one_hot(tensor(indices), static(depth), place, kind)
    hot = cast(creation.one_hot(tensor(indices), static(depth), place, "float32"), "bool")
    on, off = ((default if v is None else v) for v, default in ((on_value, 1), (off_value, 0)))
    return ops.where(hot, tensor(on, kind), tensor(off, kind))


@v1()
def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0) -> Any:
    """More elements before and behind along each axis."""
    x = symbol(tensor)
    kind, pairs = mode.lower(), static(paddings)
    if isinstance(pairs, list) and x.shape.rank is not None:
        _check_paddings(x, pairs, kind)
    value = static(constant_values) if kind == "constant" and static(constant_values) != 0 else None
    return ops.pad(x, pairs, kind, value)


def _check_paddings(x: Tensor, pairs: list[Any], kind: str) -> None:
    rank = len(x.shape)
    if len(pairs) != rank or any(not isinstance(p, list) or len(p) != 2 for p in pairs):
        raise ShapeError(
            f"pad: the paddings of {x.shape} are {rank} pairs (before, after), got {pairs}",
            remedy="give a pair for each axis",
        )
    if kind not in ("reflect", "symmetric"):
        return
    for axis, (pair, n) in enumerate(zip(pairs, x.shape, strict=True)):
        most = None if n is None else n - (kind == "reflect")
        if most is not None and any(isinstance(p, int) and p > most for p in pair):
            raise InvalidArgumentError(
                f"pad: mode {kind!r} has at most {most} along axis {axis} of {x.shape}, got {pair}",
                remedy="pad several times",
            )


@v1(seq_axis="seq_dim", batch_axis="batch_dim")
def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_dim: int | None = None,
    batch_dim: int = 0,
) -> Any:
    """Of each entry along `batch_dim`, the first so many elements along `seq_dim` in reverse."""
    x, lengths = tensor(input), cast(tensor(seq_lengths), "int32")
    if seq_dim is None:
        raise ValueError("reverse_sequence: give seq_axis")
    rank = len(x.shape)
    steps = creation.arange(dims_of(x)[seq_dim])
    lengths = shapes.reshape(lengths, [-1 if a == batch_dim else 1 for a in range(rank)])
    steps = shapes.reshape(steps, [-1 if a == seq_dim else 1 for a in range(rank)])
    places = ops.where(steps < lengths, lengths - 1 - steps, steps)
    return ops.take_along_axis(x, ops.broadcast_to(places, dims_of(x)), seq_dim)


@v1()
def reverse(tensor: Any, axis: Any) -> Any:
    """The elements along some axes in reverse."""
    found = static(axis)
    if isinstance(found, list) and any(isinstance(a, bool) for a in found):
        found = [i for i, flag in enumerate(found) if flag]
    if isinstance(found, Tensor):
        found = [found] if found.shape.rank == 0 else join.unstack(found)
    if isinstance(found, list | tuple) and any(isinstance(a, Tensor) for a in found):
        x = symbol(tensor)
        for place in found:
            x = ops.flip(x, place)
        return x
    places = tuple(np.ravel(found).tolist())
    return ops.flip(symbol(tensor), places) if places else basic.identity(symbol(tensor))


@v1()
def unique(x: Any, out_idx: Any = "int32") -> Any:
    """(values in order of their first place, for each element the number of its value)."""
    values, numbers, _ = unique_with_counts(tensor(x), as_kind(out_idx))
    return values, numbers


@v1()
def boolean_mask(tensor: Any, mask: Any, axis: int | None = None) -> Any:
    """The entries where the mask holds."""
    return index.boolean_mask(symbol(tensor), symbol(mask), axis or 0)


@v1()
def meshgrid(*args: Any, indexing: str = "xy") -> list[Tensor]:
    """Coordinates of a grid."""
    return list(creation.meshgrid(*map(symbol, args), indexing=indexing))


@v1()
def check_numerics(tensor: Any, message: str) -> Any:
    """`tensor`; a run fails where it has NaN or infinities."""
    return checks.check_numerics(symbol(tensor), message)


@v1()
def broadcast_to(input: Any, shape: Any) -> Any:
    """Repeated along axes of size 1."""
    return ops.broadcast_to(symbol(input), static(shape))


@v1()
def identity_n(input: Any) -> list[Tensor]:
    """Each of several tensors."""
    return [basic.identity(symbol(x)) for x in input]


@v1()
def eye(
    num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = "float32"
) -> Any:
    """Ones on the diagonal, for each entry of a batch."""
    rows = static(num_rows)
    columns = rows if num_columns is None else static(num_columns)
    found = symbol(creation.eye(rows, columns, dtype=as_kind(dtype)))
    if batch_shape is None:
        return found
    batch = static(batch_shape)
    if not isinstance(batch, Tensor):
        return ops.broadcast_to(found, [*batch, rows, columns])
    sizes = lookup("Shape")(found, dtype=batch.dtype)
    return lookup("BroadcastToShape")(found, lookup("Concat")(batch, sizes, axis=0))


@v1()
def tensor_diag(diagonal: Any) -> Tensor:
    """y[i..., i...] = x[i...], and 0 elsewhere: twice the axes of `diagonal`."""
    x = symbol(diagonal)
    dims = dims_of(x)
    flat = lookup("MatrixDiag")(shapes.reshape(x, (-1,)))
    return shapes.reshape(flat, [*dims, *dims])


@v1()
def tensor_diag_part(input: Any) -> Tensor:
    """y[i...] = x[i..., i...]: half the axes of `input`."""
    x = symbol(input)
    rank = x.shape.rank
    if not rank or rank % 2:
        raise ValueError(f"diag_part: expected an even number of axes, above 0, got {x.shape}")
    front = dims_of(x)[: rank // 2]
    if not TensorShape(x.shape[: rank // 2]).is_compatible_with(x.shape[rank // 2 :]):
        raise ValueError(f"diag_part: the two halves of {x.shape} must be the same")
    matrix = shapes.reshape(x, [math.prod(front), math.prod(front)])
    return shapes.reshape(ops.diagonal(matrix), front)


@v1()
def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
) -> Any:
    """x[begin:end:strides], where bits of the masks say what a place in these lists is."""
    starts, stops = static(begin), static(end)
    steps = static(strides) if strides is not None else [1] * len(starts)
    entries: list[Any] = []
    for i, (start, stop, step) in enumerate(zip(starts, stops, steps, strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            entries.append(Ellipsis)
        elif new_axis_mask & bit:
            entries.append(None)
        elif shrink_axis_mask & bit:
            entries.append(start)
        else:
            first = None if begin_mask & bit else start
            entries.append(builtins.slice(first, None if end_mask & bit else stop, step))
    return index.get_item(symbol(input_), tuple(entries))


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any) -> Tensor:
    """Matrices with zeros outside a band around their diagonals; -1 is for all diagonals."""
    return diagonal.band_part(tensor(input), num_lower, num_upper)


def matrix_diag(diagonal_: Any) -> Tensor:
    """Square matrices with vectors on their diagonals."""
    return diagonal.matrix_diag(tensor(diagonal_))
