"""What a contraction multiplies: numbers, or pairs of bfloat16 (see pairs.py).

How it is cut and walked through is the same for both; tiles, and the kernels that make them, are
not.
"""

from __future__ import annotations

from typing import NamedTuple

from ....graph import DType
from ...ir.kernel_target import Target
from ...target.bfloat16_unit import PairUnit
from ...target.code import Code
from ..bf16.pairs import grid, unit_microkernels
from .microkernel import microkernels
from .tiles import Cut, Grid, choose_grid


class Factors(NamedTuple):
    """The factors of a sum of products.

    dtype: of the sums, and of an element of both operands: a pair has the 4 bytes of a float32.
    unit: what multiplies pairs; None: an element is a number.
    """

    dtype: DType
    unit: PairUnit | None = None

    def elements(self, count: int) -> int:
        """How many elements so many numbers are which follow each other along a sum."""
        return count if self.unit is None else count // 2

    def grid(self, rows: int, vectors: int, inner: int, target: Target, b_cost: float) -> Grid:
        """The tiles of a result so high, and so many vectors wide."""
        if self.unit is not None:
            return grid(self.unit, rows, vectors, inner, target, b_cost)
        return choose_grid(rows, vectors, inner, target.registers, b_cost=b_cost)

    def microkernels(
        self,
        rows: Cut,
        vectors: Cut,
        columns: int,
        count: int,
        target: Target,
        *,
        groups: int = 1,
        lanewise: bool = False,
    ) -> tuple[Code, ...]:
        """See microkernels(); `count` is how many elements of a sum follow each other."""
        if self.unit is not None:
            return unit_microkernels(self.unit, rows, vectors, columns, count, target)
        return microkernels(
            rows, vectors, columns, self.dtype, target, groups=groups, lanewise=lanewise
        )
