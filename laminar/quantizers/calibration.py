"""Sequences of token ids that a model is run on before it is rounded."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..engine.errors import DTypeError, InvalidArgumentError


def calibration_sequences(
    dataset: Any, tokenizer: Any, num_samples: int, sequence_length: int
) -> Any:
    """Sequences that begin at even distances in all of a data set, repeated if it is short.

    Args:
        dataset: texts, or arrays of token ids.
        tokenizer: its method `tokenize` gives the ids of a text.
        num_samples: how many sequences there are.
        sequence_length: ids of a sequence.

    Returns:
        int32 (num_samples, 1, sequence_length).

    Raises:
        DTypeError: the data set cannot be gone through, or is one text.
        InvalidArgumentError: it is empty.
    """
    if isinstance(dataset, str | bytes) or not isinstance(dataset, Iterable):
        raise DTypeError(
            f"calibration: the dataset must be an iterable of texts or token ids, "
            f"got {type(dataset).__name__}",
            remedy="pass the loaded data: a list of strings, or of arrays",
        )
    parts = [
        np.asarray(tokenizer.tokenize(item) if isinstance(item, str) else item)
        .reshape(-1)
        .astype(np.int32)
        for item in dataset
    ]
    ids = np.concatenate(parts) if parts else np.empty(0, np.int32)
    if not ids.size:
        raise InvalidArgumentError("calibration: the dataset is empty")
    ids = np.tile(ids, math.ceil(num_samples * sequence_length / ids.size))
    last = ids.size - sequence_length
    begins = np.arange(num_samples) * max(1, (last + 1) // num_samples) % (last + 1)
    windows = np.lib.stride_tricks.sliding_window_view(ids, sequence_length)
    return np.ascontiguousarray(windows[begins][:, None, :])
