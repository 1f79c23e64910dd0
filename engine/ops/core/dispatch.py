"""Apply an op: compute it at once, or add it to the graph that is being built."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import ops
from ...errors import (
    FailedPreconditionError,
    InternalError,
    LaminarError,
)
from ...graph import (
    DeviceTensor,
    EagerPlace,
    EagerTensor,
    Graph,
    GraphTensor,
    Literal,
    Tensor,
    building,
    resource,
    stack,
    value_of,
)
from ...graph.scopes import is_name
from ...late import later
from .convert import convert_to_tensor
from .kernels import HOST, HOST_TYPE, hush, restore
from .op_def import OpDef
from .recording import notify, recorders
from .registry import lookup

if TYPE_CHECKING:
    from ...cancellation import CancellationManager

# For kernels that can be cancelled.
_manager = later("laminar.engine.cancellation", "CancellationManager")
_scope_manager = later("laminar.engine.cancellation", "scope_manager")
_ndarray = np.ndarray
_SCALARS = (np.generic, int, float, bool)


class EagerContext:
    """The machine that eager kernels with effects run on: resources come as inputs, by object."""

    xp: Any = HOST
    frame_iter = (0, 0)

    @functools.cached_property
    def cancellation(self) -> CancellationManager:
        """What to register with to be notified of cancellation: by default, nobody is."""
        found: CancellationManager = _manager()
        return found

    def resource(self, container: str, name: str, make: Callable[[], Any]) -> Any:
        """A new resource: an eager handle owns what it stands for."""
        return make()

    @property
    def files(self) -> Callable[[str], str]:
        """Gives paths as they are: what runs at once may touch what its program may."""
        return str

    @property
    def cancelled(self) -> LaminarError | None:
        """Why what runs is to stop, None while it is to go on."""
        return self.cancellation.error


EAGER = EagerContext()


def apply(
    op: OpDef, inputs: Sequence[Any], attrs: Mapping[str, Any], name: str | None = None
) -> tuple[Tensor, ...]:
    """Apply `op`; inputs that are not tensors yet are converted.

    Raises:
        LaminarError: what the op's rule or kernel refuses.
    """
    if not stack.items and stack.place is None:
        for x in inputs:
            if type(x) is not EagerTensor:
                break
        else:  # all lie on the host, which is common
            outputs, full = compute_on_host(op, inputs, attrs)
            if recorders.active:
                notify(op, inputs, full, outputs)
            return outputs
    return _apply_anywhere(op, inputs, attrs, name)


def _apply_anywhere(
    op: OpDef, inputs: Sequence[Any], attrs: Mapping[str, Any], name: str | None
) -> tuple[Tensor, ...]:
    graph = building()
    tensors = [x if isinstance(x, Tensor) else convert_to_tensor(x) for x in inputs]
    outputs: Sequence[Tensor]
    if graph is None and (graph := symbolic_graph(op.type, tensors)) is None:
        place = _place_for(tensors)
        compute = compute_on_host if place is None else place.compute
        outputs, full = compute(op, tensors, attrs)
    else:
        inside = [as_input(graph, x) for x in tensors]
        node = graph.add(op, inside, attrs, name=name)
        tensors, outputs, full = list(inside), node.outputs, node.attrs
    if recorders.active:
        notify(op, tensors, full, outputs)
    return tuple(outputs)


OpDef.applied = apply  # the table knows nothing of graphs and values


def symbolic_graph(who: str, tensors: Sequence[Tensor]) -> Graph | None:
    """The graph of the symbols among `tensors`: it is built on without `with graph.as_default()`.

    Raises:
        FailedPreconditionError: a symbol belongs to a function whose trace has ended.
    """
    for x in tensors:
        if isinstance(x, GraphTensor):
            if x.graph.captures_values:
                raise FailedPreconditionError(
                    f"{who}: the tensor {x.name} belongs to a function that has been traced; "
                    f"outside of it, it has no value",
                    remedy="return it from the function instead of keeping it",
                )
            return x.graph
    return None


def _place_for(tensors: Sequence[Tensor]) -> EagerPlace | None:
    """Where an op is computed: where its state lies, else in the scope, else where inputs lie."""
    place = stack.place
    for x in tensors:
        if isinstance(x, DeviceTensor):
            if x.dtype == resource:
                return x.place
            place = place or x.place
    return place


def compute_on_host(
    op: OpDef, tensors: Sequence[Tensor], attrs: Mapping[str, Any]
) -> tuple[tuple[Tensor, ...], Mapping[str, Any]]:
    """The outputs of an op of tensors whose values lie on the host, and its full attributes."""
    specs, full = op.infer_eager(tensors, attrs)
    kernel = op.host_kernel or host_kernel(op)
    result = run_bound(op, kernel, list(map(value_of, tensors)), full)
    if len(specs) == 1:
        if type(result) is not _ndarray:
            result = as_array(result)
        return (EagerTensor(result, specs[0].dtype),), full
    return tuple(
        [EagerTensor(as_array(r), s.dtype) for r, s in zip(result, specs, strict=True)]
    ), full


def host_kernel(op: OpDef) -> Callable[..., Any]:
    """What computes an op on arrays of the host; it is found once."""
    if op.host_kernel is not None:
        return op.host_kernel
    found: Callable[..., Any]
    if op.context_kernel is not None:
        found = functools.partial(op.context_kernel, EAGER)
    elif op.async_kernel is not None:
        found = functools.partial(_wait_for, op.async_kernel)
    elif HOST_TYPE not in op.kernels and op.reference_kernel is None:
        raise InternalError(f"{op.type} has no kernel")
    else:
        found = op.on_host()
    op.host_kernel = found
    return found


def run_bound(
    op: OpDef, kernel: Callable[..., Any], arrays: Sequence[Any], attrs: Mapping[str, Any]
) -> Any:
    """Compute an op on arrays; what their library refuses becomes an error that names the op."""
    before = hush()
    try:
        return kernel(*arrays, **attrs)
    except LaminarError:
        raise
    except Exception as cause:
        kind, message = ops.failures.kernel_failure(op.type, arrays, cause)
        raise kind(message) from cause
    finally:
        restore(before)


class Completion:
    """The `done` of an asynchronous kernel whose caller waits."""

    def __init__(self) -> None:
        self._ended = False
        self._waits = threading.Lock()
        self._waits.acquire()
        self._result: Any = None
        self._error: BaseException | None = None

    def __call__(self, result: Any) -> None:
        """The kernel has ended with its outputs."""
        self._end(result, None)

    def fail(self, error: BaseException) -> None:
        """The kernel has ended with an error."""
        self._end(None, error)

    def _end(self, result: Any, error: BaseException | None) -> None:
        if self._ended:
            raise InternalError("an asynchronous kernel ended twice")
        self._ended = True
        self._result, self._error = result, error
        self._waits.release()

    def wait(self) -> Any:
        """What the kernel gives, as soon as it does."""
        self._waits.acquire()
        if self._error is not None:
            raise self._error
        return self._result


def _wait_for(kernel: Callable[..., None], *arrays: Any, **attrs: Any) -> Any:
    """Run an asynchronous kernel eagerly, and wait for its result in this thread."""
    done, context = Completion(), EagerContext()
    context.cancellation = _manager(_scope_manager())
    try:
        kernel(context, done, *arrays, **attrs)
        return done.wait()
    except BaseException:  # an interrupt: nothing of the kernel may wait on
        context.cancellation.cancel()
        raise
    finally:
        context.cancellation.close()


def as_array(value: Any) -> Any:
    """NumPy's scalars, which some kernels return, as arrays of rank 0."""
    if type(value) is _ndarray or not isinstance(value, _SCALARS):
        return value
    return np.asarray(value)


def as_input(graph: Graph, x: Tensor) -> GraphTensor:
    """`x` as an input of operations of `graph`: itself, a constant, or a captured placeholder."""
    if isinstance(x, GraphTensor):
        if x.graph is graph:
            return x
        if not graph.captures_values or not encloses(x.graph, graph):
            raise FailedPreconditionError(
                f"the tensor {x.name} belongs to another graph, or to a function that has ended",
                remedy="pass it as an argument, or return it from the function that made it",
            )
        return _capture(graph, x)
    own = isinstance(x, Literal) and x.home is graph
    if x.dtype != resource and (own or not graph.captures_values):
        return _constant(graph, x)
    return _capture(graph, x)


def _constant(graph: Graph, x: Tensor) -> GraphTensor:
    def make() -> GraphTensor:
        attrs = {"value": x.value, "dtype": x.dtype}  # type: ignore[attr-defined]  # eager
        return graph.add(lookup("Const"), (), attrs).outputs[0]

    return graph.constant(x, make)


def _capture(graph: Graph, x: Tensor) -> GraphTensor:
    def make() -> GraphTensor:
        with graph.name_scope(None):
            attrs = {"shape": x.shape, "dtype": x.dtype}
            name = _name_of_captured(x)
            return graph.add(lookup("Placeholder"), (), attrs, name=name).outputs[0]

    return graph.capture(x, make)


def _name_of_captured(x: Tensor) -> str:
    """The name of a variable, or of another resource; values have none."""
    if x.dtype != resource:
        return "captured"
    name = x.op.name if isinstance(x, GraphTensor) else getattr(value_of(x), "name", "")
    found = str(name).rstrip("/")
    return found if is_name(found) else "captured"


def encloses(outer: Graph, inner: Graph | None) -> bool:
    """Whether `inner` is `outer`, or is built inside of it."""
    while inner is not None and inner is not outer:
        inner = inner.outer
    return inner is outer
