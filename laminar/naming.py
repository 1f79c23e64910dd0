"""Names for what the user did not name: "dense", "dense_1", ... as Keras counts them."""

from __future__ import annotations

import re
from typing import Any

from laminar.engine import forks

_lock = forks.lock()
_counts: dict[str, int] = {}


def to_snake_case(name: str) -> str:
    """ "Conv2DTranspose" -> "conv2d_transpose"."""
    name = re.sub(r"\W+", "", name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def auto_name(prefix: str) -> str:
    """The prefix in snake case, with a number from the second on."""
    prefix = to_snake_case(prefix)
    with _lock:
        count = _counts.get(prefix, 0)
        _counts[prefix] = count + 1
    return f"{prefix}_{count}" if count else prefix


def reset_names() -> None:
    """Count from the start again."""
    with _lock:
        _counts.clear()


def who(obj: Any) -> str:
    """How errors call a layer, a model or another named object: its class and its name."""
    return f"{type(obj).__name__} {obj.name!r}"
