"""pad_sequences: lists of different lengths as one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError


def pad_sequences(
    sequences: Sequence[Any],
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> Any:
    """Sequences of different lengths as the rows of one array, cut or filled up to one length.

    Args:
        sequences: a list of lists, or of arrays (steps, ...).
        maxlen: the length; by default that of the longest sequence.
        dtype: of the result; `object` for texts of any length.
        padding: "pre" fills up before the sequence, "post" after it.
        truncating: "pre" cuts at the beginning, "post" at the end.
        value: what is filled in.

    Returns:
        Array of shape (len(sequences), maxlen, ...).

    Raises:
        InvalidArgumentError: something that is not a sequence, or another `padding`.
        ShapeError: the steps of two sequences have different shapes.

    Examples:
        >>> laminar.utils.pad_sequences([[1], [2, 3, 4]], maxlen=3)
        array([[0, 0, 1],
               [2, 3, 4]], dtype=int32)
    """
    if not hasattr(sequences, "__len__"):
        raise InvalidArgumentError(
            f"pad_sequences: expected a list of sequences, got {sequences!r}"
        )
    for name, where in (("padding", padding), ("truncating", truncating)):
        if where not in ("pre", "post"):
            raise InvalidArgumentError(
                f"pad_sequences: {name} must be 'pre' or 'post', got {where!r}"
            )
    if isinstance(value, str) and np.dtype(dtype).kind not in "OSU":
        raise InvalidArgumentError(
            f"pad_sequences: the value {value!r} does not fit the dtype {dtype}",
            remedy="pass dtype=object for texts",
        )
    lengths = np.array([_length(s, i) for i, s in enumerate(sequences)], np.int64)
    width = int(lengths.max(initial=0)) if maxlen is None else maxlen
    kept = np.minimum(lengths, width)
    rows = [
        np.asarray(s[n - k :] if truncating == "pre" else s[:k], dtype)
        for s, n, k in zip(sequences, lengths, kept, strict=True)
        if n
    ]
    step = rows[0].shape[1:] if rows else ()
    for row in rows:
        if row.shape[1:] != step:
            raise ShapeError(
                f"pad_sequences: the steps of one sequence have shape {row.shape[1:]}, "
                f"those of the first {step}",
                remedy="give all sequences steps of one shape",
            )
    out = np.full((len(lengths), width, *step), value, dtype)
    places = np.arange(width)
    filled = places >= (width - kept)[:, None] if padding == "pre" else places < kept[:, None]
    if rows:
        out[filled] = np.concatenate(rows)
    return out


def _length(sequence: Any, place: int) -> int:
    try:
        return len(sequence)
    except TypeError as cause:
        raise InvalidArgumentError(
            f"pad_sequences: expected a list of sequences, the item {place} is {sequence!r}",
            remedy="wrap a single sequence: [sequence]",
        ) from cause
