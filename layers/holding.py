"""Variables that have other values for a while: what the stateless methods stand on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.state import Variable


@contextmanager
def holding(variables: Sequence[Variable], values: Sequence[Any], who: str) -> Iterator[None]:
    """Let `variables` have `values` inside the block, and what they had before after it.

    Raises:
        InvalidArgumentError: another number of values.
    """
    if len(values) != len(variables):
        raise InvalidArgumentError(
            f"{who}: expected {len(variables)} values of variables, got {len(values)}",
            remedy="pass one value for each variable, in their order",
        )
    before = [v.read_value() for v in variables]
    try:
        for v, value in zip(variables, values, strict=True):
            v.assign(value)
        yield
    finally:
        for v, value in zip(variables, before, strict=True):
            v.assign(value)
