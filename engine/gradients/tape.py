"""GradientTape: remember what is computed, then walk it backwards.

State of a tape:
    _tracked: ids of the tensors that depend on a watched one, while it records;
    _records: the applications that touch them, in order (they keep the tensors alive);
    _watched: the watched tensors themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

from ..errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from ..graph import INEXACT, Graph, GraphTensor, Tensor, building, resource
from ..late import later
from ..ops.array.axes import swapaxes
from ..ops.array.creation import arange
from ..ops.array.shape import dim_of, dims_of, reshape, reshape_like
from ..ops.core.basic import zeros_like
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import encloses
from ..ops.core.recording import Record, paused, recorders
from ..ops.math.arithmetic import add
from ..ops.math.cast import cast
from ..ops.math.compare import equal
from ..tree import flatten, map_structure, pack_sequence_as
from .backprop import AppliedOp, backpropagate, fill_unconnected, weights_of
from .symbolic import carrier, path_to, source_tensor

# The types of tensors through which gradients flow: those of handles go to their variables.
_CARRY = INEXACT | {resource}

# A loop, which stands above.
_map_slices = later("laminar.engine.functions.scans", "map_slices")


class GradientTape:
    """Records the operations of a `with` block, so that `gradient` can differentiate them.

    Trainable variables are watched when they are read. It works the same on values computed at
    once and inside a function that is being traced.

    Args:
        persistent: keep the record after `gradient`, for more than one call.
        watch_accessed_variables: whether trainable variables are watched by themselves.

    Examples:
        >>> x = laminar.Variable(3.0)
        >>> with laminar.GradientTape() as tape:
        ...     y = x * x
        >>> tape.gradient(y, x)
        Tensor(6., shape=(), dtype=float32)
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watch_variables = watch_accessed_variables
        self._tracked: set[int] = set()
        self._records: list[Record] = []
        self._watched: list[Tensor] = []
        self._recording = False
        self._used = False

    def __enter__(self) -> GradientTape:
        if self._recording:
            raise FailedPreconditionError("this tape is recording already")
        self._recording = True
        recorders.active = [*recorders.active, self]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self._recording = False
        recorders.active = [r for r in recorders.active if r is not self]

    def watch(self, tensors: Any) -> None:
        """Track what is computed from `tensors` (a structure of tensors or variables).

        Raises:
            InvalidArgumentError: something in it is neither.
        """
        for leaf in flatten(tensors):
            if not isinstance(leaf, Tensor) and not hasattr(leaf, "handle"):
                raise InvalidArgumentError(
                    f"a tape watches tensors and variables, got {leaf!r}",
                    remedy="make a tensor of it first: convert_to_tensor(value)",
                )
            source = source_tensor(building(), leaf)
            self._tracked.add(id(source))
            self._watched.append(source)

    def watched_variable(self, handle: Tensor, variable: Any = None) -> None:
        """Called when a trainable variable is read, with its handle."""
        if self._watch_variables and id(handle) not in self._tracked:
            self._tracked.add(id(handle))
            self._watched.append(handle)

    def watched_variables(self) -> tuple[Any, ...]:
        """The variables that are watched, in the order of their first use; not those of graphs."""
        found = []
        for tensor in self._watched:
            if isinstance(tensor, GraphTensor):  # in a function, what stands for a handle
                tensor = tensor.graph.taken_from_outside().get(id(tensor), tensor)
            owner = getattr(getattr(tensor, "value", None), "owner", None)
            if tensor.dtype == resource and owner is not None:
                found.append(owner())
        return tuple(v for v in found if v is not None)

    def is_tracking(self, tensors: Iterable[Tensor]) -> bool:
        """Whether what is computed from `tensors` matters to this tape."""
        tracked = self._tracked
        return any(id(x) in tracked for x in tensors)

    def record(self, record: Record) -> None:
        """Called for each application of an op in this thread."""
        tracked = self._tracked
        for x in record.inputs:
            if id(x) in tracked:
                break
        else:
            return
        matters = False
        for y in record.outputs:
            if y.dtype in _CARRY:
                tracked.add(id(y))
                matters = True
        if matters:
            self._records.append(record)

    def reset(self) -> None:
        """Forget everything recorded."""
        self._tracked.clear()
        self._records.clear()
        self._watched.clear()
        self._used = False

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: str = "none",
    ) -> Any:
        """d sum(target) / d source for each source, in the structure of `sources`.

        The gradient of a variable of which rows alone are looked up is an IndexedSlices.

        Args:
            target: a tensor, or a structure of tensors, which are summed.
            sources: tensors or variables in any structure.
            output_gradients: a weight for each target, ones by default.
            unconnected_gradients: what a source gives that target does not depend on, or that was
                not watched: "none" or "zero".

        Raises:
            FailedPreconditionError: the tape has been used and is not persistent.
            InvalidArgumentError: a weight does not fit.
            NoGradientError: an op on the way has no gradient.
        """
        leaves = flatten(sources)
        ys, walk = self._walk(flatten(target), leaves)
        dys = None if output_gradients is None else weights_of(ys, flatten(output_gradients))
        found = walk(dys, slices=True)
        return pack_sequence_as(sources, fill_unconnected(found, leaves, unconnected_gradients))

    def jacobian(self, target: Any, sources: Any, unconnected_gradients: str = "none") -> Any:
        """d target[i] / d source[j] for all elements, of shape target.shape + source.shape.

        One backward pass for each element of `target`: a loop in Python on eager values, one
        operation while a graph is built.

        Args:
            target: a tensor.
            sources: a structure of watched tensors or variables, which the result has too.
            unconnected_gradients: as for `gradient`.

        Raises:
            FailedPreconditionError, InvalidArgumentError, UnimplementedError: as for `gradient`.
            ShapeError: `target` has no elements, or an unknown number of axes.
        """
        y, rows = self._rows(target, sources, unconnected_gradients, batch=1)
        return map_structure(
            lambda dx: None if dx is None else reshape(dx, [*_dims(y), *_dims(dx)[1:]]), rows
        )

    def batch_jacobian(self, target: Any, source: Any, unconnected_gradients: str = "none") -> Any:
        """d target[b, i] / d source[b, j], of shape (batch, *target.shape[1:], *source.shape[1:]).

        Row b of `target` may depend on row b of `source` alone; otherwise sums over the rows come
        out. Arguments and errors are those of `jacobian`, for one source.

        Raises:
            ShapeError: the first axes differ.
        """
        x, target = convert_leaf(source), convert_leaf(target)
        sizes = {t.shape[0] for t in (target, x) if t.shape.rank}
        if 0 in (target.shape.rank, x.shape.rank) or len(sizes - {None}) > 1:
            raise ShapeError(
                f"batch_jacobian: target and source must have one first axis, "
                f"got {target.shape} and {x.shape}",
                remedy="use jacobian(), which needs no axis of examples",
            )
        batch = dim_of(convert_to_tensor(target), axis=0)
        y, dx = self._rows(target, x, unconnected_gradients, batch)
        return None if dx is None else reshape(swapaxes(dx, 0, 1), [*_dims(y), *_dims(dx)[2:]])

    def _rows(self, target: Any, sources: Any, unconnected: str, batch: Any) -> tuple[Tensor, Any]:
        """The target, and the gradients of its elements [:, i] as (batch, -1), stacked over i."""
        leaves = flatten(sources)
        (y,), walk = self._walk([target], leaves)
        flat = zeros_like(reshape(y, [batch, -1]))
        places = arange(dim_of(flat, axis=1))

        def row(i: Tensor) -> Any:
            dy = reshape_like(add(flat, cast(equal(places, i), y.dtype)), y)
            found = walk([dy])
            return pack_sequence_as(sources, fill_unconnected(found, leaves, unconnected))

        return y, _map_slices(row, places)

    def _walk(
        self, targets: Sequence[Any], leaves: Sequence[Any]
    ) -> tuple[list[Tensor], Callable[..., list[Tensor | None]]]:
        """The targets as tensors, and what gives the gradients of sources for their weights."""
        if self._used and not self._persistent:
            raise FailedPreconditionError(
                "gradients were asked for a second time of a tape that keeps nothing",
                remedy="make it with GradientTape(persistent=True)",
            )
        self._used = True
        if self._recording and not self._persistent:
            self._stop()
        home = self._home()
        xs = [self._source(home, convert_leaf(leaf)) for leaf in leaves]
        inside = home is not building()  # of a graph that the tape does not record
        before = recorders.active
        if not inside and self not in before:
            recorders.active = [*before, self]
        try:  # a variable is differentiated through this reading of it
            ys = [convert_to_tensor(y) for y in targets]
        finally:
            recorders.active = before
        records: list[AppliedOp] = list(self._records)
        if inside:
            if self._watch_variables:
                variables = [getattr(leaf, "trainable", False) for leaf in leaves]
                self._tracked.update(id(x) for x, v in zip(xs, variables, strict=True) if v)
            records += path_to([y for y in ys if isinstance(y, GraphTensor)], home=home)
        # What was not watched has no full record: no gradient, rather than a part of one.
        watched = [x for x in xs if id(x) in self._tracked]
        if not self._persistent:
            self.reset()
            self._used = True

        def walk(
            dys: Sequence[Tensor | None] | None, *, slices: bool = False
        ) -> list[Tensor | None]:
            found = backpropagate(records, ys, watched, dys, slices=slices)
            gradients = dict(zip(map(id, watched), found, strict=True))
            return [gradients.get(id(x)) for x in xs]

        return ys, walk

    def _home(self) -> Graph | None:
        """The graph (None: eager values) that the tape records, around the one being built.

        A branch, the body of a loop or a function is traced without the tapes outside of it.
        """
        graph = building()
        while graph is not None and self in graph.tapes_outside:
            graph = graph.outer
        return graph

    def _source(self, home: Graph | None, leaf: Any) -> Tensor:
        """The tensor that carries the gradient of `leaf` in `home`, or in a graph inside of it."""
        tensor = carrier(leaf)
        if home is not None and isinstance(tensor, GraphTensor) and encloses(home, tensor.graph):
            return tensor
        return source_tensor(home, leaf)

    def stop_recording(self) -> Any:
        """A block inside which nothing is recorded, on this tape or any other of the thread."""
        return paused()


def _dims(x: Tensor) -> list[Any]:
    """The sizes of the axes: numbers, or tensors where they are unknown."""
    shape, unknown = dims_of(x)
    left = iter(unknown)
    return [next(left) if d is None else d for d in shape]


def convert_leaf(leaf: Any) -> Any:
    """A source as it is when it carries gradients, else as a tensor."""
    return leaf if hasattr(leaf, "handle") or isinstance(leaf, Tensor) else convert_to_tensor(leaf)


def to_tensors(structure: Any) -> Any:
    """The structure with arrays and numbers made tensors; variables stay."""
    return map_structure(convert_leaf, structure)
