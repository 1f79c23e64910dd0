"""RaggedTensor: rows of different lengths, one behind the other, and where each of them ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...errors import ArgumentTypeError, DTypeError, InvalidArgumentError, NoTensorError, ShapeError
from ...graph import (
    DType,
    EagerTensor,
    GraphTensor,
    Operators,
    Tensor,
    TensorShape,
    as_dtype,
    building,
    int32,
    int64,
    string,
)
from ...late import later
from ..array.creation import full
from ..array.join import concat
from ..array.segment import segment_sum
from ..core.basic import ones_like
from ..core.convert import convert_to_tensor
from ..core.dispatch import as_input
from ..math.cast import cast
from .ragged_rows import check_rows, lengths_of, outer_size, rows_of, splits_of

_DENSE = "laminar.engine.ops.ragged.ragged_dense"
_to_tensor, _to_sparse = later(_DENSE, "ragged_to_tensor"), later(_DENSE, "ragged_to_sparse")
_from_tensor, _from_sparse = (
    later(_DENSE, "ragged_from_tensor"),
    later(_DENSE, "ragged_from_sparse"),
)
_bounding_shape = later(_DENSE, "bounding_shape")
_operators = later("laminar.engine.ops.ragged.ragged_math", "RaggedOperators")


class _Parts(NamedTuple):
    flat_values: Any
    nested_row_splits: tuple[Any, ...]


class _Late:
    """The table of operators until one is first needed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        RaggedTensor.table = _operators()
        return getattr(RaggedTensor.table, name)


class RaggedTensor(Operators, _Parts):
    """The rows values[row_splits[i]:row_splits[i + 1]], of which each may have a length of its own.

    The values may be ragged themselves; then `flat_values` are the innermost ones, a tensor
    (n, inner...), and `nested_row_splits` the splits from the outermost axis inwards. The parts are
    tensors or NumPy arrays; it is a structure of them, so sessions, functions and branches take and
    give it, and gradients are those of `flat_values`, of which operators and elementwise functions
    are, too.

    Args:
        flat_values: (n, inner...).
        nested_row_splits: one or more vectors (rows + 1), int32 or int64.

    Examples:
        >>> r = engine.RaggedTensor.from_row_lengths(engine.constant([3, 1, 4, 1]), [3, 0, 1])
        >>> r.to_list(), (r * 2).to_list()
        ([[3, 1, 4], [], [1]], [[6, 2, 8], [], [2]])
        >>> r.to_tensor()
        Tensor([[3, 1, 4],
                [0, 0, 0],
                [1, 0, 0]], shape=(3, 3), dtype=int32)
    """

    __slots__ = ()
    table: ClassVar[Any] = _Late()

    def __new__(cls, flat_values: Any, nested_row_splits: Any) -> RaggedTensor:
        splits = tuple(nested_row_splits)
        if not splits:
            raise InvalidArgumentError("RaggedTensor: at least one axis is ragged; give its splits")
        parts = _of_a_graph(_part(flat_values), *(_part(s, int64) for s in splits))
        return super().__new__(cls, parts[0], parts[1:])

    def __laminar_tensor__(self) -> Tensor:
        raise NoTensorError(
            f"a ragged tensor is no tensor: {self!r}", remedy="call to_tensor(), or use flat_values"
        )

    # What it is made of.

    @classmethod
    def from_row_splits(cls, values: Any, row_splits: Any, validate: bool = True) -> RaggedTensor:
        """Of values and the places where rows begin, the first 0, and where the last one ends.

        Args:
            values: (n, ...), a tensor or ragged.
            row_splits: (rows + 1), int32 or int64.
            validate: whether it is checked that these rise from 0 to n.

        Raises:
            InvalidArgumentError: they do not.
        """
        inner = values if isinstance(values, RaggedTensor) else convert_to_tensor(values)
        splits = _whole(row_splits)
        if isinstance(inner, RaggedTensor) and inner.row_splits.dtype != splits.dtype:
            inner, splits = inner.with_row_splits_dtype(int64), cast(splits, int64)
        if not isinstance(inner, RaggedTensor) and inner.shape.rank == 0:
            raise ShapeError("RaggedTensor: values have at least one axis, got a scalar")
        if validate:
            count = inner.nrows() if isinstance(inner, RaggedTensor) else outer_size(inner, int64)
            splits = check_rows(splits, count, are_splits=True)
        if isinstance(inner, RaggedTensor):
            return RaggedTensor(inner.flat_values, (splits, *inner.nested_row_splits))
        return RaggedTensor(inner, (splits,))

    @classmethod
    def from_row_lengths(cls, values: Any, row_lengths: Any, validate: bool = True) -> RaggedTensor:
        """Of values and the lengths of rows."""
        return cls.from_row_splits(values, splits_of(_whole(row_lengths)), validate)

    @classmethod
    def from_row_starts(cls, values: Any, row_starts: Any, validate: bool = True) -> RaggedTensor:
        """Of values and the places where rows begin."""
        inner = values if isinstance(values, RaggedTensor) else convert_to_tensor(values)
        starts = _whole(row_starts)
        size = inner.nrows() if isinstance(inner, RaggedTensor) else outer_size(inner)
        return cls.from_row_splits(
            inner, concat([starts, cast(size, starts.dtype)[None]], 0), validate
        )

    @classmethod
    def from_row_limits(cls, values: Any, row_limits: Any, validate: bool = True) -> RaggedTensor:
        """Of values and the places where rows end."""
        limits = _whole(row_limits)
        zero = convert_to_tensor([0], limits.dtype)
        return cls.from_row_splits(values, concat([zero, limits], 0), validate)

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, validate: bool = True
    ) -> RaggedTensor:
        """Of values and the number of the row of each, which rise.

        Args:
            values: (n, ...).
            value_rowids: (n).
            nrows: how many rows there are; by default, as many as the last number tells.
            validate: whether the numbers are checked.
        """
        ids = _whole(value_rowids)
        if nrows is None:
            behind = concat([convert_to_tensor([-1], ids.dtype), ids], 0)
            nrows = behind[-1] + convert_to_tensor(1, ids.dtype)
        elif not isinstance(nrows, Tensor) and nrows < 0:
            raise InvalidArgumentError(f"RaggedTensor: nrows is at least 0, got {nrows}")
        if validate:
            ids = check_rows(ids, convert_to_tensor(nrows), are_splits=False)
        size = nrows if not isinstance(nrows, Tensor) else cast(nrows, int32)
        lengths = segment_sum(ones_like(ids), ids, size, is_sorted=True)
        return cls.from_row_splits(values, splits_of(lengths), validate)

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Sequence[Any], validate: bool = True
    ) -> RaggedTensor:
        """Of the innermost values and the splits of all ragged axes, the outermost first."""
        return _nested(cls.from_row_splits, flat_values, nested_row_splits, validate)

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Sequence[Any], validate: bool = True
    ) -> RaggedTensor:
        """Of the innermost values and the lengths of the rows of all ragged axes."""
        return _nested(cls.from_row_lengths, flat_values, nested_row_lengths, validate)

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Sequence[Any],
        nested_nrows: Sequence[Any] | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Of the innermost values and the numbers of rows of all ragged axes."""
        counts = [None] * len(nested_value_rowids) if nested_nrows is None else list(nested_nrows)
        if len(counts) != len(nested_value_rowids):
            raise InvalidArgumentError("RaggedTensor: one of nested_nrows is needed for each axis")
        found = flat_values
        for ids, count in reversed(list(zip(nested_value_rowids, counts, strict=True))):
            found = cls.from_value_rowids(found, ids, count, validate)
        return _ragged(found)

    @classmethod
    def from_tensor(
        cls,
        tensor: Any,
        lengths: Any = None,
        padding: Any = None,
        ragged_rank: int = 1,
        row_splits_dtype: Any = int64,
    ) -> RaggedTensor:
        """The rows of a tensor, up to their lengths; see `ragged_from_tensor`."""
        found: RaggedTensor = _from_tensor(tensor, lengths, padding, ragged_rank, row_splits_dtype)
        return found

    @classmethod
    def from_sparse(cls, st_input: Any, row_splits_dtype: Any = int64) -> RaggedTensor:
        """The rows of a sparse matrix whose values stand at the beginnings of its rows."""
        found: RaggedTensor = _from_sparse(st_input, row_splits_dtype)
        return found

    # What it has.

    @property
    def values(self) -> Any:
        """What the rows are made of: a tensor, or ragged where there is another ragged axis."""
        if len(self.nested_row_splits) == 1:
            return self.flat_values
        return type(self)(self.flat_values, self.nested_row_splits[1:])

    @property
    def row_splits(self) -> Any:
        """Where the rows begin, and where the last one ends."""
        return self.nested_row_splits[0]

    @property
    def ragged_rank(self) -> int:
        """The number of ragged axes."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> DType:
        """The element type of the values."""
        found = self.flat_values
        if isinstance(found, np.ndarray) and found.dtype.kind in "OSU":
            return string
        return as_dtype(found.dtype)

    @property
    def shape(self) -> TensorShape:
        """What is known: the number of rows, None for ragged axes, and the inner sizes."""
        inner = TensorShape(self.flat_values.shape)
        if inner.rank is None:
            return inner
        splits = TensorShape(self.row_splits.shape)
        rows = None if splits.rank is None or splits[0] is None else splits[0] - 1
        return TensorShape([rows, *[None] * self.ragged_rank, *inner[1:]])

    def get_shape(self) -> TensorShape:
        """The same."""
        return self.shape

    @property
    def graph(self) -> Any:
        """The graph of the parts."""
        return self.flat_values.graph

    @property
    def op(self) -> Any:
        """The operation that makes the values."""
        return self.flat_values.op

    def nrows(self, out_type: Any = None) -> Any:
        """The number of rows."""
        dtype = out_type or self.row_splits.dtype
        return outer_size(self.row_splits, dtype) - convert_to_tensor(1, dtype)

    def row_lengths(self, axis: int = 1) -> Any:
        """How many values each row has; for inner axes, as a ragged tensor."""
        if axis == 0:
            return self.nrows()
        if axis == 1:
            return lengths_of(self.row_splits)
        if axis < 0:
            raise InvalidArgumentError(f"row_lengths: axis is at least 0, got {axis}")
        if isinstance(self.values, RaggedTensor):
            return self.with_values(self.values.row_lengths(axis - 1))
        size = _bounding_shape(self, axis, self.row_splits.dtype)
        return self.with_values(full([outer_size(self.values)], size))

    def row_starts(self) -> Any:
        """Where the rows begin."""
        return self.row_splits[:-1]

    def row_limits(self) -> Any:
        """Where the rows end."""
        return self.row_splits[1:]

    def value_rowids(self) -> Any:
        """The number of the row of each value."""
        splits = convert_to_tensor(self.row_splits)
        return rows_of(splits, splits[-1])

    def nested_row_lengths(self) -> tuple[Any, ...]:
        """The lengths of the rows of each ragged axis, the outermost first."""
        return tuple(lengths_of(splits) for splits in self.nested_row_splits)

    def nested_value_rowids(self) -> tuple[Any, ...]:
        """The numbers of the rows of each ragged axis, the outermost first."""
        inner = self.values
        mine = (self.value_rowids(),)
        return mine + (inner.nested_value_rowids() if isinstance(inner, RaggedTensor) else ())

    def bounding_shape(self, axis: Any = None, out_type: Any = None) -> Any:
        """The sizes of the smallest tensor that has room for it; of an axis, or of some."""
        return _bounding_shape(self, axis, out_type)

    def consumers(self) -> list[Any]:
        """The operations of a graph that take the values or splits."""
        found = [
            op for part in (self.flat_values, *self.nested_row_splits) for op in part.consumers()
        ]
        return list({id(op): op for op in found}.values())

    # Others like it.

    def with_values(self, new_values: Any) -> RaggedTensor:
        """Other values in the same rows."""
        if isinstance(new_values, RaggedTensor):
            splits = self.row_splits
            if splits.dtype != new_values.row_splits.dtype:
                splits, new_values = cast(splits, int64), new_values.with_row_splits_dtype(int64)
            return RaggedTensor(new_values.flat_values, (splits, *new_values.nested_row_splits))
        return RaggedTensor(new_values, (self.row_splits,))

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """Other innermost values in the same rows."""
        if isinstance(new_values, RaggedTensor):
            return RaggedTensor(
                new_values.flat_values, (*self.nested_row_splits, *new_values.nested_row_splits)
            )
        return RaggedTensor(new_values, self.nested_row_splits)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """The same with splits of another type."""
        wanted = as_dtype(dtype)
        if wanted not in (int32, int64):
            raise DTypeError(f"RaggedTensor: splits are int32 or int64, got {wanted}")
        splits = tuple(cast(s, wanted) for s in self.nested_row_splits)
        return type(self)(self.flat_values, splits)

    def to_tensor(self, default_value: Any = None, shape: Any = None) -> Tensor:
        """All rows in one tensor, filled up; see `ragged_to_tensor`."""
        found: Tensor = _to_tensor(self, default_value, shape)
        return found

    def to_sparse(self) -> Any:
        """As SparseValues: value k of row i stands at (i, k)."""
        return _to_sparse(self)

    def to_list(self) -> list[Any]:
        """Lists in lists, of a value that is known.

        Raises:
            InvalidArgumentError: it is a symbol of a graph.
        """
        if isinstance(self.flat_values, GraphTensor):
            raise InvalidArgumentError(
                "RaggedTensor.to_list: a symbol has no value", remedy="run it in a session"
            )
        rows = _as_array(self.flat_values).tolist()
        for splits in reversed(self.nested_row_splits):
            ends = _as_array(splits).tolist()
            rows = [rows[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]
        return list(rows)

    tolist = to_list

    def numpy(self) -> Any:
        """The rows as an array of arrays, or one array where all have the same length."""
        rows = self.to_list()
        try:
            return np.array(rows)
        except ValueError:  # of different lengths
            found = np.empty(len(rows), object)
            found[:] = [np.asarray(row) for row in rows]
            return found

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The value, of arrays, in the default session or in the one given."""
        splits = tuple(s.eval(feed_dict, session) for s in self.nested_row_splits)
        return type(self)(self.flat_values.eval(feed_dict, session), splits)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        if isinstance(self.flat_values, GraphTensor) or not hasattr(self.flat_values, "dtype"):
            return f"RaggedTensor(values={self.values!r}, row_splits={self.row_splits!r})"
        return f"<RaggedTensor {self.to_list()}>"


def _ragged(x: Any) -> RaggedTensor:
    if not isinstance(x, RaggedTensor):
        raise InvalidArgumentError("RaggedTensor: at least one axis is ragged; give its splits")
    return x


def _nested(make: Any, values: Any, each: Any, validate: bool) -> RaggedTensor:
    if isinstance(each, Tensor | np.ndarray):
        raise ArgumentTypeError("RaggedTensor: the splits of the axes are a list of vectors")
    found = values
    for splits in reversed(list(each)):
        found = make(found, splits, validate)
    return _ragged(found)


def _whole(x: Any) -> Tensor:
    """Splits, lengths or numbers of rows as a vector of int32 or int64, int64 where it is open."""
    found = convert_to_tensor(x) if hasattr(x, "dtype") else convert_to_tensor(x, int64)
    if found.dtype not in (int32, int64):
        raise DTypeError(f"RaggedTensor: rows are counted in int32 or int64, got {found.spec}")
    if found.shape.rank not in (None, 1):
        raise ShapeError(f"RaggedTensor: what tells the rows is a vector, got {found.spec}")
    return found


def _as_array(x: Any) -> Any:
    return x.numpy() if isinstance(x, EagerTensor) else np.asarray(x)


def _part(part: Any, dtype: DType | None = None) -> Any:
    """A list as a tensor; what is one, an array, or another thing of a structure stays."""
    if isinstance(part, list):
        return convert_to_tensor(part, dtype)
    return part


def _of_a_graph(*parts: Any) -> tuple[Any, ...]:
    """Parts, of which some are a graph's, as tensors of graphs: a session can fetch them all."""
    home = building() or next((p.graph for p in parts if isinstance(p, GraphTensor)), None)
    if home is None or not any(isinstance(p, GraphTensor) for p in parts):
        return parts
    return tuple(
        as_input(home, convert_to_tensor(p))
        if isinstance(p, Tensor | np.ndarray) and not isinstance(p, GraphTensor)
        else p
        for p in parts
    )
