"""Rules for the updates of TensorFlow's optimizers.

Source: tensorflow/core/kernels/training_ops.cc for the formulas; each with the paper of its rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ops.core.basic import group, identity
from ...ops.math.arithmetic import absolute, maximum, minimum, sign
from ...ops.math.elementary import power, rsqrt, sqrt
from .rules import Call, Reference, rule

Update = Callable[[Call, Sequence[Reference], Sequence[Any]], Any]


def _optimizer(name: str, slots: int) -> Callable[[Update], Update]:
    """Register a rule for `Apply<name>` and `ResourceApply<name>`.

    It gets the variable and its slots, then the values of the other inputs, and gives the
    variable's new value, which it has stored.
    """

    def register(update: Update) -> Update:
        @rule(f"Apply{name}", f"ResourceApply{name}")
        def applied(call: Call) -> Any:
            kept = [call.reference(i) for i in range(1 + slots)]
            new = update(call, kept, call.values[1 + slots :])
            if call.node.op.startswith("Resource"):
                return group(new, name=f"{call.name}/")
            return [kept[0]._replace(value=new)]

        return update

    return register


@_optimizer("GradientDescent", 0)
def _gradient_descent(call: Call, kept: Sequence[Reference], given: Sequence[Any]) -> Any:
    rate, grad = given
    return kept[0].subtract(rate * grad)


@_optimizer("Momentum", 1)
def _momentum(call: Call, kept: Sequence[Reference], given: Sequence[Any]) -> Any:
    rate, grad, momentum = given
    moving = kept[1].assign(kept[1].read() * momentum + grad)
    if call.node.attr("use_nesterov", False):
        return kept[0].subtract(grad * rate + moving * momentum * rate)
    return kept[0].subtract(moving * rate)


@_optimizer("KerasMomentum", 1)
def _keras_momentum(call: Call, kept: Sequence[Reference], given: Sequence[Any]) -> Any:
    rate, grad, momentum = given
    moving = kept[1].assign(kept[1].read() * momentum - grad * rate)
    if call.node.attr("use_nesterov", False):
        return kept[0].add(moving * momentum - grad * rate)
    return kept[0].add(moving)


@_optimizer("Adam", 2)
def _adam(call: Call, kept: Sequence[Reference], given: Sequence[Any]) -> Any:
    """Kingma and Ba, arXiv:1412.6980, section 2, with the step corrected instead of the moments."""
    power_1, power_2, rate, beta_1, beta_2, epsilon, grad = given
    rate = rate * sqrt(1.0 - power_2) / (1.0 - power_1)
    m, v = kept[1].read(), kept[2].read()
    m = kept[1].assign(m + (grad - m) * (1.0 - beta_1))
    v = kept[2].assign(v + (grad * grad - v) * (1.0 - beta_2))
    if call.node.attr("use_nesterov", False):
        m = grad * (1.0 - beta_1) + beta_1 * m
    return kept[0].subtract(m * rate / (sqrt(v) + epsilon))


def _adagrad_step(
    call: Call, kept: Sequence[Reference], rate: Any, grad: Any, epsilon: Any = None
) -> Any:
    total = kept[1].read()
    if call.node.attr("update_slots", True):
        total = kept[1].assign(total + grad * grad)
    if epsilon is None:
        return kept[0].subtract(rate * grad * rsqrt(total))
    return kept[0].subtract(rate * grad / (sqrt(total) + epsilon))


@_optimizer("Adagrad", 1)
def _adagrad(call: Call, kept: Sequence[Reference], given: Sequence[Any]) -> Any:
    """Duchi, Hazan and Singer, "Adaptive subgradient methods", 2011."""
    return _adagrad_step(call, kept, *given)


@_optimizer("AdagradV2", 1)
def _adagrad_v2(call: Call, kept: Sequence[Reference], given: Sequence[Any]) -> Any:
    rate, epsilon, grad = given
    return _adagrad_step(call, kept, rate, grad, epsilon)


@_optimizer("RMSProp", 2)
def _rms_prop(call: Call, kept: Sequence[Reference], given: Sequence[Any]) -> Any:
    rate, rho, momentum, epsilon, grad = given
    mean = kept[1].read()
    mean = kept[1].assign(mean + (grad * grad - mean) * (1.0 - rho))
    moving = kept[2].assign(kept[2].read() * momentum + rate * grad * rsqrt(mean + epsilon))
    return kept[0].subtract(moving)


@_optimizer("CenteredRMSProp", 3)
def _centered_rms_prop(call: Call, kept: Sequence[Reference], given: Sequence[Any]) -> Any:
    rate, rho, momentum, epsilon, grad = given
    first, second = kept[1].read(), kept[2].read()
    second = kept[2].assign(second + (grad * grad - second) * (1.0 - rho))
    first = kept[1].assign(first + (grad - first) * (1.0 - rho))
    step = rate * grad * rsqrt(second - first * first + epsilon)
    return kept[0].subtract(kept[3].assign(kept[3].read() * momentum + step))


@_optimizer("Adadelta", 2)
def _adadelta(call: Call, kept: Sequence[Reference], given: Sequence[Any]) -> Any:
    """Zeiler, arXiv:1212.5701, algorithm 1."""
    rate, rho, epsilon, grad = given
    mean = kept[1].assign(kept[1].read() * rho + grad * grad * (1.0 - rho))
    steps = kept[2].read()
    step = sqrt(steps + epsilon) * rsqrt(mean + epsilon) * grad
    done = kept[0].subtract(step * rate)
    stored = kept[2].assign(steps * rho + step * step * (1.0 - rho))
    return _after(call, done, stored)


def _ftrl_step(call: Call, kept: Sequence[Reference], given: Sequence[Any]) -> Any:
    """McMahan et al., "Ad click prediction: a view from the trenches", 2013, algorithm 1."""
    grad, rate, l1, l2, *shrinkage, exponent = given
    own = kept[0].read()
    total, linear = kept[1].read(), kept[2].read()
    shrunk = grad + 2.0 * shrinkage[0] * own if shrinkage else grad
    new_total = total + grad * grad
    sigma = (power(new_total, -exponent) - power(total, -exponent)) / rate
    linear = kept[2].assign(linear + shrunk - sigma * own)
    total = kept[1].assign(new_total)
    quadratic = power(total, -exponent) / rate + 2.0 * l2
    clipped = maximum(minimum(linear, l1), -l1)
    return kept[0].assign((clipped - linear) / quadratic)


@_optimizer("Ftrl", 2)
def _ftrl(call: Call, kept: Sequence[Reference], given: Sequence[Any]) -> Any:
    return _ftrl_step(call, kept, given)


@_optimizer("FtrlV2", 2)
def _ftrl_v2(call: Call, kept: Sequence[Reference], given: Sequence[Any]) -> Any:
    return _ftrl_step(call, kept, given)


@_optimizer("ProximalGradientDescent", 0)
def _proximal(call: Call, kept: Sequence[Reference], given: Sequence[Any]) -> Any:
    rate, l1, l2, grad = given
    moved = kept[0].read() - rate * grad
    shrunk = maximum(absolute(moved) - rate * l1, 0.0 * moved)
    return kept[0].assign(sign(moved) * shrunk / (1.0 + rate * l2))


@_optimizer("AdaMax", 2)
def _adamax(call: Call, kept: Sequence[Reference], given: Sequence[Any]) -> Any:
    """Kingma and Ba, arXiv:1412.6980, algorithm 2."""
    power_1, rate, beta_1, beta_2, epsilon, grad = given
    m, v = kept[1].read(), kept[2].read()
    m = kept[1].assign(m + (grad - m) * (1.0 - beta_1))
    v = kept[2].assign(maximum(beta_2 * v, absolute(grad)))
    return kept[0].subtract(rate / (1.0 - power_1) * m / (v + epsilon))


def _after(call: Call, done: Any, stored: Any) -> Any:
    """`done`, once `stored` is too."""
    with call.graph.control_dependencies([stored]):
        return call.graph.add(identity, [done], name="done").outputs[0]
