"""Python's operators on everything that stands for a tensor.

The room of ops says what `a + b` computes, in `Operators.table`. A subclass that computes
otherwise (a symbolic tensor of the functional API) sets a table of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from ..late import later


class OperatorTable(Protocol):
    """The functions behind the operators, under the names they have in `laminar.ops`."""

    @property
    def add(self) -> Callable[[Any, Any], Any]: ...
    @property
    def subtract(self) -> Callable[[Any, Any], Any]: ...
    @property
    def multiply(self) -> Callable[[Any, Any], Any]: ...
    @property
    def true_divide(self) -> Callable[[Any, Any], Any]: ...
    @property
    def floor_divide(self) -> Callable[[Any, Any], Any]: ...
    @property
    def mod(self) -> Callable[[Any, Any], Any]: ...
    @property
    def power(self) -> Callable[[Any, Any], Any]: ...
    @property
    def matmul(self) -> Callable[[Any, Any], Any]: ...
    @property
    def negative(self) -> Callable[[Any], Any]: ...
    @property
    def abs(self) -> Callable[[Any], Any]: ...
    @property
    def round(self) -> Callable[[Any, int], Any]: ...
    @property
    def equal(self) -> Callable[[Any, Any], Any]: ...
    @property
    def not_equal(self) -> Callable[[Any, Any], Any]: ...
    @property
    def less(self) -> Callable[[Any, Any], Any]: ...
    @property
    def less_equal(self) -> Callable[[Any, Any], Any]: ...
    @property
    def greater(self) -> Callable[[Any, Any], Any]: ...
    @property
    def greater_equal(self) -> Callable[[Any, Any], Any]: ...
    @property
    def bitwise_and(self) -> Callable[[Any, Any], Any]: ...
    @property
    def bitwise_or(self) -> Callable[[Any, Any], Any]: ...
    @property
    def bitwise_xor(self) -> Callable[[Any, Any], Any]: ...
    @property
    def bitwise_not(self) -> Callable[[Any], Any]: ...
    @property
    def get_item(self) -> Callable[[Any, Any], Any]: ...


_tensor_operators = later("laminar.engine.ops.core.operators", "TensorOperators")


class _Late:
    """The table of tensors until one of its functions is first needed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        Operators.table = _tensor_operators()
        return getattr(Operators.table, name)


class Operators:
    """The operators, each one line: what it means stands in the table."""

    __slots__ = ()
    __array_priority__ = 1000  # ndarray + tensor comes to the tensor's __radd__
    table: ClassVar[OperatorTable] = _Late()

    def get_shape(self) -> Any:
        """`shape`, as a call."""
        return self.shape  # type: ignore[attr-defined]  # of what stands for a tensor

    def __add__(self, other: Any) -> Any:
        return self.table.add(self, other)

    def __radd__(self, other: Any) -> Any:
        return self.table.add(other, self)

    def __sub__(self, other: Any) -> Any:
        return self.table.subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.table.subtract(other, self)

    def __mul__(self, other: Any) -> Any:
        return self.table.multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.table.multiply(other, self)

    def __truediv__(self, other: Any) -> Any:
        return self.table.true_divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.table.true_divide(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self.table.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self.table.floor_divide(other, self)

    def __mod__(self, other: Any) -> Any:
        return self.table.mod(self, other)

    def __rmod__(self, other: Any) -> Any:
        return self.table.mod(other, self)

    def __pow__(self, other: Any) -> Any:
        return self.table.power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return self.table.power(other, self)

    def __matmul__(self, other: Any) -> Any:
        return self.table.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self.table.matmul(other, self)

    def __neg__(self) -> Any:
        return self.table.negative(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.table.abs(self)

    def __round__(self, digits: int | None = None) -> Any:
        return self.table.round(self, digits or 0)

    def __invert__(self) -> Any:
        return self.table.bitwise_not(self)

    def __and__(self, other: Any) -> Any:
        return self.table.bitwise_and(self, other)

    def __rand__(self, other: Any) -> Any:
        return self.table.bitwise_and(other, self)

    def __or__(self, other: Any) -> Any:
        return self.table.bitwise_or(self, other)

    def __ror__(self, other: Any) -> Any:
        return self.table.bitwise_or(other, self)

    def __xor__(self, other: Any) -> Any:
        return self.table.bitwise_xor(self, other)

    def __rxor__(self, other: Any) -> Any:
        return self.table.bitwise_xor(other, self)

    # Comparison is elementwise, so identity is what hashes; `is` finds a tensor in a dict. Two
    # variables of a graph, though, are the same one or not, as lists of variables ask.
    def __eq__(self, other: object) -> Any:
        if other is None or (_is_graph_variable(self) and _is_graph_variable(other)):
            return NotImplemented
        return self.table.equal(self, other)

    def __ne__(self, other: object) -> Any:
        if other is None or (_is_graph_variable(self) and _is_graph_variable(other)):
            return NotImplemented
        return self.table.not_equal(self, other)

    def __hash__(self) -> int:
        return id(self)

    def experimental_ref(self) -> Reference:
        """What stands for it in sets and as a key of dictionaries; see `Reference`."""
        return Reference(self)

    def __lt__(self, other: Any) -> Any:
        return self.table.less(self, other)

    def __le__(self, other: Any) -> Any:
        return self.table.less_equal(self, other)

    def __gt__(self, other: Any) -> Any:
        return self.table.greater(self, other)

    def __ge__(self, other: Any) -> Any:
        return self.table.greater_equal(self, other)

    def __getitem__(self, index: Any) -> Any:
        return self.table.get_item(self, index)


class Reference:
    """Stands for a tensor or variable where objects are compared: it equals another of the same.

    (Tensors themselves compare element by element.)

    Examples:
        >>> x = engine.constant([1.0, 2.0])
        >>> {x.experimental_ref()} == {x.experimental_ref()}, x.experimental_ref().deref() is x
        (True, True)
    """

    __slots__ = ("_object",)

    def __init__(self, value: Operators) -> None:
        self._object = value

    def deref(self) -> Operators:
        """The object itself."""
        return self._object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._object is other._object

    def __hash__(self) -> int:
        return id(self._object)

    def __repr__(self) -> str:
        return f"<Reference to {self._object!r}>"


def _is_graph_variable(x: Any) -> bool:
    return hasattr(type(x), "initializer") and x.graph is not None
