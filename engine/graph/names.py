"""Names of operations, and what is said of one that is none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ..errors import ArgumentTypeError, InvalidArgumentError
from .device import NODE_NAME

_NAME = re.compile(NODE_NAME)


def is_name(name: str) -> bool:
    """Whether an operation could have the name."""
    return _NAME.fullmatch(name) is not None


def check_name(name: str) -> None:
    """InvalidArgumentError unless an operation could have the name."""
    if not is_name(name):
        raise InvalidArgumentError(
            f"{name!r} is not a name for an operation",
            remedy="use letters, digits and _ . - /, starting with a letter or digit",
        )


def check_text(name: Any) -> None:
    """ArgumentTypeError for what is no string."""
    if not isinstance(name, str):
        raise ArgumentTypeError(
            f"Graph: a name is a string, got {name!r}",
            remedy="as_graph_element takes tensors and operations, too",
        )


def near(name: str, known: Iterable[str]) -> str:
    """What to try in place of a name that nothing has."""
    import difflib  # only for an error's text

    found = difflib.get_close_matches(name, known, 3)
    return f"did you mean {', '.join(found)}?" if found else "list graph.operations"
