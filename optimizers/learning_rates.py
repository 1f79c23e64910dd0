"""The learning rate of an optimizer, with factors for groups of variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from laminar import config, ops
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.engine.graph import GraphTensor, Tensor
from laminar.engine.state import Variable

from .checks import ScheduledRateError
from .groups import Groups
from .schedule import LearningRateSchedule
from .slots import Slots

LearningRate: TypeAlias = float | LearningRateSchedule | Callable[[], Any] | Tensor | Variable


class LearningRates(Slots):
    """The part of `Optimizer` that deals with its learning rate."""

    _iterations: Variable
    _learning_rate: Any  # a variable, a schedule, a tensor of a graph, or a function
    _laminar_groups: Groups | None
    _laminar_group_changes: int

    def groups(self, factors: Mapping[Any, float]) -> None:
        """Give parts of the model learning rates of their own, or freeze them.

            optimizer.groups({"encoder": 0.1, "encoder/embedding": 0, model.get_layer("head"): 2})

        Args:
            factors: what the learning rate is multiplied by, 0 to leave variables as they are;
                for each layer, variable or pattern (found in paths such as "dense/kernel"). Of
                several that fit a variable, the last one holds; those that none fits have 1.
                It takes the place of what was given before.

        Raises:
            InvalidArgumentError: a key or a factor of another kind, or one that fits nothing.
        """
        groups = Groups(factors, self.name)
        if self.built:
            groups.build(self._trainable_variables)
        self._laminar_groups = groups
        self._laminar_group_changes += 1

    def _laminar_factor(self, variable: Variable) -> float:
        return 1.0 if self._laminar_groups is None else self._laminar_groups.factor(variable)

    def _laminar_rate_of(self, variable: Variable, learning_rate: Tensor) -> Any:
        """The learning rate of a variable, in its dtype."""
        rate, factor = ops.cast(learning_rate, variable.dtype), self._laminar_factor(variable)
        return rate if factor == 1 else rate * factor

    def _laminar_as_learning_rate(self, rate: LearningRate) -> Any:
        if isinstance(rate, LearningRateSchedule) or callable(rate):
            return rate
        if isinstance(rate, Tensor | Variable) and rate.shape.is_compatible_with(()):
            if isinstance(rate, GraphTensor | Variable):
                return rate
            rate = float(rate.numpy())
        if isinstance(rate, bool) or not isinstance(rate, int | float | np.number):
            raise InvalidArgumentError(
                f"{type(self).__name__}: learning_rate must be a number, a scalar tensor, a "
                f"LearningRateSchedule or a function without arguments, got {rate!r}"
            )
        return self._laminar_scalar("learning_rate", float(rate), config.floatx())

    @property
    def learning_rate(self) -> Any:
        """The learning rate now; assign a number, a schedule or a function to change it."""
        rate = self._learning_rate
        if isinstance(rate, LearningRateSchedule):
            return rate(self._iterations)
        return rate() if callable(rate) else rate

    @learning_rate.setter
    def learning_rate(self, rate: LearningRate) -> None:
        current = self._learning_rate
        # In a plain graph, an assignment would be an operation that nobody runs.
        in_graph = isinstance(rate, GraphTensor) and not rate.graph.captures_values
        if in_graph or isinstance(rate, LearningRateSchedule) or callable(rate):
            if isinstance(current, Variable):
                self._laminar_untrack(current)
            self._learning_rate = self._laminar_as_learning_rate(rate)
        elif isinstance(current, Variable):
            if current.graph is not None:
                raise FailedPreconditionError(
                    f"{self.name}: the learning rate is a variable of a graph, which only a "
                    f"session can set to {rate!r}",
                    remedy="run `optimizer.learning_rate.assign(rate)` in the session, or make "
                    "the optimizer with a placeholder as its learning_rate",
                )
            current.assign(rate)
        else:
            raise ScheduledRateError(
                f"{self.name}: the learning rate follows {type(current).__name__}, "
                f"it cannot be set to {rate!r}",
                remedy="make the optimizer with a number as its learning_rate",
            )
