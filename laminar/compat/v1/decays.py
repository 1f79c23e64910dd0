"""`tf.train.*_decay`: learning rates that follow the global step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from laminar import ops
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.random import draws
from laminar.engine.state.random_source import draw_state

from .adapting import v1
from .values import tensor


def _step(global_step: Any) -> Any:
    if global_step is None:
        raise ValueError("a decay needs the global_step")
    return cast(tensor(global_step), "float32")


def _float(x: Any) -> Any:
    return cast(tensor(x, "float32"), "float32")


def _decay(formula: str, decayed: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """What the formula makes of the rate, the decay rate and step / decay_steps."""

    def decay(
        learning_rate: Any,
        global_step: Any,
        decay_steps: Any,
        decay_rate: Any,
        staircase: bool = False,
    ) -> Any:
        part = _step(global_step) / _float(decay_steps)
        part = lookup("Floor")(part) if staircase else part
        return decayed(_float(learning_rate), _float(decay_rate), part)

    decay.__doc__ = f"{formula}."
    return v1()(decay)


exponential_decay = _decay(
    "learning_rate * decay_rate**(step / decay_steps)",
    lambda rate, decay, part: rate * lookup("Pow")(decay, part),
)
natural_exp_decay = _decay(
    "learning_rate * exp(-decay_rate * step / decay_steps)",
    lambda rate, decay, part: rate * lookup("Exp")(-decay * part),
)
inverse_time_decay = _decay(
    "learning_rate / (1 + decay_rate * step / decay_steps)",
    lambda rate, decay, part: rate / (1 + decay * part),
)


@v1()
def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
) -> Any:
    """From learning_rate to end_learning_rate in decay_steps, as (1 - step / decay_steps)**power.

    With `cycle`, decay_steps grows by its own length each time that the step has passed it.
    """
    step, steps = _step(global_step), _float(decay_steps)
    if cycle:
        steps = steps * lookup("Maximum")(lookup("Ceil")(step / steps), _float(1))
    else:
        step = lookup("Minimum")(step, steps)
    begin, end = _float(learning_rate), _float(end_learning_rate)
    return (begin - end) * lookup("Pow")(1 - step / steps, _float(power)) + end


@v1()
def cosine_decay(learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0) -> Any:
    """learning_rate * ((1 - alpha) * (1 + cos(pi * step / decay_steps)) / 2 + alpha)."""
    steps = _float(decay_steps)
    part = lookup("Minimum")(_step(global_step), steps) / steps
    return _float(learning_rate) * ((1 - alpha) * 0.5 * (1 + lookup("Cos")(math.pi * part)) + alpha)


@v1()
def piecewise_constant(x: Any, boundaries: Sequence[Any], values: Sequence[Any]) -> Any:
    """values[i], where boundaries[i - 1] < x <= boundaries[i]."""
    if len(values) != len(boundaries) + 1:
        raise ValueError(f"{len(boundaries)} boundaries need one value more, got {len(values)}")
    step = tensor(x)
    found = tensor(values[-1])
    for bound, value in zip(reversed(boundaries), reversed(values[:-1]), strict=True):
        below = lookup("LessEqual")(step, tensor(bound, step.dtype))
        found = ops.where(below, tensor(value, found.dtype), found)
    return found


def _annealed(part: Any) -> Any:
    return 0.5 * (1 + lookup("Cos")(math.pi * part))


@v1()
def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: float = 2.0,
    m_mul: float = 1.0,
    alpha: float = 0.0,
) -> Any:
    """`cosine_decay` that begins anew, each time `t_mul` longer and from `m_mul` of the rate.

    Source: Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017,
        arXiv:1608.03983, equation 5.
    """
    part = _step(global_step) / _float(first_decay_steps)
    if t_mul == 1.0:
        period = lookup("Floor")(part)
        inside = part - period
    else:
        period = lookup("Floor")(lookup("Log")(1.0 - part * (1.0 - t_mul)) / math.log(t_mul))
        begun = (1.0 - lookup("Pow")(_float(t_mul), period)) / (1.0 - t_mul)
        inside = (part - begun) / lookup("Pow")(_float(t_mul), period)
    height = lookup("Pow")(_float(m_mul), period)
    return _float(learning_rate) * ((1 - alpha) * height * _annealed(inside) + alpha)


@v1()
def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
) -> Any:
    """learning_rate * ((alpha + 1 - part) * (1 + cos(2 pi num_periods part)) / 2 + beta).

    Source: Bello et al., "Neural optimizer search with reinforcement learning", 2017,
        arXiv:1709.07417, section 4.
    """
    steps = _float(decay_steps)
    part = lookup("Minimum")(_step(global_step), steps) / steps
    wave = _annealed(2 * num_periods * part)
    return _float(learning_rate) * ((alpha + 1 - part) * wave + beta)


@v1()
def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: float = 1.0,
    variance_decay: float = 0.55,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
) -> Any:
    """`linear_cosine_decay` with noise of the variance initial / (1 + step)**variance_decay."""
    steps = _float(decay_steps)
    step = lookup("Minimum")(_step(global_step), steps)
    variance = initial_variance / lookup("Pow")(1.0 + step, _float(variance_decay))
    noise = draws.random_normal(draw_state(None), [1])[0] * lookup("Sqrt")(variance)
    part = step / steps
    wave = _annealed(2 * num_periods * part)
    return _float(learning_rate) * ((alpha + 1 - part + noise) * wave + beta)
