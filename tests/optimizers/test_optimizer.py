"""What all optimizers share: arguments, variables, the step, skipped steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import ops, optimizers
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ShapeError,
)
from laminar.engine.functions import function
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import Graph, Operation
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.runtime import Session
from laminar.engine.state import Variable, global_variables_initializer
from laminar.optimizers import SGD, Adam, LossScaleOptimizer, Optimizer, schedules

from .samples import ONES, RULES, variable

# Arguments

BAD = [
    (lambda: SGD(lr=0.1), "no argument 'lr'", "learning_rate"),  # type: ignore[call-arg]  # the mistake
    (lambda: SGD(clip_norm=1), "no argument 'clip_norm'", "clipnorm"),  # type: ignore[call-arg]  # the mistake
    (lambda: SGD("fast"), "learning_rate must be a number", None),  # type: ignore[arg-type]  # the mistake
    (
        lambda: SGD(clipnorm=1.0, clipvalue=1.0),
        "only one of clipnorm, clipvalue, global_clipnorm",
        None,
    ),
    (lambda: SGD(clipnorm=0.0), "clipnorm must be positive", None),
    (lambda: SGD(gradient_accumulation_steps=1), "must be an integer of at least 2", None),
    (lambda: SGD(use_ema=True, ema_momentum=2.0), "ema_momentum must lie in", None),
    (lambda: SGD(use_ema=True, ema_overwrite_frequency=0), "must be a positive integer", None),
    (lambda: SGD(momentum=2.0), "momentum must lie in [0, 1], got 2.0", None),
    (lambda: Adam(beta_1=1.0), "Adam: beta_1 must lie in [0, 1), got 1.0", None),
    (lambda: optimizers.AdamW(weight_decay=None), "weight_decay must be a number", None),  # type: ignore[arg-type]  # the mistake
    (lambda: optimizers.Lion(beta_1=0.0), "beta_1 must lie in (0, 1]", None),
    (lambda: optimizers.Ftrl(learning_rate_power=1.0), "must not be above 0", None),
    (lambda: optimizers.Ftrl(initial_accumulator_value=-1.0), "must not be negative", None),
    (lambda: LossScaleOptimizer(SGD(), clipnorm=1.0), "clipnorm cannot be set here", "inner"),
    (lambda: LossScaleOptimizer("adam"), "expected an optimizer to wrap", None),  # type: ignore[arg-type]  # the mistake
    (lambda: LossScaleOptimizer(SGD(), initial_scale=0.0), "initial_scale must be positive", None),
]


@pytest.mark.parametrize(("make", "message", "remedy"), BAD)
def test_bad_arguments(make: Any, message: str, remedy: str | None) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        make()
    assert message in caught.value.message
    assert remedy is None or remedy in str(caught.value.remedy)


# The step


def test_apply_builds_updates_and_counts() -> None:
    w, optimizer = variable(), SGD(0.5)
    assert optimizer.apply([ONES], [w]) is None
    assert int(optimizer.apply_gradients([(ONES, w)])) == 2
    np.testing.assert_array_equal(w.numpy(), [0, 1, 2])
    optimizer.apply([ONES])  # built by now
    np.testing.assert_array_equal(w.numpy(), [-0.5, 0.5, 1.5])
    assert optimizer.apply([], []) is None
    assert int(optimizer.iterations) == 3


def test_missing_gradients() -> None:
    w, b, optimizer = variable("w"), variable("b"), SGD(0.5)
    with pytest.warns(UserWarning, match="no gradient for b; ") as caught:
        optimizer.apply([ONES, None], [w, b])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(b.numpy(), [1, 2, 3])
    with pytest.raises(InvalidArgumentError, match=r"no variable has a gradient \(w, b\)") as error:
        optimizer.apply([None, None], [w, b])
    assert "loss" in str(error.value.remedy)


def test_errors_of_apply() -> None:
    w, other, optimizer = variable("dense/kernel"), variable("other"), SGD(0.5)
    with pytest.raises(FailedPreconditionError, match="needs a built optimizer"):
        optimizer.apply([ONES])
    optimizer.build([w])
    with pytest.raises(InvalidArgumentError, match="2 gradients for 1 variables"):
        optimizer.apply([ONES, ONES], [w])
    with pytest.raises(
        ShapeError,
        match=r"gradient of 'dense/kernel' is float32\[4\], the variable is float32\[3\]",
    ):
        optimizer.apply([np.ones(4, np.float32)], [w])
    with pytest.raises(InvalidArgumentError, match="'other' is not among the 1.*dense/kernel"):
        optimizer.apply([ONES], [other])
    with pytest.raises(NotImplementedError):
        Optimizer(0.1).apply([ONES], [w])


def test_half_precision_gradient_updates_float32() -> None:
    w, optimizer = variable(), Adam(0.5)
    optimizer.apply([ONES.astype(np.float16)], [w])
    assert [v.dtype for v in optimizer.variables] == ["int32"] + ["float32"] * 3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", RULES)
def test_half_precision_variables(kind: str, dtype: str) -> None:
    w = Variable(np.zeros((3, 2), np.float32), dtype=dtype, name="w")
    optimizer = getattr(optimizers, kind)(0.125)
    for _ in range(3):
        optimizer.apply([ops.ones((3, 2), dtype)], [w])
    assert {v.dtype for v in optimizer.variables[2:]} <= {dtype, "int32"}
    assert w.dtype == dtype
    assert (w.numpy().astype("float64") < 0).all()


@pytest.mark.parametrize("kind", RULES)
def test_lowers_a_loss(kind: str) -> None:
    """Every rule, in a traced training step with its gradient, goes down in a quadratic bowl."""
    w = Variable(np.linspace(1, 2, 6, dtype=np.float32).reshape(2, 3), name="w")
    b = Variable(np.array([1.0, -2.0], np.float32), name="b")
    optimizer = getattr(optimizers, kind)(0.05)

    @function
    def step() -> Any:
        with GradientTape() as tape:
            loss = ops.sum(ops.square(w)) + ops.sum(ops.square(b))
        optimizer.apply(tape.gradient(loss, [w, b]), [w, b])
        return loss

    losses = [float(step()) for _ in range(10)]
    assert all(b < a for a, b in zip(losses, losses[1:], strict=False))


def test_constraint() -> None:
    w, optimizer = variable(), SGD(1.0)
    w.constraint = lambda x: ops.maximum(x, 0.5)
    optimizer.apply([2 * ONES], [w])
    np.testing.assert_array_equal(w.numpy(), [0.5, 0.5, 1])


def test_gradient_as_value() -> None:
    """A variable that is overwritten with its gradient has no slots and no learning rate."""
    scale, w = variable("scale"), variable("w")
    scale.overwrite_with_gradient = True
    optimizer = SGD(0.5, momentum=0.9)
    optimizer.apply([7 * ONES, ONES], [scale, w])
    np.testing.assert_array_equal(scale.numpy(), 7 * ONES)
    assert [v.name for v in optimizer.variables] == ["iteration", "learning_rate", "w_momentum"]


def test_gradient_as_value_accumulated() -> None:
    scale, w = variable("scale"), variable("w")
    scale.overwrite_with_gradient = True
    optimizer = SGD(0.5, gradient_accumulation_steps=2)
    seen = []
    for g in [3.0, 2.0, 1.0, 5.0]:
        optimizer.apply([g * ONES, ONES], [scale, w])
        seen.append(scale.numpy()[0])
    assert seen == [1, 3, 3, 5]


def test_skipped_steps_change_nothing() -> None:
    """With accumulation, variables and slots keep their bits until the update."""
    w, optimizer = variable(), Adam(0.1, gradient_accumulation_steps=3, weight_decay=0.1)
    optimizer.build([w])
    _, _, sums, m, v = optimizer.variables
    for step in range(1, 7):
        before = [x.numpy() for x in (w, m, v)]
        optimizer.apply([step * ONES], [w])
        same = [np.array_equal(a, x.numpy()) for a, x in zip(before, (w, m, v), strict=True)]
        assert all(same) if step % 3 else not any(same)
        assert np.any(sums.numpy()) == bool(step % 3)
        assert int(optimizer.iterations) == step // 3


def test_moving_average() -> None:
    w, optimizer = variable(value=[8.0]), SGD(1.0, use_ema=True, ema_momentum=0.5)
    for _ in range(3):
        optimizer.apply([np.ones(1, np.float32)], [w])
    assert w.numpy() == 5  # after 7, 6, 5
    optimizer.finalize_variable_values([w])
    assert w.numpy() == 0.5 * (0.5 * 7 + 0.5 * 6) + 0.5 * 5
    plain = SGD(1.0)
    plain.finalize_variable_values([w])  # without averages, nothing
    assert w.numpy() == 5.75


def test_missing_gradient_keeps_average() -> None:
    w, b = variable("w"), variable("b")
    optimizer = SGD(0.5, use_ema=True)
    with pytest.warns(UserWarning, match="no gradient for b"):
        optimizer.apply([ONES, None], [w, b])
    optimizer.finalize_variable_values([w, b])
    np.testing.assert_array_equal(b.numpy(), [1, 2, 3])


def test_exclude_from_weight_decay() -> None:
    w, b, c = variable("kernel"), variable("bias"), variable("c")
    optimizer = SGD(0.5, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_list=[c], var_names=["bias"])
    zero = 0 * ONES
    optimizer.apply([zero, zero, zero], [w, b, c])
    np.testing.assert_array_equal(w.numpy(), [0.75, 1.5, 2.25])
    np.testing.assert_array_equal(b.numpy(), [1, 2, 3])
    np.testing.assert_array_equal(c.numpy(), [1, 2, 3])


def test_scale_loss() -> None:
    assert SGD(0.1, loss_scale_factor=8.0).scale_loss(2.0) == 16
    assert SGD(0.1).scale_loss(2.0) == 2


def test_stateless_apply() -> None:
    w, optimizer = variable(), Adam(0.5)
    with pytest.raises(FailedPreconditionError, match="needs a built optimizer"):
        optimizer.stateless_apply([], [ONES], [w])
    optimizer.build([w])
    optimizer.apply([ONES])
    own = [v.numpy() for v in optimizer.variables]
    model = [w.numpy()]
    step = function(lambda g: optimizer.stateless_apply(own, [g], model))
    found = [optimizer.stateless_apply(own, [2 * ONES], model), step(2 * ONES)]
    assert [v.numpy().tolist() for v in optimizer.variables] == [v.tolist() for v in own]
    np.testing.assert_array_equal(w.numpy(), model[0])
    optimizer.apply([2 * ONES])
    for new_model, new_own in found:
        np.testing.assert_array_equal(new_model[0].numpy(), w.numpy())
        for a, b in zip(new_own, optimizer.variables, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    with pytest.raises(InvalidArgumentError, match="2 values for 1 model and 4 optimizer"):
        optimizer.stateless_apply([1], [ONES], model)


# Learning rates


def test_learning_rate_is_settable_in_a_trace() -> None:
    w, optimizer = variable(value=[0.0]), SGD(1)
    optimizer.build([w])
    step = function(lambda g: optimizer.apply([g]))
    step(np.ones(1, np.float32))
    optimizer.learning_rate = 0.25
    step(np.ones(1, np.float32))
    assert w.numpy() == -1.25
    assert step.trace_count == 1
    assert float(optimizer.learning_rate) == 0.25


def test_schedule_follows_the_steps_of_a_trace() -> None:
    w = variable(value=[0.0])
    optimizer = SGD(schedules.PiecewiseConstantDecay([0, 1], [1.0, 0.5, 0.25]))
    optimizer.build([w])
    step = function(lambda g: optimizer.apply([g]))
    seen = []
    for _ in range(4):
        step(np.ones(1, np.float32))
        seen.append(float(w.numpy()[0]))
    assert seen == [-1, -1.5, -1.75, -2]
    assert [v.name for v in optimizer.variables] == ["iteration"]
    with pytest.raises(FailedPreconditionError, match="follows PiecewiseConstantDecay"):
        optimizer.learning_rate = 0.1


def test_learning_rate_becomes_a_schedule_or_function() -> None:
    w, optimizer = variable(value=[0.0]), SGD(1.0)
    optimizer.learning_rate = schedules.ExponentialDecay(0.5, 1, 0.5)
    optimizer.apply([np.ones(1, np.float32)], [w])
    assert w.numpy() == -0.5
    assert [v.name for v in optimizer.variables] == ["iteration"]
    optimizer.learning_rate = lambda: 2.0
    optimizer.apply([np.ones(1, np.float32)], [w])
    assert w.numpy() == -2.5


# Optimizer variables


class Signs(Optimizer):
    """A rule written by a user, with state of its own."""

    def build(self, variables: Any) -> None:
        super().build(variables)
        self.steps = Variable(0.0, name="steps", trainable=False)
        self._ages, self._signs = self.add_optimizer_variables(variables, ["age", "sign"], "ones")

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        age = self._ages[self._get_variable_index(variable)]
        self.assign_add(age, 1.0)
        self.assign_add(self.steps, 1.0)
        self.assign_sub(variable, learning_rate * ops.sign(gradient) * age)


def test_user_rule() -> None:
    w, optimizer = variable(value=[0.0]), Signs(1.0, gradient_accumulation_steps=2)
    assert optimizer.name.startswith("signs")
    for _ in range(4):
        optimizer.apply([np.ones(1, np.float32)], [w])
    assert w.numpy() == -2 - 3
    assert [v.name for v in optimizer.variables] == [
        "iteration",
        "learning_rate",
        "w_gradient_accumulator",
        "steps",
        "w_age",
        "w_sign",
    ]
    assert float(optimizer.steps) == 2


def test_variable_before_init() -> None:
    class Early(Optimizer):
        def __init__(self) -> None:
            self.state = Variable(0.0)
            super().__init__(0.1)

    with pytest.raises(FailedPreconditionError, match="Early: a variable is set before"):
        Early()


def test_add_optimizer_variables() -> None:
    w, optimizer = variable("block/kernel"), SGD(0.1, name="opt")
    a, b = optimizer.add_optimizer_variables([w], ["a", "b"], ["zeros", "ones"])
    assert (a[0].path, b[0].path) == ("opt/block_kernel_a", "opt/block_kernel_b")
    np.testing.assert_array_equal(b[0].numpy(), ONES)
    assert not a[0].trainable
    with pytest.raises(InvalidArgumentError, match="2 slots per variable, but 3 initializers"):
        optimizer.add_optimizer_variables([w], ["a", "b"], ["zeros"] * 3)


# Loss scaling


def test_loss_scale() -> None:
    w = variable(value=[0.0])
    optimizer = LossScaleOptimizer(SGD(1.0), initial_scale=8.0, dynamic_growth_steps=2)
    assert float(optimizer.scale_loss(0.5)) == 4
    optimizer.build([w])
    seen = []
    for g in [1.0, 2.0, np.inf, 1.0, np.nan, np.nan, 3.0, 1.0]:
        scaled = ops.convert_to_tensor(np.array([g], np.float32)) * optimizer.scale_loss(1.0)
        optimizer.apply([scaled], [w])
        seen.append((float(w.numpy()[0]), float(optimizer.dynamic_scale)))
    assert seen == [(-1, 8), (-3, 16), (-3, 8), (-4, 8), (-4, 4), (-4, 2), (-7, 2), (-8, 4)]
    assert int(optimizer.iterations) == 5
    optimizer.learning_rate = 0.5
    assert float(optimizer.inner_optimizer.learning_rate) == 0.5


def test_loss_scale_leaves_gradients_that_are_values() -> None:
    scale, w = variable("scale"), variable("w")
    scale.overwrite_with_gradient = True
    optimizer = LossScaleOptimizer(SGD(1.0), initial_scale=2.0)
    optimizer.apply([7 * ONES, 2 * ONES], [scale, w])
    np.testing.assert_array_equal(scale.numpy(), 7 * ONES)
    np.testing.assert_array_equal(w.numpy(), [0, 1, 2])


def test_loss_scale_in_a_session() -> None:
    with Graph().as_default() as graph:
        w = variable(value=[0.0])
        optimizer = LossScaleOptimizer(SGD(1.0), initial_scale=8.0)
        fed = placeholder("float32", (1,))
        train = optimizer.apply([fed], [w])
        initialize = global_variables_initializer()
    with Session(graph=graph) as session:
        session.run(initialize)
        for g in (8.0, np.inf, 4.0):
            session.run(train, {fed: [g]})
        assert session.run([w, optimizer.dynamic_scale]) == [-2, 4]


def test_loss_scale_takes_missing_gradients() -> None:
    w, b = variable("w"), variable("b")
    optimizer = LossScaleOptimizer(SGD(1.0, use_ema=True), initial_scale=2.0)
    with pytest.warns(UserWarning, match="no gradient for b"):
        optimizer.apply([2 * ONES, None], [w, b])
    optimizer.finalize_variable_values([w, b])
    np.testing.assert_array_equal(w.numpy(), [0, 1, 2])
    np.testing.assert_array_equal(b.numpy(), [1, 2, 3])


# Sessions


@pytest.mark.parametrize("kind", RULES)
def test_in_a_session(kind: str) -> None:
    """In a plain graph, `apply` gives the operation that takes the step: same bits as eager."""
    options = {"gradient_accumulation_steps": 2, "weight_decay": 0.1, "global_clipnorm": 1.0}
    start = np.array([[1.0, 2.0], [3.0, -4.0]], np.float32)
    gradients = [np.full((2, 2), g, np.float32) * start for g in (1.0, -0.5, 2.0, 0.25)]
    w, optimizer = Variable(start, name="w"), getattr(optimizers, kind)(0.125, **options)
    for g in gradients:
        optimizer.apply([g], [w])
    expected = w.numpy()

    with Graph().as_default() as graph:
        u = Variable(start, name="w")
        inside = getattr(optimizers, kind)(0.125, name="opt", **options)
        fed = placeholder("float32", (2, 2))
        train = inside.apply([fed], [u])
        count = inside.iterations
        initialize = global_variables_initializer()
    with Session(graph=graph) as session:
        session.run(initialize)
        for value in gradients:
            session.run(train, {fed: value})
        np.testing.assert_array_equal(session.run(u), expected)
        assert session.run(count) == 2


def test_eager_optimizer_in_a_graph() -> None:
    optimizer = SGD(0.1)
    with Graph().as_default():
        w = Variable(ONES, name="w")
        with pytest.raises(FailedPreconditionError, match="not in the graph being built"):
            optimizer.apply([placeholder("float32", (3,))], [w])


def _quadratic(make: Any) -> tuple[Any, Variable, Any]:
    """A loss 3 * sum(w**2) / 2, its variable (trainable, beside another one), and an optimizer."""
    w = Variable(np.array([1.0, -2.0], np.float32), name="w")
    Variable(np.float32(5.0), trainable=False, name="other")
    return 1.5 * ops.sum(w * w), w, make()


def test_apply_gradients_in_a_session() -> None:
    with Graph().as_default() as graph:
        loss, w, optimizer = _quadratic(lambda: SGD(0.1))
        step = Variable(np.int64(0), trainable=False, name="step")
        (pair,) = optimizer.compute_gradients(loss)
        assert pair[1] is w
        train = optimizer.apply_gradients([pair], global_step=step, name="train")
        assert isinstance(train, Operation)
        initialize = global_variables_initializer()
    with Session(graph=graph) as session:
        session.run(initialize)
        np.testing.assert_array_equal(session.run(pair[0]), [3.0, -6.0])
        expected = np.array([1.0, -2.0], np.float32)
        for _ in range(3):
            session.run("train")
            expected -= np.float32(0.1) * (np.float32(3.0) * expected)
        np.testing.assert_allclose(session.run(w), expected, rtol=1e-6)
        assert session.run([step, optimizer.iterations]) == [3, 3]


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
def test_minimize_in_a_session(inside: bool) -> None:
    """It adds to the loss's graph, whether that is the default graph or not."""
    with Graph().as_default() as graph:
        loss, w, optimizer = _quadratic(lambda: SGD(0.1, momentum=0.5))
        if inside:
            train = optimizer.minimize(loss, [w])
    if not inside:
        train = optimizer.minimize(loss, w)
    with graph.as_default():
        initialize = global_variables_initializer()
    with Session(graph=graph) as session:
        session.run(initialize)
        x, v = np.array([1.0, -2.0]), np.zeros(2)
        for _ in range(4):
            session.run(train)
            v = 0.5 * v - 0.1 * 3 * x
            x = x + v
        np.testing.assert_allclose(session.run(w), x, rtol=1e-5)


def test_minimize_scales_the_loss() -> None:
    with Graph().as_default() as graph:
        loss, w, optimizer = _quadratic(lambda: LossScaleOptimizer(SGD(0.1), 8.0))
        train = optimizer.minimize(loss)
        initialize = global_variables_initializer()
    with Session(graph=graph) as session:
        session.run(initialize)
        session.run(train)
        np.testing.assert_allclose(session.run(w), [0.7, -1.4], rtol=1e-6)


def test_minimize_in_a_function() -> None:
    w, optimizer = Variable(np.float32(2.0), name="w"), SGD(0.25)
    step = Variable(np.int64(0), trainable=False)

    @function
    def train() -> None:
        optimizer.minimize(w * w, [w], global_step=step)

    train()
    train()
    assert (float(w), int(step), int(optimizer.iterations)) == (0.5, 2, 2)


def test_minimize_refuses_what_trains_nothing() -> None:
    w = Variable(np.float32(2.0), name="w")
    with pytest.raises(InvalidArgumentError, match="the loss .* belongs to none") as caught:
        SGD(0.1).minimize(w * w, [w])
    assert "GradientTape" in str(caught.value.remedy)
    with Graph().as_default():
        optimizer = SGD(0.1)
        with pytest.raises(InvalidArgumentError, match="no variables to train"):
            optimizer.minimize(placeholder("float32", ()))
        with pytest.raises(InvalidArgumentError, match="no variables to train"):
            optimizer.apply_gradients([])


RATES = [
    pytest.param(lambda fed: SGD(fed, momentum=0.5), 0.25, lambda o: o(0.25, 0.5), id="rate"),
    pytest.param(lambda fed: SGD(0.1, momentum=fed), 0.5, lambda o: o(0.1, 0.5), id="momentum"),
    pytest.param(lambda fed: SGD(fed * 0.5), 0.25, lambda o: o(0.125, 0.0), id="computed"),
]


@pytest.mark.parametrize(("make", "value", "like"), RATES)
def test_symbolic_coefficients(make: Any, value: float, like: Any) -> None:
    """A coefficient that is fed gives what the same number gives."""
    w = Variable(np.array([1.0, -2.0], np.float32), name="w")
    number = like(lambda rate, momentum: SGD(rate, momentum=momentum))
    for _ in range(3):
        number.apply([3 * w.value], [w])
    expected = w.numpy()
    with Graph().as_default() as graph:
        fed = placeholder("float32", ())
        loss, u, optimizer = _quadratic(lambda: make(fed))
        train = optimizer.minimize(loss)
        initialize = global_variables_initializer()
    with Session(graph=graph) as session:
        session.run(initialize)
        for _ in range(3):
            session.run(train, {fed: value})
        np.testing.assert_allclose(session.run(u), expected, rtol=1e-6)


def test_rate_is_a_variable_or_a_tensor() -> None:
    rate = Variable(np.float32(0.5), name="rate")
    optimizer, w = SGD(rate), Variable(np.float32(1.0), name="w")
    optimizer.apply([np.float32(1.0)], [w])
    rate.assign(0.25)
    optimizer.apply([np.float32(1.0)], [w])
    assert float(w) == 0.25
    assert SGD(ops.convert_to_tensor(0.5)).get_config()["learning_rate"] == 0.5
    with pytest.raises(InvalidArgumentError, match="learning_rate must be a number, a scalar"):
        SGD(ops.convert_to_tensor([0.5]))


def test_rate_is_set_in_a_graph() -> None:
    """A number would be assigned by an operation that nobody runs; a tensor takes its place."""
    with Graph().as_default() as graph:
        loss, w, optimizer = _quadratic(lambda: SGD(0.1))
        with pytest.raises(FailedPreconditionError, match="only a session can set to 0.5"):
            optimizer.learning_rate = 0.5
        fed = placeholder("float32", ())
        optimizer.learning_rate = fed
        train = optimizer.minimize(loss)
        initialize = global_variables_initializer()
    with Session(graph=graph) as session:
        session.run(initialize)
        session.run(train, {fed: 0.25})
        np.testing.assert_array_equal(session.run(w), [0.25, -0.5])


def test_older_configs_of_loss_scaling_say_that_nothing_is_set() -> None:
    options: dict[str, Any] = {"weight_decay": None, "use_ema": False, "ema_momentum": 0.99}
    assert isinstance(LossScaleOptimizer(SGD(), **options).inner_optimizer, SGD)
    with pytest.raises(InvalidArgumentError, match="use_ema cannot be set here"):
        LossScaleOptimizer(SGD(), use_ema=True)
