from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.nn.losses import (
    sigmoid_cross_entropy,
    softmax_cross_entropy,
    sparse_softmax_cross_entropy,
)
from laminar.engine.runtime import Session

from ..derivatives import check_third
from ..harness import check_op

Array = np.ndarray[Any, Any]

rng = np.random.default_rng(0)
DTYPES = ["float32", "float16", "bfloat16"]


def sparse_reference(labels: Array, logits: Array) -> Array:
    logs = special.log_softmax(logits, -1)
    loss: Array = -np.take_along_axis(logs, labels[..., None].astype("int64"), -1)[..., 0]
    return loss


@pytest.mark.parametrize(
    ("rows", "classes", "dtype"),
    [
        pytest.param((6,), 4, "int32", id="batch"),
        pytest.param((2, 3), 5, "int64", id="sequence"),
        pytest.param((), 3, "uint8", id="one-example"),
        pytest.param((0,), 3, "int32", id="empty"),
    ],
)
def test_sparse(rows: tuple[int, ...], classes: int, dtype: str) -> None:
    labels = rng.integers(0, classes, rows).astype(dtype)
    logits = rng.normal(size=(*rows, classes))
    inputs = [labels, logits]
    check_op(sparse_softmax_cross_entropy, sparse_reference, inputs, dtypes=DTYPES)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        pytest.param((6, 4), -1, id="batch"),
        pytest.param((2, 3, 4), 1, id="middle-axis"),
        pytest.param((3,), 0, id="one-example"),
        pytest.param((0, 3), -1, id="empty"),
    ],
)
def test_dense(shape: tuple[int, ...], axis: int) -> None:
    labels = rng.uniform(size=shape)  # adding up to something else than 1
    logits = rng.normal(size=shape)

    def reference(labels: Array, logits: Array, axis: int) -> Any:
        return -(labels * special.log_softmax(logits, axis)).sum(axis)

    check_op(
        softmax_cross_entropy, reference, [labels, logits], attrs={"axis": axis}, dtypes=DTYPES
    )


@pytest.mark.parametrize(
    "shapes",
    [
        pytest.param([(3, 4), (3, 4)], id="equal"),
        pytest.param([(3, 1), (4,)], id="broadcast"),
        pytest.param([(), ()], id="scalar"),
        pytest.param([(0, 2), (0, 2)], id="empty"),
    ],
)
def test_sigmoid(shapes: list[tuple[int, ...]]) -> None:
    def reference(labels: Array, logits: Array) -> Any:
        return -labels * special.log_expit(logits) - (1 - labels) * special.log_expit(-logits)

    inputs = [rng.uniform(size=shapes[0]), rng.normal(size=shapes[1])]
    check_op(sigmoid_cross_entropy, reference, inputs, dtypes=DTYPES)


def test_large_logits_keep_their_loss() -> None:
    """Where the probability has rounded to 0, its logarithm would be lost."""
    logits = convert_to_tensor(np.array([[200.0, -200.0]], "float32"))
    assert sparse_softmax_cross_entropy(convert_to_tensor(np.array([1])), logits).numpy() == 400
    one_hot = convert_to_tensor(np.array([[0.0, 1.0]], "float32"))
    assert softmax_cross_entropy(one_hot, logits).numpy() == 400
    assert sigmoid_cross_entropy(one_hot, logits).numpy().tolist() == [[200, 200]]


def test_a_class_that_is_shut_out_costs_nothing_when_it_is_not_the_label() -> None:
    logits = convert_to_tensor(np.array([[0.0, 0.0, -np.inf]]))
    labels = convert_to_tensor(np.array([[1.0, 0.0, 0.0]]))
    np.testing.assert_allclose(softmax_cross_entropy(labels, logits).numpy(), [np.log(2)])


@pytest.mark.parametrize(
    ("labels", "bad", "place"),
    [([[0, 3], [1, 2]], 3, "(0, 1)"), ([[0, 1], [-1, 7]], -1, "(1, 0)")],
)
def test_a_label_out_of_range_is_named(labels: list[Any], bad: int, place: str) -> None:
    message = f"sparse cross-entropy: the label {bad} at {place} is not one of the 3 classes 0 to 2"
    logits = np.zeros((2, 2, 3))
    with pytest.raises(InvalidArgumentError) as caught:
        sparse_softmax_cross_entropy(convert_to_tensor(labels), convert_to_tensor(logits))
    assert caught.value.message == message

    graph = Graph()
    with graph.as_default():
        given = placeholder("int32", [None, 2])
        loss = sparse_softmax_cross_entropy(given, convert_to_tensor(logits))
    with Session(graph=graph) as session, pytest.raises(InvalidArgumentError, match="the label"):
        session.run(loss, {given: np.array(labels)})


def test_shapes_that_do_not_fit() -> None:
    labels, logits = np.zeros((4, 1), "int32"), np.zeros((4, 3), "float32")
    with pytest.raises(ShapeError) as caught:
        sparse_softmax_cross_entropy(convert_to_tensor(labels), convert_to_tensor(logits))
    assert caught.value.message == (
        "SparseSoftmaxCrossEntropy: labels must have the shape of the logits without the class "
        "axis, [4]; labels are int32[4, 1], logits float32[4, 3]"
    )
    assert "squeeze" in str(caught.value)
    with pytest.raises(ShapeError) as caught:
        softmax_cross_entropy(convert_to_tensor(np.zeros(4, "float32")), convert_to_tensor(logits))
    assert caught.value.message == (
        "SoftmaxCrossEntropy: labels are float32[4], but logits float32[4, 3]: "
        "the shapes must be equal"
    )
    with pytest.raises(ShapeError, match="logits must have a class axis"):
        sparse_softmax_cross_entropy(
            convert_to_tensor(np.int32(0)), convert_to_tensor(np.float32(0))
        )


def test_labels_are_integers() -> None:
    with pytest.raises(DTypeError, match="SparseSoftmaxCrossEntropy: labels must be one of"):
        sparse_softmax_cross_entropy(
            convert_to_tensor(np.zeros(2)), convert_to_tensor(np.zeros((2, 3)))
        )


def test_shapes_are_inferred() -> None:
    with Graph().as_default():
        logits = placeholder("float32", [None, 3])
        assert sparse_softmax_cross_entropy(placeholder("int32", [4]), logits).shape == (4,)
        assert softmax_cross_entropy(placeholder("float32", [4, 3]), logits).shape == (4,)
        anything = placeholder("float32")
        assert sparse_softmax_cross_entropy(placeholder("int32", [4]), anything).shape == (4,)
        assert softmax_cross_entropy(anything, anything).shape.rank is None


def test_third_derivatives() -> None:
    labels, logits = rng.integers(0, 3, 2), rng.normal(size=(2, 3))
    check_third(
        lambda x: sparse_softmax_cross_entropy(convert_to_tensor(labels), x),
        lambda x: sparse_reference(labels, x),
        [logits],
    )
    check_third(
        softmax_cross_entropy,
        lambda labels, x: -(labels * special.log_softmax(x, -1)).sum(-1),
        [rng.uniform(size=(2, 3)), logits],
    )
