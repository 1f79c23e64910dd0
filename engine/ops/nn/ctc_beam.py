"""CTC by beam search: the labels that all alignments together make most likely. On the host."""

from __future__ import annotations

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import FLOATING, INTEGER, Array, Tensor, TensorSpec, int32
from ..core.registry import define, no_gradient

_NONE = -np.inf  # log of 0


@define("CtcBeamSearch", dtypes={"scores": FLOATING, "lengths": INTEGER}, same_dtype=False)
def _ctc_beam_search(
    scores: TensorSpec, lengths: TensorSpec, *, beam_width: int, top_paths: int, blank: int
) -> tuple[TensorSpec, ...]:
    """The `top_paths` most likely label sequences, and the logs of their probabilities.

    scores: (batch, time, classes), logs of probabilities; lengths: (batch,), the steps that count.
    Labels are (top_paths, batch, time), filled up with -1. After each step the `beam_width` most
    likely sequences are kept.
    """
    if scores.shape.rank not in (3, None) or lengths.shape.rank not in (1, None):
        raise ShapeError(
            f"CtcBeamSearch: expected (batch, time, classes) and (batch,), got {scores}, {lengths}"
        )
    for name, value in (("beam_width", beam_width), ("top_paths", top_paths)):
        if value < 1:
            raise InvalidArgumentError(f"CtcBeamSearch: {name} must be at least 1, got {value}")
    if scores.shape.rank is None:
        batch = time = None
    else:
        batch, time, _ = scores.shape
    return (
        TensorSpec((top_paths, batch, time), int32),
        TensorSpec((batch, top_paths), scores.dtype),
    )


@_ctc_beam_search.kernel("cpu")
def _ctc_beam_search_kernel(
    scores: Array, lengths: Array, *, beam_width: int, top_paths: int, blank: int
) -> tuple[Array, Array]:
    batch, time, _ = scores.shape
    labels = np.full((top_paths, batch, time), -1, np.int32)
    totals = np.full((batch, top_paths), _NONE, scores.dtype)
    for i in range(batch):
        steps = scores[i, : int(lengths[i])].astype(np.float64)
        for k, (path, total) in enumerate(_best(steps, beam_width, blank)[:top_paths]):
            labels[k, i, : len(path)] = path
            totals[i, k] = total
    return labels, totals


def _best(steps: Array, beam_width: int, blank: int) -> list[tuple[tuple[int, ...], float]]:
    """The sequences that are left at the end, the most likely first.

    in_blank[j] and in_label[j] are the logs of the probability of sequence j by alignments that end
    in the blank, or in its last label.
    """
    paths: list[tuple[int, ...]] = [()]
    in_blank, in_label = np.zeros(1), np.full(1, _NONE)
    for step in steps:
        total = np.logaddexp(in_blank, in_label)
        last = np.array([path[-1] if path else -1 for path in paths])
        has_last = last >= 0
        longer = total[:, None] + step  # with one label more
        longer[:, blank] = _NONE
        # A label that comes twice is one, unless a blank stood between.
        rows = np.flatnonzero(has_last)
        longer[rows, last[rows]] = in_blank[rows] + step[last[rows]]
        stays_blank = total + step[blank]
        stays = np.where(has_last, in_label + step[last], _NONE)
        places = {path: j for j, path in enumerate(paths)}
        for j in rows:  # what a shorter sequence becomes may be there already
            i = places.get(paths[j][:-1])
            if i is not None:
                stays[j] = np.logaddexp(stays[j], longer[i, last[j]])
                longer[i, last[j]] = _NONE
        kept = np.concatenate([np.logaddexp(stays_blank, stays), longer.ravel()])
        order = np.argsort(-kept, kind="stable")[:beam_width]
        order = order[kept[order] > _NONE]
        count, classes = len(paths), len(step)
        made = [divmod(k - count, classes) for k in order]
        paths = [
            paths[k] if k < count else (*paths[row], column)
            for k, (row, column) in zip(order, made, strict=True)
        ]
        is_old = order < count
        old = np.where(is_old, order, 0)
        in_blank = np.where(is_old, stays_blank[old], _NONE)
        in_label = np.where(is_old, stays[old], kept[order])
    total = np.logaddexp(in_blank, in_label)
    return [(paths[j], float(total[j])) for j in np.argsort(-total, kind="stable")]


_ctc_beam_search.grad(no_gradient)


def ctc_beam_search(
    scores: Tensor, lengths: Tensor, beam_width: int, top_paths: int, blank: int
) -> tuple[Tensor, Tensor]:
    """The most likely label sequences, and the logs of their probabilities.

    Args:
        scores: (batch, time, classes), logs of probabilities.
        lengths: (batch,), how many steps count.
        beam_width: how many sequences are kept after each step.
        top_paths: how many are given.
        blank: the class that stands for no label.

    Returns:
        Labels, (top_paths, batch, time), int32, filled up with -1; and (batch, top_paths).

    Source: Graves, "Sequence transduction with recurrent neural networks", 2012, arXiv:1211.3711,
        section 2.5; Hannun et al., "First-pass large vocabulary continuous speech recognition using
        bi-directional recurrent DNNs", 2014, arXiv:1408.2873, algorithm 1.
    """
    labels, totals = _ctc_beam_search.many(
        scores, lengths, beam_width=beam_width, top_paths=top_paths, blank=blank
    )
    return labels, totals
