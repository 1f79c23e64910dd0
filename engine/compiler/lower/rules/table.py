"""The table of lowerings: how an op is written as a loop program.

    @lowers("Softmax")
    def _softmax(b: Builder, step: Lowered, x: Operand) -> Operand: ...

An op that is not here is lowered by its scalar expression, if it has one; otherwise it stays with
the executor. A lowering raises NotLoweredError for a form of its op that it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ....graph import DType
from ...codegen.function import NotLoweredError
from ...ir.program import Literal, Operand, Shape, Size


class Lowered(NamedTuple):
    """What a lowering is asked for.

    Attributes:
        type: the op.
        attrs: its attributes.
        dtypes: the element types of its outputs.
        live: which of its outputs somebody takes.
        order: the order of its axes in which all take its one output, if it is not that of the op.
    """

    type: str
    attrs: Mapping[str, Any]
    dtypes: tuple[DType, ...]
    live: tuple[bool, ...] = ()
    order: Shape | None = None


# Takes the builder, what is asked, and the operands; gives the output, or all of several, None for
# one that nobody takes.
Lowering: TypeAlias = Callable[..., Operand | Sequence[Operand | None]]
_Lowering = TypeVar("_Lowering", bound=Lowering)

LOWERINGS: dict[str, Lowering] = {}
# Ops that move, choose or draw elements, or know halves. For all others these are made float32
# first, and results are rounded once, as the reference kernels do.
TAKES_HALVES = frozenset(
    {
        *("Const", "Identity", "StopGradient", "CustomGradient", "Barrier", "Cast", "Dim", "Rank"),
        *("Size", "Shape", "Reshape", "ExpandDims", "Squeeze", "Transpose", "BroadcastTo"),
        *("ZerosLike", "OnesLike", "OneHot", "Eye", "BandPart", "DiagPart", "MatrixDiag", "Range"),
        *("Share", "JoinShares", "Concat", "Split", "Stack", "Unstack", "Tile", "Repeat"),
        *("SpaceToDepth", "DepthToSpace", "TakeAlongAxis", "Gather", "GatherNd", "Slice"),
        *("SliceUpdate", "StridedSlice", "StridedSliceGrad", "Shift", "Roll", "Pad", "ArgMax"),
        *("ArgMin", "MatMul", "Einsum", "Max", "Min", "Any", "All", "Scan", "While"),
        *("RandomUniform", "RandomNormal", "RandomInt", "RandomBernoulli", "RandomAdvance"),
    }
)


def lowers(*types: str) -> Callable[[_Lowering], _Lowering]:
    """Register the lowering of ops."""

    def register(lowering: _Lowering) -> _Lowering:
        for type in types:
            LOWERINGS[type] = lowering
        return lowering

    return register


def known_size(x: Operand) -> int | None:
    """The number that an operand stands for, if it is a size."""
    if isinstance(x, Size):
        return x.value
    return x.value if isinstance(x, Literal) and isinstance(x.value, int) else None


def filled(shape: Sequence[int | None], dims: Sequence[Operand]) -> Shape:
    """`shape` with what is unknown in it taken from `dims`.

    Raises:
        NotLoweredError: a dimension is computed from data.
    """
    given = iter(dims)
    found = []
    for n in shape:
        if n is None:
            n = known_size(next(given))
            if n is None:
                raise NotLoweredError("a shape that depends on data")
        found.append(n)
    return tuple(found)
