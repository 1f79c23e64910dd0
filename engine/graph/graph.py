"""The graph: makes operations, keeps them by name and in order, and holds the scopes they get.

State of a `Graph`, all of it guarded by `_lock`:
    _operations[name]: every operation, in order of creation (so inputs stand before consumers);
    _names[lower-case name]: how often the name was asked for, to make names unique;
    _consumers[tensor id]: operations that take the tensor;
    _collections[key]: tagged lists of objects;
    captures[id]: tensors from outside that the graph takes as inputs, with the placeholder of each;
    _constants[id]: tensors that became constants, with the output of each;
    edits: how often an operation was changed after it was made;
    results_of_calls[name]: the outputs of a node that called a function, and was written out;
    _attached[kind]: what other rooms keep with the graph, one object of each kind.
Each thread has `scopes` and `sessions` (those entered as default for this graph) of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from .. import forks
from ..errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    did_you_mean,
)
from ..late import later
from ..source import layer_path, user_location
from .device import ANYWHERE, DeviceSpec, EagerPlace
from .graphdef import GraphDef, is_number
from .operation import OpDefinition, Operation
from .scopes import (
    Collections,
    DeviceRule,
    Entered,
    FeedRules,
    Gradient,
    Runner,
    Scopes,
    as_text,
    check_name,
    check_text,
    in_order,
)
from .spec import TensorSpec
from .tensor import EagerTensor, GraphTensor, Tensor

_Attached = TypeVar("_Attached")
_created: Callable[..., Operation] = later("laminar.engine.ops.core.graphs", "create_op")
_exported = later("laminar.engine.graph.exchange", "export_graph")
_flatten = later("laminar.engine.tree", "flatten")


class Graph(Collections, FeedRules):
    """A dataflow graph: operations joined by tensors and control edges.

    Examples:
        >>> graph = engine.Graph()
        >>> with graph.as_default():
        ...     x = engine.placeholder("float32", [None], name="x")
        ...     y = engine.identity(2 * x, name="y")
        >>> graph.get_tensor_by_name("y:0") is y
        True
        >>> with engine.Session(graph=graph) as session:
        ...     session.run(y, {x: [1.0, 2.0]})
        array([2., 4.], dtype=float32)
    """

    # Whether eager tensors used inside become inputs (a function) or constants (a plain graph).
    captures_values = False
    # Whether its collections and named variables are its own, though it is made inside another.
    owns_names = False

    def __init__(self) -> None:
        self._lock = forks.recursive_lock()
        self.name = ""  # that of the function, of a graph that was traced
        self._operations: dict[str, Operation] = {}
        self._names: dict[str, int] = {}
        self._consumers: dict[int, list[Operation]] = {}
        self._collections: dict[str, list[Any]] = {}
        self._finalized = False
        self.captures: dict[int, tuple[Tensor, GraphTensor]] = {}
        self._constants: dict[int, tuple[Tensor, GraphTensor]] = {}
        self.numbers: dict[int, GraphTensor] = {}  # by id(), those that were taken for numbers
        self.outer: Graph | None = None
        self.tapes_outside: Collection[Any] = ()  # of gradients, which do not record this graph
        self.seed: int | None = None
        self.gradients: dict[str, Gradient] = {}  # of operations, in place of their own
        self.edits = 0
        self.results_of_calls: dict[str, Sequence[GraphTensor]] = {}
        self._attached: dict[type, Any] = {}
        self.scopes = Scopes()
        self._entered = Entered()

    # Building

    def add(
        self,
        definition: OpDefinition,
        inputs: Sequence[GraphTensor] = (),
        attrs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
    ) -> Operation:
        """Add an operation: shapes and dtypes are inferred and checked before anything changes.

        Raises:
            FailedPreconditionError: the graph is finalized.
            InvalidArgumentError: an input belongs to another graph, or the op refuses the inputs.
        """
        for x in inputs:
            if not isinstance(x, GraphTensor) or x.graph is not self:
                raise InvalidArgumentError(
                    f"{definition.type}: the input {x!r} does not belong to this graph",
                    remedy="build it in this graph, or capture it",
                )
        scopes = self.scopes
        if scopes.kernel_labels and (label := scopes.kernel_labels.get(definition.type)):
            definition = definition.labelled(label)
        specs, full = definition.infer([x.spec for x in inputs], attrs or {})
        with self._lock:
            self.check_open(f"adding {definition.type}")
            op = Operation(
                self,
                definition,
                self.unique_name(name or definition.type),
                tuple(inputs),
                full,
                specs,
                len(self._operations),
            )
            op.control_inputs.extend(scopes.control_inputs())
            op.location = user_location()
            op.layer = layer_path()
            op.colocation = scopes.colocation
            spec = scopes.device_for(op)
            if spec.colocated_with is not None:
                op.colocation += (self.get_operation_by_name(spec.colocated_with).name,)
            elif spec is not ANYWHERE:
                op.device = spec.to_string()
            if scopes.gradients and (gradient := scopes.gradients.get(op.type)):
                self.gradients[op.name] = gradient
            self._operations[op.name] = op
            for x in op.inputs:
                self._consumers.setdefault(id(x), []).append(op)
            self._added(op)
        return op

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Any],
        dtypes: Sequence[Any] | None = None,
        input_types: Sequence[Any] | None = None,
        name: str | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> Operation:
        """Add an operation by the name of its op; see `create_op` in engine/ops/core/graphs.py."""
        return _created(self, op_type, inputs, dtypes, input_types, name, attrs)

    def append(
        self,
        definition: OpDefinition,
        name: str,
        inputs: Sequence[GraphTensor],
        attrs: Mapping[str, Any],
        specs: Sequence[TensorSpec],
        *,
        like: Operation,
    ) -> Operation:
        """Add an operation of known specs and with a free name; for passes.

        It gets the device, the colocation, the line and the layer of `like`.
        """
        with self._lock:
            op = Operation(
                self,
                definition,
                name,
                tuple(inputs),
                dict(attrs),
                tuple(specs),
                len(self._operations),
            )
            op.device, op.colocation = like.device, like.colocation
            op.location, op.layer = like.location, like.layer
            self._names.setdefault(name.lower(), 1)
            self._operations[name] = op
        return op

    def keep(self, operations: Sequence[Operation]) -> None:
        """Drop all other operations, which nothing may need any more; for passes."""
        with self._lock:
            self.check_open("dropping operations")
            self._operations = {op.name: op for op in operations}
            for i, op in enumerate(operations):
                op.id = i

    def add_input(self, op: Operation, tensor: GraphTensor) -> None:
        """Give an operation one more input, made after it: so the cycle of a loop is closed."""
        with self._lock:
            self.check_open(f"adding an input to {op.name!r}")
            op.inputs = (*op.inputs, tensor)
            self._consumers.setdefault(id(tensor), []).append(op)
            self.edits += 1

    def _added(self, op: Operation) -> None:
        """Called with each new operation, under the lock; subclasses keep order with it."""

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name` under the current name scope, made unique and, unless told not to, marked as used.

        A name that ends in "/" is taken as it is, for the operation that the scope belongs to.
        """
        name = as_text(name)
        check_name(name)
        with self._lock:
            absolute = name.endswith("/")
            full = name[:-1] if absolute else self.scopes.name + name
            key = full.lower()
            count = self._names.get(key, 0)
            if absolute and full not in self._operations:
                count = 0  # the operation that a scope was opened for has the scope's name
            unique, number = full, count
            while number:
                unique = f"{full}_{number}"
                if unique.lower() not in self._names:
                    break
                number += 1
            if mark_as_used:
                self._names[key] = count + 1
                if unique is not full:
                    self._names[unique.lower()] = 1
            return unique

    def rename(self, op: Operation, name: str) -> None:
        """Give an operation that was just made another name, as `unique_name` has it."""
        with self._lock:
            self.check_open(f"naming {op.name!r}")
            name, before = self.unique_name(name), op.name
            later: list[Operation] = []
            while not later or later[-1] is not op:  # names keep the order of creation
                later.append(self._operations.popitem()[1])
            op.name = name
            for other in reversed(later):
                other.colocation = tuple(name if n == before else n for n in other.colocation)
                self._operations[other.name] = other

    def value_of(self, tensor: GraphTensor) -> EagerTensor | None:
        """The value of `tensor` while the graph is built, None when it is not known yet."""
        return None

    def finalize(self) -> None:
        """Freeze the graph: whatever would change it, or its operations, raises from now on."""
        with self._lock:
            if not self._finalized:
                self._finalized = True
                for op in self._operations.values():
                    op.freeze()

    def unfinalize(self) -> None:
        """Have the graph take changes again: for what froze it for a time, as a session does."""
        with self._lock:
            if self._finalized:
                self._finalized = False
                for op in self._operations.values():
                    op.thaw()

    @property
    def finalized(self) -> bool:
        """Whether the graph is frozen."""
        return self._finalized

    def check_open(self, what: str) -> None:
        """Raise FailedPreconditionError when the graph is finalized."""
        if self._finalized:
            raise FailedPreconditionError(
                f"{what}: the graph is finalized", remedy="build before finalize(), or a new graph"
            )

    # Reading

    @property
    def version(self) -> int:
        """Rises with each operation added."""
        return len(self._operations)

    @property
    def operations(self) -> list[Operation]:
        """All operations in order of creation."""
        with self._lock:
            return list(self._operations.values())

    def get_operations(self) -> list[Operation]:
        """`operations`, as a call."""
        return self.operations

    def get_name_scope(self) -> str:
        """The name scope that this thread is in, without a slash at its end."""
        return self.scopes.name.removesuffix("/")

    def __contains__(self, name: str) -> bool:
        return name in self._operations

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> GraphDef:
        """The operations as data, for files and other processes.

        Args:
            from_version: leaves out those that the graph had when this was its `version`.
            add_shapes: taken for TensorFlow's sake: who reads the graph infers them.
        """
        found: GraphDef = _exported(self, self.operations[from_version:] if from_version else None)
        return found

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name; NotFoundError (a KeyError) when there is none."""
        op = self._operations.get(name)
        if op is None:
            if isinstance(name, bytes):
                return self.get_operation_by_name(as_text(name))
            check_text(name)
            raise NotFoundError(
                f"no operation is named {name!r}",
                remedy=did_you_mean(name, self._operations) or "list graph.operations",
            )
        return op

    def get_tensor_by_name(self, name: str) -> GraphTensor:
        """The tensor "operation:index"; NotFoundError (a KeyError) when there is none."""
        name = as_text(name)
        check_text(name)
        op_name, _, index = name.rpartition(":")
        if not op_name or not is_number(index):
            raise InvalidArgumentError(
                f"{name!r} does not name a tensor", remedy=f'write "{name}:0"'
            )
        outputs = self.results_of_calls.get(op_name) or self.get_operation_by_name(op_name).outputs
        if int(index) >= len(outputs):
            raise NotFoundError(f"{op_name!r} has {len(outputs)} outputs, asked for {name!r}")
        return outputs[int(index)]

    def as_graph_element(self, value: Any) -> GraphTensor | Operation:
        """The tensor or operation that an object or a name stands for."""
        value = as_text(value)
        if isinstance(value, str):
            return self.get_tensor_by_name(value) if ":" in value else self._operation(value)
        inner = getattr(value, "graph_element", None)  # a variable stands for its value
        element = value if inner is None else inner(self)
        if isinstance(element, GraphTensor | Operation):
            if element.graph is not self:
                raise InvalidArgumentError(f"{element!r} belongs to another graph")
            return element
        raise ArgumentTypeError(
            f"Graph: expected a tensor, an operation or a name of this graph, got {value!r}",
            remedy="give what the graph holds; a value is fed: feed_dict={tensor: value}",
        )

    def _operation(self, name: str) -> Operation:
        return self.get_operation_by_name(name.removeprefix("^"))

    def consumers_of(self, tensor: GraphTensor) -> Sequence[Operation]:
        """The operations that take `tensor`."""
        return self._consumers.get(id(tensor), ())

    @property
    def sessions(self) -> list[Runner]:
        """The sessions that this thread has entered as default for this graph."""
        return self._entered.sessions

    def session_for(self, session: Runner | None, who: str) -> Runner:
        """`session`, or the default session of this graph."""
        if session is not None:
            return session
        if not self.sessions:
            raise InvalidArgumentError(
                f"{who} needs a session and none is the default",
                remedy="call it inside `with Session(graph=...):`, or pass session=",
            )
        return self.sessions[-1]

    def attached(self, kind: type[_Attached]) -> _Attached:
        """The object of a class that other rooms keep with this graph, made when first asked."""
        with self._lock:
            found = self._attached.get(kind)
            if found is None:
                found = self._attached[kind] = kind()
            return found

    @property
    def root(self) -> Graph:
        """The graph that owns what is made here by name: of a branch or a body, the one around."""
        graph = self
        while graph.captures_values and not graph.owns_names and graph.outer is not None:
            graph = graph.outer
        return graph

    # Scopes

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Make this the graph that the calls of this thread build."""
        stack.push(self)
        try:
            yield self
        finally:
            stack.pop(self)

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Prefix the names of the operations made inside with `name/`.

        A name that ends in "/" is taken as it is (re-entering a scope); "" and None go to the root.
        """
        scopes = self.scopes
        before = scopes.name
        if not name:
            scopes.name = ""
        elif name.endswith("/"):
            scopes.name = name
        else:
            scopes.name = self.unique_name(name) + "/"
        mine = scopes.name
        try:
            yield mine
            in_order("name_scope", scopes.name is mine)
        finally:
            scopes.name = before

    @contextmanager
    def control_dependencies(self, controls: Any) -> Iterator[None]:
        """Have the operations made inside run after `controls`; None forgets the outer ones.

        They are tensors, operations and names, one or any structure of them.
        """
        ops: list[Operation] | None = None
        if controls is not None:
            ops = []
            for control in _flatten(controls):
                element = self.as_graph_element(control)
                ops.append(element.op if isinstance(element, GraphTensor) else element)
        with self.scopes.controls(ops):
            yield

    @contextmanager
    def device(self, where: str | DeviceSpec | DeviceRule | None) -> Iterator[None]:
        """Constrain the operations made inside to a device; inner scopes win part by part.

        "@node" for a device places them with that node, as `colocate_with` does.
        """
        if isinstance(where, str) and where.startswith("@"):
            where = DeviceSpec.from_string(where)
            assert where.colocated_with is not None
            self.get_operation_by_name(where.colocated_with)
        with self.scopes.device(where):
            yield

    @contextmanager
    def colocate_with(self, target: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Place the operations made inside where `target` is.

        The blocks of devices around do not count, those inside do.

        Args:
            target: a tensor, an operation, a variable, or a name; None for no place, with
            ignore_existing: whether the blocks of this kind around do not count.
        """
        names, device = tuple[str, ...](), ""
        if target is not None:
            element = self.as_graph_element(target)
            op = element.op if isinstance(element, GraphTensor) else element
            names, device = op.colocation or (op.name,), op.device
        elif not ignore_existing:
            raise InvalidArgumentError(
                "colocate_with: None stands for no constraint, which the blocks around may be",
                remedy="colocate_with(None, ignore_existing=True)",
            )
        scopes = self.scopes
        before = scopes.colocation
        around = () if ignore_existing else before
        scopes.colocation = tuple(dict.fromkeys((*around, *names)))
        try:
            with scopes.device(None), scopes.device(device or None):
                yield
        finally:
            scopes.colocation = before

    @contextmanager
    def kernel_labels(self, labels: Mapping[str, str]) -> Iterator[None]:
        """Have kernels with labels compute the operations made inside.

        Args:
            labels: by the type of an op, the label (see `OpDef.kernel`); "" for none.
        """
        scopes = self.scopes
        before, scopes.kernel_labels = scopes.kernel_labels, {**scopes.kernel_labels, **labels}
        try:
            yield
        finally:
            scopes.kernel_labels = before

    @contextmanager
    def gradient_override_map(self, functions: Mapping[str, Gradient]) -> Iterator[None]:
        """Have the operations made inside differentiated by other functions than their ops'.

        Args:
            functions: by the type of an op, `fn(op, *douts)`, as `OpDef.grad` takes it, or its name
                (see `register_gradient`). No file keeps them.
        """
        scopes = self.scopes
        before, scopes.gradients = scopes.gradients, {**scopes.gradients, **functions}
        try:
            yield
        finally:
            scopes.gradients = before

    @contextmanager
    def container(self, name: str) -> Iterator[None]:
        """Keep the state of the operations made inside in the container `name`."""
        if name:
            check_name(name)
        scopes = self.scopes
        before, scopes.container = scopes.container, name
        try:
            yield
        finally:
            scopes.container = before

    def capture(self, tensor: Tensor, make: Callable[[], GraphTensor]) -> GraphTensor:
        """The placeholder of a tensor from outside, made by `make` the first time."""
        return self._once(self.captures, tensor, make)

    def constant(self, tensor: Tensor, make: Callable[[], GraphTensor]) -> GraphTensor:
        """The constant of a tensor with a value, made by `make` the first time."""
        return self._once(self._constants, tensor, make)

    def taken_from_outside(self) -> dict[int, Tensor]:
        """By the ids of its placeholders and constants: the tensors outside that they stand for."""
        pairs = (*self.captures.values(), *self._constants.values())
        return {id(inner): tensor for tensor, inner in pairs}

    def standing_for(self, tensor: Tensor) -> Tensor:
        """What stands in the graph for a tensor from outside, `tensor` itself if nothing does."""
        pair = self.captures.get(id(tensor)) or self._constants.get(id(tensor))
        return tensor if pair is None else pair[1]

    def _once(
        self,
        table: dict[int, tuple[Tensor, GraphTensor]],
        tensor: Tensor,
        make: Callable[[], GraphTensor],
    ) -> GraphTensor:
        with self._lock:
            found = table.get(id(tensor))
            if found is None:
                with self.control_dependencies(None):
                    found = table[id(tensor)] = (tensor, make())
            return found[1]

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        frozen = ", finalized" if self._finalized else ""
        return f"<{type(self).__name__}{name} of {len(self._operations)} operations{frozen}>"


class _Stack(threading.local):
    """What a thread builds, the innermost last; see default.py."""

    place: EagerPlace | None = None

    def __init__(self) -> None:
        self.items: list[Graph | None] = []

    def push(self, graph: Graph | None) -> None:
        self.items.append(graph)

    def pop(self, graph: Graph | None) -> None:
        if not self.items or self.items[-1] is not graph:
            raise FailedPreconditionError("default graphs must be left in the order of entering")
        self.items.pop()


stack = _Stack()
