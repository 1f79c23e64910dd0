"""Gradients of several calls, of which one update is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable
from laminar.typing import TensorLike

from .conditional import only_if
from .slots import Slots


class Accumulation(Slots):
    """The part of `Optimizer` that adds up gradients.

    `_accumulated_gradients[i]` is the sum for the i-th model variable, where there is accumulation.
    """

    gradient_accumulation_steps: int | None
    _iterations: Variable

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._accumulated_gradients: list[Variable] = []

    def _laminar_build_accumulators(self, variables: Sequence[Variable]) -> None:
        if self.gradient_accumulation_steps:
            self._accumulated_gradients = [
                self.add_variable_from_reference(v, "gradient_accumulator") for v in variables
            ]

    def _laminar_update(self, grads: Sequence[Tensor], variables: Sequence[Variable]) -> None:
        """Clip, decay, and apply the rule."""
        raise NotImplementedError

    def assign(self, variable: Variable, value: TensorLike) -> Tensor:
        """Store `value` in a variable, unless this step is skipped; gives what is stored then."""
        raise NotImplementedError

    @property
    def _laminar_is_update_step(self) -> Any:
        steps = self.gradient_accumulation_steps
        return ops.equal((self._iterations + 1) % steps, 0)

    def _laminar_accumulate(self, grads: Sequence[Tensor], variables: Sequence[Variable]) -> None:
        """Add to the sums of gradients; on every n-th call, update by their mean and clear them."""
        steps = self.gradient_accumulation_steps
        is_update_step = self._laminar_is_update_step
        accumulators = [self._accumulated_gradients[self._get_variable_index(v)] for v in variables]
        sums = [a + g for a, g in zip(accumulators, grads, strict=True)]
        with only_if(is_update_step):
            self._laminar_update([s / steps for s in sums], variables)
        for accumulator, s in zip(accumulators, sums, strict=True):
            self.assign(accumulator, ops.where(is_update_step, ops.zeros_like(s), s))

    def _laminar_overwrite(self, gradient: Tensor, variable: Variable) -> None:
        """A variable whose new value is its gradient (scales of float8 layers); the greatest one
        of the accumulated steps."""
        if not self.gradient_accumulation_steps:
            self.assign(variable, gradient)
            return
        greatest = self._accumulated_gradients[self._get_variable_index(variable)]
        new = ops.maximum(gradient, greatest)
        self.assign(variable, ops.where(self._laminar_is_update_step, new, variable))
        self.assign(greatest, ops.where(self._laminar_is_update_step, ops.zeros_like(new), new))
