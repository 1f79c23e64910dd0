"""Learning rates of their own for parts of a model."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.state import Variable


class Groups:
    """By how much the learning rate of each variable is multiplied.

    Args:
        factors: see `Optimizer.groups`.
        who: for errors.

    Raises:
        InvalidArgumentError: a key or a factor of another kind.
    """

    def __init__(self, factors: Mapping[Any, float], who: str) -> None:
        self._who = who
        self._entries = [(_checked_key(key, who), _factor(f, who)) for key, f in factors.items()]
        self._factors: dict[int, float] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Groups:
        new = copy.copy(self)
        new._entries = copy.deepcopy(self._entries, memo)
        new._factors = {id(memo[i]) if i in memo else i: f for i, f in self._factors.items()}
        return new

    def build(self, variables: Sequence[Variable]) -> None:
        """Find the factor of each variable; of several that fit, the last one holds.

        Raises:
            InvalidArgumentError: an entry fits none of the variables.
        """
        self._factors = {}
        for key, factor in self._entries:
            found = [v for v in variables if _fits(key, v)]
            if not found:
                paths = ", ".join(v.path for v in variables[:8])
                raise InvalidArgumentError(
                    f"{self._who}: groups: {_shown(key)} fits none of the {len(variables)} "
                    f"variables ({paths}{', ...' if len(variables) > 8 else ''})",
                    remedy="give a layer, a variable, or a part of such a path",
                )
            self._factors |= {id(v): factor for v in found}

    def factor(self, variable: Variable) -> float:
        """By how much the learning rate is multiplied: 1 for variables that are not named."""
        return self._factors.get(id(variable), 1.0)

    def config(self, variables: Sequence[Variable]) -> dict[str, float]:
        """The factors by pattern, as data."""
        found: dict[str, float] = {}
        for key, factor in self._entries:
            if isinstance(key, str):
                found[key] = factor
            else:
                found |= {f"^{re.escape(v.path)}$": factor for v in variables if _fits(key, v)}
        return found


def _checked_key(key: Any, who: str) -> Any:
    if isinstance(key, str):
        try:
            re.compile(key)
        except re.error as cause:
            raise InvalidArgumentError(
                f"{who}: groups: {key!r} is no regular expression: {cause}"
            ) from cause
        return key
    if isinstance(key, Variable) or hasattr(key, "_laminar_flatten_layers"):
        return key
    raise InvalidArgumentError(
        f"{who}: groups: expected a part of a path, a layer or a variable, got {key!r}",
        remedy='groups({"encoder": 0.1, model.get_layer("head"): 1.0})',
    )


def _factor(value: Any, who: str) -> float:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value) or value < 0:
        raise InvalidArgumentError(
            f"{who}: groups: a factor must be a number of at least 0, got {value!r}",
            remedy="0 keeps the variables as they are, 0.1 trains them ten times more slowly",
        )
    return float(value)


def _fits(key: Any, variable: Variable) -> bool:
    if isinstance(key, str):
        return re.search(key, variable.path) is not None
    owned = [key] if isinstance(key, Variable) else key.variables
    return any(v is variable for v in owned)


def _shown(key: Any) -> str:
    return repr(key) if isinstance(key, str) else repr(getattr(key, "name", key))
