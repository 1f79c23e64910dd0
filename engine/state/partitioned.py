"""PartitionedVariable: one tensor that is kept as several variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import InvalidArgumentError
from ..graph import DType, GraphTensor, Operation, Operators, Tensor, TensorShape, TensorSpec
from ..ops.array.join import concat
from ..ops.core.basic import group, identity
from .variable import PartOf, Variable


class PartitionedVariable(Operators):
    """Variables that are the parts of one tensor along an axis, in order.

    It computes as the whole tensor does; `list(partitioned)` are the parts.

    Args:
        name: of the whole; the parts are "name/part_0", "name/part_1", ...
        parts: the variables.
        axis: along which they are joined.
        partitions: how many parts each axis has.

    Examples:
        >>> with engine.Graph().as_default():
        ...     with engine.variable_scope("table", partitioner=engine.fixed_size_partitioner(2)):
        ...         w = engine.get_variable("w", (10, 3))
        ...     isinstance(w, engine.PartitionedVariable), len(list(w))
        (True, 2)
    """

    def __init__(
        self, name: str, parts: Sequence[Variable], axis: int, partitions: Sequence[int]
    ) -> None:
        self.name = name
        self.axis = axis
        self.partitions = list(partitions)
        self._parts = list(parts)
        sizes = [part.shape[axis] or 0 for part in parts]
        self._shape = TensorShape(
            [sum(sizes) if i == axis else d for i, d in enumerate(parts[0].shape)]
        )
        offset = 0
        for part, size in zip(parts, sizes, strict=True):
            extents = [(0, d or 0) for d in self._shape]
            extents[axis] = offset, size
            part.part_of = PartOf(name, self._shape, tuple(extents))
            offset += size
        self._joined: GraphTensor | None = None  # of a plain graph, where one read serves all

    @property
    def shape(self) -> TensorShape:
        """The dimensions of the whole."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._parts[0].dtype

    @property
    def spec(self) -> TensorSpec:
        """Shape and dtype together."""
        return TensorSpec(self._shape, self.dtype)

    @property
    def initializer(self) -> Operation:
        """The operation that initialises all parts, in a graph."""
        return group(*(part.initializer for part in self._parts))

    @property
    def value(self) -> Tensor:
        """The whole, as a tensor."""
        graph = self._parts[0].graph
        if graph is None:
            return self._concat()
        if self._joined is None:
            with graph.as_default(), graph.control_dependencies(None), graph.name_scope(None):
                found = self._concat()
            assert isinstance(found, GraphTensor)
            self._joined = found
        return self._joined

    def _concat(self) -> Tensor:
        if len(self._parts) == 1:
            return identity(self._parts[0].as_tensor(), name=self.name)
        values = [part.as_tensor() for part in self._parts]
        return identity(concat(values, self.axis), name=self.name)

    def as_tensor(self) -> Tensor:
        """`value`, as a call."""
        return self.value

    def __laminar_tensor__(self) -> Tensor:
        return self.value

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return f"<PartitionedVariable {self.name!r} {self.spec}, {len(self._parts)} parts>"


def part_sizes(name: str, shape: TensorShape, partitions: Sequence[int]) -> tuple[int, list[int]]:
    """The axis that is divided, and the sizes along it: as equal as they can be, larger ones first.

    Raises:
        InvalidArgumentError: partitions that are no number for each axis, that divide several
            axes, or that are more than the axis is long.
    """
    counts = [int(count) for count in partitions]
    divided = [i for i, count in enumerate(counts) if count > 1]
    if len(counts) != len(shape) or min(counts, default=1) < 1 or len(divided) > 1:
        raise InvalidArgumentError(
            f"variable {name!r}: the partitioner gave {counts} for the shape {shape}; expected a "
            f"number of parts for each axis, with more than one part along one axis at most"
        )
    axis = divided[0] if divided else 0
    size = shape[axis]
    if size is None or counts[axis] > size:
        raise InvalidArgumentError(
            f"variable {name!r}: {counts[axis]} parts of an axis of size {size}",
            remedy="use fewer parts",
        )
    least, more = divmod(size, counts[axis])
    return axis, [least + (i < more) for i in range(counts[axis])]
