"""The op table: declaring, looking up, and what an op's declaration checks."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.devices import CpuDevice
from laminar.engine.errors import (
    AlreadyExistsError,
    DTypeError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from laminar.engine.graph import FLOATING, TensorSpec
from laminar.engine.ops.core.basic import identity
from laminar.engine.ops.core.registry import all_ops, define, lookup, op_names

inferences: list[Any] = []


@eng.define("TestScale", dtypes={eng.float32, eng.float64})
def scale(x: TensorSpec, *, by: float, mode: str = "plain") -> TensorSpec:
    """x times `by`."""
    inferences.append(by)
    if mode not in ("plain", "negative"):
        raise InvalidArgumentError(f"TestScale: mode must be plain or negative, got {mode!r}")
    return TensorSpec(x.shape, x.dtype)


@scale.reference
def _scale(xp: Any, x: Any, *, by: float, mode: str) -> Any:
    return x * (by if mode == "plain" else -by)


@define("TestMixed", dtypes={"x": FLOATING, "y": FLOATING})
def mixed(x: TensorSpec, y: TensorSpec, index: TensorSpec) -> TensorSpec:
    """x, whose dtype `y` shares and `index` does not."""
    return x


mixed.reference(lambda xp, x, y, index: x)


def tensor(value: Any, dtype: str = "float32") -> Any:
    return eng.convert_to_tensor(np.asarray(value, dtype))


def test_a_new_op_works_everywhere() -> None:
    x = tensor([1, 2], "float64")
    found: Any = scale(x, by=3.0)
    assert (found.dtype, found.tolist()) == ("float64", [3.0, 6.0])
    assert eng.function(lambda x: scale(x, by=3.0))(x).tolist() == [3.0, 6.0]
    with eng.Graph().as_default(), eng.Session() as session:
        y = scale(eng.placeholder("float32", [None], name="x"), by=2.0, name="scaled")
        assert (y.name, y.shape) == ("scaled:0", (None,))  # type: ignore[attr-defined]  # in a graph
        assert session.run(y, {"x:0": [1.0]}).tolist() == [2.0]
    assert "TestScale" in op_names()
    assert lookup("TestScale") is scale
    assert scale.doc == "x times `by`."
    assert repr(scale) == "<op TestScale>"


# Table 1 of the whitepaper, arXiv:1603.04467; Leave is called Exit since.
TABLE = re.findall(
    r"\w+",
    """Add Sub Mul Div Exp Log Greater Less Equal Concat Slice Split Constant Rank Shape Shuffle
MatMul MatrixInverse MatrixDeterminant Variable Assign AssignAdd SoftMax Sigmoid ReLU Convolution2D
MaxPool Save Restore Enqueue Dequeue MutexAcquire MutexRelease Merge Switch Enter Leave Exit
NextIteration""",
)


def has_kernel(op: Any) -> bool:
    return op.async_kernel is not None or CpuDevice(0).has_kernel(op)


def test_the_ops_of_the_whitepaper_have_their_names() -> None:
    assert set(op_names()) >= set(TABLE)
    assert [name for name in TABLE if not has_kernel(lookup(name))] == []
    assert (lookup("ReLU").type, lookup("Leave").type) == ("Relu", "Exit")
    assert not {"ReLU", "Leave"} & set(all_ops())


def test_element_types_are_listed() -> None:
    with pytest.raises(DTypeError, match="TestScale: x must be one of float32, float64, got int32"):
        scale(tensor(1, "int32"), by=1.0)
    with pytest.raises(DTypeError, match=r"got float32 \(x\) and float64 \(y\)"):
        mixed(tensor(1), tensor(1, "float64"), tensor(0, "int32"))
    assert mixed(tensor(1), tensor(1), tensor(0, "int32")) is not None


CALLS: list[Any] = [
    pytest.param({}, "the attribute 'by' is missing", "give by=", id="missing"),
    pytest.param(
        {"by": 1.0, "mod": 1}, "there is no attribute 'mod'", "did you mean mode?", id="x"
    ),
    pytest.param({"by": 1.0, "mode": "odd"}, "mode must be plain or negative", None, id="value"),
]


@pytest.mark.parametrize(("attrs", "message", "remedy"), CALLS)
def test_attributes_are_checked(attrs: Any, message: str, remedy: str | None) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        scale(tensor(1), **attrs)
    assert caught.value.remedy == remedy


def test_the_number_of_inputs_is_checked() -> None:
    with pytest.raises(InvalidArgumentError, match=r"expected 1 inputs \(x\), got 2"):
        scale(tensor(1), tensor(1), by=1.0)
    with pytest.raises(InvalidArgumentError, match="at least 1 inputs"):
        lookup("Reshape")(shape=())


def test_inference_is_remembered_and_attributes_are_not_mixed_up() -> None:
    inferences.clear()
    x = tensor([1, 2])
    for by in (1.0, 1.0, 1, 1, True, 0.0, -0.0, 0.0):
        _, attrs = scale.infer([x.spec], {"by": by})
        assert attrs == {"by": by, "mode": "plain"}
        assert (type(attrs["by"]), repr(attrs["by"])) == (type(by), repr(by))
    assert inferences == [1.0, 1, True, 0.0]
    assert np.signbit(scale(x, by=-0.0).numpy()).all()
    for i in range(1000):  # more than it remembers
        scale.infer([x.spec], {"by": float(i)})
    assert len(scale._memory) <= 512


def test_attributes_that_cannot_be_hashed() -> None:
    value = np.ones(3, np.float32)
    specs, _ = lookup("Const").infer([], {"value": value, "dtype": "float32"})
    assert specs == (TensorSpec([3]),)


def test_a_name_is_given_once() -> None:
    with pytest.raises(AlreadyExistsError, match="op 'TestScale' is defined twice"):
        define("TestScale")(lambda x: x)
    assert lookup("TestScale") is scale


def test_unknown_ops() -> None:
    with pytest.raises(NotFoundError, match="no op is named 'MatMull'") as caught:
        lookup("MatMull")
    assert caught.value.remedy is not None
    assert "MatMul" in caught.value.remedy
    with pytest.raises(KeyError):
        lookup("?")


def test_kernels_by_device_type() -> None:
    calls: list[str] = []

    def kernel(name: str) -> Any:
        def run(*args: Any) -> Any:
            calls.append(name)
            return args[-1]

        return run

    @define("TestKernels")
    def op(x: TensorSpec) -> TensorSpec:
        return x

    with pytest.raises(UnimplementedError, match="no kernel for 'cpu'; it has kernels for: no dev"):
        op.bind("cpu", np)
    op.kernel("FAKE")(kernel("fake"))
    with pytest.raises(UnimplementedError, match="it has kernels for: fake"):
        op.bind("cpu", np)
    op.reference(kernel("reference"))
    op.bind("fake", np)(1)
    op.bind("cpu", np)(1)
    identity_of = op(tensor(1))
    op.kernel("cpu")(kernel("cpu"))
    op(identity_of)
    assert calls == ["fake", "reference", "reference", "cpu"]


def test_the_spec_of_an_identity() -> None:
    spec = TensorSpec([2, None], "int8")
    assert identity.infer([spec], {})[0] == (spec,)
