"""`tf.train`: optimizers whose solutions have zeros in them, by a penalty of |w|."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import engine, ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import where

from .optimizers import Optimizer
from .values import tensor

_sqrt, _square, _pow = lookup("Sqrt"), lookup("Square"), lookup("Pow")


def _least(who: str, what: str, value: float, allowed: bool) -> float:
    if not allowed:
        raise ValueError(f"{who}: {what} is 0 or more, got {value}")
    return value


def _towards_zero(x: Any, by: Any) -> Any:
    """sign(x) * max(|x| - by, 0)."""
    return lookup("Sign")(x) * ops.maximum(ops.abs(x) - by, 0.0)


class FtrlOptimizer(Optimizer):
    """a' = a + g**2; z = z + g - (a'**p - a**p) / learning_rate * w; w from z.

    With p = -learning_rate_power, w = (sign(z) * l1 - z) / (a'**p / learning_rate + 2 * l2) where
    |z| > l1, and else 0. To g, 2 * l2_shrinkage * w is added in z alone.

    Source: McMahan et al., "Ad click prediction: a view from the trenches", 2013, algorithm 1.
    """

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        super().__init__(use_locking, name)
        if learning_rate_power > 0:
            raise ValueError(f"Ftrl: learning_rate_power is 0 or less, got {learning_rate_power}")
        self._learning_rate, self._power = learning_rate, -learning_rate_power
        begin = initial_accumulator_value
        self._begin = _least("Ftrl", "initial_accumulator_value", begin, begin >= 0)
        strengths = {
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
            "l2_shrinkage_regularization_strength": l2_shrinkage_regularization_strength,
        }
        self._strengths = [_least("Ftrl", k, v, v >= 0) for k, v in strengths.items()]
        self._names = accum_name or name, linear_name or f"{name}_1"

    def _create_slots(self, var_list: Sequence[engine.Variable]) -> None:
        for v in var_list:
            self._slot_of(v, self._begin, "accum", self._names[0])
            self._zeros_slot(v, "linear", self._names[1])

    def _apply_dense(self, grad: Tensor, var: engine.Variable) -> Any:
        accum, linear = self._slots["accum"][id(var)], self._slots["linear"][id(var)]
        rate = self._number(self._learning_rate, var)
        l1, l2, shrinkage = (self._number(s, var) for s in self._strengths)
        power = self._number(self._power, var)
        old = accum.as_tensor()
        new = old + _square(grad)
        w = var.as_tensor()
        sigma = (_pow(new, power) - _pow(old, power)) / rate
        z = linear + grad + 2.0 * shrinkage * w - sigma * w
        solved = (lookup("Sign")(z) * l1 - z) / (_pow(new, power) / rate + 2.0 * l2)
        found = where(ops.abs(z) > l1, solved, lookup("ZerosLike")(z))
        kept = [accum.assign(new), linear.assign(z)]
        with engine.control_dependencies(kept if hasattr(kept[0], "op") else []):
            return var.assign(found)


class ProximalAdagradOptimizer(Optimizer):
    """a = a + g**2; r = learning_rate / sqrt(a); w = shrunk(w - r * g, r * l1) / (1 + r * l2).

    Source: Duchi and Singer, "Efficient online and batch learning using forward backward
        splitting", 2009.
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        super().__init__(use_locking, name)
        begin = initial_accumulator_value
        self._begin = _least(name, "initial_accumulator_value", begin, begin > 0)
        self._learning_rate = learning_rate
        self._strengths = l1_regularization_strength, l2_regularization_strength

    def _create_slots(self, var_list: Sequence[engine.Variable]) -> None:
        for v in var_list:
            self._slot_of(v, self._begin, "accumulator", self._name)

    def _apply_dense(self, grad: Tensor, var: engine.Variable) -> Any:
        accumulator = self._slots["accumulator"][id(var)]
        total = accumulator.assign(accumulator + _square(grad))
        rate = self._number(self._learning_rate, var) / _sqrt(total)
        l1, l2 = (self._number(s, var) for s in self._strengths)
        moved = _towards_zero(var.as_tensor() - rate * grad, rate * l1)
        return var.assign(moved / (1.0 + rate * l2))


class AdagradDAOptimizer(Optimizer):
    """s = s + g; a = a + g**2; w = -r * shrunk(s, l1 * t) / (l2 * t * r + sqrt(a)) in step t.

    r is the learning rate.

    Source: Duchi et al., "Adaptive subgradient methods for online learning and stochastic
        optimization", 2011, equation 3.
    """

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        super().__init__(use_locking, name)
        begin = initial_gradient_squared_accumulator_value
        self._begin = _least(name, "the initial value of the accumulator", begin, begin > 0)
        self._learning_rate, self._global_step = learning_rate, global_step
        self._strengths = l1_regularization_strength, l2_regularization_strength

    def _create_slots(self, var_list: Sequence[engine.Variable]) -> None:
        for v in var_list:
            self._zeros_slot(v, "gradient_accumulator", self._name)
            self._slot_of(v, self._begin, "gradient_squared_accumulator", f"{self._name}_1")

    def _apply_dense(self, grad: Tensor, var: engine.Variable) -> Any:
        sums = self._slots["gradient_accumulator"][id(var)]
        squares = self._slots["gradient_squared_accumulator"][id(var)]
        step = cast(tensor(self._global_step), var.dtype) + 1.0
        rate = self._number(self._learning_rate, var)
        l1, l2 = (self._number(s, var) for s in self._strengths)
        total = sums.assign(sums + grad)
        root = _sqrt(squares.assign(squares + _square(grad)))
        return var.assign(-rate * _towards_zero(total, l1 * step) / (l2 * step * rate + root))
