"""Connectionist temporal classification: labels are sparse, the last class is the blank."""

from __future__ import annotations

from typing import Any

from laminar import engine, ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.array.creation import arange, sequence_mask
from laminar.engine.ops.array.gather import gather, gather_nd
from laminar.engine.ops.array.segment import segment_sum
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.cumulative import cumsum

from .adapting import v1
from .sparse_tensors import sparse_to_dense
from .values import dims_of, symbol


def _blank(scores: Tensor) -> int:
    classes = scores.shape[-1] if scores.shape.rank is not None else None
    if classes is None:
        raise ValueError(f"ctc: the number of classes must be known, got {scores.spec}")
    return int(classes) - 1


def _by_example(inputs: Any, time_major: bool) -> Tensor:
    x = symbol(inputs)
    return lookup("Transpose")(x, axes=(1, 0, 2)) if time_major else x


@v1()
def ctc_loss(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Any:
    """-log of the probability that the inputs spell the labels; the last class is the blank.

    Args:
        labels: sparse int32, (batch, labels).
        inputs: (time, batch, classes), or (batch, time, classes); before the softmax.
        sequence_length: (batch,), the steps that count.
        preprocess_collapse_repeated, ctc_merge_repeated, ignore_longer_outputs_than_inputs: only
            their usual values are supported.
        time_major: whether time is the first axis.
        logits: another name of `inputs`.

    Raises:
        NotImplementedError: other values of those.
    """
    if preprocess_collapse_repeated or not ctc_merge_repeated or ignore_longer_outputs_than_inputs:
        raise NotImplementedError(
            "ctc_loss: preprocess_collapse_repeated, ctc_merge_repeated=False and "
            "ignore_longer_outputs_than_inputs are not supported"
        )
    scores = _by_example(inputs if logits is None else logits, time_major)
    rows = cast(labels.indices[:, 0], "int32")
    batch = dims_of(scores)[0]
    counts = segment_sum(lookup("OnesLike")(rows), rows, batch)
    dense = sparse_to_dense(
        labels.indices, labels.dense_shape, labels.values, validate_indices=False
    )
    return ops.ctc_loss(dense, scores, counts, symbol(sequence_length), _blank(scores))


@v1()
def ctc_greedy_decoder(inputs: Any, sequence_length: Any, merge_repeated: bool = True) -> Any:
    """([the labels, sparse], minus the sum of the greatest inputs (batch, 1)) of each example.

    Args:
        inputs: (time, batch, classes); the last class is the blank.
        sequence_length: (batch,), the steps that count.
        merge_repeated: whether a run of one class is one label.
    """
    scores = _by_example(inputs, True)
    labels, sums = ops.ctc_decode(
        scores,
        symbol(sequence_length),
        merge_repeated=merge_repeated,
        mask_index=_blank(scores),
    )
    return [_sparse(labels[0])], sums


@v1()
def ctc_beam_search_decoder(
    inputs: Any,
    sequence_length: Any,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> Any:
    """(for each path the labels, sparse; (batch, paths) logs of their probabilities).

    Args:
        inputs: (time, batch, classes); the last class is the blank.
        sequence_length: (batch,), the steps that count.
        beam_width: how many are kept after each step.
        top_paths: how many are given.
        merge_repeated: whether runs of one label in a path become one of it.
    """
    scores = _by_example(inputs, True)
    labels, logs = ops.ctc_decode(
        scores,
        symbol(sequence_length),
        "beam_search",
        beam_width,
        top_paths,
        mask_index=_blank(scores),
    )
    return [_sparse(labels[i], merge=merge_repeated) for i in range(top_paths)], logs


@v1()
def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> Any:
    """As `ctc_beam_search_decoder`, which leaves repeated labels as they are."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, False)


def _sparse(labels: Tensor, merge: bool = False) -> engine.SparseValues:
    """Rows that are filled up with -1, as a sparse tensor as wide as the longest."""
    kept = lookup("GreaterEqual")(labels, lookup("ZerosLike")(labels))
    if merge:
        before = ops.pad(labels, [[0, 0], [1, 0]], constant_values=-1)[:, :-1]
        kept = lookup("LogicalAnd")(kept, lookup("NotEqual")(labels, before))
    places = ops.cumsum(cast(kept, "int64"), axis=1) - 1
    rows, columns = ops.nonzero(kept)
    at = gather_nd(places, ops.stack([rows, columns], -1))
    values = gather_nd(cast(labels, "int64"), ops.stack([rows, columns], -1))
    indices = cast(ops.stack([cast(rows, "int64"), at], -1), "int64")
    widest = ops.max(ops.sum(cast(kept, "int64"), axis=1), initial=0)
    height = cast(ops.stack([ops.shape(labels)[0]], 0), "int64")
    return engine.SparseValues(indices, values, ops.concatenate([height, widest[None]], 0))


@v1()
def collapse_repeated(labels: Any, seq_length: Any) -> Any:
    """Rows of labels with runs of one label as one: (labels, their numbers).

    Args:
        labels: (batch, most).
        seq_length: (batch), how many of each row count.

    Returns:
        (batch, most that is left), filled up with zeros, and (batch).
    """
    x, counts = symbol(labels), symbol(seq_length, "int32")
    most = dims_of(x)[1]
    first = lookup("OnesLike")(x[:, :1])
    changed = lookup("NotEqual")(x[:, 1:], x[:, :-1])
    keep = lookup("Concat")(lookup("Cast")(first, dtype="bool"), changed, axis=1)
    kept = lookup("LogicalAnd")(keep, sequence_mask(counts, most))
    found = engine.ragged_boolean_mask(x, kept)
    return found.to_tensor(), lookup("Cast")(found.row_lengths(), dtype=counts.dtype)


@v1()
def ctc_unique_labels(labels: Any) -> tuple[Any, Any]:
    """For each row its labels once each, in the order in which they come, and where each stands.

    Args:
        labels: (batch, most).

    Returns:
        (batch, most), filled up with zeros, and (batch, most): labels[b, i] is the first at the
        place of the second.
    """
    x = symbol(labels)
    n = dims_of(x)[1]
    same = lookup("Equal")(x[:, :, None], x[:, None, :])
    first = lookup("ArgMax")(lookup("Cast")(same, dtype="int32"), axis=2)
    numbers = arange(n, dtype=first.dtype)
    is_first = lookup("Equal")(first, numbers[None, :])
    place = cumsum(lookup("Cast")(is_first, dtype="int32"), 1) - 1
    found = engine.ragged_boolean_mask(x, is_first).to_tensor(shape=[None, n])
    return found, gather(place, first, 1, 1)
