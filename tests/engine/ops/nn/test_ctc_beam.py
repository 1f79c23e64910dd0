"""Beam search: the sum over all alignments, made by hand for all label sequences."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from laminar import ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.functions import function

rng = np.random.default_rng(0)


def all_sequences(steps: Any, blank: int) -> list[tuple[tuple[int, ...], float]]:
    """Each label sequence with the log of its probability, the most likely first."""
    sums: dict[tuple[int, ...], float] = {}
    for path in product(range(steps.shape[1]), repeat=len(steps)):
        apart = [c for i, c in enumerate(path) if i == 0 or path[i - 1] != c]
        labels = tuple(c for c in apart if c != blank)
        total = sum(steps[i, c] for i, c in enumerate(path))
        sums[labels] = float(np.logaddexp(sums.get(labels, -np.inf), total))
    return sorted(sums.items(), key=lambda item: -item[1])


@pytest.mark.parametrize(("classes", "time", "blank"), [(3, 4, 0), (3, 5, 2), (2, 5, 1)])
def test_a_wide_beam_finds_the_most_likely(classes: int, time: int, blank: int) -> None:
    logits = rng.normal(size=(3, time, classes)) * 2
    lengths = [time, time - 1, 1]
    options: dict[str, Any] = {"strategy": "beam_search", "beam_width": 500, "top_paths": 2}
    labels, scores = ops.ctc_decode(logits, lengths, mask_index=blank, **options)
    assert labels.shape == (2, 3, time)
    assert labels.dtype == "int32"
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    for i, length in enumerate(lengths):
        for k, (path, total) in enumerate(all_sequences(logs[i, :length], blank)[:2]):
            wanted = [*path] + [-1] * (time - len(path))
            assert labels.numpy()[k, i].tolist() == wanted
            np.testing.assert_allclose(scores.numpy()[i, k], total, rtol=1e-6)


def test_a_narrow_beam_finds_no_more_than_there_is() -> None:
    logits = np.log(np.array([[[0.1, 0.6, 0.3], [0.5, 0.3, 0.2], [0.2, 0.4, 0.4]]]))
    labels, scores = ops.ctc_decode(logits, [3], "beam_search", 2, 2)
    expected = all_sequences(logits[0], 0)
    assert labels.numpy()[0, 0].tolist()[: len(expected[0][0])] == [*expected[0][0]]
    assert scores.numpy()[0, 0] <= expected[0][1] + 1e-6


def test_in_a_function_and_without_enough_answers() -> None:
    decode = function(lambda x: ops.ctc_decode(x, [1], "beam_search", 10, 5))
    labels, scores = decode(np.log([[[0.25, 0.75]]]))
    assert labels.numpy()[:, 0, 0].tolist() == [1, -1, -1, -1, -1]
    np.testing.assert_allclose(np.exp(scores.numpy()), [[0.75, 0.25, 0, 0, 0]], rtol=1e-6)


def test_mistakes() -> None:
    x = np.zeros((1, 2, 3))
    with pytest.raises(InvalidArgumentError, match="beam_width must be at least 1"):
        ops.ctc_decode(x, [1], "beam_search", beam_width=0)
    with pytest.raises(InvalidArgumentError, match="'greedy' gives one path"):
        ops.ctc_decode(x, [1], top_paths=2)
    with pytest.raises(ShapeError):
        ops.ctc_decode(x[0], [1], "beam_search")
