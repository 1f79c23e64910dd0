"""What the ops on queues, readers, tables and the like share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from ...errors import InvalidArgumentError, LaminarError
from ...graph import Operation, Tensor, TensorShape, TensorSpec, as_dtype, building, resource
from ...resources.batches import Shape
from ...resources.waiting import Done, Ticket
from .convert import convert_to_tensor
from .dispatch import apply, as_input, symbolic_graph
from .op_def import KernelContext, OpDef


class Declared(Protocol):
    """A resource: `declared` keeps what the graph that made it says of it."""

    declared: Any


T = TypeVar("T", bound=Declared)
HANDLE = frozenset({resource})


def perform(
    op: OpDef, inputs: Sequence[Any], attrs: Mapping[str, Any], name: str | None = None
) -> Operation | None:
    """Apply an op that has no outputs: the operation in a graph, None when it is done at once."""
    tensors = [x if isinstance(x, Tensor) else convert_to_tensor(x) for x in inputs]
    graph = building() or symbolic_graph(op.type, tensors)
    if graph is None:
        apply(op, tensors, attrs, name)
        return None
    return graph.add(op, [as_input(graph, x) for x in tensors], attrs, name=name)


class _Wait:
    """Ends a kernel when the resource tells it to; leaves the list of what can be cancelled."""

    __slots__ = ("_context", "_done", "_finish", "_told", "_token")

    def __init__(self, context: KernelContext, done: Any, finish: Callable[[Any], Any]) -> None:
        self._context = context
        self._done = done
        self._finish = finish
        self._told = False
        self._token: int | None = None

    def __call__(self, result: Any, error: LaminarError | None) -> None:
        self._told = True
        if self._token is not None:
            self._context.cancellation.deregister(self._token)
        if error is None:
            try:
                result = self._finish(result)
            except Exception as cause:  # of the result: the other side has done its part
                self._done.fail(cause)
                return
            self._done(result)
        else:
            self._done.fail(error)

    def cancel_with_step(self, ticket: Ticket) -> None:
        """Have the ticket cancelled when the step is."""
        self._token = self._context.cancellation.register(lambda error: _cancel(ticket, error))
        if self._token is None:
            error = self._context.cancelled
            assert error is not None
            ticket.cancel(error)
        elif self._told:  # meanwhile, by another thread
            self._context.cancellation.deregister(self._token)


def _cancel(ticket: Ticket, error: LaminarError) -> None:
    ticket.cancel(error)


def wait(
    context: KernelContext,
    done: Any,
    start: Callable[[Done], Ticket | None],
    finish: Callable[[Any], Any] = lambda result: (),
) -> None:
    """End an asynchronous kernel with what `start(tell)` brings about.

    Args:
        context: of the step; when it is cancelled, so is what waits.
        done: of the kernel.
        start: begins; gives what can be cancelled, None when it has called back already.
        finish: makes the kernel's outputs of what was called back with.
    """
    if context.cancelled is not None:
        done.fail(context.cancelled)
        return
    waiting = _Wait(context, done, finish)
    ticket = start(waiting)
    if ticket is not None:
        waiting.cancel_with_step(ticket)


def held(
    context: KernelContext,
    container: str,
    shared_name: str,
    kind: type[T],
    declared: Any,
    make: Callable[[], T],
) -> T:
    """The resource of a name, made when there is none; InvalidArgumentError when it is another.

    Args:
        context: of the step.
        container, shared_name: where it is.
        kind: its class.
        declared: what the graph says of it, which must be the same everywhere.
        make: makes it.
    """

    def declaring() -> T:
        made = make()
        made.declared = declared
        return made

    found = context.resource(container, shared_name, declaring)
    if not isinstance(found, kind):
        raise InvalidArgumentError(
            f"{shared_name!r} in container {container!r} is {found!r}, "
            f"expected a {kind.__name__.lower()}"
        )
    if found.declared != declared:
        raise InvalidArgumentError(
            f"{found!r} in container {container!r} was made as {found.declared}, "
            f"and here it is {declared}",
            remedy="declare it alike everywhere, or use another name or container",
        )
    return found


def component_specs(
    dtypes: Sequence[str], shapes: Sequence[TensorShape], batch: Sequence[int | None] = ()
) -> tuple[TensorSpec, ...]:
    """The specs of components, with leading axes in front."""
    return tuple(
        TensorSpec(None if shape.rank is None else [*batch, *shape], as_dtype(dtype))
        for dtype, shape in zip(dtypes, shapes, strict=True)
    )


def plain_shape(shape: TensorShape) -> Shape | None:
    """A shape as resources take it."""
    return None if shape.dims is None else tuple(shape.dims)
