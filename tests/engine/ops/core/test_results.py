"""The kernels of users give what the rules of their ops say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine.errors import DTypeError, InvalidArgumentError, LaminarError, ShapeError
from laminar.engine.graph import TensorSpec
from laminar.engine.ops.core.op_def import OpDef
from laminar.engine.ops.core.registry import op_names


def op_that_gives(result: Any, specs: Any, how: str) -> OpDef:
    def rule(x: TensorSpec) -> Any:
        """What the test says."""
        return specs

    op = engine.define(f"TestResults{len(op_names())}")(rule)
    if how == "reference":
        op.reference(lambda xp, x: result)
    elif how == "kernel":
        op.kernel("cpu")(lambda x: result)
    else:
        op.effect(lambda context, x: result)
    return op


def at_once(op: OpDef) -> Any:
    return [y.numpy() for y in op.many(1.0)]


def in_a_session(op: OpDef) -> Any:
    with engine.Graph().as_default(), engine.Session() as session:
        return session.run(list(op.many(engine.constant(1.0))))


ONE = TensorSpec([None], "float32")


@pytest.mark.parametrize("how", ["reference", "kernel", "effect"])
@pytest.mark.parametrize("run", [at_once, in_a_session])
@pytest.mark.parametrize(
    ("result", "specs", "error", "said"),
    [
        (np.zeros(2), ONE, DTypeError, "gave float64[2] as output 0, the rule says float32[?]"),
        (np.zeros((2, 1), "float32"), ONE, ShapeError, "gave float32[2, 1] as output 0"),
        ((np.zeros(2, "float32"),), (ONE, ONE), InvalidArgumentError, "gave 1 results, the rule"),
        ((np.zeros(2, "float32"), np.zeros(1)), (ONE, ONE), DTypeError, "as output 1"),
    ],
)
def test_what_does_not_fit(
    how: str, run: Callable[..., Any], result: Any, specs: Any, error: type[LaminarError], said: str
) -> None:
    op = op_that_gives(result, specs, how)
    with pytest.raises(error) as caught:
        run(op)
    assert said in str(caught.value)
    assert op.type in str(caught.value)
    assert "test_results.py" in str(caught.value)


@pytest.mark.parametrize("run", [at_once, in_a_session])
def test_what_fits(run: Callable[..., Any]) -> None:
    good = op_that_gives(np.ones(2, "float32"), ONE, "kernel")
    assert run(good)[0].tolist() == [1.0, 1.0]
    plain = op_that_gives(3, TensorSpec((), "float32"), "reference")  # a number of Python's
    assert (run(plain)[0], run(plain)[0].dtype) == (3.0, np.float32)


def test_kernels_of_laminar_are_as_they_are() -> None:
    identity = engine.lookup("Identity").reference_kernel
    assert identity is not None
    assert not hasattr(identity, "__wrapped__")
