"""Loss scaling that adapts: training in float16 without losing small gradients."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.gradients import mapped
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable
from laminar.serialization import deserialize_keras_object, serialize_keras_object

from .checks import positive
from .conditional import only_if
from .learning_rates import LearningRate
from .optimizer import Optimizer
from .rows import parts_of

# What older configs say of the arguments of `Optimizer`: nothing. The others are None.
_UNSET = {"use_ema": False, "ema_momentum": 0.99}


class LossScaleOptimizer(Optimizer):
    """Scales the loss, divides the gradients by the scale, and skips steps that overflow.

    A step with an infinite or NaN gradient changes nothing but halves the scale. After
    `dynamic_growth_steps` finite steps in a row the scale doubles.

    Args:
        inner_optimizer: does the updates; it holds the learning rate and all other arguments, less
            a fixed `loss_scale_factor`, which the scale takes the place of.
        initial_scale: the first scale.
        dynamic_growth_steps: how many finite steps before the scale doubles.
        name: by default made of the class name.
        options: none of those of `Optimizer`: set them on the inner optimizer.

    Raises:
        InvalidArgumentError: another argument is given, or one is out of range.

    Source: Micikevicius et al., "Mixed precision training", 2018, arXiv:1710.03740, section 3.2.

    Examples:
        >>> inner = laminar.optimizers.SGD(0.1)
        >>> optimizer = laminar.optimizers.LossScaleOptimizer(inner, initial_scale=8.0)
        >>> w = laminar.Variable([1.0])
        >>> optimizer.apply([ops.array([8.0])], [w])  # the gradient of the loss times 8
        >>> w.numpy()
        array([0.9], dtype=float32)
    """

    def __init__(
        self,
        inner_optimizer: Optimizer,
        initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000,
        name: str | None = None,
        **options: Any,
    ) -> None:
        changed = [name for name, value in options.items() if value != _UNSET.get(name)]
        if changed:
            raise InvalidArgumentError(
                f"LossScaleOptimizer: {', '.join(changed)} cannot be set here",
                remedy="set it on the inner optimizer",
            )
        if not isinstance(inner_optimizer, Optimizer):
            raise InvalidArgumentError(
                f"LossScaleOptimizer: expected an optimizer to wrap, got {inner_optimizer!r}",
                remedy="pass an Optimizer object, such as Adam()",
            )
        super().__init__(0.0, name=name)
        positive(
            "LossScaleOptimizer",
            initial_scale=initial_scale,
            dynamic_growth_steps=dynamic_growth_steps,
        )
        self.inner_optimizer = inner_optimizer
        self.initial_scale = initial_scale
        self.dynamic_growth_steps = dynamic_growth_steps

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self.step_counter = self._laminar_scalar("step_counter", 0, "int32")
        self.dynamic_scale = self._laminar_scalar("dynamic_scale", self.initial_scale, "float32")
        self.inner_optimizer.loss_scale_factor = None  # it would divide once more
        if not self.inner_optimizer.built:
            self.inner_optimizer.build(variables)

    @property
    def variables(self) -> list[Variable]:
        """Its own variables, then those of the inner optimizer."""
        return [*super().variables, *self.inner_optimizer.variables]

    @property
    def iterations(self) -> Any:
        """The updates of the inner optimizer: skipped steps do not count."""
        return self.inner_optimizer.iterations

    @property
    def learning_rate(self) -> Any:
        """The learning rate of the inner optimizer."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, rate: LearningRate) -> None:
        self.inner_optimizer.learning_rate = rate

    def scale_loss(self, loss: float | Tensor) -> Any:
        """The loss times the scale of this step."""
        return loss * (self.dynamic_scale if self.built else self.initial_scale)

    def _laminar_updates_rows(self, variable: Variable) -> bool:
        return self.inner_optimizer._laminar_updates_rows(variable)

    def _laminar_apply(self, grads: Sequence[Tensor | None], variables: Sequence[Variable]) -> None:
        scale = self.dynamic_scale.value
        present = [g for g in grads if g is not None]
        finite = functools.reduce(
            ops.logical_and,
            [ops.all(ops.isfinite(x)) for x in parts_of(present) if x.dtype.is_floating],
            ops.convert_to_tensor(True),
        )
        unscaled = [
            g if g is None or v.overwrite_with_gradient else mapped(g, lambda x: x / scale)
            for g, v in zip(grads, variables, strict=True)
        ]
        with only_if(finite):
            self.inner_optimizer._laminar_apply(unscaled, variables)
        count = self.step_counter + 1
        grows = ops.logical_and(finite, count >= self.dynamic_growth_steps)
        self.assign(self.step_counter, ops.where(ops.logical_and(finite, ~grows), count, 0))
        factor = ops.where(grows, 2.0, ops.where(finite, 1.0, 0.5))
        self.assign(self.dynamic_scale, scale * factor)

    def groups(self, factors: Mapping[Any, float]) -> None:
        self.inner_optimizer.groups(factors)
        self._laminar_group_changes = self.inner_optimizer._laminar_group_changes

    def swap_averages(self, in_place: bool) -> None:
        self.inner_optimizer.swap_averages(in_place)

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        self.inner_optimizer.finalize_variable_values(var_list)

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "inner_optimizer": serialize_keras_object(self.inner_optimizer),
            "initial_scale": self.initial_scale,
            "dynamic_growth_steps": self.dynamic_growth_steps,
        }

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> LossScaleOptimizer:
        """The optimizer that `get_config` described."""
        inner = deserialize_keras_object(config["inner_optimizer"], custom_objects)
        return cls(**{**config, "inner_optimizer": inner})
