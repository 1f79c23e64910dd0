"""The variables of these names: laminar's, with the methods and the name of TensorFlow 1's."""

from __future__ import annotations

from typing import Any, TypeVar

from laminar import engine
from laminar.engine.graph import Tensor

from .values import tensor

_T = TypeVar("_T")


class NamedVariable(engine.Variable):
    """A `laminar.engine.Variable` whose `value` is a method, and whose name is that of a tensor.

    All else in laminar asks a variable for `as_tensor()` and `path`, so it takes both kinds.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name of its operation, and ":0"."""
        return f"{super().name}:0"

    def value(self) -> Tensor:  # type: ignore[override]  # a property in all of laminar but here
        """The value now, as a tensor."""
        return self.as_tensor()

    def get_shape(self) -> Any:
        """`shape`, as a call."""
        return self.shape

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
        *,
        validate_shape: bool = True,
    ) -> Any:
        """Store a value; gives the new one, or the operation where `read_value` is False."""
        found = super().assign(value, validate_shape=validate_shape, name=name)
        return _result(found, read_value)

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Add a value; gives the sum, or the operation."""
        return _result(super().assign_add(delta, name=name), read_value)

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Subtract a value; gives the difference, or the operation."""
        return _result(super().assign_sub(delta, name=name), read_value)

    def count_up_to(self, limit: int) -> Tensor:
        """The value, which is then one more; OutOfRangeError at the limit."""
        return engine.count_up_to(self, limit)

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Add the rows of an IndexedSlices."""
        return _rows(engine.scatter_add, self, sparse_delta, name)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Subtract the rows of an IndexedSlices."""
        return _rows(engine.scatter_sub, self, sparse_delta, name)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Replace the rows of an IndexedSlices."""
        return _rows(engine.scatter_update, self, sparse_delta, name)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Keep the greater of each row and that of an IndexedSlices."""
        return _rows(engine.scatter_max, self, sparse_delta, name)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Keep the lesser of each row and that of an IndexedSlices."""
        return _rows(engine.scatter_min, self, sparse_delta, name)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Multiply by the rows of an IndexedSlices."""
        return _rows(engine.scatter_mul, self, sparse_delta, name)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Divide by the rows of an IndexedSlices."""
        return _rows(engine.scatter_div, self, sparse_delta, name)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Add to the slices at index tuples."""
        return engine.scatter_nd_add(self, tensor(indices), updates, name=name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtract from the slices at index tuples."""
        return engine.scatter_nd_sub(self, tensor(indices), updates, name=name)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replace the slices at index tuples."""
        return engine.scatter_nd_update(self, tensor(indices), updates, name=name)


def _result(found: Tensor, read_value: bool) -> Any:
    return found if read_value else getattr(found, "op", None)


def _rows(update: Any, variable: engine.Variable, slices: Any, name: str | None) -> Any:
    if not isinstance(slices, engine.IndexedSlices):
        raise TypeError(
            f"variable {variable.path!r}: expected tf.IndexedSlices(values, indices), "
            f"got {slices!r}"
        )
    return update(variable, slices.indices, slices.values, name=name)


def named(made: _T) -> _T:
    """What these names give for a variable that laminar made; all else as it is."""
    if type(made) is engine.Variable:
        object.__setattr__(made, "__class__", NamedVariable)  # which has the same fields
    return made


def make_named(next_creator: Any, **arguments: Any) -> Any:
    """A creator (see `laminar.engine.variable_creator_scope`) of variables of these names."""
    return named(next_creator(**arguments))
