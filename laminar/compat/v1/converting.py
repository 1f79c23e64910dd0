"""Functions whose `if` and `while` decide by tensors, made of those that are given."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from laminar.engine.autograph import convert


def to_graph(
    entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None
) -> Callable[..., Any]:
    """A function, rewritten so that tensors of a graph can decide its statements.

    Args:
        entity: the function; what it calls is rewritten, too.
        recursive: accepted.
        experimental_optional_features: accepted.
    """
    return convert(entity)


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Accepted: what is rewritten is told nowhere; errors say why something is not."""


def trace(*args: Any) -> None:
    """Print what there is while a graph is built."""
    builtins.print(*args)
