"""Copies and pickles of layers, models, optimizers and metrics.

A deep copy is made attribute by attribute. A pickle holds a config and values: what unpickles it
makes the object as one in a file is made, from tables of known classes, and runs nothing else.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from laminar.engine.errors import DataLossError
from laminar.engine.graph import as_dtype
from laminar.engine.state import Variable
from laminar.serialization import deserialize_keras_object, serialize_keras_object

# An element type, a shape and the bytes of the elements.
_Value = tuple[str, tuple[int, ...], bytes]


class Copied:
    """Base of what `copy` and `pickle` take."""

    def __copy__(self) -> Self:
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        fresh = self._laminar_not_copied(memo)
        new = object.__new__(type(self))
        memo[id(self)] = new
        for name, value in vars(self).items():
            new.__dict__[name] = fresh[name] if name in fresh else copy.deepcopy(value, memo)
        return new

    def _laminar_not_copied(self, memo: dict[int, Any]) -> dict[str, Any]:
        """The attributes that a deep copy begins with anew; `memo` is empty for the outermost."""
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        values = [_stored(v) for v in self._laminar_pickled_variables()]
        return unpickled, (json.dumps(serialize_keras_object(self)), values)

    def _laminar_pickled_variables(self) -> Sequence[Variable]:
        """The variables whose values a pickle holds."""
        found: Sequence[Variable] = getattr(self, "variables", ())
        return found


def _stored(variable: Variable) -> _Value:
    array = variable.numpy()
    return str(variable.stored_dtype), tuple(array.shape), array.tobytes()


def unpickled(config: str, values: Sequence[_Value]) -> Any:
    """The object in a pickle.

    Raises:
        NotFoundError: it is of a class that is neither laminar's nor registered.
        DataLossError: the values do not belong to the object.
    """
    made = deserialize_keras_object(json.loads(config))
    variables = list(made._laminar_pickled_variables())
    if len(variables) != len(values):
        raise DataLossError(
            f"a pickle of {type(made).__name__} {made.name!r} holds {len(values)} values, "
            f"the object has {len(variables)} variables",
            remedy="have build(input_shape) make all of its weights, or pickle a model with it",
        )
    for variable, (dtype, shape, data) in zip(variables, values, strict=True):
        variable.assign(np.frombuffer(data, as_dtype(dtype).numpy).reshape(shape))
    return made
