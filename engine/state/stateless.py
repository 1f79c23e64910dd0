"""StatelessScope: variables that have other values in a block of code, for one thread alone.

State: `_local.scope` is the innermost scope of the thread; `_values[id]` are the values that
variables have in a scope, and `_variables` keeps those variables alive, so that no id is reused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, Self

from ..errors import InvalidArgumentError, ShapeError
from ..graph import DType, Tensor, TensorShape
from ..ops.core.convert import convert_to_tensor


class Held(Protocol):
    """What a scope needs of a variable."""

    @property
    def path(self) -> str:
        """Its name with its scopes."""

    @property
    def shape(self) -> TensorShape:
        """The shape of its value."""

    @property
    def stored_dtype(self) -> DType:
        """The element type of what it keeps."""


class _Local(threading.local):
    scope: StatelessScope | None = None


_local = _Local()


def current_scope() -> StatelessScope | None:
    """The innermost scope that this thread is in."""
    return _local.scope


class StatelessScope:
    """A block in which variables have given values, and updates of variables stay inside.

        with StatelessScope([(v, value)]) as scope:
            y = layer(x)  # reads `value`
        after = scope.get_current_value(v)

    What is computed depends on the values as on any other tensor, so it can be differentiated with
    respect to them. The variables themselves are not touched, and other threads see nothing of it.
    A function (`laminar.function`) called inside runs as plain Python. A scope inside another one
    sees that one's values, and keeps updates to itself.

    Args:
        state_mapping: pairs of a variable and its value in the block.
        collect_losses: whether `losses` gets what layers add to the loss in the block.
        initialize_variables: kept for Keras scripts; variables made inside get their initial values
            at once.

    Raises:
        InvalidArgumentError: a pair does not begin with a variable.
        ShapeError: a value has another shape than its variable.

    Examples:
        >>> v = laminar.Variable(1.0)
        >>> with laminar.StatelessScope([(v, ops.array(5.0))]) as scope:
        ...     y = v + 1
        >>> y, v.numpy()
        (Tensor(6., shape=(), dtype=float32), array(1., dtype=float32))
    """

    def __init__(
        self,
        state_mapping: Iterable[tuple[Held, Any]] | None = None,
        collect_losses: bool = False,
        initialize_variables: bool = True,
    ) -> None:
        self.collect_losses = collect_losses
        self.initialize_variables = initialize_variables
        self.losses: list[Tensor] = []
        self._variables: dict[int, Held] = {}
        self._values: dict[int, Tensor] = {}
        self._outer: StatelessScope | None = None
        for pair in _pairs(state_mapping):
            self.add_update(pair)

    def add_update(self, update: tuple[Held, Any]) -> None:
        """Give a variable a value: `(variable, value)`."""
        variable, value = update
        tensor = convert_to_tensor(value, variable.stored_dtype)
        if not tensor.shape.is_compatible_with(variable.shape):
            raise ShapeError(
                f"StatelessScope: variable {variable.path!r} has the shape {variable.shape}, "
                f"the value given for it is {tensor.spec}",
                remedy="give values in the order of the variables",
            )
        self._variables[id(variable)] = variable
        self._values[id(variable)] = tensor

    def takes(self, variable: Any) -> bool:
        """Whether updates of a variable stay inside."""
        return variable.graph is None

    def shape_of(self, variable: Held) -> TensorShape:
        """The shape of a variable's values in the scope."""
        return variable.shape

    def add_loss(self, loss: Tensor) -> None:
        """Take note of a loss."""
        self.losses.append(loss)

    def get_current_value(self, variable: Held) -> Tensor | None:
        """What a variable is in the scope; None if the scope does not know it."""
        return self._values.get(id(variable))

    def value_of(self, variable: Held) -> Tensor | None:
        """What a variable is in this scope or in those around it."""
        scope: StatelessScope | None = self
        while scope is not None:
            found = scope._values.get(id(variable))
            if found is not None:
                return found
            scope = scope._outer
        return None

    def __enter__(self) -> Self:
        self._outer, _local.scope = _local.scope, self
        return self

    def __exit__(self, *_: object) -> None:
        _local.scope, self._outer = self._outer, None


def _pairs(state_mapping: Any) -> Iterator[tuple[Held, Any]]:
    """The (variable, value) pairs of a mapping.

    Raises:
        InvalidArgumentError: it holds something else.
    """
    if not isinstance(state_mapping, Iterable | None):
        raise _no_pair(state_mapping)
    for pair in state_mapping or ():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise _no_pair(pair)
        variable, value = pair
        if not hasattr(variable, "read_value"):
            raise _no_pair(variable)
        yield variable, value


def _no_pair(found: Any) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"StatelessScope: expected pairs (variable, value), got {found!r}",
        remedy="write state_mapping=zip(model.variables, values)",
    )
