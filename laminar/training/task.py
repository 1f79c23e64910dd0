"""What labels and predictions are about: two classes, class numbers, or one-hot rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def by_task(y: Any, y_pred: Any, kinds: Sequence[Any]) -> Any:
    """One of three `kinds`: for one probability, for class numbers, for one-hot rows.

    Args:
        y: labels, None when there are none.
        y_pred: predictions, (batch, ..., classes).
        kinds: what to choose from, in that order.
    """
    if y_pred.shape[-1] == 1:
        return kinds[0]
    is_sparse = y is not None and (len(y.shape) < len(y_pred.shape) or y.shape[-1] == 1)
    return kinds[1] if is_sparse else kinds[2]
