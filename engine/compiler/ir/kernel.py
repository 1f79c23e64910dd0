"""A kernel of a fused program: its statements, its axes, and which values it has in registers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .program import (
    Check,
    Iota,
    KernelCall,
    Loop,
    LoopProgram,
    Pointwise,
    Reduce,
    Shape,
    Statement,
    View,
    contiguous,
    views_of,
)


@dataclass(eq=False)
class Kernel:
    """Statements that run in one loop nest, or a kernel call with its epilogue.

    Attributes:
        shape: the axes of the loops; those of size 1 are left out.
        axes: the reduced ones among them; None before there is a reduction.
        split: as in `Reduce`, for all its reductions.
        library: the contraction, if it is one.
        rows: the storages that hold one value for each row.
        loop: what is repeated, if that is it, with the kernels of its test and its body.
    """

    shape: Shape
    statements: list[Pointwise | Reduce] = field(default_factory=list)
    axes: frozenset[int] | None = None
    split: tuple[int, int] | None = None
    call: KernelCall | None = None
    check: Check | None = None
    rows: set[int] = field(default_factory=set)
    loop: Loop | None = None
    test: list[Kernel] = field(default_factory=list)
    body: list[Kernel] = field(default_factory=list)

    @property
    def kept(self) -> Shape:
        """The axes that are not reduced."""
        return tuple(n for a, n in enumerate(self.shape) if not self.axes or a not in self.axes)

    @property
    def is_along(self) -> bool:
        """Whether the innermost axis is reduced."""
        return bool(self.axes) and len(self.shape) - 1 in (self.axes or ())

    @property
    def all_statements(self) -> list[Statement]:
        """With the kernel call, check or loop first."""
        special = (self.call, self.check, self.loop)
        first: list[Statement] = [s for s in special if s is not None]
        return [*first, *self.statements]

    @property
    def writes(self) -> set[int]:
        """The storages that it makes."""
        return {number for s in self.all_statements for number in s.writes}

    @property
    def views(self) -> set[View]:
        """The memory that it reads, what it makes itself included."""
        return {v for s in self.all_statements for v in views_of(s.operands)}


def squeezed(shape: Shape) -> Shape:
    """Without the axes of size 1."""
    return tuple(n for n in shape if n != 1)


def fills(program: LoopProgram, target: View) -> bool:
    """Whether a write to a view is one to all of its storage, in order."""
    count = program.storages[target.storage].num_elements
    return target.is_contiguous and count == math.prod(target.shape)


def strides_over(operand: View | Iota, kernel: Kernel) -> Shape | None:
    """The strides along the axes of a kernel of what covers all of them, or all its rows.

    None if it covers neither.
    """
    pairs = [(n, s) for n, s in zip(operand.shape, operand.strides, strict=True) if n != 1]
    sizes = tuple(n for n, _ in pairs)
    if sizes == kernel.shape:
        return tuple(s for _, s in pairs)
    if kernel.axes is not None and sizes == kernel.kept:
        rest = iter(pairs)
        return tuple(0 if a in kernel.axes else next(rest)[1] for a in range(len(kernel.shape)))
    return None


def is_same_element(view: View, kernel: Kernel) -> bool:
    """Whether a view of something made in the kernel is the element, or row, it is made for."""
    if view.storage in kernel.rows:
        return is_column(view, kernel)
    return not view.offset and strides_over(view, kernel) == contiguous(kernel.shape)


def is_column(view: View, kernel: Kernel) -> bool:
    """Whether a view has, in order, one element for each place of the axes that are kept."""
    axes = kernel.axes or frozenset()
    rest = iter(contiguous(kernel.kept))
    wanted = tuple(0 if a in axes else next(rest) for a in range(len(kernel.shape)))
    return not view.offset and strides_over(view, kernel) == wanted
