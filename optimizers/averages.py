"""Moving averages of the variables of a model, kept while it is trained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from laminar import ops
from laminar.engine.errors import FailedPreconditionError
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable
from laminar.typing import TensorLike

from .slots import Slots


class Averages(Slots):
    """The part of `Optimizer` that deals with averages.

    `_model_variables_moving_average[i]` is that of the i-th model variable, None where there is
    none. While `_laminar_averages_in_place`, variables and averages have changed places.
    """

    use_ema: bool
    ema_momentum: float
    ema_overwrite_frequency: int | None
    _laminar_averages_in_place: bool
    _model_variables_moving_average: Sequence[Variable | None]
    _iterations: Variable

    @property
    def iterations(self) -> Any:
        """How many updates there have been."""
        raise NotImplementedError

    def assign(self, variable: Variable, value: TensorLike) -> Tensor:
        """Store `value` in a variable, unless this step is skipped; gives what is stored then."""
        raise NotImplementedError

    def _laminar_average(self, variables: Sequence[Variable]) -> None:
        """average = momentum * average + (1 - momentum) * variable; at first, the variable."""
        iterations = self.iterations
        for v in variables:
            average = self._model_variables_moving_average[self._get_variable_index(v)]
            if average is None:
                continue
            momentum = self.ema_momentum * ops.cast(ops.not_equal(iterations, 0), v.dtype)
            new = self.assign(average, momentum * average + (1 - momentum) * v)
            if self.ema_overwrite_frequency:
                due = ops.equal((iterations + 1) % self.ema_overwrite_frequency, 0)
                self.assign(v, ops.where(due, new, v))

    def swap_averages(self, in_place: bool) -> None:
        """Let the variables and their moving averages change places, if they do not stand so.

        Args:
            in_place: whether the averages shall stand in the variables of the model, as for an
                evaluation, or in the slots, as a step needs them.

        Raises:
            FailedPreconditionError: no averages are kept.
        """
        if not self.use_ema:
            raise FailedPreconditionError(
                f"{self.name}: it keeps no averages of the variables",
                remedy="make it with use_ema=True, as Adam(use_ema=True)",
            )
        if in_place == self._laminar_averages_in_place or not int(np.asarray(self._iterations)):
            return  # before the first step there are no averages
        for v, average in self._laminar_averaged():
            value = v.numpy()
            v.assign(average.as_tensor())
            average.assign(value)
        self._laminar_averages_in_place = in_place

    def _laminar_averaged(self) -> list[tuple[Variable, Variable]]:
        pairs = zip(self._trainable_variables, self._model_variables_moving_average, strict=False)
        return [(v, average) for v, average in pairs if average is not None]

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        """Put the moving averages in place, if they are kept: the end of training."""
        if not self.use_ema:
            return
        in_place, self._laminar_averages_in_place = self._laminar_averages_in_place, False
        for v in var_list:
            average = self._model_variables_moving_average[self._get_variable_index(v)]
            if average is not None and in_place:
                average.assign(v.as_tensor())
            elif average is not None:
                v.assign(average)
