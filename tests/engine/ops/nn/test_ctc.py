"""The CTC loss, against the sum over all paths."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import ShapeError, UnimplementedError
from laminar.engine.gradients import GradientTape
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.nn.ctc import ctc_loss

from ..harness import check_op

rng = np.random.default_rng(3)


def spelled(path: tuple[int, ...], blank: int) -> list[int]:
    """What a path spells: runs merged, blanks dropped."""
    return [key for key, _ in itertools.groupby(path) if key != blank]


def by_enumeration(
    log_probs: Any, labels: Any, label_lengths: Any, lengths: Any, blank: int
) -> Any:
    losses = []
    for p, label, count, time in zip(log_probs, labels, label_lengths, lengths, strict=True):
        total = -np.inf
        for path in itertools.product(range(p.shape[1]), repeat=int(time)):
            if spelled(path, blank) == list(label[:count]):
                total = np.logaddexp(total, sum(p[t, k] for t, k in enumerate(path)))
        losses.append(-total)
    return np.array(losses)


def log_softmax(x: Any) -> Any:
    return x - np.log(np.sum(np.exp(x), -1, keepdims=True))


@pytest.mark.parametrize(
    ("labels", "label_lengths", "lengths", "blank"),
    [
        pytest.param([[1, 2]], [2], [4], 0, id="plain"),
        pytest.param([[1, 1]], [2], [4], 0, id="repeated label"),
        pytest.param([[1, 2], [2, 0]], [2, 1], [4, 3], 0, id="lengths"),
        pytest.param([[0, 1]], [2], [3], 2, id="last class is blank"),
        pytest.param([[1, 2]], [0], [4], 0, id="no labels"),
    ],
)
def test_loss_and_gradient(labels: Any, label_lengths: Any, lengths: Any, blank: int) -> None:
    ints = [np.array(v, "int32") for v in (labels, label_lengths, lengths)]
    check_op(
        lambda p, a, b, c: ctc_loss(p, a, b, c, blank),
        lambda p, a, b, c: by_enumeration(p, a, b, c, blank),
        [log_softmax(rng.normal(size=(len(labels), 4, 3))), *ints],
        second=False,
    )


def test_labels_that_do_not_fit_give_a_large_finite_loss() -> None:
    log_probs = np.full((1, 2, 3), np.log(1 / 3), "float32")
    p, labels, count, time = (
        convert_to_tensor(np.array(v)) for v in (log_probs, [[1, 1]], [2], [2])
    )
    loss = ctc_loss(p, labels, count, time)
    assert 9e4 < float(loss.numpy()[0]) < 3e5


def test_second_derivative_is_refused() -> None:
    p = convert_to_tensor(log_softmax(rng.normal(size=(1, 3, 3))))
    labels, count, time = (convert_to_tensor(np.array(v)) for v in ([[1]], [1], [3]))
    with GradientTape() as outer:
        outer.watch(p)
        with GradientTape() as inner:
            inner.watch(p)
            loss = ctc_loss(p, labels, count, time)
        slope = inner.gradient(loss, p)
    with pytest.raises(UnimplementedError, match="no second derivative"):
        outer.gradient(slope, p)


def test_shapes_are_checked() -> None:
    p = convert_to_tensor(np.zeros((2, 3, 4), "float32"))
    labels = convert_to_tensor(np.zeros((2, 2), "int32"))
    one = convert_to_tensor(np.zeros(1, "int32"))
    two = convert_to_tensor(np.zeros(2, "int32"))
    with pytest.raises(ShapeError, match="one length for each example"):
        ctc_loss(p, labels, one, two)
    with pytest.raises(ShapeError, match=r"expected log_probs \(batch, time, classes\)"):
        ctc_loss(p, two, two, two)
