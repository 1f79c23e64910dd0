"""A node of a graph: an instance of an op, with its inputs, attributes and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..errors import InvalidArgumentError
from ..late import later
from ..source import Location
from .spec import TensorSpec
from .tensor import GraphTensor, Tensor

if TYPE_CHECKING:  # an operation knows its graph
    from .graph import Graph

_text = later("laminar.engine.graph.text", "operation_text")


class OpDefinition(Protocol):
    """What a graph needs to know of an op; the op table in the room above provides it."""

    @property
    def type(self) -> str:
        """The op's name."""

    @property
    def label(self) -> str:
        """Of the kernels that compute it; "" for the usual ones."""

    def labelled(self, label: str) -> OpDefinition:
        """The same, computed by the kernels with a label."""

    @property
    def stateful(self) -> bool:
        """Whether running it has an effect or depends on one."""

    @property
    def read_only(self) -> bool:
        """Whether it only reads the resources among its inputs."""

    @property
    def defaults(self) -> Mapping[str, Any]:
        """The attributes that need not be given, with their values."""

    def infer(
        self, specs: Sequence[TensorSpec], attrs: Mapping[str, Any]
    ) -> tuple[tuple[TensorSpec, ...], dict[str, Any]]:
        """The specs of the outputs, and the attributes with defaults filled in."""


class OpView(Protocol):
    """What a gradient function may see of the operation that it differentiates."""

    @property
    def inputs(self) -> Sequence[Tensor]: ...
    @property
    def outputs(self) -> Sequence[Tensor]: ...
    @property
    def attrs(self) -> Mapping[str, Any]: ...


_node_of = later("laminar.engine.graph.exchange", "node_def")


class Operation:
    """A node. Made by `Graph.add` alone.

    Attributes:
        definition: the op it is an instance of.
        name: unique in the graph, with its scopes: "model/dense/MatMul".
        inputs: the tensors it takes.
        outputs: the tensors it makes.
        attrs: the op's attributes.
        control_inputs: operations that must have run before it.
        device: constraint on where it runs, "" for none.
        id: its place in the order of creation.
        location: the user's line that made it.
        layer: the path of the layer that made it.

    Examples:
        >>> with engine.Graph().as_default():
        ...     op = engine.constant(1.0, name="one").op
        >>> op.name, op.type, len(op.outputs)
        ('one', 'Const', 1)
    """

    __slots__ = (
        "__weakref__",
        "_outputs",
        "attrs",
        "colocation",
        "control_inputs",
        "definition",
        "device",
        "graph",
        "id",
        "inputs",
        "layer",
        "location",
        "name",
    )

    def __init__(
        self,
        graph: Graph,
        definition: OpDefinition,
        name: str,
        inputs: tuple[GraphTensor, ...],
        attrs: dict[str, Any],
        specs: tuple[TensorSpec, ...],
        op_id: int,
    ) -> None:
        self.graph = graph
        self.definition = definition
        self.name = name
        self.inputs = inputs
        self.attrs: Mapping[str, Any] = attrs
        self.id = op_id
        self.control_inputs: list[Operation] = []
        self.device = ""
        self.colocation: tuple[str, ...] = ()
        self.location: Location | None = None
        self.layer = ""
        self._outputs = tuple([GraphTensor(self, i, spec) for i, spec in enumerate(specs)])

    @property
    def type(self) -> str:
        """The name of the op it is an instance of."""
        return self.definition.type

    @property
    def outputs(self) -> tuple[GraphTensor, ...]:
        """The tensors it makes."""
        return self._outputs

    def values(self) -> tuple[GraphTensor, ...]:
        """`outputs`, as a call."""
        return self.outputs

    @property
    def op_def(self) -> OpDefinition:
        """The op, as it was defined."""
        return self.definition

    @property
    def node_def(self) -> Any:
        """A copy of it as data: a NodeDef message, with the op, inputs, device and attributes.

        Raises:
            InvalidArgumentError: an attribute is a Python function, which is no data.
        """
        return _node_of(self)

    @property
    def traceback(self) -> list[tuple[str, int, str, str | None]]:
        """The user's line that made it, as `traceback.extract_stack` has lines; [] if unknown."""
        where = self.location
        return [] if where is None else [(where.filename, where.line, where.function, None)]

    def colocation_groups(self) -> list[bytes]:
        """What it stands with: b"loc:@name" for each operation, by default for itself alone."""
        return [f"loc:@{name}".encode() for name in self.colocation or (self.name,)]

    def get_attr(self, name: str) -> Any:
        """The value of an attribute; a string as bytes.

        "_class" is what it is placed with, and "T" the type of its first input, as TensorFlow has
        it.

        Raises:
            InvalidArgumentError: there is none of that name.
        """
        if name == "_class" and self.colocation:
            return self.colocation_groups()
        if name not in self.attrs:
            if name == "T" and self.inputs:
                return self.inputs[0].dtype
            raise InvalidArgumentError(
                f"{self.name!r} ({self.type}) has no attribute {name!r}",
                remedy=f"it has {', '.join(self.attrs) or 'none'}",
            )
        found = self.attrs[name]
        return found.encode() if type(found) is str else found

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Run it and what it needs, in `session` or in the default one."""
        self.graph.session_for(session, f"{self.name}.run()").run(self, feed_dict)

    def add_control_input(self, op: Operation) -> None:
        """Have `op` run before this operation."""
        self.graph.check_open(f"adding a control input to {self.name!r}")
        if op is not self and op not in self.control_inputs:
            self.control_inputs.append(op)
            self.graph.edits += 1

    def freeze(self) -> None:
        """Refuse changes from now on: the graph is finalized."""
        self.attrs = MappingProxyType(dict(self.attrs))
        self.__class__ = _FrozenOperation

    def thaw(self) -> None:
        """Take changes again."""
        object.__setattr__(self, "__class__", Operation)
        self.attrs = dict(self.attrs)

    def __repr__(self) -> str:
        found: str = _text(self)
        return found


class _FrozenOperation(Operation):
    """An operation of a finalized graph: the same object, which cannot be written to any more."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        self.graph.check_open(f"changing {name} of {self.name!r}")


@runtime_checkable
class GraphBody(Protocol):
    """A graph as an attribute; see ops/control/structured.py."""

    @property
    def inputs(self) -> Sequence[GraphTensor]:
        """Tensors of the graph whose values are given."""

    @property
    def outputs(self) -> Sequence[GraphTensor | None]:
        """Tensors of the graph; None for what only another branch has."""

    @property
    def effects(self) -> Sequence[Operation]:
        """Operations that run although no output needs them."""
