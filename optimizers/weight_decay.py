"""Which variables of a model weight decay takes, and which it leaves alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Self

from laminar.engine.state import Variable

from .slots import Slots


class WeightDecay(Slots):
    """The part of `Optimizer` that says at which rate a variable decays.

    Left alone are the variables whose `id` is in `_laminar_undecayed`, and those in whose name
    `_laminar_undecayed_names` is found.
    """

    weight_decay: float | None

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._laminar_undecayed: frozenset[int] = frozenset()
        self._laminar_undecayed_names: re.Pattern[str] | None = None

    def exclude_from_weight_decay(
        self,
        var_list: Iterable[Variable] | None = None,
        var_names: Iterable[str] | None = None,
    ) -> None:
        """Name variables that weight decay leaves alone; call it before the first step.

        Args:
            var_list: the variables themselves.
            var_names: patterns; a variable in whose name one is found is excluded.
        """
        self._laminar_undecayed = frozenset(id(v) for v in var_list or ())
        patterns = "|".join(var_names or ())
        self._laminar_undecayed_names = re.compile(patterns) if patterns else None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = super().__deepcopy__(memo)
        new._laminar_undecayed = frozenset(
            id(memo[i]) if i in memo else i for i in self._laminar_undecayed
        )
        return new

    def _laminar_decays(self, variable: Variable) -> bool:
        names = self._laminar_undecayed_names
        excluded = names is not None and names.search(variable.name) is not None
        return not excluded and id(variable) not in self._laminar_undecayed

    def _laminar_weight_decay_of(self, variable: Variable) -> float | None:
        """The rate at which a variable decays, None if it does not."""
        return self.weight_decay if self._laminar_decays(variable) else None
