"""The algorithm of reverse mode, through each of its faces where they share it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.engine.errors import InternalError, InvalidArgumentError, NoGradientError
from laminar.engine.gradients.backprop import backpropagate
from laminar.engine.graph import FLOATING, EagerTensor, OpView, Tensor, TensorSpec
from laminar.engine.ops.core.op_def import Grads
from laminar.engine.ops.core.recording import Record
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.math.arithmetic import add, multiply
from laminar.engine.ops.math.elementary import exp
from tests.engine import programs

from ...sampling import examples

calls: list[str] = []


@define("TestTwoOutputs", dtypes=FLOATING)
def two_outputs(x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    """(2 x, 3 x), with a gradient that says which of its inputs were None."""
    return x, x


@two_outputs.reference
def _two_outputs(xp: Any, x: Any) -> Any:
    return 2 * x, 3 * x


@two_outputs.grad
def _two_outputs_grad(op: OpView, da: Tensor | None, db: Tensor | None) -> Grads:
    calls.append(f"{da is not None} {db is not None}")
    parts = [d * scale for d, scale in ((da, 2.0), (db, 3.0)) if d is not None]
    return (parts[0] if len(parts) == 1 else add(*parts),)


@define("TestNoGradient", dtypes=FLOATING)
def no_gradient_here(x: TensorSpec) -> TensorSpec:
    """x, without a rule for its gradient."""
    return x


no_gradient_here.reference(lambda xp, x: x)


@define("TestWrongCount", dtypes=FLOATING)
def wrong_count(x: TensorSpec) -> TensorSpec:
    """x, with a faulty rule."""
    return x


wrong_count.reference(lambda xp, x: x)
wrong_count.grad(lambda op, dy: (dy, dy))


@define("TestCountedExp", dtypes=FLOATING)
def counted_exp(x: TensorSpec) -> TensorSpec:
    """exp(x), counting its runs; the gradient uses the output."""
    return x


@counted_exp.reference
def _counted_exp(xp: Any, x: Any) -> Any:
    calls.append("exp")
    return xp.exp(x)


@counted_exp.grad
def _counted_exp_grad(op: OpView, dy: Tensor) -> Grads:
    return (multiply(dy, op.outputs[0]),)


def tensor(value: Any) -> Any:
    return eng.convert_to_tensor(np.asarray(value, np.float64))


def test_contributions_of_several_paths_are_summed() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float64", [], name="x")
        y = x * x + x * 3.0
        (dx,) = eng.gradients(y, x)
        (ddx,) = eng.gradients(dx, x)
        with eng.Session() as session:
            assert session.run([dx, ddx], {x: 2.0}) == [7.0, 2.0]


def test_an_output_that_is_not_used_gives_none() -> None:
    calls.clear()
    x = tensor([1.0, 2.0])
    with eng.GradientTape(persistent=True) as tape:
        tape.watch(x)
        a, b = two_outputs.many(x)
        both = add(a, b)
    assert tape.gradient(b, x).tolist() == [3.0, 3.0]
    assert tape.gradient(both, x).tolist() == [5.0, 5.0]
    assert tape.gradient([a, b], x).tolist() == [5.0, 5.0]
    assert calls == ["False True", "True True", "True True"]


def test_the_forward_output_is_used_again() -> None:
    calls.clear()
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float64", [], name="x")
        y = counted_exp(x)
        (dx,) = eng.gradients(y, x)
        with eng.Session() as session:
            assert session.run([y, dx], {x: 0.0}) == [1.0, 1.0]
    assert calls == ["exp"]
    assert [op.type for op in graph.operations].count("TestCountedExp") == 1


def test_the_gradient_of_exp_takes_its_output() -> None:
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float64", [], name="x")
        eng.gradients(exp(x), x)
    assert [op.type for op in graph.operations].count("Exp") == 1


def test_no_rule_is_an_error_that_names_the_op_and_its_line() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float64", [], name="x")
        y = no_gradient_here(x)
        with pytest.raises(NoGradientError, match="TestNoGradient has no gradient") as caught:
            eng.gradients(y + x, x)
        assert isinstance(caught.value, LookupError)
    assert caught.value.location == y.op.location  # type: ignore[attr-defined]  # in a graph
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__


def test_no_rule_is_needed_off_the_path() -> None:
    x = tensor(2.0)
    with eng.GradientTape() as tape:
        tape.watch(x)
        no_gradient_here(x)
        y = x * x + no_gradient_here(tensor(1.0))
    assert tape.gradient(y, x).numpy() == 4.0


def test_a_faulty_rule_is_found() -> None:
    x = tensor(2.0)
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = wrong_count(x)
    with pytest.raises(InternalError, match="TestWrongCount gives 2 values for 1 inputs"):
        tape.gradient(y, x)


def test_a_record_is_all_it_needs() -> None:
    x = EagerTensor(np.asarray(3.0))
    y = EagerTensor(np.asarray(6.0))
    found = backpropagate([Record(add, (x, x), {}, (y,))], [y], [x])
    assert found[0] is not None
    assert found[0].numpy() == 2.0


def test_a_result_can_be_its_own_source() -> None:
    x = tensor(3.0)
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    dy, dx = tape.gradient(y, [y, x])
    assert (dy.numpy(), dx.numpy()) == (1.0, 6.0)


def test_only_real_results_have_gradients_of_their_own() -> None:
    z = eng.convert_to_tensor(np.asarray([1 + 2j]))
    with eng.GradientTape(persistent=True) as tape:
        tape.watch(z)
        y = z * z
    with pytest.raises(InvalidArgumentError, match="it is complex128"):
        tape.gradient(y, z)
    weighted = tape.gradient(y, z, output_gradients=[np.asarray([1 + 0j])])
    np.testing.assert_allclose(weighted.numpy(), [2 * (1 - 2j)])


def test_integers_carry_no_gradient() -> None:
    x = tensor([1.0, 2.0])
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = eng.convert_to_tensor(x, "int32") * 2
    assert tape.gradient(y, x) is None


@examples(40)
@given(programs.programs(), st.integers(0, 2**31))
def test_random_programs(program: programs.Program, seed: int) -> None:
    """The slope along a random direction, by the tape and by differences of NumPy's values."""
    rng = np.random.default_rng(seed)
    inputs = list(rng.normal(size=(2, 2, 2)))
    step = list(rng.normal(size=(2, 2, 2)))
    tensors = [tensor(x) for x in inputs]
    with eng.GradientTape() as tape:
        tape.watch(tensors)
        values = programs.run(program, tensors)
    found = tape.gradient(values[-1], tensors, unconnected_gradients="zero")
    slope = sum(float(np.sum(d.numpy() * s)) for d, s in zip(found, step, strict=True))
    h = 1e-5
    plus, minus = (
        programs.reference(program, [x + sign * h * s for x, s in zip(inputs, step, strict=True)])
        for sign in (1, -1)
    )
    assert slope == pytest.approx(np.sum(plus[-1] - minus[-1]) / (2 * h), rel=1e-5, abs=1e-7)
    connected = programs.needed(program, len(values) - 1, 2)
    with eng.GradientTape() as tape:
        tape.watch(tensors)
        last = programs.run(program, tensors)[-1]
    missing = [dx is None for dx in tape.gradient(last, tensors)]
    assert missing == [i not in connected for i in range(2)]
