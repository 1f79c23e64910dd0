"""SparseValues: the elements that are there of an array that is empty elsewhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...errors import DTypeError, NoTensorError, ShapeError
from ...graph import (
    INTEGER,
    DType,
    EagerTensor,
    GraphTensor,
    Tensor,
    TensorShape,
    TensorSpec,
    as_dtype,
    building,
    int64,
    string,
)
from ...late import later
from ..array.shape import static_shape
from ..core.basic import constant
from ..core.convert import convert_to_tensor
from ..core.dispatch import as_input
from ..math.cast import cast_op

_CWISE = "laminar.engine.ops.sparse.sparse_cwise"
_multiply, _divide = later(_CWISE, "multiply_dense"), later(_CWISE, "divide_dense")


class _Parts(NamedTuple):
    indices: Any
    values: Any
    dense_shape: Any


class SparseValues(_Parts):
    """The array t of `dense_shape` with t[indices[k]] = values[k], which is empty elsewhere.

    Its three parts are tensors or NumPy arrays; lists and numbers become tensors, of the graph that
    is being built where there is one, and so do the other parts beside a tensor of a graph. It is a
    structure of three leaves: a session fetches it as SparseValues of arrays, and feeds such.

    Attributes:
        indices: int64 (n, axes), the place of each value. What orders them is `sparse_reorder`;
            most functions expect them in row-major order.
        values: (n), of any type.
        dense_shape: int64 (axes), of the array.

    Raises:
        ShapeError: the parts do not fit together.

    Examples:
        >>> s = engine.SparseValues([[0, 1], [1, 0]], [5, 7], [2, 2])
        >>> engine.sparse_tensor_to_dense(s)
        Tensor([[0, 5],
                [7, 0]], shape=(2, 2), dtype=int32)
    """

    __slots__ = ()

    def __new__(cls, indices: Any, values: Any, dense_shape: Any) -> SparseValues:
        if isinstance(dense_shape, TensorShape):
            dense_shape = list(dense_shape)
        made = _of_a_graph(
            _part(indices, int64, (0, 0)),
            _part(values, None, (0,)),
            _part(dense_shape, int64, (0,)),
        )
        _check(*made)
        return super().__new__(cls, *made)

    def __laminar_tensor__(self) -> Tensor:
        raise NoTensorError(
            f"a sparse array of {self.dtype} is no tensor",
            remedy="call engine.sparse_tensor_to_dense, or use its values",
        )

    @classmethod
    def from_value(cls, value: Any) -> SparseValues:
        """One of tensors, of three parts of any kind."""
        parts = (p if isinstance(p, Tensor) else constant(p) for p in value)
        return cls(*as_sparse("SparseValues", tuple(parts)))

    @property
    def dtype(self) -> DType:
        """The element type of the values."""
        found = self.values
        if isinstance(found, np.ndarray) and found.dtype.kind in "OSU":
            return string
        return as_dtype(found.dtype)

    @property
    def shape(self) -> TensorShape:
        """What is known of the dense shape."""
        return static_shape(self.dense_shape)

    def get_shape(self) -> TensorShape:
        """The same, under TensorFlow's name."""
        return self.shape

    @property
    def graph(self) -> Any:
        """The graph of the parts."""
        return self.values.graph

    @property
    def op(self) -> Any:
        """The operation that makes the values."""
        return self.values.op

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The value, of arrays, in the default session or in the one given."""
        return type(self)(*(part.eval(feed_dict, session) for part in self))

    def consumers(self) -> list[Any]:
        """The operations of a graph that take the values, or another part."""
        found = [op for part in self for op in part.consumers()]
        return list({id(op): op for op in found}.values())

    def with_values(self, values: Any) -> SparseValues:
        """Other values at the same places."""
        return type(self)(self.indices, values, self.dense_shape)

    def __mul__(self, dense: Any) -> Any:
        return _multiply(self, dense)

    __rmul__ = __mul__

    def __truediv__(self, dense: Any) -> Any:
        return _divide(self, dense)

    def __repr__(self) -> str:
        return f"SparseValues(indices={self[0]!r}, values={self[1]!r}, dense_shape={self[2]!r})"


def _part(part: Any, dtype: DType | None, empty: tuple[int, ...]) -> Any:
    """A list or a number as a tensor; what is one, an array or another thing stays."""
    if not isinstance(part, list | tuple | int | float | bool | bytes | str):
        return part
    if isinstance(part, list | tuple) and not len(part):
        return constant(np.zeros(empty, np.float32 if dtype is None else np.int64))
    return constant(part, dtype)


def _of_a_graph(*parts: Any) -> tuple[Any, ...]:
    """Parts, of which some are a graph's, as tensors of graphs: a session can fetch them all.

    Where none is, they are a value, such as is fed.
    """
    home = next((part.graph for part in parts if isinstance(part, GraphTensor)), None)
    if home is None:
        return parts
    graph = building() or home
    return tuple(
        as_input(graph, convert_to_tensor(part))
        if isinstance(part, EagerTensor | np.ndarray)
        else part
        for part in parts
    )


def _check(indices: Any, values: Any, dense_shape: Any) -> None:
    """Raise where the parts of a sparse array cannot belong together."""
    shapes = [getattr(part, "shape", None) for part in (indices, values, dense_shape)]
    if not all(isinstance(shape, tuple | TensorShape) for shape in shapes):
        return  # specs, names and what else a structure may hold
    ours = [TensorShape(shape) for shape in shapes]
    wanted = ("indices (n, axes)", 2), ("values (n)", 1), ("dense_shape (axes)", 1)
    for (what, rank), found in zip(wanted, ours, strict=True):
        if found.rank not in (None, rank):
            raise ShapeError(f"SparseValues: expected {what}, got one of shape {found}")
    places, count, axes = (shape if shape.rank is not None else None for shape in ours)
    pairs = (
        ("values", places and places[0], count and count[0]),
        ("axes", places and places[1], axes and axes[0]),
    )
    for what, one, other in pairs:
        if one is not None and other is not None and one != other:
            raise ShapeError(
                f"SparseValues: indices {ours[0]}, values {ours[1]} and a dense shape of {ours[2]} "
                f"differ in the number of {what}"
            )


def as_sparse(who: str, x: Any) -> SparseValues:
    """A sparse array of tensors: of SparseValues, or a tuple of its three parts.

    Raises:
        DTypeError: the places or sizes are no whole numbers.
    """
    if not isinstance(x, tuple) or len(x) != 3:
        raise DTypeError(
            f"{who}: expected SparseValues, got {x!r}", remedy="make one: sparse_from_dense(x)"
        )
    indices, values, dense_shape = (convert_to_tensor(part) for part in x)
    return SparseValues(
        _whole(who, "indices", indices), values, _whole(who, "dense_shape", dense_shape)
    )


def _whole(who: str, what: str, x: Tensor) -> Tensor:
    if x.dtype == int64:
        return x
    if x.dtype not in INTEGER:
        raise DTypeError(f"{who}: the {what} are whole numbers, got {x.spec}")
    return cast_op(x, dtype=int64)


def sparse_specs(count: int | None, axes: int | None, dtype: DType) -> tuple[TensorSpec, ...]:
    """The specs of the three parts."""
    return TensorSpec([count, axes], int64), TensorSpec([count], dtype), TensorSpec([axes], int64)


def check_sparse(who: str, indices: TensorSpec, dense_shape: TensorSpec) -> int | None:
    """The number of axes of a sparse operand, in a shape rule.

    Raises:
        ShapeError: the two do not fit together.
    """
    if indices.shape.rank not in (None, 2) or dense_shape.shape.rank not in (None, 1):
        raise ShapeError(
            f"{who}: expected indices (n, axes) and dense_shape (axes), "
            f"got {indices} and {dense_shape}"
        )
    found = [indices.shape[1]] if indices.shape.rank == 2 else []
    found += [dense_shape.shape[0]] if dense_shape.shape.rank == 1 else []
    axes = {n for n in found if n is not None}
    if len(axes) > 1:
        raise ShapeError(f"{who}: indices {indices} are not those of {dense_shape}")
    return axes.pop() if axes else None
