"""Items of Python's lists by number, where a tensor of a graph is the number."""

from __future__ import annotations

from typing import Any

from ..errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from ..graph import INTEGER, GraphTensor, Tensor, TensorSpec
from ..ops.array.broadcast import broadcast_to
from ..ops.array.gather import gather
from ..ops.array.index import get_item
from ..ops.array.join import stack, unstack
from ..ops.array.scatter import scatter_update
from ..ops.array.shape import reshape
from ..ops.core.convert import convert_to_tensor
from ..ops.core.entries import known_value
from ..tree import flatten, map_structure, pack_sequence_as
from .lists import spec_of_items
from .state import as_condition, is_number, is_stageable


def items(value: Any, text: str) -> Any:
    """What `value[index]` asks: a list or tuple as one that takes tensors, else itself.

    Args:
        value: what has items.
        text: what it is called.
    """
    return _Items(value, text) if type(value) in (list, tuple) else value


class _Items:
    """A list or a tuple, whose items tensors may number; its length stays Python's.

    An item that is a list is given as a tuple: a change of it would be one of a copy.
    """

    def __init__(self, held: Any, text: str) -> None:
        self._held = held
        self._text = text

    def __getitem__(self, index: Any) -> Any:
        index = _known(index)
        if isinstance(index, slice):
            if not any(isinstance(b, GraphTensor) for b in (index.start, index.stop, index.step)):
                return self._held[index]
            return map_structure(lambda column: get_item(column, index), self._columns())
        if not isinstance(index, GraphTensor):
            return self._held[index]
        columns = self._columns()
        return map_structure(lambda column: gather(column, _place(index)), columns)

    def __setitem__(self, index: Any, item: Any) -> None:
        index = _known(index)
        if not isinstance(index, GraphTensor) or type(self._held) is tuple:
            self._held[index] = item
            return
        item = _frozen(item)
        columns = self._columns(item)
        place = reshape(_place(index), [1, 1])

        def changed(column: Tensor, leaf: Any) -> list[Tensor]:
            update = _as(leaf, TensorSpec(column.shape[1:], column.dtype))
            return list(unstack(scatter_update(column, place, stack([update])), len(self._held)))

        rows = [changed(c, leaf) for c, leaf in zip(flatten(columns), flatten(item), strict=True)]
        self._held[:] = [pack_sequence_as(item, row) for row in zip(*rows, strict=True)]

    def __delitem__(self, index: Any) -> None:
        index = _known(index)
        if isinstance(index, GraphTensor):
            raise FailedPreconditionError(
                f"del {self._text}[...]: a tensor numbers the item",
                remedy="stack the items, and take those before and after it",
            )
        del self._held[index]

    def _columns(self, *more: Any) -> Any:
        """The items stacked, of a type that holds `more` of them, too."""
        own = [_frozen(item) for item in self._held]
        held = [*own, *map(_frozen, more)]
        leaves = [leaf for item in held for leaf in flatten(item)]
        if not own or any(leaf is None or not is_stageable(leaf) for leaf in leaves):
            kinds = ", ".join(sorted({type(leaf).__name__ for leaf in leaves})) or "nothing"
            raise InvalidArgumentError(
                f"a tensor numbers the items of {self._text}, which holds {kinds}",
                remedy="fill it with tensors or numbers (0. for None), or take a number of Python",
            )
        specs = spec_of_items(self._text, held)

        def stacked(spec: TensorSpec, *leaves: Any) -> Tensor:
            return stack([_as(leaf, spec) for leaf in leaves])

        return map_structure(stacked, specs, *own)


def _known(index: Any) -> Any:
    """An index with Python's numbers where they are known."""
    if isinstance(index, slice):
        return slice(_known(index.start), _known(index.stop), _known(index.step))
    return known_value(as_condition(index))


def _frozen(item: Any) -> Any:
    return tuple(map(_frozen, item)) if type(item) in (list, tuple) else item


def _place(index: GraphTensor) -> Tensor:
    if index.dtype not in INTEGER or index.shape.rank not in (0, None):
        raise DTypeError(f"the number of an item must be one integer, got {index.spec}")
    return index


def _as(leaf: Any, spec: TensorSpec) -> Tensor:
    """An item as one of `spec`, which Python's numbers become."""
    tensor = leaf if isinstance(leaf, Tensor) else convert_to_tensor(leaf, spec.dtype)
    if is_number(leaf) and spec.shape.is_fully_defined:
        return broadcast_to(tensor, spec.shape)
    return tensor
