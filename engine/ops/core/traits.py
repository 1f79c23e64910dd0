"""Traits: what passes and compilers may know of an op besides its rule, kernels and gradient.

They are stated where the op is declared, so a rewrite asks the op and keeps no list of names. What
is not stated claims nothing: rewrites leave an op without traits alone.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias


class Work(enum.Enum):
    """What an op does with the elements of its inputs.

    NONE: it touches none, however many there are: it gives a view, answers a question about the
        shape, hands a value on, or makes none.
    COPY: it copies or converts them at most: the reference kernel is as fast as native code.
    COMPUTE: it computes with them.

    Examples:
        >>> engine.lookup("Add").traits.work in engine.Work
        True
    """

    NONE = "none"
    COPY = "copy"
    COMPUTE = "compute"


Entries: TypeAlias = "list[int | None] | None"


def same_entries(attrs: Mapping[str, Any], inputs: Sequence[Entries]) -> Entries:
    """The entries of an op that gives those of its first input, perhaps with another rank."""
    return inputs[0]


class Traits(NamedTuple):
    """What holds of an op whatever its inputs are.

    Attributes:
        work: what it does with elements: whether it is worth a thread, or a compilation.
        commutative: its two inputs may be exchanged, and the result has the same bits.
        linear: f(x + y) = f(x) + f(y) in the first input, the others fixed, up to rounding: it may
            be applied once to a sum instead of to each term.
        shape_query: it depends on the shape of its input alone, not on the values.
        size_inputs: its last inputs are sizes and places of elements, not data. Those that a rule
            calls `*dims` are sizes in any case.
        on_sizes: what it makes of sizes, a function of as many ints; a shape can be made of the
            result, symbolic or not. None: of its result no shape can be made.
        begins: it begins something that goes on beside what follows: what it needs comes first.
        entries: of an op that moves whole numbers: what is known of the entries of its result, from
            the attributes and the known entries of each input (see entries.py), None for nothing; a
            list of such lists for several outputs. A shape query is given its input's dimensions.

    Examples:
        >>> engine.lookup("Add").traits.commutative
        True
    """

    work: Work = Work.COMPUTE
    commutative: bool = False
    linear: bool = False
    shape_query: bool = False
    size_inputs: bool = False
    on_sizes: Callable[..., int] | None = None
    begins: bool = False
    entries: Callable[[Mapping[str, Any], Sequence[Any]], Any] | None = None
