"""Steps of an optimizer on values: traced and compiled when some have been taken.

A step that comes again with the same variables costs hundreds of single ops otherwise. What it does
stays the same, up to rounding: so only rules of laminar's own are traced, with a learning rate that
is a variable or a schedule of laminar's, and gradients that are whole tensors. An attribute of the
optimizer that is set has the steps traced anew; where that happens all the time they stay with
single ops, as they do under a tape, in device and stateless scopes. A step that fails is taken once
more op by op, for its error: it has changed no variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from laminar.engine.functions import ConcreteFunction, Function
from laminar.engine.graph import EagerTensor, Tensor, TensorSpec, stack
from laminar.engine.ops.core.recording import recorders
from laminar.engine.state import Variable, current_scope
from laminar.recorded import is_ours

# From this step on it is compiled; where the variables are small, which are many in tests, later.
_USES, _USES_OF_FEW = 3, 16
_FEW = 16384
# So many sets of variables, and changes of the optimizer, are followed.
_MOST_SETS, _MOST_CHANGES = 16, 8


class Stepping(Protocol):
    """An optimizer, as seen from here."""

    _learning_rate: Any
    _laminar_version: int

    def _laminar_apply(self, grads: Sequence[Any], variables: Sequence[Variable]) -> None: ...

    def _laminar_scope(self) -> AbstractContextManager[Any]: ...


class CompiledSteps:
    """The steps of one optimizer.

    `_sets[ids]` is how often a set of variables was updated, then the function that does it; None
    where it stays with single ops. `_seen` is the state of the optimizer as of then.
    """

    def __init__(self) -> None:
        self._sets: dict[tuple[int, ...], int | ConcreteFunction | None] = {}
        self._seen: Any = None
        self._changes = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledSteps:
        return CompiledSteps()

    def apply(
        self, optimizer: Stepping, grads: Sequence[Any], variables: Sequence[Variable]
    ) -> None:
        """Update the variables by `optimizer`, compiled where that is possible."""
        if not self._run(optimizer, grads, variables):
            with optimizer._laminar_scope():
                optimizer._laminar_apply(grads, variables)

    def _run(
        self, optimizer: Stepping, grads: Sequence[Any], variables: Sequence[Variable]
    ) -> bool:
        if stack.items or stack.place is not None or recorders.active:
            return False
        if current_scope() is not None or not is_ours(type(optimizer)):
            return False
        for g, v in zip(grads, variables, strict=True):
            if type(g) is not EagerTensor or type(v.handle) is not EagerTensor:
                return False
            if g.dtype != v.dtype or not _is_plain(v):
                return False
        state = _state(optimizer)
        if state is None:
            return False
        if state != self._seen:
            self._seen = state
            self._changes += 1
            self._sets.clear()
        key = tuple(map(id, variables))
        found = self._sets.get(key, 0)
        if isinstance(found, int):
            found = self._sets[key] = self._counted(optimizer, variables, found + 1)
        if not isinstance(found, ConcreteFunction):
            return False
        try:
            found.call_matching(grads)
        except Exception:  # op by op it fails at the line of this call
            return False
        return True

    def _counted(
        self, optimizer: Stepping, variables: Sequence[Variable], uses: int
    ) -> int | ConcreteFunction | None:
        """The function for variables that have been updated often enough."""
        if uses < (_USES if sum(v.size for v in variables) > _FEW else _USES_OF_FEW):
            return uses
        if self._changes > _MOST_CHANGES or len(self._sets) > _MOST_SETS:
            return None

        def step(*grads: Tensor) -> None:
            with optimizer._laminar_scope():
                optimizer._laminar_apply(grads, variables)

        try:
            return Function(step).concrete(*[TensorSpec(v.shape, v.dtype) for v in variables])
        except Exception:  # what cannot be traced may well run op by op
            return None


def _is_plain(variable: Variable) -> bool:
    constraint = variable.constraint
    if variable.overwrite_with_gradient or not variable.shape.is_fully_defined:
        return False
    return constraint is None or is_ours(type(constraint))


def _state(optimizer: Stepping) -> Any:
    """What is another one when the optimizer has been changed; None where that is not known."""
    rate = optimizer._learning_rate
    if isinstance(rate, Variable):
        return id(optimizer), optimizer._laminar_version, None
    if is_ours(type(rate)) and not any(map(callable, vars(rate).values())):
        return id(optimizer), optimizer._laminar_version, dict(vars(rate))
    return None
