"""Optimizer: turns gradients into updates of variables.

Everything an update computes is operations, so it runs eagerly, inside `function`, in the graph of
a Session and in `fit` alike; what happens every n-th step only is chosen by `where`, not by Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from laminar import ops
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from laminar.engine.gradients import CombinedSlices, mapped
from laminar.engine.graph import Operation, Tensor, building
from laminar.engine.ops.core.dispatch import symbolic_graph
from laminar.engine.ops.core.lattice import result_type
from laminar.engine.source import warn
from laminar.engine.state import StatelessScope, Variable
from laminar.serialization import deserialize_keras_object, serialize_keras_object
from laminar.typing import TensorLike

from .accumulation import Accumulation
from .averages import Averages
from .clipping import clip_by_global_norm, clip_by_norm, clip_by_value
from .compiled_steps import CompiledSteps
from .conditional import assign, assign_add, assign_sub
from .graph_steps import GraphSteps
from .groups import Groups
from .learning_rates import LearningRate
from .options import check_options
from .rows import RowUpdates, parts_of


class Optimizer(GraphSteps, Averages, Accumulation, RowUpdates):
    """Base of the optimizers. A rule of its own overrides two methods:

        def build(self, variables):  # the slots: optimizer variables, one per model variable
            if self.built:
                return
            super().build(variables)
            self._momentums = self.add_optimizer_variables(variables, "momentum")

        def update_step(self, gradient, variable, learning_rate):  # the rule
            m = self._momentums[self._get_variable_index(variable)]
            m = self.assign(m, 0.9 * m - learning_rate * gradient)
            self.assign_add(variable, m)

    and updates variables through `assign`, `assign_add` and `assign_sub`, which are skipped where a
    step is (accumulation, loss scaling).

    Args:
        learning_rate: a number (kept in a variable), a schedule of `iterations`, a variable, a
            function without arguments (which tracing calls once), or a scalar tensor of the graph
            or function that the step belongs to, as a placeholder.
        weight_decay: before each update w -= learning_rate * weight_decay * w (arXiv:1711.05101).
        clipnorm: limit for the norm of each gradient.
        clipvalue: limit for each element of the gradients.
        global_clipnorm: limit for the norm of all gradients together.
        use_ema: whether to keep an exponential moving average of the variables, for
            `finalize_variable_values` (Polyak and Juditsky, 1992).
        ema_momentum: weight of the old average.
        ema_overwrite_frequency: also put the averages in place every so many iterations.
        loss_scale_factor: `scale_loss` multiplies by it, `apply` divides the gradients by it.
        gradient_accumulation_steps: update once in so many calls, with the mean of the gradients.
        name: by default made of the class name.
        lazy: whether a step leaves alone the rows of an embedding that were not looked up, their
            slots and weight decay included, so that its cost does not grow with their number.
            SGD without momentum and Adagrad do so in any case; other rules give other values than
            with whole gradients (as TensorFlow Addons' LazyAdam and PyTorch's SparseAdam do).

    Raises:
        InvalidArgumentError: an argument is unknown or out of range, two ways of clipping, or a
            rule that cannot be `lazy`.

    Examples:
        >>> w = laminar.Variable(5.0)
        >>> laminar.optimizers.SGD(0.1, clipvalue=1.0).apply([ops.array(100.0)], [w])
        >>> w.numpy()
        array(4.9, dtype=float32)
    """

    def __init__(
        self,
        learning_rate: LearningRate,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None,
        name: str | None = None,
        lazy: bool = False,
        **unknown: Any,
    ) -> None:
        super().__init__(name)
        self.lazy = lazy
        self.weight_decay = weight_decay
        self.clipnorm = clipnorm
        self.clipvalue = clipvalue
        self.global_clipnorm = global_clipnorm
        self.use_ema = use_ema
        self.ema_momentum = ema_momentum
        self.ema_overwrite_frequency = ema_overwrite_frequency
        self.loss_scale_factor = loss_scale_factor
        self.gradient_accumulation_steps = gradient_accumulation_steps
        check_options(type(self).__name__, vars(self), unknown)
        self._laminar_check_lazy()
        self._model_variables_moving_average: list[Variable | None] = []
        self._laminar_averages_in_place = False
        self._laminar_groups: Groups | None = None
        self._laminar_group_changes = 0
        self._laminar_steps = CompiledSteps()
        self._iterations = self._laminar_scalar("iteration", 0, "int32")
        self._learning_rate = self._laminar_as_learning_rate(learning_rate)

    @property
    def iterations(self) -> Any:
        """How many updates there have been: with accumulation, fewer than calls of `apply`."""
        if self.gradient_accumulation_steps:
            return self._iterations // self.gradient_accumulation_steps
        return self._iterations

    def build(self, variables: Sequence[Variable]) -> None:
        """Make the slots for the model variables that will be updated."""
        if self.built:
            return
        super().build(variables)
        if self._laminar_groups is not None:
            self._laminar_groups.build(variables)
        if self.use_ema:
            averages = self.add_optimizer_variables(variables, "average")
            self._model_variables_moving_average = averages
        self._laminar_build_accumulators(variables)

    # The step

    def apply(
        self, grads: Iterable[Any], trainable_variables: Iterable[Variable] | None = None
    ) -> Operation | None:
        """Update each variable by its gradient.

        Args:
            grads: a gradient for each variable, a tensor or IndexedSlices; None where there is
                none.
            trainable_variables: the variables, by default those given to `build`.

        Returns:
            In the graph of a Session, the operation that does it; else None.

        Raises:
            InvalidArgumentError: another number of gradients than variables, no gradient at all,
                or a variable that the optimizer was not built for; in the graph of a Session, no
                variables.
            ShapeError: a gradient has another shape than its variable.
        """
        grads = list(grads)
        graph = building()
        if graph is None and (outside := symbolic_graph(self.name, [*parts_of(grads)])) is not None:
            with outside.as_default():
                return self.apply(grads, trainable_variables)
        in_graph = graph is not None and not graph.captures_values
        variables = self._laminar_variables_for(grads, trainable_variables)
        if not variables:
            if in_graph:
                raise InvalidArgumentError(
                    f"{self.name}: there are no variables to train, and so no operation for it"
                )
            return None
        grads = [self._laminar_checked(g, v) for g, v in zip(grads, variables, strict=True)]
        missing = [v.path for g, v in zip(grads, variables, strict=True) if g is None]
        if len(missing) == len(grads):
            raise InvalidArgumentError(
                f"{self.name}: no variable has a gradient ({', '.join(missing[:5])})",
                remedy="compute the loss from these variables, inside the GradientTape; "
                "with compile(), give it a loss",
            )
        if missing:
            warn(
                f"{self.name}: no gradient for {', '.join(missing)}; the loss does not depend on "
                f"them, they stay as they are"
            )
        if graph is not None and in_graph:
            return self._laminar_apply_in_graph(graph, grads, variables)
        self._laminar_steps.apply(self, grads, variables)
        return None

    def stateless_apply(
        self,
        optimizer_variables: Sequence[Any],
        grads: Iterable[Any],
        trainable_variables: Sequence[Any],
    ) -> tuple[list[Tensor], list[Tensor]]:
        """What `apply` would make of given values; the variables keep the values they have.

        Args:
            optimizer_variables: a value for each of `variables`.
            grads: a gradient, or None, for each variable given to `build`.
            trainable_variables: a value for each variable given to `build`.

        Returns:
            The new values of the model's variables, and of the optimizer's.

        Raises:
            FailedPreconditionError: the optimizer is not built.
            InvalidArgumentError: another number of values than variables.
        """
        if not self.built:
            raise FailedPreconditionError(
                f"{self.name}: stateless_apply needs a built optimizer",
                remedy="call optimizer.build(variables) first",
            )
        held = [*self._trainable_variables, *self.variables]
        given = [*trainable_variables, *optimizer_variables]
        if len(given) != len(held):
            raise InvalidArgumentError(
                f"{self.name}: {len(given)} values for {len(self._trainable_variables)} model and "
                f"{len(self.variables)} optimizer variables"
            )
        with StatelessScope(zip(held, given, strict=True)):
            self.apply(grads)
            after = [v.read_value() for v in held]
        count = len(self._trainable_variables)
        return after[:count], after[count:]

    def _laminar_variables_for(
        self, grads: Sequence[Any], variables: Iterable[Variable] | None
    ) -> list[Variable]:
        if variables is None:
            if not self.built:
                raise FailedPreconditionError(
                    f"{self.name}: apply(grads) without variables needs a built optimizer",
                    remedy="call optimizer.build(trainable_variables) first, or pass the variables",
                )
            variables = self._trainable_variables
        variables = list(variables)
        if len(grads) != len(variables):
            raise InvalidArgumentError(
                f"{self.name}: {len(grads)} gradients for {len(variables)} variables",
                remedy="pass one gradient for each variable, in the same order; None for none",
            )
        if not self.built and variables:
            self.build(variables)
        for v in variables:
            self._get_variable_index(v)
        return variables

    def _laminar_checked(self, gradient: Any, variable: Variable) -> Any:
        if gradient is None:
            return None
        gradient = self._laminar_as_taken(gradient, variable)
        if not gradient.shape.is_compatible_with(variable.shape):
            raise ShapeError(
                f"{self.name}: the gradient of {variable.path!r} is {gradient.spec}, "
                f"the variable is {variable.spec}",
                remedy="give gradients in the order of the variables",
            )
        return gradient

    def _laminar_apply(self, grads: Sequence[Tensor | None], variables: Sequence[Variable]) -> None:
        pairs = [(g, v) for g, v in zip(grads, variables, strict=True) if g is not None]
        for g, v in pairs:
            if v.overwrite_with_gradient:
                self._laminar_overwrite(g, v)
        left = [v.overwrite_with_gradient or not self._laminar_factor(v) for _, v in pairs]
        pairs = [pair for pair, is_left in zip(pairs, left, strict=True) if not is_left]
        updated = [v for _, v in pairs]

        def own(g: Any, v: Variable) -> Any:
            g = ops.cast(g, v.dtype)
            return g if self.loss_scale_factor is None else g / self.loss_scale_factor

        present = [mapped(g, partial(own, v=v)) for g, v in pairs]
        if self.gradient_accumulation_steps:
            self._laminar_accumulate(present, updated)
        else:
            self._laminar_update(present, updated)
        if self.use_ema:
            self._laminar_average(variables)
        for v in updated:
            if v.constraint is not None:
                self.assign(v, v.constraint(v.as_tensor()))
        self.assign_add(self._iterations, 1)

    def _laminar_update(self, grads: Sequence[Tensor], variables: Sequence[Variable]) -> None:
        """Clip, decay, and apply the rule."""
        grads = self._clip_gradients(grads)
        rate = self.learning_rate
        for g, v in zip(grads, variables, strict=True):
            decay = self._laminar_weight_decay_of(v)
            if decay is not None and not isinstance(g, CombinedSlices):
                self.assign_sub(v, self._laminar_rate_of(v, rate) * decay * v)
        self._laminar_update_steps(grads, variables, rate)

    def _clip_gradients(self, grads: Sequence[Tensor]) -> Sequence[Tensor]:
        if self.clipnorm is not None:
            return clip_by_norm(grads, self.clipnorm)
        if self.clipvalue is not None:
            return clip_by_value(grads, self.clipvalue)
        if self.global_clipnorm is not None:
            return clip_by_global_norm(grads, self.global_clipnorm)
        return grads

    def _laminar_update_steps(
        self, grads: Sequence[Any], variables: Sequence[Variable], learning_rate: Tensor
    ) -> None:
        """Apply the rule to all variables; override it for what is done once in a step."""
        for g, v in zip(grads, variables, strict=True):
            self._laminar_update_one(g, v, self._laminar_rate_of(v, learning_rate))

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        """The rule: update one variable.

        Args:
            gradient: of the shape and dtype of the variable, scaled and clipped.
            variable: a model variable that `build` was given.
            learning_rate: a scalar of the variable's dtype.
        """
        raise NotImplementedError

    def _laminar_time(self, dtype: str, ahead: int = 1) -> Any:
        """t of the papers: 1 in the first step; in float32 or float64, where 0.999**t is not 1."""
        return ops.cast(self.iterations + ahead, result_type(dtype, "float32"))

    def assign(self, variable: Variable, value: TensorLike) -> Tensor:
        """Store `value` in a variable, unless this step is skipped; gives what is stored then."""
        return assign(variable, value)

    def assign_add(self, variable: Variable, value: TensorLike) -> Tensor:
        """Add to a variable, unless this step is skipped; gives what is stored then."""
        return assign_add(variable, value)

    def assign_sub(self, variable: Variable, value: TensorLike) -> Tensor:
        """Subtract from a variable, unless this step is skipped; gives what is stored then."""
        return assign_sub(variable, value)

    def scale_loss(self, loss: float | Tensor) -> Any:
        """The loss times `loss_scale_factor`: small float16 gradients stay above zero."""
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an optimizer like this one, as data."""
        rate = self._learning_rate
        own: dict[str, Any] = {"lazy": True} if self.lazy else {}  # Keras has none of these
        if self._laminar_groups is not None:
            own["groups"] = self._laminar_groups.config(self._trainable_variables)
        return own | {
            "name": self.name,
            "learning_rate": float(rate.numpy())
            if isinstance(rate, Variable)
            else serialize_keras_object(rate),
            "weight_decay": self.weight_decay,
            "clipnorm": self.clipnorm,
            "global_clipnorm": self.global_clipnorm,
            "clipvalue": self.clipvalue,
            "use_ema": self.use_ema,
            "ema_momentum": self.ema_momentum,
            "ema_overwrite_frequency": self.ema_overwrite_frequency,
            "loss_scale_factor": self.loss_scale_factor,
            "gradient_accumulation_steps": self.gradient_accumulation_steps,
        }

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Optimizer:
        """The optimizer that `get_config` described."""
        arguments = dict(config)
        if isinstance(arguments.get("learning_rate"), dict):
            arguments["learning_rate"] = deserialize_keras_object(
                arguments["learning_rate"], custom_objects
            )
        groups = arguments.pop("groups", None)
        found = cls(**arguments)
        if groups is not None:
            found.groups(groups)
        return found

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, {len(self._laminar_indices)} variables>"


# An optimizer, its class, a name or a config.
OptimizerLike: TypeAlias = str | Optimizer | type[Optimizer] | Mapping[str, Any]
