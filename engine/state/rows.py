"""Rows of variables: a block in which variables are some of their rows, and updates of these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..graph import Tensor, TensorShape
from ..ops.array.segment import rows_at
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.state import variable_rows
from .stateless import Held, StatelessScope
from .variable import Variable


class RowScope(StatelessScope):
    """A block in which some variables read as some of their rows, and take updates of these.

        with RowScope([w, momentum], places) as scope:
            w.assign_sub(0.1 * rows)  # a rule written for whole variables
        scope.store()

    The variables change in `store`. Other variables are what they are outside of the block.

    Args:
        variables: what is to be seen by rows; a row is all that the first axis counts.
        places: (k,), the rows; where one is out of range, zeros are read and nothing is written.
    """

    def __init__(self, variables: Iterable[Variable], places: Tensor) -> None:
        super().__init__()
        self._rows = {id(v): v for v in variables}
        self._places = places
        self._updated: dict[int, Variable] = {}

    def takes(self, variable: Any) -> bool:
        return id(variable) in self._rows

    def shape_of(self, variable: Held) -> TensorShape:
        if id(variable) not in self._rows:
            return variable.shape
        return TensorShape([*self._places.shape, *variable.shape[1:]])

    def value_of(self, variable: Held) -> Tensor | None:
        own = self._rows.get(id(variable))
        if own is None:
            return super().value_of(variable)
        found = self._values.get(id(variable))
        if found is None:
            found = self._values[id(variable)] = rows_at(own.whole_value(), self._places)
        return found

    def add_update(self, update: tuple[Held, Any]) -> None:
        variable, value = update
        self._values[id(variable)] = convert_to_tensor(value, variable.stored_dtype)
        self._updated[id(variable)] = self._rows[id(variable)]

    def store(self) -> None:
        """Write the rows that were updated, after the block."""
        for key, variable in self._updated.items():
            assign_rows(variable, self._places, self._values[key])


def assign_rows(variable: Variable, places: Tensor, rows: Tensor) -> Tensor:
    """variable[places[k]] = rows[k], where the place is in range; gives the new value.

    Where nobody else has the variable's array in hand, no other rows are touched.

    Args:
        variable: (n, q...).
        places: (k,), whole numbers that differ, or are out of range.
        rows: (k, q...), in the dtype that the variable is kept in.

    Raises:
        DTypeError, ShapeError: the rows do not fit.
    """
    attrs = {"shape": variable.shape, "dtype": variable.stored_dtype}
    return apply(variable_rows.assign_rows, (variable.handle, places, rows), attrs)[0]
