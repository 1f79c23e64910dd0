"""`tf.image`: boxes that overlap a better one are left out, in all forms of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laminar import engine, ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import creation
from laminar.engine.ops.array import gather as gathering
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast

from .adapting import v1
from .boxes import overlap
from .values import dims_of, static, symbol, tensor


def _checked(who: str, boxes: Any, scores: Any, share: Any) -> tuple[Tensor, Tensor]:
    places, weights = symbol(boxes), symbol(scores)
    if places.shape.rank not in (2, None) or places.shape[-1] not in (4, None):
        raise ValueError(f"{who}: boxes are (n, 4), got {places.spec}")
    if weights.shape.rank not in (1, None):
        raise ValueError(f"{who}: scores are a vector, got {weights.spec}")
    if None not in (places.shape[0], weights.shape[0]) and places.shape[0] != weights.shape[0]:
        raise ValueError(f"{who}: {places.shape[0]} boxes, {weights.shape[0]} scores")
    known = static(share)
    if isinstance(known, int | float) and not 0 <= known <= 1:
        raise ValueError(f"{who}: the threshold of overlaps is from 0 to 1, got {known}")
    return places, weights


def _suppressed(
    shared: Callable[[Any], Any],
    weights: Tensor,
    most: Any,
    limit: Any,
    least: Any,
    sigma: Any = None,
) -> tuple[Any, Any, Any]:
    """The numbers of the boxes that stay, their scores, and how many they are.

    Args:
        shared: gives the overlaps of a box with all.
        weights: (n), the scores.
        most: how many stay at most.
        limit: how much may be shared with a box that stays.
        least: boxes without a greater score are left out.
        sigma: instead of leaving a box out, its score is multiplied by exp(-overlap^2 / (2 sigma)).
    """
    none = tensor(-np.inf, weights.dtype)
    left = ops.where(weights > tensor(least, weights.dtype), weights, none)
    count = dims_of(weights)[0]
    numbers = creation.arange(count, dtype="int32")

    def go_on(found: Any, chosen: Any, scored: Any, left: Any) -> Any:
        more = lookup("Less")(found, cast(symbol(most), "int32"))
        return lookup("LogicalAnd")(more, lookup("Any")(lookup("Greater")(left, none)))

    def choose(found: Any, chosen: Any, scored: Any, left: Any) -> Any:
        best = cast(lookup("ArgMax")(left, axis=0), "int32")
        share = cast(shared(best), weights.dtype)
        here = lookup("Equal")(numbers, best)
        kept = ops.where(here, left, scored)
        if sigma is not None:
            left = left * ops.exp(share * share * (-0.5 / sigma))
            left = ops.where(left > tensor(least, weights.dtype), left, none)
        gone = lookup("LogicalOr")(share > tensor(limit, weights.dtype), here)
        return found + 1, ops.where(here, found, chosen), kept, ops.where(gone, none, left)

    begin = (symbol(0), symbol(creation.full([count], -1, "int32")), weights, left)
    if isinstance(count, int) and count == 0:
        return begin[1], weights, symbol(0)
    found, chosen, scored, _ = engine.while_loop(go_on, choose, begin)
    order = ops.argsort(ops.where(chosen < 0, cast(found, "int32"), chosen))
    return cast(order[:found], "int32"), gathering.gather(scored, order[:found]), found


@v1()
def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: float = float("-inf"),
) -> Any:
    """The boxes of the greatest scores, none of which overlaps a greater one too much.

    Args:
        boxes: (n, 4).
        scores: (n).
        max_output_size: how many there are at most.
        iou_threshold: how much of their union two boxes may share.
        score_threshold: boxes without a greater score are left out.

    Returns:
        The numbers of the boxes, int32.
    """
    places, weights = _checked("non_max_suppression", boxes, scores, iou_threshold)
    return _suppressed(
        lambda best: overlap(gathering.gather(places, best), places),
        weights,
        max_output_size,
        iou_threshold,
        score_threshold,
    )[0]


@v1()
def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: float = float("-inf"),
    soft_nms_sigma: float = 0.0,
) -> Any:
    """(numbers, scores): as `non_max_suppression`, or with weaker scores where boxes overlap.

    Args:
        boxes, scores, max_output_size, iou_threshold, score_threshold: see `non_max_suppression`.
        soft_nms_sigma: where it is above 0, the score of a box that shares the part s with one that
            stays is multiplied by exp(-s^2 / (2 sigma)).

    Source: Bodla et al., "Soft-NMS: improving object detection with one line of code", ICCV 2017,
        equation 3.
    """
    places, weights = _checked("non_max_suppression_with_scores", boxes, scores, iou_threshold)
    found, kept, _ = _suppressed(
        lambda best: overlap(gathering.gather(places, best), places),
        weights,
        max_output_size,
        iou_threshold,
        score_threshold,
        soft_nms_sigma if soft_nms_sigma > 0 else None,
    )
    return found, kept


@v1()
def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: float = float("-inf"),
    pad_to_max_output_size: bool = False,
) -> Any:
    """(numbers, how many count): as `non_max_suppression`, filled up with zeros if asked for."""
    found = non_max_suppression(boxes, scores, max_output_size, iou_threshold, score_threshold)
    count = lookup("Size")(found)
    if not pad_to_max_output_size:
        return found, count
    most = cast(symbol(max_output_size), "int32")
    filled = ops.concatenate([found, creation.zeros([most - count], "int32")])
    known = static(max_output_size)
    return (lookup("Reshape")(filled, shape=(known,)) if isinstance(known, int) else filled), count


@v1()
def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: float = float("-inf"),
) -> Any:
    """As `non_max_suppression`, of overlaps (n, n) that are given."""
    shares, weights = symbol(overlaps), symbol(scores)
    if shares.shape.rank not in (2, None) or weights.shape.rank not in (1, None):
        raise ValueError(
            f"non_max_suppression_overlaps: expected (n, n) and (n), got {shares.spec} and "
            f"{weights.spec}"
        )
    return _suppressed(
        lambda best: gathering.gather(shares, best),
        weights,
        max_output_size,
        overlap_threshold,
        score_threshold,
    )[0]


@v1()
def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: float = float("-inf"),
    pad_per_class: bool = False,
    clip_boxes: bool = True,
) -> Any:
    """The best boxes of all classes for each of several images.

    Args:
        boxes: (batch, n, 1 or classes, 4).
        scores: (batch, n, classes).
        max_output_size_per_class: how many there are at most of a class.
        max_total_size: how many there are at most in all.
        iou_threshold: how much of their union two boxes of a class may share.
        score_threshold: boxes without a greater score are left out.
        pad_per_class: whether there are no more results than size per class times classes.
        clip_boxes: whether the boxes are cut to 0 to 1.

    Returns:
        (boxes (batch, k, 4), scores (batch, k), classes (batch, k), number of them (batch)),
        the best first, filled up with zeros.
    """
    places, weights = symbol(boxes), symbol(scores)
    classes, own = weights.shape[2], places.shape[2]
    each, total = static(max_output_size_per_class), static(max_total_size)
    if classes is None or own not in (1, classes) or not isinstance(total, int):
        raise ValueError(
            f"combined_non_max_suppression: boxes {places.spec}, scores {weights.spec} and a total "
            f"of {total} do not go together, or are not known"
        )
    size = min(total, each * classes) if pad_per_class else total

    def of_image(image: Any) -> Any:
        own_boxes, own_scores = image
        found = []
        for k in range(classes):
            kind_boxes = own_boxes[:, 0 if own == 1 else k]
            numbers = non_max_suppression(
                kind_boxes, own_scores[:, k], each, iou_threshold, score_threshold
            )
            score = gathering.gather(own_scores[:, k], numbers)
            label = ops.ones_like(score) * float(k)
            found.append((gathering.gather(kind_boxes, numbers), score, label))
        best_boxes, best_scores, labels = (
            ops.concatenate(list(x)) for x in zip(*found, strict=True)
        )
        order = ops.argsort(-best_scores)[:size]
        count = lookup("Size")(order)
        more = size - count

        def filled(x: Any, rest: list[int]) -> Any:
            behind = creation.zeros([more, *rest], x.dtype)
            whole = ops.concatenate([gathering.gather(x, order), behind])
            return lookup("Reshape")(whole, shape=(size, *rest))

        return filled(best_boxes, [4]), filled(best_scores, []), filled(labels, []), count

    found = engine.map_slices(of_image, (places, weights))
    if clip_boxes:
        return (ops.clip(found[0], 0.0, 1.0), *found[1:])
    return tuple(found)
