"""Operations one after the other as statements: what they compute, on values by number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...graph import TensorSpec
from ...ops.array.axes import transpose_op
from ...ops.array.broadcast import sum_to_op
from ...ops.core.basic import identity
from ...ops.core.cluster import ClusterOp
from ..ir.builder import Builder
from ..ir.element_types import check_computed, wide
from ..ir.not_lowered import NotLoweredError
from ..ir.program import Operand, Shape, Size
from .rules.table import LOWERINGS, Lowered


class OperationLowering:
    """The values of steps that have been lowered.

    Args:
        builder: what they are built with.
        specs: the spec of each value.
        steps: all of them.
        outputs: the values that are asked for.

    Attributes:
        values: what is known; those that come from outside are set by the owner.
    """

    def __init__(
        self,
        builder: Builder,
        specs: Sequence[TensorSpec],
        steps: Sequence[ClusterOp],
        outputs: Sequence[int],
    ) -> None:
        self.builder = builder
        self.values: list[Operand | None] = [None] * len(specs)
        self._specs = specs
        self._used = {v for step in steps for v in step.inputs} | set(outputs)
        self._orders = _orders(specs, steps, outputs)

    def value(self, number: int) -> Operand:
        """A value that has been computed.

        Raises:
            NotLoweredError: it is none to compute with, such as a variable's handle.
        """
        found = self.values[number]
        if found is None:
            raise NotLoweredError(f"value {number} is no array")
        return found

    def lower(self, step: ClusterOp) -> None:
        """Add the statements of a step.

        Raises:
            NotLoweredError: it has no native form for these operands.
        """
        self.builder.label = step.label
        results = self._lower(step, [self.value(v) for v in step.inputs])
        for v, result in zip(step.outputs, results, strict=True):
            self.values[v] = result

    def _lower(self, step: ClusterOp, operands: list[Operand]) -> list[Operand | None]:
        b, definition = self.builder, step.definition
        kind = definition.type
        dtypes = tuple(self._specs[v].dtype for v in step.outputs)
        for dtype in dtypes:
            check_computed(dtype)
        on_sizes = definition.traits.on_sizes
        if on_sizes is not None and dtypes[0].is_integer:
            sizes = [x.value for x in operands if isinstance(x, Size)]
            if len(sizes) == len(operands):
                return [Size(on_sizes(*sizes), dtypes[0])]
        rule = LOWERINGS.get(kind)
        if rule is not None:
            live = tuple(v in self._used for v in step.outputs)
            in_float32 = not rule.takes_halves
            if in_float32:
                operands = [b.widened(x) for x in operands]
            computed = tuple(map(wide, dtypes)) if in_float32 else dtypes
            order = self._orders.get(step.outputs[0]) if len(step.outputs) == 1 else None
            found = rule.lower(b, Lowered(kind, step.attrs, computed, live, order), *operands)
            results: list[Operand | None] = [found] if isinstance(found, Operand) else list(found)
            if computed == dtypes:
                return results
            pairs = zip(results, dtypes, strict=True)
            return [None if y is None else b.cast(y, dtype) for y, dtype in pairs]
        if definition.scalar is None:
            raise NotLoweredError(f"{kind} has no native form")
        return [b.compute(definition.scalar, *operands, dtype=dtypes[0], **step.attrs)]


def _orders(
    specs: Sequence[TensorSpec], steps: Sequence[ClusterOp], outputs: Sequence[int]
) -> dict[int, Shape | None]:
    """The order in which each value's axes are taken; None if it is the usual one, or several."""
    wanted: dict[int, set[Shape | None]] = {v: {None} for v in outputs}

    def order_of(v: int) -> Shape | None:
        first, *others = wanted.get(v, {None})
        return None if others else first

    for step in reversed(steps):
        for i, v in enumerate(step.inputs):
            order = None
            if i == 0 and specs[v].shape is not None:
                order = _order(specs, step, order_of)
            wanted.setdefault(v, set()).add(order)
    return {v: order_of(v) for v in wanted}


def _order(
    specs: Sequence[TensorSpec], step: ClusterOp, order_of: Callable[[int], Shape | None]
) -> Shape | None:
    """The order in which a step takes the axes of its first operand."""
    definition, (x, *_), (y, *_) = step.definition, step.inputs, step.outputs
    rank = len(specs[x].shape)
    if definition is transpose_op:
        axes = step.attrs["axes"]
        order = tuple(range(rank)[::-1] if axes is None else (a % rank for a in axes))
        return None if order == tuple(range(rank)) else order
    # Gradients are summed to the shape of what they are of, and most have that shape.
    is_same = definition in (sum_to_op, identity) and len(specs[y].shape) == rank
    return order_of(y) if is_same else None
