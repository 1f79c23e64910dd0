"""Iterators of graphs: walks through data sets that operations make and go on with.

An iterator is a resource: each session has its own, which lives from one step to the next. What is
walked is an attribute of the operation that begins a walk, so a graph that has one cannot be
written to a file.
"""

from __future__ import annotations

import json
import threading
from typing import Any, Self

from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    ShapeError,
)
from laminar.engine.graph import (
    Array,
    Operation,
    Tensor,
    TensorShape,
    TensorSpec,
    as_dtype,
    building,
    get_default_graph,
    resource,
    string,
)
from laminar.engine.ops.core.arrays import to_array
from laminar.engine.ops.core.effects import HANDLE, held, perform
from laminar.engine.ops.core.op_def import KernelContext
from laminar.engine.ops.core.registry import define, no_gradient
from laminar.tree import flatten, map_structure, pack_sequence_as

from .dataset import Dataset
from .iteration import DatasetIterator


class Walk:
    """The place in a data set at which an iterator of a session is.

    State: `_iterator` is None before the first walk begins. `_lock` guards it, and every step on.
    """

    declared: Any = None

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._iterator: DatasetIterator | None = None

    def begin(self, dataset: Dataset) -> None:
        """Walk a data set from its beginning; what was walked before ends."""
        with self._lock:
            before, self._iterator = self._iterator, dataset.as_numpy_iterator()
        if before is not None:
            before.close()

    def next(self) -> Any:
        """The next element."""
        with self._lock:
            iterator = self._walked("get_next")
            try:
                return next(iterator)
            except StopIteration:
                at_end = f"iterator {self._name!r}: the data are at their end"
                raise OutOfRangeError(at_end) from None

    def state(self) -> str:
        """Where it is, as JSON."""
        with self._lock:
            return json.dumps(self._walked("state").state())

    def restore(self, state: str) -> None:
        """Go where a state was taken."""
        try:
            found = json.loads(state)
        except ValueError:
            raise InvalidArgumentError(
                f"iterator {self._name!r}: expected what state() gave, got {state[:80]!r}"
            ) from None
        with self._lock:
            self._walked("restore").restore(found)

    def _walked(self, who: str) -> DatasetIterator:
        if self._iterator is None:
            raise FailedPreconditionError(
                f"iterator {self._name!r}: {who} before a walk has begun",
                remedy="run its initializer in this session",
            )
        return self._iterator

    def __repr__(self) -> str:
        return f"iterator {self._name!r}"


@define("DatasetIterator", stateful=True)
def dataset_iterator(
    *, container: str, shared_name: str, dataset: Dataset | None = None
) -> TensorSpec:
    """The handle of an iterator; with a data set, it walks that from the first step on."""
    return TensorSpec((), resource)


@dataset_iterator.effect
def _iterator_kernel(
    context: KernelContext, *, container: str, shared_name: str, dataset: Dataset | None
) -> Walk:
    def make() -> Walk:
        made = Walk(shared_name)
        if dataset is not None:
            made.begin(dataset)
        return made

    return held(context, container, shared_name, Walk, id(dataset), make)


@define("DatasetIteratorBegin", dtypes={"iterator": HANDLE})
def begin_walk(iterator: TensorSpec, *, dataset: Dataset) -> tuple[TensorSpec, ...]:
    """Walk a data set from its beginning."""
    return ()


@begin_walk.effect
def _begin_kernel(context: KernelContext, iterator: Walk, *, dataset: Dataset) -> Any:
    iterator.begin(dataset)
    return ()


@define("DatasetIteratorNext", dtypes={"iterator": HANDLE})
def next_element(
    iterator: TensorSpec, *, types: tuple[str, ...], shapes: tuple[TensorShape, ...]
) -> tuple[TensorSpec, ...]:
    """The parts of the next element; OutOfRangeError at the end."""
    return tuple(TensorSpec(s, as_dtype(t)) for t, s in zip(types, shapes, strict=True))


@next_element.effect
def _next_kernel(
    context: KernelContext,
    iterator: Walk,
    *,
    types: tuple[str, ...],
    shapes: tuple[TensorShape, ...],
) -> Any:
    leaves = flatten(iterator.next())
    if len(leaves) != len(types):
        raise InvalidArgumentError(
            f"{iterator!r}: an element of {len(leaves)} parts came, {len(types)} are declared"
        )
    arrays = []
    for leaf, declared, shape in zip(leaves, types, shapes, strict=True):
        array, dtype = to_array(leaf, None)
        if dtype != declared or not shape.is_compatible_with(array.shape):
            raise ShapeError(
                f"{iterator!r}: {dtype}{list(array.shape)} came, declared is {declared}{shape}",
                remedy="make the iterator of structures with types and shapes that fit all of it",
            )
        arrays.append(array)
    return tuple(arrays) if len(arrays) > 1 else arrays[0]


@define("DatasetIteratorState", dtypes={"iterator": HANDLE}, read_only=True)
def walk_state(iterator: TensorSpec) -> TensorSpec:
    """Where it is, as JSON."""
    return TensorSpec((), string)


@walk_state.effect
def _state_kernel(context: KernelContext, iterator: Walk) -> Array:
    return to_array(iterator.state(), string)[0]


@define("DatasetIteratorRestore", dtypes={"iterator": HANDLE, "state": {string}}, same_dtype=False)
def restore_walk(iterator: TensorSpec, state: TensorSpec) -> tuple[TensorSpec, ...]:
    """Go where a state was taken."""
    return ()


@restore_walk.effect
def _restore_kernel(context: KernelContext, iterator: Walk, state: Array) -> Any:
    iterator.restore(bytes(state.item()).decode())
    return ()


for _op in (dataset_iterator, begin_walk, next_element, walk_state, restore_walk):
    _op.grad(no_gradient)


class GraphIterator:
    """An iterator of the default graph, of which each session has its own place.

    Args:
        element_spec: a structure of TensorSpec, which all data sets that it walks have.
        dataset: what it walks from the first step on; None where an initializer begins.
        shared_name: under which sessions find it, by default a name of its own.

    Attributes:
        element_spec: the structure of an element.

    Raises:
        InvalidArgumentError: no graph is being built, where an iterator is a `for` loop's.

    Examples:
        >>> data = laminar.datasets.Dataset.range(3).batch(2)
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     iterator = laminar.datasets.GraphIterator(data.element_spec)
        ...     begin, batch = iterator.make_initializer(data), iterator.get_next()
        ...     session.run(begin)
        ...     session.run(batch)
        ...     session.run(batch)
        array([0, 1])
        array([2])
    """

    def __init__(
        self, element_spec: Any, dataset: Dataset | None = None, shared_name: str | None = None
    ) -> None:
        graph = building()
        if graph is None:
            raise InvalidArgumentError(
                "GraphIterator: no graph is being built", remedy="use iter(dataset)"
            )
        self.element_spec = element_spec
        root = get_default_graph().root
        name = root.unique_name("Iterator")
        with root.as_default(), root.name_scope(None), root.control_dependencies(None):
            self._handle: Tensor = dataset_iterator(
                name=f"{name}/",
                container=root.scopes.container,
                shared_name=shared_name or name,
                dataset=dataset,
            )
        self.initializer: Operation | None = None

    @classmethod
    def one_shot(cls, dataset: Dataset) -> Self:
        """One that walks a data set once, without an initializer."""
        return cls(dataset.element_spec, dataset)

    @classmethod
    def initializable(cls, dataset: Dataset, shared_name: str | None = None) -> Self:
        """One whose `initializer` begins a walk, as often as it runs."""
        made = cls(dataset.element_spec, None, shared_name)
        made.initializer = made.make_initializer(dataset)
        return made

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """An operation that begins a walk through a data set.

        Raises:
            InvalidArgumentError: its elements are others than those of the iterator.
        """
        theirs, ours = flatten(dataset.element_spec), flatten(self.element_spec)
        fits = len(theirs) == len(ours) and all(
            t.dtype == o.dtype and t.shape.is_compatible_with(o.shape)
            for t, o in zip(theirs, ours, strict=True)
        )
        if not fits:
            raise InvalidArgumentError(
                f"make_initializer: the iterator gives {self.element_spec}, "
                f"the data set has {dataset.element_spec}",
                remedy="give the data the types and shapes of the iterator, by map(...)",
            )
        made = perform(begin_walk, (self._handle,), {"dataset": dataset}, name)
        assert made is not None
        return made

    def get_next(self, name: str | None = None) -> Any:
        """The next element: other tensors at each call, and other values in each step.

        Raises, when run:
            OutOfRangeError: the data are at their end.
            FailedPreconditionError: no walk has begun in this session.
        """
        specs = flatten(self.element_spec)
        found = next_element.many(
            self._handle,
            name=name,
            types=tuple(str(spec.dtype) for spec in specs),
            shapes=tuple(spec.shape for spec in specs),
        )
        return pack_sequence_as(self.element_spec, list(found))

    def state(self, name: str | None = None) -> Tensor:
        """Where the walk of a session is: a scalar of text, to go on from there with `restore`."""
        return walk_state(self._handle, name=name)

    def restore(self, state: Any, name: str | None = None) -> Operation:
        """An operation that has a walk that has begun go on where a state was taken."""
        made = perform(restore_walk, (self._handle, state), {}, name)
        assert made is not None
        return made


def spec_of(types: Any, shapes: Any = None) -> Any:
    """A structure of TensorSpec of structures of element types and of shapes (None: any)."""
    if shapes is None:
        return map_structure(lambda t: TensorSpec(None, as_dtype(t)), types)
    given = iter(_shapes(shapes, types))
    return map_structure(lambda t: TensorSpec(TensorShape(next(given)), as_dtype(t)), types)


def _shapes(shapes: Any, types: Any) -> list[Any]:
    """The shapes in the order of the types; a list of numbers is one shape."""
    if isinstance(types, dict):
        return [s for key in sorted(types) for s in _shapes(shapes[key], types[key])]
    if isinstance(types, tuple | list):
        return [s for part, t in zip(shapes, types, strict=True) for s in _shapes(part, t)]
    return [shapes]
