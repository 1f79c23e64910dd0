"""Gradients of the rows that were looked up: updates that leave all other rows alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.gradients import CombinedSlices, IndexedSlices
from laminar.engine.graph import Tensor
from laminar.engine.state import RowScope, Variable, current_scope
from laminar.engine.state.update_placement import beside
from laminar.typing import TensorLike

from .weight_decay import WeightDecay


class RowUpdates(WeightDecay):
    """The part of `Optimizer` that applies IndexedSlices, as the gradient of an Embedding.

    A step by rows costs what the rows do, however many others the variable has. It is taken where
    its result is that of the whole gradient, the other rows being 0; with `lazy`, also where it
    is not, as with Adam: the rows that have no gradient keep their values and slots then.

    Whatever else moves all rows in each step takes the whole gradient: moving averages,
    accumulation, a constraint of the variable, weight decay but with `lazy`.
    """

    # Whether what the rule makes of a row depends on that alone.
    _laminar_elementwise: ClassVar[bool] = True

    lazy: bool
    use_ema: bool
    gradient_accumulation_steps: int | None

    def _laminar_check_lazy(self) -> None:
        """Raise InvalidArgumentError when the rule cannot be lazy."""
        if self.lazy and not self._laminar_elementwise:
            raise InvalidArgumentError(
                f"{type(self).__name__}: its rule needs all rows of a variable, so lazy=True has "
                f"no meaning",
                remedy="leave it out",
            )

    def _laminar_keeps_rows(self) -> bool:
        """Whether the rule leaves elements with a gradient of 0, and their slots, as they are."""
        return False

    def _laminar_updates_rows(self, variable: Variable) -> bool:
        if self.use_ema or self.gradient_accumulation_steps or variable.constraint is not None:
            return False
        if variable.overwrite_with_gradient or current_scope() is not None:
            return False
        decays = bool(self._laminar_weight_decay_of(variable))
        return self.lazy or (self._laminar_keeps_rows() and not decays)

    def _laminar_as_taken(self, gradient: TensorLike | IndexedSlices, variable: Variable) -> Any:
        """A gradient as the step takes it: a tensor, or one row for each index."""
        if isinstance(gradient, IndexedSlices) and self._laminar_updates_rows(variable):
            return gradient.combined()
        with beside(variable):  # of a graph on several devices: so rows alone travel there
            return ops.convert_to_tensor(gradient)

    def _laminar_update_one(
        self, gradient: Tensor | CombinedSlices, variable: Variable, learning_rate: Tensor
    ) -> None:
        """The rule for a variable: for all of it, or for the rows that have a gradient."""
        with self._laminar_scope(variable):
            if isinstance(gradient, CombinedSlices):
                self._laminar_update_rows(gradient, variable, learning_rate)
            else:
                self.update_step(gradient, variable, learning_rate)

    def _laminar_update_rows(
        self, gradient: CombinedSlices, variable: Variable, learning_rate: Tensor
    ) -> None:
        """The rule for the rows that have a gradient."""
        slots = self._laminar_slots_beside.get(id(variable), [])
        with RowScope([variable, *slots], gradient.places) as scope:
            decay = self._laminar_weight_decay_of(variable)
            if decay is not None:
                self.assign_sub(variable, learning_rate * decay * variable)
            self.update_step(gradient.values, variable, learning_rate)
        scope.store()

    def assign_sub(self, variable: Variable, value: TensorLike) -> Tensor:
        """Subtract from a variable, unless this step is skipped; gives what is stored then."""
        raise NotImplementedError

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        """The rule: update one variable."""
        raise NotImplementedError


def parts_of(gradients: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors that gradients consist of; None has none."""
    for g in gradients:
        if isinstance(g, CombinedSlices):
            yield from (g.values, g.indices, g.places)
        elif isinstance(g, IndexedSlices):
            yield from (g.values, g.indices)
        elif g is not None:
            yield g


def with_parts(gradients: Iterable[Any], parts: Iterable[Tensor]) -> list[Any]:
    """Gradients of the same forms of other tensors, in the order of `parts_of`."""
    given = iter(parts)
    return [
        CombinedSlices(next(given), next(given), g.dense_shape, next(given))
        if isinstance(g, CombinedSlices)
        else None
        if g is None
        else next(given)
        for g in gradients
    ]
