"""The values that steps report, as callbacks and users get them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import EagerTensor


def read_logs(results: Any) -> dict[str, Any]:
    """The values to report as Python numbers (arrays stay arrays); dicts among them are merged.

    Raises:
        InvalidArgumentError: a step returned something other than a dict.
    """
    if not isinstance(results, Mapping):
        raise InvalidArgumentError(
            f"train_step and test_step return a dict of values to report, got {type(results)}",
            remedy='return {"loss": loss}',
        )
    logs: dict[str, Any] = {}
    for name, value in results.items():
        if isinstance(value, Mapping):
            logs |= read_logs(value)
        else:
            logs[str(name)] = _number(value)
    return logs


def _number(value: Any) -> Any:
    array = value.value if isinstance(value, EagerTensor) else np.asarray(value)
    return array.item() if array.ndim == 0 else np.asarray(array)


def in_order(logs: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    """The values as a list: those with `names` first, in that order, then the others by name."""
    known = [name for name in names if name in logs]
    return [logs[name] for name in [*known, *sorted(set(logs) - set(known))]]
