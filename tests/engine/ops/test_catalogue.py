"""The table of ops as a whole: what must be there, and what every op must have."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from laminar.engine.graph import TensorSpec
from laminar.engine.ops.core.op_def import OpDef
from laminar.engine.ops.core.registry import all_ops, lookup, no_gradient

from .conftest import Coverage

# Ops that other tests define for themselves are not laminar's.
OURS = {t: op for t, op in all_ops().items() if op.rule.__module__.startswith("laminar.")}

# The operations that Abadi et al., "TensorFlow: Large-Scale Machine Learning on Heterogeneous
# Distributed Systems", 2015, table 1 names, and what they are called here.
TABLE_1 = {
    "Add": "Add",
    "Sub": "Sub",
    "Mul": "Mul",
    "Div": "Div",
    "Exp": "Exp",
    "Log": "Log",
    "Greater": "Greater",
    "Less": "Less",
    "Equal": "Equal",
    "Concat": "Concat",
    "Slice": "Slice",
    "Split": "Split",
    "Constant": "Const",
    "Rank": "Rank",
    "Shape": "Shape",
    "Shuffle": "RandomShuffle",
    "MatMul": "MatMul",
    "MatrixInverse": "MatrixInverse",
    "MatrixDeterminant": "MatrixDeterminant",
    "Variable": "VarHandle",
    "Assign": "Assign",
    "AssignAdd": "AssignAdd",
    "SoftMax": "Softmax",
    "Sigmoid": "Sigmoid",
    "ReLU": "Relu",
    "Convolution2D": "Conv",
    "MaxPool": "MaxPool",
    "Enqueue": "QueueEnqueue",
    "Dequeue": "QueueDequeue",
    "MutexAcquire": "MutexAcquire",
    "MutexRelease": "MutexRelease",
    "Switch": "Switch",
    "Merge": "Merge",
    "Enter": "Enter",
    "Leave": "Exit",
    "NextIteration": "NextIteration",
    "Save": "SaveV2",
    "Restore": "RestoreV2",
}

# Ops that no program applies: passes make them of others, and their tests are those of the passes.
OF_PASSES = {"Cluster", "Recv", "Send", "_Arg", "_Retval"}

every_op = pytest.mark.parametrize("op", OURS.values(), ids=list(OURS))


def test_the_table_is_large() -> None:
    assert len(OURS) >= 200


def test_table_1_is_complete() -> None:
    assert len(TABLE_1) == 38
    wrong = {name: ours for name, ours in TABLE_1.items() if lookup(name).type != ours}
    assert not wrong


def test_names() -> None:
    wrong = [t for t in OURS if not t.isidentifier() or not t.removeprefix("_")[0].isupper()]
    assert not wrong


def test_definitions() -> None:
    wrong = [t for t, op in OURS.items() if len(op.doc.split()) < 2]
    assert not wrong, "the docstring of the rule defines the op"


def test_gradients_are_decided() -> None:
    undecided = [t for t, op in OURS.items() if op.gradient is None]
    assert not undecided, "declare op.grad(no_gradient) if none flows"


@every_op
def test_kernel_takes_what_the_rule_takes(op: OpDef) -> None:
    general = (op.reference_kernel, op.context_kernel)
    assert "cpu" in op.kernels or any(general) or op.async_kernel, "nothing computes it"
    inputs = [f"input {i}" for i in range(len(op.input_names) + op.variadic)]
    attrs = dict.fromkeys([*op.required, *op.defaults])
    for kernel in op.kernels.values():
        inspect.signature(kernel).bind(*inputs, **attrs)
    for kernel in filter(None, general):
        inspect.signature(kernel).bind("machine", *inputs, **attrs)
    if op.async_kernel is not None:
        inspect.signature(op.async_kernel).bind("machine", "done", *inputs, **attrs)


@every_op
def test_attributes(op: OpDef) -> None:
    parameters = inspect.signature(op.rule).parameters.values()
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters), "attributes are named"
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    assert sorted([*op.required, *op.defaults]) == sorted(keywords)
    assert all(p.default is p.empty for p in parameters if p.kind is not p.KEYWORD_ONLY)
    assert set(op.dtypes) <= set(op.input_names)
    for name, value in op.defaults.items():
        assert is_plain(value), f"{name}={value!r} cannot be written to a file"


def is_plain(value: Any) -> bool:
    """Whether an attribute is data that a graph definition can hold."""
    if isinstance(value, tuple):
        return all(map(is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def test_every_rule_is_exercised(coverage: Coverage) -> None:
    coverage.require_all()
    here = {t for t, op in OURS.items() if op.rule.__module__.startswith("laminar.engine.ops.")}
    idle = sorted(here - OF_PASSES - set(coverage.inferences))
    assert not idle, f"no test of this folder applies {', '.join(idle)}"


def test_every_gradient_is_checked(coverage: Coverage) -> None:
    coverage.require_all()
    differentiable = {t for t, op in OURS.items() if op.gradient is not no_gradient}
    refuse = {"Enter", "Exit", "NextIteration"}  # test_control.py checks that they do
    refuse |= {"PreventGradient"}  # so does core/test_prevent_gradient.py
    of_halves = {"NextAfterHalf"}  # differences need float64; test_numbers.py has its gradient
    # These need several processes: tests/distribute/test_collectives.py has their gradients.
    collective = {t for t, op in OURS.items() if ".collectives." in op.rule.__module__}
    exempt = refuse | of_halves | collective
    unchecked = sorted(differentiable - coverage.differentiated - exempt)
    assert not unchecked, f"no check_op goes through the gradient of {', '.join(unchecked)}"


def test_rules_are_pure(coverage: Coverage) -> None:
    """A rule that is asked again, past the memory of its OpDef, answers the same."""
    for type, inferences in coverage.inferences.items():
        for specs, attrs, outputs in inferences:
            for _ in range(2):
                assert as_tuple(lookup(type).rule(*specs, **attrs)) == outputs, type


def as_tuple(result: Any) -> tuple[TensorSpec, ...]:
    return (result,) if isinstance(result, TensorSpec) else tuple(result)
