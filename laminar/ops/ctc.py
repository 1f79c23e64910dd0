"""Connectionist temporal classification: labels without their timing."""

from __future__ import annotations

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, int32
from laminar.engine.ops.array import axes, creation
from laminar.engine.ops.array.along import take_along_axis
from laminar.engine.ops.array.index import get_item
from laminar.engine.ops.array.join import concat
from laminar.engine.ops.array.sort import argsort
from laminar.engine.ops.core.basic import zeros_like
from laminar.engine.ops.math import arithmetic
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import equal, greater_equal, where
from laminar.engine.ops.math.reduce import argmax, reduce_max, reduce_sum
from laminar.engine.ops.nn import ctc as engine
from laminar.engine.ops.nn.ctc_beam import ctc_beam_search
from laminar.engine.ops.nn.normalize import statistics_dtype
from laminar.engine.ops.nn.softmax import log_softmax

from ..typing import TensorLike
from .arguments import floating, known_size, one_of, tensor, whole
from .recording import public

__all__ = ["ctc_decode", "ctc_loss"]


@public
def ctc_loss(
    target: TensorLike,
    output: TensorLike,
    target_length: TensorLike,
    output_length: TensorLike,
    mask_index: int = 0,
) -> Tensor:
    """-log of the probability that a sequence of predictions spells the target.

    Args:
        target: (batch, labels), class numbers.
        output: (batch, time, classes), logits.
        target_length: (batch,), how many labels count.
        output_length: (batch,), how many steps count.
        mask_index: the class that stands for no label.

    Returns:
        (batch,).

    Source: Graves et al., "Connectionist temporal classification", ICML 2006.

    Examples:
        >>> frames = np.zeros((1, 4, 3), "float32")  # three classes, equally probable
        >>> ops.ctc_loss([[1, 2]], frames, target_length=[2], output_length=[4])
        Tensor([1.6864], shape=(1,), dtype=float32)
    """
    logits = floating(output)
    logits = cast(logits, statistics_dtype(logits.dtype))
    labels, label_lengths, lengths = (
        cast(tensor(x), int32) for x in (target, target_length, output_length)
    )
    return engine.ctc_loss(log_softmax(logits), labels, label_lengths, lengths, mask_index)


@public
def ctc_decode(
    inputs: TensorLike,
    sequence_lengths: TensorLike,
    strategy: str = "greedy",
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
    mask_index: int = 0,
) -> tuple[Tensor, Tensor]:
    """The labels that a sequence of predictions spells most likely.

    Args:
        inputs: (batch, time, classes), logarithms of probabilities, or logits.
        sequence_lengths: (batch,), how many steps count.
        strategy: "greedy": the best class of each step; or "beam_search": the labels that all
            their alignments together make most likely.
        beam_width: how many label sequences are kept after each step, in "beam_search".
        top_paths: how many answers; of "greedy" there is 1.
        merge_repeated: whether a run of one class is one label, in "greedy".
        mask_index: the class that stands for no label.

    Returns:
        The labels, (top_paths, batch, time), int32, filled up with -1; and (batch, top_paths): of
        "greedy" minus the sum of the inputs along the path, of "beam_search" the logarithm of the
        probability.

    Raises:
        InvalidArgumentError: another strategy, or more than one path of "greedy".

    Examples:
        >>> frames = np.log([[[0.1, 0.8, 0.1], [0.1, 0.8, 0.1], [0.8, 0.1, 0.1]]])
        >>> labels, scores = ops.ctc_decode(frames, [3], mask_index=0)
        >>> labels[0, 0]
        Tensor([ 1, -1, -1], shape=(3,), dtype=int32)
    """
    one_of("ctc_decode", "strategy", strategy, ("greedy", "beam_search"))
    beam_width, top_paths = (whole("ctc_decode", "a number", n) for n in (beam_width, top_paths))
    scores = floating(inputs)
    if scores.shape.rank != 3:
        raise ShapeError(f"ctc_decode: expected (batch, time, classes), got {scores.spec}")
    if strategy == "beam_search":
        lengths = cast(tensor(sequence_lengths), int32)
        return ctc_beam_search(log_softmax(scores), lengths, beam_width, top_paths, mask_index)
    if top_paths != 1:
        raise InvalidArgumentError(
            f"ctc_decode: 'greedy' gives one path, got top_paths={top_paths}",
            remedy="strategy='beam_search'",
        )
    time = known_size("ctc_decode", scores, 1)
    lengths = cast(tensor(sequence_lengths), int32)
    step = creation.arange(time, dtype=int32)
    over = greater_equal(step, axes.expand_dims(lengths, 1))
    blank = tensor(mask_index, int32)
    best = where(over, blank, argmax(scores, -1))
    score = reduce_max(scores, -1)
    score = reduce_sum(where(over, zeros_like(score), score), 1, keepdims=True)
    if merge_repeated and time:
        first, rest = get_item(best, (slice(None), slice(0, 1))), slice(1, None)
        later, earlier = (get_item(best, (slice(None), part)) for part in (rest, slice(0, -1)))
        best = concat((first, where(equal(later, earlier), blank, later)), 1)
    dropped = equal(best, blank)
    labels = where(dropped, tensor(-1, int32), best)
    order = argsort(cast(dropped, int32), 1)  # stable: labels first, in their order
    labels = take_along_axis(labels, order, 1)
    return axes.expand_dims(labels, 0), arithmetic.negative(score)
