"""What a staged `for` goes through: tensors, ranges of tensors, enumerate and zip of these."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import DTypeError, FailedPreconditionError, InvalidArgumentError, ShapeError
from ..graph import INTEGER, GraphTensor, Tensor
from ..ops.array.index import get_item
from ..ops.array.join import stack
from ..ops.array.shape import dim_of
from ..ops.core.convert import convert_to_tensor
from ..ops.math.arithmetic import add, floor_divide, maximum, minimum, multiply, negative, subtract
from ..ops.math.cast import cast
from ..tree import map_structure
from .lists import TensorList


class Sequential:
    """A sequence whose items tensors give.

    Attributes:
        xs: tensors whose slices the items are made of, None if they are made of numbers alone.
        length: how many items, a tensor or a number.
        known_length: the same as a number, None if it is not known yet.
    """

    def __init__(self, xs: Any, length: Any, make: Callable[[Any, Any], Any], counts: bool) -> None:
        self.xs = xs
        self.length = length
        self.known_length = None if isinstance(length, Tensor) else int(length)
        self._make = make
        self.counts = counts

    def item(self, i: Any, x: Any) -> Any:
        """The item of number `i`, of whose tensors `x` are the slices."""
        return self._make(i, x)

    def row(self, i: Any) -> Any:
        """The slices of number `i`."""
        return None if self.xs is None else map_structure(lambda t: get_item(t, i), self.xs)

    def without_first(self) -> Sequential:
        """What follows the first item."""
        xs = None
        if self.xs is not None:
            xs = map_structure(lambda t: get_item(t, slice(1, None)), self.xs)

        def make(i: Any, x: Any) -> Any:
            return self._make(None if i is None else add(i, convert_to_tensor(1, i.dtype)), x)

        return Sequential(xs, self.length - 1, make, self.counts)

    def first_index(self) -> Any:
        """What counts iterations, None if no item needs that."""
        if not self.counts:
            return None
        dtype = self.length.dtype if isinstance(self.length, Tensor) else "int32"
        return convert_to_tensor(0, dtype)

    def __iter__(self) -> Iterator[Any]:
        raise FailedPreconditionError(
            "range() of a tensor is iterated over by a comprehension, a generator or other code of "
            "Python's, and how many items it has is known at run time only",
            remedy="write a `for` statement that appends to a list, or use laminar.ops.arange",
        )


def as_sequential(items: Any) -> Sequential | None:
    """The sequence that tensors of a graph make; None for what Python goes through."""
    if isinstance(items, Sequential):
        return items
    if isinstance(items, TensorList):
        return Sequential(items.stacked(), items.count, _slice, False)
    if hasattr(items, "__laminar_tensor__"):
        items = items.__laminar_tensor__()
    if not isinstance(items, GraphTensor):
        return None
    if items.shape.rank is None or not len(items.shape):
        raise ShapeError(
            f"for: a loop goes along the first axis, and {items.name} ({items.spec}) has none",
            remedy="loop over range(n), or give the tensor a shape",
        )
    size = items.shape[0]
    return Sequential(items, dim_of(items, axis=0) if size is None else size, _slice, False)


def _slice(i: Any, x: Any) -> Any:
    return x


def range_(*bounds: Any) -> Any:
    """range(...); a sequence of tensors where a bound is a tensor of a graph."""
    given = [b.__laminar_tensor__() if hasattr(b, "__laminar_tensor__") else b for b in bounds]
    if not any(isinstance(b, GraphTensor) for b in given) or not 1 <= len(given) <= 3:
        return builtins.range(*bounds)
    tensors = [convert_to_tensor(b) for b in given]
    dtype = next(t.dtype for t in tensors if isinstance(t, GraphTensor))
    for t in tensors:
        if t.dtype not in INTEGER or t.shape.rank not in (0, None):
            raise DTypeError(f"range: a bound must be one integer, got {t.spec}")
    tensors = [cast(t, dtype) for t in tensors]
    zero = convert_to_tensor(0, dtype)
    start = zero if len(tensors) == 1 else tensors[0]
    limit = tensors[0] if len(tensors) == 1 else tensors[1]
    span = subtract(limit, start)
    if len(tensors) < 3:
        length = maximum(span, zero)
        return Sequential(None, length, lambda i, _: add(start, i), True)
    step = tensors[2]
    # The ceiling of span / step: floor division rounds down, for negative steps too.
    length = maximum(negative(floor_divide(negative(span), step)), zero)
    return Sequential(None, length, lambda i, _: add(start, multiply(i, step)), True)


def enumerate_(items: Any, start: Any = 0) -> Any:
    """enumerate(...), of tensors too."""
    inner = as_sequential(items)
    if inner is None:
        return builtins.enumerate(items, start)

    def make(i: Any, x: Any) -> Any:
        return add(i, convert_to_tensor(start, i.dtype)), inner.item(i, x)

    return Sequential(inner.xs, inner.length, make, True)


def zip_(*items: Any, strict: bool = False) -> Any:
    """zip(...), of tensors too: as many as the shortest has, which must all be tensors."""
    inner = [as_sequential(x) for x in items]
    if all(s is None for s in inner):
        return builtins.zip(*items, strict=strict)
    for i, (s, x) in builtins.enumerate(builtins.zip(inner, items, strict=True)):
        if s is None:
            try:
                inner[i] = as_sequential(_symbol(convert_to_tensor(x)))
            except (TypeError, ValueError) as cause:
                raise InvalidArgumentError(
                    f"zip: tensors of a graph go together with tensors alone, got {x!r}",
                    remedy="loop over range(n), and take the items by number",
                ) from cause
    found = [s for s in inner if s is not None]
    known = {s.known_length for s in found}
    length = found[0].length
    if len(known) > 1 or known == {None}:
        length = cast(convert_to_tensor(length), "int32")
        for s in found[1:]:
            length = minimum(length, cast(convert_to_tensor(s.length), "int32"))

    def make(i: Any, x: Any) -> Any:
        return tuple(s.item(i, part) for s, part in builtins.zip(found, x, strict=True))

    if any(s.xs is None for s in found) or isinstance(length, Tensor):
        # Their slices are taken one by one, for they may differ in number.
        return Sequential(None, length, lambda i, _: make(i, [s.row(i) for s in found]), True)
    return Sequential([s.xs for s in found], length, make, any(s.counts for s in found))


def _symbol(x: Any) -> Any:
    """The slices of a value, stacked in the graph that is being built."""
    return stack([get_item(x, i) for i in builtins.range(len(x))])
