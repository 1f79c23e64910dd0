"""Lists that a graph appends to, so often as is known at run time only.

A list that each iteration of a `for` appends to alike is its columns, the stacks of what they
append. Any other that grows under conditions or in loops, is a dynamic tensor array with a count:
made where the list was still Python's, in front of the outermost of these (`GrowsError`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ..errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from ..graph import Tensor, TensorSpec, int32
from ..ops.array.creation import arange
from ..ops.array.index import get_item
from ..ops.array.join import concat, stack
from ..ops.array.shape import dim_of, reshape
from ..ops.control.structured import relaxed
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.math.arithmetic import add, subtract
from ..ops.math.cast import cast
from ..ops.math.compare import less, where
from ..ops.state.tensor_array import tensor_array
from ..state.tensor_array import TensorArray
from ..tree import is_nested

_METHODS = "append, extend, pop, len(), and items by number"


class Cells(NamedTuple):
    """A list as what loops and conditions carry: its items, and how many of them count."""

    array: TensorArray
    size: Tensor


class GrowsError(Exception):
    """A list is to be a `TensorList` before what is traced, which is to be traced again.

    Attributes:
        specs: by the place of a variable, what is known of the items.
    """

    def __init__(self, specs: dict[int, TensorSpec]) -> None:
        super().__init__(specs)
        self.specs = specs


class TensorList:
    """A list of tensors of one type, whose number is known at run time only.

    It stands for its items stacked, as `ops.stack` would give them.

    Args:
        before: its first items.
        columns: stacks of further ones: the first of each, then the second of each, ...
        cells: all of that in another form.
    """

    def __init__(
        self, before: Sequence[Any] = (), columns: Sequence[Any] = (), cells: Cells | None = None
    ) -> None:
        self._before = list(before)
        self._columns = columns
        self._cells = cells

    @staticmethod
    def of(items: Sequence[Any], spec: TensorSpec) -> TensorList:
        """A list that can grow under conditions, in the graph that is being built."""
        made = TensorList(cells=_empty(spec))
        made.extend(items)
        return made

    @property
    def cells(self) -> Cells:
        """The form that can change under conditions and in loops, made where it is asked for."""
        if self._cells is None:
            whole = self.__laminar_tensor__()
            array, _ = _empty(self.spec)
            self._cells = Cells(array.unstack(whole), dim_of(whole, axis=0))
        return self._cells

    @property
    def spec(self) -> TensorSpec:
        """What is known of an item."""
        if self._cells is not None:
            return self._cells.array.spec
        first = convert_to_tensor(self._columns[0]).spec
        return TensorSpec(None if first.shape.rank is None else first.shape[1:], first.dtype)

    @property
    def count(self) -> Tensor:
        """How many items there are, int32."""
        if self._cells is not None:
            return self._cells.size
        return dim_of(self.__laminar_tensor__(), axis=0)

    def __laminar_tensor__(self) -> Tensor:
        if self._cells is not None:
            return self._cells.array.gather(arange(0, self._cells.size))
        columns = [convert_to_tensor(c) for c in self._columns]
        found = columns[0]
        if len(columns) > 1:
            shape = columns[0].shape
            joined = stack(columns, axis=1)
            found = reshape(joined, [-1, *shape[1:]])
        if self._before:
            found = concat([stack([convert_to_tensor(b) for b in self._before]), found], 0)
        return found

    def copy(self) -> TensorList:
        """A list of the same items, which changes by itself where one of the two is dropped."""
        return TensorList(self._before, self._columns, self._cells)

    def become(self, cells: Cells) -> None:
        """Have the items of another one."""
        self._cells = cells

    # What lists have

    def append(self, item: Any) -> None:
        """Add an item.

        Raises:
            ShapeError, InvalidArgumentError: it has another shape or type.
        """
        array, count = self.cells
        self._cells = Cells(array.write(count, self._fitting(item)), add(count, 1))

    def extend(self, items: Iterable[Any]) -> None:
        """Add the items of a list, or the slices of a tensor."""
        if isinstance(items, TensorList | Tensor):
            whole = convert_to_tensor(items)
            array, count = self.cells
            more = dim_of(whole, axis=0)
            end = add(count, more)
            self._cells = Cells(array.scatter(arange(count, end), whole), end)
            return
        for item in items:
            self.append(item)

    def pop(self, index: Any = -1) -> Tensor:
        """Take the last item away.

        Raises:
            InvalidArgumentError: at run time, there is none.
        """
        if not isinstance(index, int) or index != -1:
            raise FailedPreconditionError(
                "a list that grows with tensors gives its last item alone, got pop(index)",
                remedy="stack it, and join the parts before and after the item",
            )
        array, count = self.cells
        found = array.read(self._place(index))
        self._cells = Cells(array, subtract(count, 1))
        return found

    def __getitem__(self, index: Any) -> Tensor:
        is_one = isinstance(index, int) or (
            isinstance(index, Tensor) and index.shape.rank == 0 and not index.dtype.is_floating
        )
        if self._cells is None or not is_one:
            return get_item(self.__laminar_tensor__(), index)
        return self._cells.array.read(self._place(index))

    def __setitem__(self, index: Any, item: Any) -> None:
        array, count = self.cells
        self._cells = Cells(array.write(self._place(index), self._fitting(item)), count)

    def __iadd__(self, items: Iterable[Any]) -> TensorList:
        self.extend(items)
        return self

    def __add__(self, items: Iterable[Any]) -> NoReturn:
        raise FailedPreconditionError(
            "a list that grows with tensors is changed in place, and no other one is made of it",
            remedy="write items.extend(more) for items = items + more",
        )

    def _place(self, index: Any) -> Tensor:
        """The number of an item, counted from the start, which must be there."""
        count = self.cells.size
        place = cast(convert_to_tensor(index), int32)
        place = where(less(place, 0), add(place, count), place)
        nowhere = convert_to_tensor(-1)  # which no array has
        return where(less(place, count), place, nowhere)

    def _fitting(self, item: Any) -> Any:
        spec = self.spec
        tensor = item if isinstance(item, Tensor) else convert_to_tensor(item, spec.dtype)
        if not spec.shape.is_compatible_with(tensor.shape) or tensor.dtype != spec.dtype:
            raise ShapeError(
                f"a list that grows with tensors holds {spec}, got {tensor.spec}",
                remedy="append tensors of one type and shape",
            )
        return tensor

    def __len__(self) -> int:
        raise FailedPreconditionError(
            "the number of items that a loop has appended is known at run time only",
            remedy="take laminar.ops.shape(laminar.ops.stack(items))[0]",
        )

    def __iter__(self) -> Iterator[Any]:
        self.__len__()
        raise AssertionError  # __len__ has raised

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or not hasattr(list, name):
            raise AttributeError(name)
        raise FailedPreconditionError(
            f"a list that grows with tensors has no {name}(); it has {_METHODS}",
            remedy="stack it, and go on with the tensor",
        )


def _empty(spec: TensorSpec) -> Cells:
    handle, flow = apply(
        tensor_array,
        [convert_to_tensor(0)],
        {
            "dtype": spec.dtype,
            "element_shape": spec.shape,
            "dynamic_size": True,
            "clear_after_read": False,
            "identical_element_shapes": False,
            "tensor_array_name": "list",
            "overwrites": True,
        },
        "list",
    )
    array = TensorArray(
        spec.dtype, handle=handle, flow=flow, infer_shape=False, element_shape=spec.shape
    )
    return Cells(array, convert_to_tensor(0))


def spec_of_items(name: str, *lists: Any) -> TensorSpec | None:
    """What is known of the items of lists together; None if there are none.

    Raises:
        InvalidArgumentError: they are no tensors of one type.
    """
    specs: list[TensorSpec] = []
    numbers: list[Any] = []
    for items in lists:
        if isinstance(items, TensorList):
            specs.append(items.spec)
            continue
        for item in items:
            if is_nested(item) or item is None:
                raise InvalidArgumentError(
                    f"{name!r} is a list that tensors decide the length of, and holds {item!r}",
                    remedy="append tensors and numbers, to one list for each part",
                )
            if isinstance(item, Tensor):
                specs.append(item.spec)
            else:
                numbers.append(item)
    if not specs:
        specs = [convert_to_tensor(item).spec for item in numbers]
    if not specs:
        return None
    if len({spec.dtype for spec in specs}) > 1:
        shown = " and ".join(sorted({str(spec.dtype) for spec in specs}))
        raise InvalidArgumentError(
            f"{name!r} is a list that tensors decide the length of, and holds {shown}",
            remedy="cast what is appended to one type",
        )
    return relaxed(specs)
