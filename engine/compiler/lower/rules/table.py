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
from ...ir.not_lowered import NotLoweredError
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
ClusterLowering: TypeAlias = Callable[..., Operand | Sequence[Operand | None]]
_Lowering = TypeVar("_Lowering", bound=ClusterLowering)


class Rule(NamedTuple):
    """How an op is lowered. What it says is the compiler's own: other compilers know other things.

    Attributes:
        lower: the lowering.
        takes_halves: it moves, chooses or draws elements, or knows halves. For others these are
            made float32 first, and results are rounded once, as the reference kernels do.
        places_from_data: sizes and places may be data too: a block begins where that says.
        any_attributes: it lowers all attributes, some of which cannot be compared.
        ignores_attributes: none of them gets into native code.
    """

    lower: ClusterLowering
    takes_halves: bool = False
    places_from_data: bool = False
    any_attributes: bool = False
    ignores_attributes: bool = False


LOWERINGS: dict[str, Rule] = {}


def lowers(
    *types: str,
    takes_halves: bool = False,
    places_from_data: bool = False,
    any_attributes: bool = False,
    ignores_attributes: bool = False,
) -> Callable[[_Lowering], _Lowering]:
    """Register the lowering of ops, and what holds of it: see `Rule`."""

    def register(lowering: _Lowering) -> _Lowering:
        for type in types:
            LOWERINGS[type] = Rule(
                lowering, takes_halves, places_from_data, any_attributes, ignores_attributes
            )
        return lowering

    return register


def known_size(x: Operand) -> int | None:
    """The number that an operand stands for, if it is a size."""
    if isinstance(x, Size):
        return x.value
    return x.value if isinstance(x, Literal) and isinstance(x.value, int) else None


def filled(shape: Sequence[int | None] | None, dims: Sequence[Operand]) -> Shape:
    """`shape` with what is unknown in it taken from `dims`.

    Raises:
        NotLoweredError: a dimension, or the number of them, is computed from data.
    """
    if shape is None:
        raise NotLoweredError("a number of axes that depends on data")
    given = iter(dims)
    found = []
    for n in shape:
        if n is None:
            n = known_size(next(given))
            if n is None:
                raise NotLoweredError("a shape that depends on data")
        found.append(n)
    return tuple(found)
