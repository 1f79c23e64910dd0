"""Static shapes: fully known, with unknown dimensions, or of unknown rank."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from operator import index
from typing import Any, NoReturn, SupportsIndex, TypeAlias, overload

from ..errors import DTypeError, ShapeError
from ..late import later

Dim: TypeAlias = int | None
Axes: TypeAlias = int | Sequence[int]
_message_of = later("laminar.engine.graph.graphdef", "shape_message")
_dims_of_message = later("laminar.engine.graph.graphdef", "dims_of_message")


class _Answer(int):
    """True or False, with or without a call."""

    __slots__ = ()

    def __call__(self) -> bool:
        return bool(self)

    def __repr__(self) -> str:
        return repr(bool(self))


_YES, _NO = _Answer(True), _Answer(False)


class TensorShape(tuple[Dim, ...]):
    """A tuple of dimensions, None where the size is unknown until run time.

    `TensorShape(None)` has unknown rank: it has no length and cannot be iterated. Each of its
    dimensions is None, and a slice of it, or what is joined to it, is of unknown rank, too.

    Examples:
        >>> shape = engine.TensorShape((None, 3))
        >>> shape.rank, shape.is_fully_defined
        (2, False)
    """

    def __new__(cls, dims: Any = ()) -> TensorShape:
        """Make a shape of dimensions, a shape, a Shape message, one number (rank 1), or None."""
        if isinstance(dims, TensorShape):
            return dims
        if dims is None:
            return _UNKNOWN
        if hasattr(dims, "unknown_rank"):
            dims = _dims_of_message(dims)
            return _UNKNOWN if dims is None else TensorShape(dims)
        if not isinstance(dims, Iterable) or _is_dimension(dims):
            dims = (dims,)
        return tuple.__new__(cls, [_as_dim(d) for d in dims])

    @property
    def rank(self) -> int | None:
        """The number of axes, or None."""
        return len(self)

    @property
    def ndims(self) -> int | None:
        """The number of axes, or None."""
        return self.rank

    @property
    def dims(self) -> tuple[Dim, ...] | None:
        """The dimensions as a plain tuple, or None when the rank is unknown."""
        return tuple(self)

    @property
    def is_fully_defined(self) -> _Answer:
        """Whether every dimension is known; it may be called, too, as TensorFlow 1 does."""
        return _YES if None not in self else _NO

    def num_elements(self) -> int | None:
        """The product of the dimensions, or None when it is unknown."""
        known = [d for d in self if d is not None]
        return math.prod(known) if len(known) == len(self) else None

    def as_list(self) -> list[Dim]:
        """The dimensions as a list; ValueError when the rank is unknown."""
        return list(self)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether one value could have both shapes."""
        other = TensorShape(other)
        if self.rank is None or other.rank is None:
            return True
        return len(self) == len(other) and all(
            a is None or b is None or a == b for a, b in zip(self, other, strict=True)
        )

    def merge_with(self, other: Any) -> TensorShape:
        """What both shapes together say.

        Raises:
            ShapeError: they contradict each other.
        """
        theirs = TensorShape(other)
        if not self.is_compatible_with(theirs):
            raise ShapeError(f"shapes {self} and {theirs} do not agree")
        if self.rank is None:
            return theirs
        if theirs.rank is None:
            return self
        return TensorShape([b if a is None else a for a, b in zip(self, theirs, strict=True)])

    def assert_is_compatible_with(self, other: Any) -> None:
        """ShapeError unless one value could have both shapes."""
        if not self.is_compatible_with(other):
            raise ShapeError(f"shapes {self} and {TensorShape(other)} do not agree")

    def assert_same_rank(self, other: Any) -> None:
        """ShapeError where both have another number of axes."""
        other = TensorShape(other)
        if self.rank is not None and other.rank is not None and self.rank != other.rank:
            raise ShapeError(f"the shapes {self} and {other} must have as many axes")

    def assert_has_rank(self, rank: int) -> None:
        """ShapeError where the number of axes is another one."""
        if self.rank not in (None, rank):
            raise ShapeError(f"the shape {self} must have {rank} axes")

    def assert_is_fully_defined(self) -> None:
        """ShapeError unless every dimension is known."""
        if not self.is_fully_defined:
            raise ShapeError(f"the shape {self} must be known in full")

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """What is the same in both: None where they differ."""
        other = TensorShape(other)
        if self.rank is None or self.rank != other.rank:
            return _UNKNOWN
        return TensorShape([a if a == b else None for a, b in zip(self, other, strict=True)])

    def with_rank(self, rank: int) -> TensorShape:
        """The shape, which has so many axes; ShapeError if it has another number."""
        return self.merge_with(unknown_shape(rank))

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """The shape, which has so many axes or more; ShapeError if it has fewer."""
        if self.rank is not None and self.rank < rank:
            raise ShapeError(f"the shape {self} must have at least {rank} axes")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """The shape, which has so many axes or fewer; ShapeError if it has more."""
        if self.rank is not None and self.rank > rank:
            raise ShapeError(f"the shape {self} must have at most {rank} axes")
        return self

    def concatenate(self, other: Any) -> TensorShape:
        """The dimensions of this shape, then those of another, or one more dimension."""
        other = TensorShape(other)
        if self.rank is None or other.rank is None:
            return _UNKNOWN
        return TensorShape((*self, *other))

    @overload
    def __getitem__(self, index: SupportsIndex) -> Dim: ...
    @overload
    def __getitem__(self, index: slice) -> TensorShape: ...
    def __getitem__(self, index: Any) -> Any:
        """One dimension; of a slice, the shape of these dimensions."""
        found = tuple.__getitem__(self, index)
        return tuple.__new__(TensorShape, found) if type(index) is slice else found

    def __add__(self, other: Any) -> Any:
        """`concatenate`; a plain tuple with what is no shape, such as one with -1 in it."""
        return self.concatenate(other) if _is_shape(other) else (*self, *other)

    def __radd__(self, other: Any) -> Any:
        return TensorShape(other).concatenate(self) if _is_shape(other) else (*other, *self)

    def as_proto(self) -> Any:
        """The shape as a Shape message: -1 for a dimension that is unknown."""
        return _message_of(self.dims)

    to_proto = as_proto

    @staticmethod
    def from_proto(message: Any) -> TensorShape:
        """The shape in a Shape message."""
        return TensorShape(message)

    # A list of the same dimensions is the same shape.
    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return tuple.__ne__(self, tuple(other) if isinstance(other, list) else other)

    __hash__ = tuple.__hash__

    def __str__(self) -> str:
        return "[" + ", ".join("?" if d is None else str(d) for d in self) + "]"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (tuple(self),)


class _UnknownShape(TensorShape):
    """The one shape of unknown rank."""

    def __new__(cls) -> _UnknownShape:
        return tuple.__new__(cls, ())

    @property
    def rank(self) -> int | None:
        return None

    @property
    def dims(self) -> tuple[Dim, ...] | None:
        return None

    @property
    def is_fully_defined(self) -> _Answer:
        return _NO

    def num_elements(self) -> int | None:
        return None

    def _refuse(self) -> NoReturn:
        raise ShapeError(
            "this shape has unknown rank: it has no dimensions to count or list",
            remedy="give the tensor a shape (set_shape), or test `shape.rank is None` first",
        )

    def __len__(self) -> int:
        self._refuse()

    def __iter__(self) -> Iterator[Dim]:
        self._refuse()

    def __getitem__(self, index: Any) -> Any:
        return self if isinstance(index, slice) else None

    def __contains__(self, item: object) -> bool:
        self._refuse()

    def __add__(self, other: Any) -> Any:
        return self

    def __radd__(self, other: Any) -> Any:
        return self

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _UnknownShape)

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, _UnknownShape)

    def __hash__(self) -> int:
        return hash(_UnknownShape)

    def __str__(self) -> str:
        return "[...]"

    def __repr__(self) -> str:
        return "TensorShape(None)"

    def __reduce__(self) -> Any:
        return (TensorShape, (None,))


_UNKNOWN = _UnknownShape()


def _is_dimension(value: Any) -> bool:
    """Whether it is a Dimension, of which there are none before their module is loaded."""
    module = sys.modules.get("laminar.engine.graph.dimension")
    return module is not None and isinstance(value, module.Dimension)


def _as_dim(value: Any) -> Dim:
    if value is None or (type(value) is int and value >= 0):
        return value
    if _is_dimension(value) and value.value is None:
        return None
    if isinstance(value, bool):
        raise ShapeError(f"a dimension is a whole number or None, got {value!r}")
    try:
        dim = value.__index__()
    except (AttributeError, TypeError):
        raise ShapeError(f"a dimension is a whole number or None, got {value!r}") from None
    if dim < 0:
        raise ShapeError(
            f"a dimension cannot be negative, got {dim}", remedy="write None for an unknown size"
        )
    return int(dim)


def _is_shape(value: Any) -> bool:
    """Whether it is one dimension, or a list or tuple of dimensions alone."""
    return (
        isinstance(value, TensorShape)
        or _is_dimension(value)
        or all(d is None or (type(d) is int and d >= 0) or _is_dimension(d) for d in value)
    )


def as_shape(shape: Any) -> TensorShape:
    """A shape, or what one is made of, as a TensorShape.

    Examples:
        >>> engine.as_shape([None, 3])
        (None, 3)
    """
    return TensorShape(shape)


def scalar() -> TensorShape:
    """The shape of a scalar.

    Examples:
        >>> engine.scalar()
        ()
    """
    return TensorShape(())


def vector(length: Any) -> TensorShape:
    """The shape of a vector, whose length may be None.

    Examples:
        >>> engine.vector(3)
        (3,)
    """
    return TensorShape([length])


def matrix(rows: Any, columns: Any) -> TensorShape:
    """The shape of a matrix, whose sizes may be None.

    Examples:
        >>> engine.matrix(None, 3)
        (None, 3)
    """
    return TensorShape([rows, columns])


def unknown_shape(rank: int | None = None, *, ndims: int | None = None) -> TensorShape:
    """A shape of `rank` unknown dimensions, or of unknown rank; `ndims` is another name of it.

    Examples:
        >>> engine.unknown_shape(rank=2)
        (None, None)
    """
    rank = ndims if rank is None else rank
    return TensorShape(None if rank is None else [None] * rank)


def shape_of_array(shape: tuple[int, ...]) -> TensorShape:
    """The shape of an array, whose dimensions are whole numbers already."""
    return tuple.__new__(TensorShape, shape)


def broadcast_shapes(who: str, *shapes: TensorShape) -> TensorShape:
    """The shape that NumPy's broadcasting gives, as far as it is known.

    An unknown dimension against n > 1 gives n (it is 1 or n), against 1 or unknown it is unknown.

    Raises:
        ShapeError: two known dimensions differ and neither is 1.
    """
    if any(s.rank is None for s in shapes):
        return _UNKNOWN
    rank = max((len(s) for s in shapes), default=0)
    dims: list[Dim] = []
    for axis in range(-rank, 0):
        here = [s[axis] for s in shapes if len(s) >= -axis]
        known = {d for d in here if d is not None and d != 1}
        if len(known) > 1:
            raise ShapeError(
                f"{who}: the shapes {' and '.join(map(str, shapes))} do not broadcast "
                f"(axis {axis}: {' against '.join('?' if d is None else str(d) for d in here)})",
                remedy="make the sizes equal, or one of them 1",
            )
        dims.append(known.pop() if known else (None if None in here else 1))
    return TensorShape(dims)


def canonical_axis(who: str, axis: int, rank: int) -> int:
    """`axis` counted from the front.

    Raises:
        DTypeError: it is no whole number.
        ShapeError: there is no such axis among `rank`.
    """
    try:
        axis = index(axis)
    except TypeError as cause:
        raise DTypeError(
            f"{who}: an axis must be a whole number, got {axis!r}",
            remedy="name one axis, as axis=-1",
        ) from cause
    if not -rank <= axis < rank:
        raise ShapeError(
            f"{who}: axis {axis} does not exist, the tensor has {rank} axes",
            remedy=f"choose an axis from {-rank} to {rank - 1}" if rank else None,
        )
    return axis + rank if axis < 0 else axis


def canonical_axes(who: str, axes: Axes, rank: int) -> tuple[int, ...]:
    """One axis or several, counted from the front, in the order given.

    Raises:
        ShapeError: one does not exist, or is named twice.
    """
    given = tuple(axes) if isinstance(axes, Sequence) else (axes,)
    found = tuple(canonical_axis(who, axis, rank) for axis in given)
    if len(set(found)) != len(found):
        raise ShapeError(f"{who}: an axis is named twice in {given}", remedy="name each axis once")
    return found
