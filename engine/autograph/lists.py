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
from ..tree import assert_same_structure, flatten, is_nested, map_structure

_METHODS = "append, extend, pop, len(), and items by number"


class Cells(NamedTuple):
    """A list as what loops and conditions carry: its items, and how many of them count.

    Where the items are tuples, or other nests of tensors, there is an array for each part.
    """

    array: Any
    size: Tensor


class GrowsError(Exception):
    """A list is to be a `TensorList` before what is traced, which is to be traced again.

    Attributes:
        specs: by the place of a variable, what is known of the items.
    """

    def __init__(self, specs: dict[int, Any]) -> None:
        super().__init__(specs)
        self.specs = specs


class TensorList:
    """A list of tensors of one type, or of nests of them, whose number is known at run time only.

    It stands for its items stacked, as `ops.stack` would give them, if they are tensors.

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
    def of(items: Sequence[Any] | TensorList, spec: Any) -> TensorList:
        """A list that can grow under conditions, in the graph that is being built."""
        made = TensorList(cells=_empty(spec))
        made.extend(items)
        return made

    @property
    def cells(self) -> Cells:
        """The form that can change under conditions and in loops, made where it is asked for."""
        if self._cells is None:
            whole = self.stacked()
            array = map_structure(lambda a, x: a.unstack(x), _empty(self.spec).array, whole)
            self._cells = Cells(array, dim_of(flatten(whole)[0], axis=0))
        return self._cells

    @property
    def spec(self) -> Any:
        """What is known of an item, or of each part of it."""
        if self._cells is not None:
            return map_structure(lambda array: array.spec, self._cells.array)

        def of_rows(column: Any) -> TensorSpec:
            found = convert_to_tensor(column).spec
            return TensorSpec(None if found.shape.rank is None else found.shape[1:], found.dtype)

        return map_structure(of_rows, self._columns[0])

    @property
    def count(self) -> Tensor:
        """How many items there are, int32."""
        if self._cells is not None:
            return self._cells.size
        return dim_of(flatten(self.stacked())[0], axis=0)

    def stacked(self) -> Any:
        """The items stacked, or each part of them."""
        if self._cells is not None:
            places = arange(0, self._cells.size)
            return map_structure(lambda array: array.gather(places), self._cells.array)
        joined = map_structure(lambda *columns: _interleaved(columns), *self._columns)
        if not self._before:
            return joined

        def after(rows: Tensor, *before: Any) -> Tensor:
            return concat([stack([convert_to_tensor(b, rows.dtype) for b in before]), rows], 0)

        return map_structure(after, joined, *self._before)

    def __laminar_tensor__(self) -> Tensor:
        found = self.stacked()
        if is_nested(found):
            raise InvalidArgumentError(
                f"a list of {_form(found)} is no tensor",
                remedy="append to one list for each part, or loop over it",
            )
        return convert_to_tensor(found)

    def copy(self) -> TensorList:
        """A list of the same items, which changes by itself where one of the two is dropped."""
        return TensorList(self._before, self._columns, self._cells)

    def is_in(self, home: Cells) -> bool:
        """Whether its items are in the arrays of `home`."""
        if self._cells is None:
            return False
        own, others = flatten(self._cells.array), flatten(home.array)
        return [id(array.handle) for array in own] == [id(array.handle) for array in others]

    def read_before(self, home: Cells) -> TensorList:
        """A list of its items as they are, for `moved_to`, which may overwrite them."""
        return self if self.is_in(home) else TensorList(columns=[self.stacked()])

    def moved_to(self, home: Cells) -> Cells:
        """Its items in the arrays of `home`, whose own nobody reads any more."""
        if self.is_in(home):
            return self.cells
        whole, count = self.stacked(), self.count
        places = arange(0, count)
        return Cells(map_structure(lambda a, x: a.scatter(places, x), home.array, whole), count)

    def become(self, cells: Cells) -> None:
        """Have the items of another one."""
        self._cells = cells

    # What lists have

    def append(self, item: Any) -> None:
        """Add an item.

        Raises:
            ShapeError, InvalidArgumentError: it has another shape or type.
        """
        count = self.cells.size
        self._cells = Cells(self._written(count, item), add(count, 1))

    def extend(self, items: Iterable[Any]) -> None:
        """Add the items of a list, or the slices of a tensor."""
        if isinstance(items, TensorList | Tensor):
            whole = items.stacked() if isinstance(items, TensorList) else items
            array, count = self.cells
            assert_same_structure(array, whole)
            end = add(count, dim_of(flatten(whole)[0], axis=0))
            places = arange(count, end)
            array = map_structure(lambda a, x: a.scatter(places, x), array, whole)
            self._cells = Cells(array, end)
            return
        for item in items:
            self.append(item)

    def pop(self, index: Any = -1) -> Any:
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
        found = self._read(index)
        self._cells = Cells(array, subtract(count, 1))
        return found

    def __getitem__(self, index: Any) -> Any:
        is_one = isinstance(index, int) or (
            isinstance(index, Tensor) and index.shape.rank == 0 and not index.dtype.is_floating
        )
        if self._cells is None or not is_one:
            return map_structure(lambda rows: get_item(rows, index), self.stacked())
        return self._read(index)

    def __setitem__(self, index: Any, item: Any) -> None:
        count = self.cells.size
        self._cells = Cells(self._written(self._place(index), item), count)

    def __iadd__(self, items: Iterable[Any]) -> TensorList:
        self.extend(items)
        return self

    def __add__(self, items: Iterable[Any]) -> TensorList:
        found = TensorList.of(self, self.spec)
        found.extend(items)
        return found

    def __radd__(self, items: Sequence[Any]) -> TensorList:
        found = TensorList.of(items, self.spec)
        found.extend(self)
        return found

    def _read(self, index: Any) -> Any:
        array, place = self.cells.array, self._place(index)
        return map_structure(lambda a: a.read(place), array)

    def _written(self, place: Tensor, item: Any) -> Any:
        """The arrays with an item."""
        array = self.cells.array
        if is_nested(array) or is_nested(item):
            try:
                assert_same_structure(array, item)
            except InvalidArgumentError as cause:
                raise ShapeError(
                    f"a list that grows with tensors holds {_form(array)}, got {item!r}",
                    remedy="append items of one form",
                ) from cause
        return map_structure(lambda a, x: a.write(place, _fitting(a.spec, x)), array, item)

    def _place(self, index: Any) -> Tensor:
        """The number of an item, counted from the start, which must be there."""
        count = self.cells.size
        place = cast(convert_to_tensor(index), int32)
        place = where(less(place, 0), add(place, count), place)
        nowhere = convert_to_tensor(-1)  # which no array has
        return where(less(place, count), place, nowhere)

    def __len__(self) -> int:
        raise FailedPreconditionError(
            "the number of items that a loop has appended is known at run time only",
            remedy="take laminar.ops.shape(laminar.ops.stack(items))[0]",
        )

    def __iter__(self) -> Iterator[Any]:
        raise FailedPreconditionError(
            "how many items there are is known at run time only, and Python asks for each",
            remedy="loop over them with for, or append to one list for each part and stack it",
        )

    def __repr__(self) -> str:
        return f"<list of {_form(self.spec)}, of a length that tensors decide>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or not hasattr(list, name):
            raise AttributeError(name)
        raise FailedPreconditionError(
            f"a list that grows with tensors has no {name}(); it has {_METHODS}",
            remedy="stack it, and go on with the tensor",
        )


def _fitting(spec: TensorSpec, item: Any) -> Any:
    tensor = item if isinstance(item, Tensor) else convert_to_tensor(item, spec.dtype)
    if not spec.shape.is_compatible_with(tensor.shape) or tensor.dtype != spec.dtype:
        raise ShapeError(
            f"a list that grows with tensors holds {spec}, got {tensor.spec}",
            remedy="append tensors of one type and shape",
        )
    return tensor


def _interleaved(columns: Sequence[Any]) -> Tensor:
    """The first of each column, then the second of each, ..."""
    tensors = [convert_to_tensor(c) for c in columns]
    if len(tensors) == 1:
        return tensors[0]
    return reshape(stack(tensors, axis=1), [-1, *tensors[0].shape[1:]])


def _form(item: Any) -> str:
    if not is_nested(item):
        return "tensors"
    return f"{type(item).__name__}s of {len(item)}"


def _empty(spec: Any) -> Cells:
    return Cells(map_structure(_empty_array, spec), convert_to_tensor(0))


def _empty_array(spec: TensorSpec) -> TensorArray:
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
    return TensorArray(
        spec.dtype, handle=handle, flow=flow, infer_shape=False, element_shape=spec.shape
    )


def spec_of_items(name: str, *lists: Any) -> Any:
    """What is known of the items of lists together, of each part of them; None if there are none.

    Raises:
        InvalidArgumentError: they are no tensors of one type, or nests of these of one form.
    """
    held = [item for items in lists for item in _samples(items)]
    if not held:
        return None
    for item in held:
        if not _is_of_tuples(item):
            raise InvalidArgumentError(
                f"{name!r} is a list that tensors decide about, and holds {item!r}",
                remedy="append tensors, or tuples of them: what is not changed in its place",
            )
        try:
            assert_same_structure(held[0], item)
        except InvalidArgumentError as cause:
            raise InvalidArgumentError(
                f"{name!r} is a list that tensors decide about, and holds {held[0]!r} and {item!r}",
                remedy="append items of one form: tensors, or tuples of as many",
            ) from cause
    return map_structure(lambda *parts: _spec_of(name, parts), *held)


def _is_of_tuples(item: Any) -> bool:
    if not is_nested(item):
        return True
    return isinstance(item, tuple) and all(map(_is_of_tuples, item))


def _samples(items: Any) -> Sequence[Any]:
    return [items.spec] if isinstance(items, TensorList) else items


def _spec_of(name: str, parts: Sequence[Any]) -> TensorSpec:
    if any(part is None for part in parts):
        raise InvalidArgumentError(
            f"{name!r} is a list that tensors decide about, and holds None",
            remedy="append tensors and numbers",
        )
    kinds = (Tensor, TensorSpec)
    specs = [
        part if isinstance(part, TensorSpec) else part.spec
        for part in parts
        if isinstance(part, kinds)
    ]
    if not specs:
        specs = [convert_to_tensor(part).spec for part in parts]
    if len({spec.dtype for spec in specs}) > 1:
        shown = " and ".join(sorted({str(spec.dtype) for spec in specs}))
        raise InvalidArgumentError(
            f"{name!r} is a list that tensors decide about, and holds {shown}",
            remedy="cast what is appended to one type",
        )
    return relaxed(specs)
