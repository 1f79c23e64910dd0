"""Names for what the user did not name: "dense", "dense_1", ... as Keras counts them.

What belongs to a plain graph is counted there: a graph that is built again has the same names, so
that it finds its values in a checkpoint.
"""

from __future__ import annotations

import re
from typing import Any

from laminar.engine import forks
from laminar.engine.state.home import home_of_state

_lock = forks.lock()


class _Counts(dict[str, int]):
    """How many names begin with each prefix."""


_counts = _Counts()


def to_snake_case(name: str) -> str:
    """ "Conv2DTranspose" -> "conv2d_transpose"."""
    name = re.sub(r"\W+", "", name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def auto_name(prefix: str) -> str:
    """The prefix in snake case, with a number from the second on."""
    prefix = to_snake_case(prefix)
    graph = home_of_state()
    counts = _counts if graph is None else graph.attached(_Counts)
    with _lock:
        count = counts.get(prefix, 0)
        counts[prefix] = count + 1
    return f"{prefix}_{count}" if count else prefix


def reset_names() -> None:
    """Count from the start again."""
    with _lock:
        _counts.clear()


def who(obj: Any) -> str:
    """How errors call a layer, a model or another named object: its class and its name."""
    return f"{type(obj).__name__} {obj.name!r}"
