"""Traits: each is asked for where it decides, of laminar's ops and of those that a user defines."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine import Graph, OpDef, TensorSpec, Traits, Work
from laminar.engine.compiler.lower.size_inputs import is_size
from laminar.engine.graph import GraphTensor, Operation, int32
from laminar.engine.ops.array.creation import zeros
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.elementwise import elementwise
from laminar.engine.ops.core.registry import all_ops, op_names
from laminar.engine.ops.math.arithmetic import maximum, minimum
from laminar.engine.passes import StepGraph
from laminar.engine.passes.cluster import _pays
from laminar.engine.passes.cse import merge_common
from laminar.engine.passes.fold import fold_constants
from laminar.engine.passes.parallelism import is_expensive
from laminar.engine.runtime.cost import CostModel


def define(traits: Traits, result: Callable[..., Any], num_inputs: int = 1) -> OpDef:
    """Define an op, as a user does, of inputs of one spec."""

    def of_one(x: TensorSpec) -> TensorSpec:
        return TensorSpec((), int32) if traits.shape_query else x

    def of_two(x: TensorSpec, y: TensorSpec) -> TensorSpec:
        return x

    rule = of_one if num_inputs == 1 else of_two
    op = engine.define(f"TestTraits{len(op_names())}", traits=traits)(rule)
    op.reference(lambda xp, *xs: result(*xs))
    return op


def large(op: OpDef, num_inputs: int = 1) -> Operation:
    """A use of an op on many elements."""
    with Graph().as_default():
        y: Any = op(*[placeholder("float32", (64, 64)) for _ in range(num_inputs)])
    found: Operation = y.op
    return found


def test_what_is_not_stated_claims_nothing() -> None:
    assert Traits() == Traits(Work.COMPUTE, False, False, False, False, None, False, None)


@pytest.mark.parametrize(
    ("work", "threads", "compiles"),
    [(Work.NONE, False, False), (Work.COPY, True, False), (Work.COMPUTE, True, True)],
)
def test_work(work: Work, threads: bool, compiles: bool) -> None:
    op = large(define(Traits(work=work), lambda x: x))
    assert is_expensive(op) == threads
    assert _pays([op]) == compiles


def test_what_does_no_work_costs_its_traffic_alone() -> None:
    class Slow:
        device_type, launch_seconds, bytes_per_second, flops_per_second = "cpu", 0.0, 1e30, 1.0

    device: Any = Slow()
    costs = CostModel()
    assert costs.compute_seconds(large(define(Traits(work=Work.NONE), lambda x: x)), device) < 1e-20
    assert costs.compute_seconds(large(engine.lookup("Exp")), device) == 2 * 64 * 64


def merged(op: OpDef) -> bool:
    """Whether op(x, y) and op(y, x) become one operation."""
    with Graph().as_default():
        x, y = placeholder("float32", (2,)), placeholder("float32", (2,))
        a, b = op(x, y), op(y, x)
        assert isinstance(a, GraphTensor)
        assert isinstance(b, GraphTensor)
        step = StepGraph.of([a, b], [x, y])
    merge_common(step)
    first, second = step.fetches
    return first is second


def test_commutative() -> None:
    assert merged(engine.lookup("Add"))
    assert not merged(engine.lookup("Sub"))
    assert merged(define(Traits(commutative=True), operator.add, 2))


@pytest.mark.parametrize("op", [maximum, minimum])
def test_of_zeros_the_order_decides(op: OpDef) -> None:
    """So the two are not commutative."""
    assert not merged(op)


def test_shape_query() -> None:
    op = define(Traits(shape_query=True), lambda x: np.asarray(x.shape[-1] + 1, np.int32))
    with Graph().as_default():
        x = placeholder("float32", (2, 6))
        y: Any = op(x)
        step = StepGraph.of([y])  # the placeholder need not be fed: nobody asks for its value
    fold_constants(step)
    (found,) = step.fetches
    assert found.op.type == "Const"
    assert found.op.attrs["value"] == 7


def test_sizes_of_a_users_op() -> None:
    """A shape can be made of what it makes of sizes, in native code of any size."""
    after = elementwise(
        "TestTraitsAfter",
        "y = 2 * x + 1.",
        scalar=lambda s, x: 2 * x + 1,
        traits=Traits(on_sizes=lambda n: 2 * n + 1),
    )
    unknown = elementwise("TestTraitsUnknown", "y = 2 * x.", scalar=lambda s, x: 2 * x)
    with Graph().as_default():
        x = placeholder("float32", (None, 3))
        known: Any = after(dim_of(x, axis=0))
        other: Any = unknown(dim_of(x, axis=0))
    assert is_size(known)
    assert not is_size(other)

    @engine.function
    def longer(x: Any) -> Any:
        return zeros((after(dim_of(x, axis=0)), 2)) + x[0, 0] * 2 + x[0, 1]

    for rows in (2, 5, 9):
        value = np.arange(3.0 * rows, dtype=np.float32).reshape(rows, 3)
        found = longer(engine.convert_to_tensor(value)).numpy()
        np.testing.assert_array_equal(found, np.full((2 * rows + 1, 2), np.float32(1)))


# What each trait means, tried on the reference kernels of all ops that claim it.

rng = np.random.default_rng(0)
LINEAR: dict[str, Any] = {
    "Reshape": {"shape": (3, 4)},
    "StridedSliceGrad": {"index": ((None, None, 2),), "shape": (8, 3)},
    "SumTo": {"shape": (3,)},
    "Transpose": {"axes": (1, 0)},
}


def of_laminar(claims: Callable[[Traits], bool]) -> list[OpDef]:
    return [
        op
        for _, op in sorted(all_ops().items())
        if op.rule.__module__.startswith("laminar.") and claims(op.traits)
    ]


@pytest.mark.parametrize("op", of_laminar(lambda t: t.linear), ids=lambda op: op.type)
def test_linear_ops_are(op: OpDef) -> None:
    f, attrs = op.bind("cpu", np), LINEAR[op.type]
    x, y = rng.normal(size=(2, 4, 3))
    np.testing.assert_allclose(f(x + y, **attrs), f(x, **attrs) + f(y, **attrs))


@pytest.mark.parametrize("op", of_laminar(lambda t: t.on_sizes is not None), ids=lambda op: op.type)
def test_on_sizes_agrees_with_the_kernel(op: OpDef) -> None:
    sizes = [12, 7][: len(op.input_names)]
    attrs = {"dtype": "int64"} if op.type == "Cast" else {}
    expected = op.bind("cpu", np)(*(np.asarray(n, np.int32) for n in sizes), **attrs)
    assert op.traits.on_sizes is not None
    assert op.traits.on_sizes(*sizes) == int(expected)


@pytest.mark.parametrize("op", of_laminar(lambda t: t.commutative), ids=lambda op: op.type)
def test_commutative_ops_are_bit_for_bit(op: OpDef) -> None:
    dtype = next(d for d in ("float32", "int32", "bool") if d in op.dtypes[op.input_names[0]])
    values = [-0.0, 0.0, 1.5, -2.5, np.inf, -np.inf] if dtype == "float32" else [-3, 0, 1, 6]
    x, y = (a.ravel() for a in np.meshgrid(*[np.array(values).astype(dtype)] * 2))
    f = op.bind("cpu", np)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            np.asarray(f(x, y)).view(np.uint8), np.asarray(f(y, x)).view(np.uint8)
        )
