"""Sums over the iterations of a loop, such as the gradients of weights, made after it at once.

A carry that only grows, carry + f(x) with f linear and x of the iteration, is f of the sum of all
x. Where x is a product A' B, that sum is one product of all rows of A and B, which takes less
memory through the caches than a sum in each iteration. The results differ by rounding.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...ops.array.broadcast import sum_to_op
from ...ops.core.cluster import ClusterBody, ClusterOp
from ...ops.linalg.matmul import matmul
from ...ops.math.arithmetic import add
from ..ir.builder import Builder
from ..ir.program import Operand, View
from .operations import OperationLowering


class SunkReduction(NamedTuple):
    """A carry that is added up after the loop.

    Attributes:
        carry: its number.
        stacked: the values that are needed of all iterations: both factors, or what is summed up.
        steps: what is done with those, the addition last.
        constants: steps that make what those need besides.
        result: the value that the carry ends as.
    """

    carry: int
    stacked: tuple[int, ...]
    steps: tuple[ClusterOp, ...]
    constants: tuple[ClusterOp, ...]
    result: int

    def added(
        self,
        b: Builder,
        body: ClusterBody,
        inputs: Sequence[Operand],
        stacks: Mapping[int, Operand],
    ) -> Operand:
        """The last value of the carry."""
        work = OperationLowering(b, body.specs, (*self.constants, *self.steps), [self.result])
        work.values[: len(inputs)] = inputs
        is_product = len(self.stacked) > 1
        for v in self.stacked:
            work.values[v] = _rows(b, stacks[v]) if is_product else stacks[v]
        for step in (*self.constants, *self.steps):
            work.lower(step)
        return work.value(self.result)


def _rows(b: Builder, x: Operand) -> View:
    """The rows of all matrices of a stack."""
    *lead, columns = b.shape(x)
    return b.reshape(x, (math.prod(lead), columns))


def reductions_to_sink(
    body: ClusterBody, new: Mapping[int, int], slices: range
) -> list[SunkReduction]:
    """The carries of a loop that can be added up after it.

    Args:
        body: of the loop.
        new: carry -> the number of the value that it becomes.
        slices: the inputs that are slices of sequences.
    """
    uses = Counter([*body.outputs, *(v for step in body.steps for v in step.inputs)])
    makers = {step.outputs[0]: step for step in body.steps if len(step.outputs) == 1}
    found = (_sunk_reduction(body, i, v, uses, makers, slices) for i, v in new.items())
    return [sum for sum in found if sum is not None]


def _sunk_reduction(
    body: ClusterBody,
    carry: int,
    result: int,
    uses: Counter[int],
    makers: Mapping[int, ClusterOp],
    slices: range,
) -> SunkReduction | None:
    addition = makers.get(result)
    if addition is None or addition.definition is not add:
        return None
    if carry not in addition.inputs or uses[result] != 1 or uses[carry] != 1:
        return None
    steps, constants = [addition], list[ClusterOp]()
    (target,) = (v for v in addition.inputs if v != carry)
    while (step := makers.get(target)) is not None and uses[target] == 1:
        if step.definition is matmul:
            if not _is_sum_of_rows(body, step) or not _differ(body, step.inputs, slices):
                return None
            after = (step, *reversed(steps))
            return SunkReduction(carry, step.inputs, after, tuple(constants), result)
        if not step.definition.traits.linear:
            return None
        for v in step.inputs[1:]:
            if v in makers and not makers[v].inputs:
                constants.append(makers[v])
            elif v in makers or v < slices.stop:
                return None
        steps.append(step)
        target = step.inputs[0]
        if step.definition is sum_to_op and _differ(body, [target], slices):
            after = tuple(reversed(steps))
            return SunkReduction(carry, (target,), after, tuple(constants), result)
    return None


def _is_sum_of_rows(body: ClusterBody, step: ClusterOp) -> bool:
    is_matrix = all(body.specs[v].shape.rank == 2 for v in step.inputs)
    return is_matrix and step.attrs["transpose_a"] and not step.attrs["transpose_b"]


def _differ(body: ClusterBody, values: Sequence[int], slices: range) -> bool:
    """Whether values are slices, or computed in each iteration."""
    return all(v in slices or v >= body.num_inputs for v in values)


def without(body: ClusterBody, sums: Sequence[SunkReduction]) -> ClusterBody:
    """The body of a loop without what is done after it; it gives the values for that instead."""
    if not sums:
        return body
    gone = {step.outputs[0] for sum in sums for step in sum.steps}
    outputs = [v for v in body.outputs if v not in gone]
    outputs += [v for sum in sums for v in sum.stacked if v >= body.num_inputs]
    steps = [step for step in body.steps if step.outputs[0] not in gone]
    return ClusterBody(steps, body.specs, body.num_inputs, list(dict.fromkeys(outputs)), body.name)
