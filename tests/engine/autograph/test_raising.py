"""`raise` under a condition on tensors: when the branch is taken, as without `function`."""

from __future__ import annotations

import dataclasses
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import Variable, engine, layers, models, ops
from laminar.engine.errors import InvalidArgumentError, LaminarError
from laminar.engine.ops.core.raising import raise_op, raised_attrs


class CodeError(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")


def refuse_negative(x: Any) -> Any:
    if x < 0:
        raise CodeError(7, "negative")
    return x


def after(x: Any) -> Any:
    if x < 0:
        raise ValueError("negative")
    return x * 2


def before(x: Any) -> Any:
    if x > 0:
        kind, values = "positive", [x, {"two": 2}]
    elif x > -1:
        raise KeyError
    else:
        raise TypeError("small") from None
    return values[0] if kind == "positive" else x


def inner(x: Any) -> Any:
    if x >= 0:
        y = x + 1
    elif x < -1:
        raise IndexError("far")
    else:
        raise ArithmeticError("near")
    return y


def always(x: Any) -> Any:
    if x >= 0:
        assert False, "other"  # noqa: B011, PT015  # that it raises is the point
    else:
        raise IndexError("one")


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    code: int


ONE_FOR_ALL = FrozenError(3)


def the_same_twice(x: Any) -> Any:
    if x < 0:
        if x < -1:
            raise ONE_FOR_ALL
        else:  # noqa: RET506  # both branches raise
            raise ONE_FOR_ALL
    if x > 100:
        raise ONE_FOR_ALL
    return x


def in_a_loop(x: Any) -> Any:
    total, steps = 0.0, []
    for i in range(3):
        total += refuse_negative(x - i)
    rows: Any = ops.stack([x, x])
    for row in rows:
        if row > 100:
            raise OverflowError("large")
        steps.append(row)
    return total + ops.sum(ops.stack(steps))


def caught(x: Any) -> Any:
    if x > 0:
        try:
            raise CodeError(1, "inside")
        except CodeError:
            y = x + 1
    else:
        y = x
    return y


def outcome(fn: Callable[[Any], Any], x: Any) -> float | Exception:
    try:
        return float(fn(x))
    except Exception as error:  # whatever it is
        return error


@pytest.mark.parametrize(
    "fn", [refuse_negative, after, before, inner, always, the_same_twice, in_a_loop, caught]
)
def test_a_function_raises_what_python_raises(fn: Callable[[Any], Any]) -> None:
    traced = engine.function(fn)
    for value in (-5.0, -0.5, 0.5, 3.0, 300.0):
        x = engine.constant(value)
        expected, found = outcome(fn, x), outcome(traced, x)
        if not isinstance(expected, Exception):
            assert found == expected
            continue
        assert isinstance(found, type(expected))
        assert isinstance(found, LaminarError)
        said = str(expected).partition("\n")[0] or type(expected).__name__
        assert found.message.startswith(said)
        (*_, last) = traceback.extract_tb(expected.__traceback__)
        assert found.location is not None
        assert found.location.line == last.lineno
    assert traced.trace_count == 1


def test_a_branch_that_raises_needs_no_values() -> None:
    """Of any shape, also none that is known; updates before it are taken back."""
    count = Variable(0)

    @engine.function
    def f(x: Any, k: Any) -> Any:
        count.assign_add(1)
        if k < 0:
            raise ValueError("k")
        return x * 2

    for shape in (None, [None], [2]):
        spec = engine.TensorSpec(shape, "float32")
        concrete = f.concrete(spec, engine.TensorSpec([], "int32"))
        np.testing.assert_array_equal(concrete(engine.constant([1.0, 2.0]), 1), [2, 4])
        with pytest.raises(ValueError, match="k"):
            concrete(engine.constant([1.0, 2.0]), -1)
    assert int(count) == 3


def test_gradients_of_the_other_branch() -> None:
    f = engine.function(lambda x: after(x) ** 2)
    x = Variable(3.0)
    with engine.GradientTape() as tape:
        y = f(x)
    assert float(tape.gradient(y, x)) == 24.0


class Limited(layers.Layer):
    def call(self, inputs: Any) -> Any:
        if ops.max(inputs) > 10:
            raise CodeError(2, "too much")
        return inputs


def test_a_layer_raises_in_predict() -> None:
    model = models.Sequential([layers.Input((2,)), Limited()])
    x = np.ones((3, 2), "float32")
    np.testing.assert_array_equal(model.predict(x, verbose=0), x)
    with pytest.raises(CodeError, match="2: too much"):
        model.predict(20 * x, verbose=0)


def test_what_raises_is_written_and_sent() -> None:
    """Where the class is not known, what is raised is the first of its bases that Python has."""

    def made() -> bytes:
        class LocalError(CodeError, LookupError):
            pass

        @engine.function
        def f(x: Any) -> Any:
            if x < 0:
                raise LocalError(3, "here")
            return {"y": x}

        found = f.graph_function(("float32", []))
        with pytest.raises(LocalError) as raised:
            found(-1.0)
        with pytest.raises(LocalError):
            raise pickle.loads(pickle.dumps(raised.value))
        return found.graph.as_graph_def().SerializeToString()

    written = engine.GraphDef.FromString(made())
    with engine.Graph().as_default() as graph:
        engine.import_graph_def(written, name="")
    loaded = engine.graph_function(graph, ["x:0"], "x:0", prune=False)
    assert float(loaded(2.0)) == 2.0
    with pytest.raises(LookupError, match="3: here"):
        loaded(-2.0)
    with pytest.raises(InvalidArgumentError, match="text"):
        raise_op(kinds=("elsewhere.Error",), message="text", shape=(), dtype="bool")
    error = UnicodeDecodeError("utf8", b"x", 0, 1, "odd")  # its constructor wants five arguments
    with pytest.raises(UnicodeDecodeError, match="odd"):
        raise_op(**raised_attrs(error), shape=(), dtype="bool")
