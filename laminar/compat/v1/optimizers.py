"""`tf.train.Optimizer` and its kinds: over the variables of a graph, with slots.

A kind says which slots it has and what it does with a gradient; own kinds derive from `Optimizer`
as they did there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from laminar import engine
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import GraphTensor, Tensor, building, get_default_graph
from laminar.engine.ops.array.creation import full
from laminar.engine.ops.core.registry import lookup
from laminar.engine.state import GraphKeys
from laminar.engine.state.assign import check_variable

from .adapting import in_graph
from .values import tensor
from .variable_class import named

_sqrt, _square = lookup("Sqrt"), lookup("Square")


class Optimizer:
    """Base: gradients, and what is done with them.

    Args:
        use_locking: accepted: an update is one step in any case.
        name: of the operations that apply gradients.
    """

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2

    def __init__(self, use_locking: bool = False, name: str = "Optimizer") -> None:
        if not name:
            raise ValueError("Optimizer: give a name")
        self._name = name
        self._slots: dict[str, dict[int, engine.Variable]] = {}
        self._others: list[engine.Variable] = []

    def get_name(self) -> str:
        """Its name."""
        return self._name

    # Gradients

    def minimize(
        self,
        loss: Any,
        global_step: engine.Variable | None = None,
        var_list: Sequence[engine.Variable] | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Any:
        """The operation that makes one step against the gradient of `loss`.

        Args:
            loss: a tensor; eagerly, a function of nothing.
            global_step: a variable that is counted up after the step.
            var_list: the variables, by default the trainable ones of the graph.
            gate_gradients, aggregation_method, colocate_gradients_with_ops: accepted.
            name: of the operation.
            grad_loss: the gradient that arrives at `loss`, by default 1.

        Raises:
            ValueError: no variable has a gradient.
        """
        pairs = self.compute_gradients(loss, var_list, grad_loss=grad_loss)
        if all(gradient is None for gradient, _ in pairs):
            raise ValueError(
                f"{self._name}: the loss {loss!r} depends on none of the variables "
                f"{[v.name for _, v in pairs]}"
            )
        return self.apply_gradients(pairs, global_step, name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Sequence[engine.Variable] | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, engine.Variable]]:
        """(gradient, variable) pairs; None where the loss does not depend on the variable."""
        if callable(loss):
            with engine.GradientTape() as tape:
                value = loss()
            if var_list is None:
                raise ValueError(f"{self._name}: eagerly, give var_list")
            variables = list(var_list)
            return list(zip(tape.gradient(value, variables, grad_loss), variables, strict=True))
        if not isinstance(loss, GraphTensor):
            raise InvalidArgumentError(
                f"{self._name}: the loss {loss!r} is no tensor of a graph",
                remedy="eagerly, give a function that computes it",
            )
        if var_list is None:
            graph = loss.graph.root
            var_list = [
                *graph.get_collection(GraphKeys.TRAINABLE_VARIABLES),
                *graph.get_collection(GraphKeys.TRAINABLE_RESOURCE_VARIABLES),
            ]
        variables = list(var_list) if isinstance(var_list, Iterable) else [var_list]
        if not variables:
            raise ValueError(f"{self._name}: there are no variables to train")
        with in_graph():
            found = engine.gradients(loss, variables, grad_loss)
        return list(zip(found, variables, strict=True))

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, engine.Variable]],
        global_step: engine.Variable | None = None,
        name: str | None = None,
    ) -> Any:
        """The operation that updates variables by (gradient, variable) pairs.

        Raises:
            ValueError: there are no pairs, or no gradients.
            TypeError: a pair has no variable.
        """
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        for _, variable in pairs:
            check_variable(f"{self._name}.apply_gradients", variable)
        if not pairs:
            raise ValueError(f"{self._name}: there is no gradient for any variable")
        with in_graph():
            graph = building()
            with engine.control_dependencies(None):
                self._create_slots([v for _, v in pairs])
            with engine.name_scope(name or self._name) as scope:
                self._prepare()
                updates = [self._apply_dense(tensor(g), v) for g, v in pairs]
                finished = self._finish(updates, scope if global_step is None else "update")
                if global_step is not None:
                    with engine.control_dependencies([] if finished is None else [finished]):
                        finished = global_step.assign_add(1, name=scope)
            if graph is None:
                return None
            finished = getattr(finished, "op", finished)
            get_default_graph().root.add_to_collection(GraphKeys.TRAIN_OP, finished)
            return finished

    # Slots

    def get_slot(self, var: engine.Variable, name: str) -> engine.Variable | None:
        """What is kept of that name for a variable."""
        return self._slots.get(name, {}).get(id(var))

    def get_slot_names(self) -> list[str]:
        """The names of what is kept for variables."""
        return sorted(self._slots)

    def variables(self) -> list[engine.Variable]:
        """All that is kept."""
        return [*self._others, *(v for slots in self._slots.values() for v in slots.values())]

    def _zeros_slot(self, var: engine.Variable, slot_name: str, op_name: str) -> engine.Variable:
        return self._slot_of(var, 0.0, slot_name, op_name)

    def _slot_of(
        self, var: engine.Variable, value: float, slot_name: str, op_name: str
    ) -> engine.Variable:
        slots = self._slots.setdefault(slot_name, {})
        found = slots.get(id(var))
        if found is None:
            begin = full(var.shape, value, var.dtype)
            found = slots[id(var)] = self._kept(begin, f"{var.path}/{op_name}")
        return found

    def _kept(self, value: Any, name: str) -> engine.Variable:
        with engine.name_scope(None):
            return named(engine.Variable(value, trainable=False, name=name))

    # What kinds define

    def _create_slots(self, var_list: Sequence[engine.Variable]) -> None:
        """Make what is kept for the variables."""

    def _prepare(self) -> None:
        """Called before gradients are applied."""

    def _apply_dense(self, grad: Tensor, var: engine.Variable) -> Any:
        """Update a variable by its gradient; gives an operation or tensor."""
        raise NotImplementedError(f"{type(self).__name__} does not define _apply_dense()")

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        """What has run when all updates have; in a graph an operation."""
        return engine.group(*update_ops, name=name_scope) if building() is not None else None

    @staticmethod
    def _call_if_callable(param: Any) -> Any:
        return param() if callable(param) else param

    def _number(self, value: Any, var: engine.Variable) -> Tensor:
        return lookup("Cast")(tensor(self._call_if_callable(value), "float32"), dtype=var.dtype)


class GradientDescentOptimizer(Optimizer):
    """w = w - learning_rate * g."""

    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _apply_dense(self, grad: Tensor, var: engine.Variable) -> Any:
        return var.assign_sub(self._number(self._learning_rate, var) * grad)


class MomentumOptimizer(Optimizer):
    """m = momentum * m + g; w = w - learning_rate * m.

    With `use_nesterov`, w = w - learning_rate * (g + momentum * m).
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._momentum = learning_rate, momentum
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list: Sequence[engine.Variable]) -> None:
        for v in var_list:
            self._zeros_slot(v, "momentum", self._name)

    def _apply_dense(self, grad: Tensor, var: engine.Variable) -> Any:
        slot = self._zeros_slot(var, "momentum", self._name)
        momentum = self._number(self._momentum, var)
        m = slot.assign(momentum * slot + grad)
        step = grad + momentum * m if self._use_nesterov else m
        return var.assign_sub(self._number(self._learning_rate, var) * step)


class AdamOptimizer(Optimizer):
    """m = b1 * m + (1 - b1) * g; v = b2 * v + (1 - b2) * g**2; w = w - rate * m / (sqrt(v) + eps).

    rate = learning_rate * sqrt(1 - b2**t) / (1 - b1**t) in step t.

    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2014, arXiv:1412.6980,
        the form at the end of section 2.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._epsilon = learning_rate, epsilon
        self._betas = beta1, beta2
        self._powers: list[engine.Variable] = []

    def _create_slots(self, var_list: Sequence[engine.Variable]) -> None:
        if not self._powers:
            for i, beta in enumerate(self._betas):
                begin = tensor(self._call_if_callable(beta), "float32")
                self._powers.append(self._kept(begin, f"{self._name}/beta{i + 1}_power"))
            self._others += self._powers
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", f"{self._name}_1")

    def _apply_dense(self, grad: Tensor, var: engine.Variable) -> Any:
        first, second = (self._slots[key][id(var)] for key in "mv")
        b1, b2 = (self._number(beta, var) for beta in self._betas)
        p1, p2 = (self._number(power.as_tensor(), var) for power in self._powers)
        m = first.assign(first + (1 - b1) * (grad - first))
        v = second.assign(second + (1 - b2) * (_square(grad) - second))
        rate = self._number(self._learning_rate, var) * _sqrt(1 - p2) / (1 - p1)
        return var.assign_sub(rate * m / (_sqrt(v) + self._number(self._epsilon, var)))

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        with engine.control_dependencies(update_ops):
            powers = [
                power.assign(power.as_tensor() * self._number(beta, power))
                for power, beta in zip(self._powers, self._betas, strict=True)
            ]
        return super()._finish([*update_ops, *powers], name_scope)


class AdagradOptimizer(Optimizer):
    """a = a + g**2; w = w - learning_rate * g / sqrt(a).

    Source: Duchi et al., "Adaptive subgradient methods for online learning and stochastic
        optimization", 2011.
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0:
            raise ValueError(
                f"initial_accumulator_value must be positive, got {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate, self._begin = learning_rate, initial_accumulator_value

    def _create_slots(self, var_list: Sequence[engine.Variable]) -> None:
        for v in var_list:
            self._slot_of(v, self._begin, "accumulator", self._name)

    def _apply_dense(self, grad: Tensor, var: engine.Variable) -> Any:
        total = self._slots["accumulator"][id(var)].assign_add(_square(grad))
        return var.assign_sub(self._number(self._learning_rate, var) * grad / _sqrt(total))


class AdadeltaOptimizer(Optimizer):
    """a = rho * a + (1 - rho) * g**2; d = g * sqrt(u + eps) / sqrt(a + eps);
    u = rho * u + (1 - rho) * d**2; w = w - learning_rate * d.

    Source: Zeiler, "ADADELTA: an adaptive learning rate method", 2012, arXiv:1212.5701.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._rho, self._epsilon = learning_rate, rho, epsilon

    def _create_slots(self, var_list: Sequence[engine.Variable]) -> None:
        for v in var_list:
            self._zeros_slot(v, "accum", self._name)
            self._zeros_slot(v, "accum_update", f"{self._name}_1")

    def _apply_dense(self, grad: Tensor, var: engine.Variable) -> Any:
        gradients, updates = (self._slots[key][id(var)] for key in ("accum", "accum_update"))
        rho, epsilon = self._number(self._rho, var), self._number(self._epsilon, var)
        before = updates.as_tensor()
        a = gradients.assign(rho * gradients + (1 - rho) * _square(grad))
        d = grad * _sqrt(before + epsilon) / _sqrt(a + epsilon)
        u = updates.assign(rho * before + (1 - rho) * _square(d))
        moved = var.assign_sub(self._number(self._learning_rate, var) * d)
        return moved if building() is None else engine.group(u, moved)


class RMSPropOptimizer(Optimizer):
    """s = decay * s + (1 - decay) * g**2; m = momentum * m + learning_rate * g / sqrt(s + eps);
    w = w - m. With `centered`, s less the square of the mean gradient stands under the root.

    Source: Tieleman and Hinton, "Lecture 6.5: rmsprop", 2012.
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._decay = learning_rate, decay
        self._momentum, self._epsilon, self._centered = momentum, epsilon, centered

    def _create_slots(self, var_list: Sequence[engine.Variable]) -> None:
        for v in var_list:
            self._slot_of(v, 1.0, "rms", self._name)
            if self._centered:
                self._zeros_slot(v, "mg", self._name)
            self._zeros_slot(v, "momentum", f"{self._name}_1")

    def _apply_dense(self, grad: Tensor, var: engine.Variable) -> Any:
        square, moving = (self._slots[key][id(var)] for key in ("rms", "momentum"))
        decay = self._number(self._decay, var)
        under = square.assign(decay * square + (1 - decay) * _square(grad))
        if self._centered:
            mean = self._slots["mg"][id(var)]
            under = under - _square(mean.assign(decay * mean + (1 - decay) * grad))
        step = self._number(self._learning_rate, var) * grad
        m = moving.assign(
            self._number(self._momentum, var) * moving.as_tensor()
            + step / _sqrt(under + self._number(self._epsilon, var))
        )
        return var.assign_sub(m)


class ProximalGradientDescentOptimizer(Optimizer):
    """p = w - learning_rate * g, then shrunk by the L1 and L2 strengths.

    w = sign(p) * max(|p| - learning_rate * l1, 0) / (1 + learning_rate * l2)

    Source: Duchi and Singer, "Efficient learning using forward-backward splitting", 2009.
    """

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _apply_dense(self, grad: Tensor, var: engine.Variable) -> Any:
        rate = self._number(self._learning_rate, var)
        moved = var.as_tensor() - rate * grad
        kept = lookup("Relu")(lookup("Abs")(moved) - rate * self._l1)
        return var.assign(lookup("Sign")(moved) * kept / (1 + rate * self._l2))
