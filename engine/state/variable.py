"""Variable: a tensor that is kept from one step to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import DTypeError, InvalidArgumentError, ShapeError
from ..graph import (
    DeviceTensor,
    DType,
    EagerTensor,
    Graph,
    GraphTensor,
    Operation,
    Operators,
    Tensor,
    TensorShape,
    TensorSpec,
    building,
    eager_scope,
    resource,
)
from ..ops.control.structured import relaxed
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply, as_input
from ..ops.core.op_def import OpDef
from ..ops.core.recording import recorders
from ..ops.math.arithmetic import add, subtract
from ..ops.math.cast import cast
from ..ops.state import variable
from ..source import layer_path
from .autocasting import reading
from .collections import GraphKeys
from .creation import CreatedByScopes, announce
from .home import check_initial, home_of_state, outside_of_bodies
from .initial_values import initial_value_of
from .standalone_initializers import InitialValues
from .stateless import current_scope
from .variable_operators import VariableOperators
from .variable_reading import VariableReading


class PartOf(NamedTuple):
    """Which part of a larger tensor a variable is.

    Attributes:
        name: of the whole.
        shape: of the whole.
        extents: along each axis where the part begins, and its length.
    """

    name: str
    shape: TensorShape
    extents: tuple[tuple[int, int], ...]


class Variable(VariableReading, Operators, metaclass=CreatedByScopes):
    """A tensor that keeps its value between steps, and can be updated.

    In eager code and functions the value is there at once, and lives as long as this object. In a
    plain graph it is operations, a handle, a read, an initializer, and each session has a value.

    Each use reads the value: in one step the same, unless a control edge puts one after an update,
    or another step updates the variable meanwhile; there, `read_value()` once and use that.

    Args:
        initializer: the value, or a callable `(shape, dtype) -> value` or `() -> value`; with
            `shape`, also the name, config or class of an initializer: "ones".
        shape: needed when `initializer` is a callable that takes one, or a name.
        dtype: element type; by default that of the initial value, float32 for a callable.
        trainable: whether training may change it.
        autocast: whether it is read in the compute type of a policy.
        aggregation: how replicas combine it: "none", "mean", "sum" or "only_first_replica".
        synchronization: taken for Keras's sake: "auto", "none" (or None), "on_read", "on_write".
        name: last part of its path; made unique in a graph.
        collections: where a graph lists it, by default as global (and trainable).
        container: where a session keeps it; by default that of the graph's container scope.
        validate_shape: False for values of any shape, else that of the initial one, or `shape`.

    Raises:
        InvalidArgumentError: a callable without a shape, a name that is no string, ...
        ShapeError: the initial value has another shape.

    Examples:
        >>> v = laminar.Variable([1.0, 2.0], name="v")
        >>> v.assign_add([1.0, 1.0])
        Tensor([2., 3.], shape=(2,), dtype=float32)
    """

    table = VariableOperators()
    __slots__ = (
        "__weakref__",
        "_aggregation",
        "_autocast",
        "_constraint",
        "_dtype",
        "_graph",
        "_handle",
        "_name",
        "_overwrite_with_gradient",
        "_path",
        "_read",
        "_regularizer",
        "_shape",
        "_store",
        "initial_value",
        "initializer",
        "part_of",
        "synchronization",
        "_trainable",
    )

    def __init__(
        self,
        initializer: Any,
        shape: Any = None,
        dtype: Any = None,
        trainable: bool = True,
        autocast: bool = True,
        aggregation: str | None = "none",
        synchronization: str | None = "auto",
        name: str | None = None,
        *,
        collections: Sequence[str] | None = None,
        container: str | None = None,
        validate_shape: bool = True,
    ) -> None:
        if aggregation not in (None, "none", "mean", "sum", "only_first_replica"):
            raise InvalidArgumentError(
                f"Variable: aggregation must be none, mean, sum or only_first_replica, "
                f"got {aggregation!r}"
            )
        if synchronization not in (None, "none", "auto", "on_read", "on_write"):
            raise InvalidArgumentError(
                f"Variable: synchronization must be auto, none, on_read or on_write, "
                f"got {synchronization!r}"
            )
        if name is not None and not isinstance(name, str):
            raise InvalidArgumentError(f"Variable: a name is a string, got {name!r}")
        self._trainable = bool(trainable)
        self._regularizer: Callable[..., Any] | None = None
        self._constraint: Callable[..., Any] | None = None
        self._overwrite_with_gradient = False
        self.part_of: PartOf | None = None
        self.synchronization = synchronization or "none"
        self._aggregation = aggregation or "none"
        self._autocast = autocast
        self._graph = home_of_state()
        declared = None if shape is None else TensorShape(shape)
        if not validate_shape:
            declared = TensorShape(None)
        if self._graph is not None:
            self._build(
                self._graph, initializer, shape, dtype, name, collections, container, declared
            )
        else:
            self._create(initializer, shape, dtype, name, declared)
        announce(self)

    def _create(
        self,
        initializer: Any,
        shape: Any,
        dtype: Any,
        name: str | None,
        declared: TensorShape | None,
    ) -> None:
        if isinstance(initializer, GraphTensor):
            # A symbol of the function that is being traced: its value in the call traced for.
            found = initializer.graph.value_of(initializer)
            if found is None:
                raise InvalidArgumentError(
                    f"Variable {name!r}: the initial value is symbolic ({initializer!r}), "
                    f"and not known while the function is traced",
                    remedy="pass a function, an array or a number as the initializer",
                )
            initializer = found
        with eager_scope():
            value = initial_value_of(initializer, shape, dtype, name)
        assert isinstance(value, EagerTensor)
        self._shape, self._dtype = value.shape if declared is None else declared, value.dtype
        self._name = name or "variable"
        layers = layer_path()
        self._path = f"{layers}/{self._name}" if layers else self._name
        self._store = variable.VariableStore(
            self._path, value._value, trainable=self._trainable, owner=self
        )
        self._handle: Tensor = (
            DeviceTensor(self._store, resource, value.place)
            if isinstance(value, DeviceTensor)
            else EagerTensor(self._store, resource)
        )

    def _build(
        self,
        graph: Graph,
        initializer: Any,
        shape: Any,
        dtype: Any,
        name: str | None,
        collections: Sequence[str] | None,
        container: str | None,
        declared: TensorShape | None,
    ) -> None:
        check_initial(name, initializer)
        with outside_of_bodies(graph), graph.name_scope(name or "Variable") as scope:
            value = initial_value_of(initializer, shape, dtype, name)
            known = graph.attached(InitialValues)
            self.initial_value = known.alone(as_input(graph, value))
            self._shape, self._dtype = value.shape if declared is None else declared, value.dtype
            self._path = self._name = scope[:-1]
            attrs = {
                "shape": self._shape,
                "dtype": self._dtype,
                "container": graph.scopes.container if container is None else container,
                "shared_name": self._name,
            }
            with graph.name_scope(None):
                handle = graph.add(variable.var_handle, (), attrs, name=scope)
            self._handle = handle.outputs[0]
            known.values[id(self._handle)] = self.initial_value
            with graph.colocate_with(handle):
                self.initializer = graph.add(
                    variable.assign,
                    (handle.outputs[0], self.initial_value),
                    self._attrs,
                    name="Assign",
                )
                self._read = graph.add(
                    variable.read_variable, (handle.outputs[0],), self._attrs, name="read"
                ).outputs[0]
        keys = collections
        if keys is None:
            keys = [GraphKeys.GLOBAL_VARIABLES]
            if self.trainable:
                keys = [*keys, GraphKeys.TRAINABLE_VARIABLES]
        for key in keys:
            graph.add_to_collection(key, self)

    @classmethod
    def of_operations(
        cls,
        handle: GraphTensor,
        read: GraphTensor,
        initial_value: GraphTensor,
        initializer: Operation,
        **options: Any,
    ) -> Variable:
        """The variable whose operations a graph has already; in no collection."""
        found = cls.__new__(cls)
        found._graph = handle.graph
        found._shape, found._dtype = read.shape, read.dtype
        found._path = found._name = handle.op.name
        found._handle, found._read = handle, read
        found.initial_value, found.initializer = initial_value, initializer
        found._trainable = options["trainable"]
        found._autocast = options["autocast"]
        found._aggregation = options["aggregation"]
        found.synchronization = options["synchronization"]
        found._regularizer = found._constraint = None
        found._overwrite_with_gradient = False
        found.part_of = options["part_of"]
        return found

    @property
    def _attrs(self) -> dict[str, Any]:
        return {"shape": self._shape, "dtype": self._dtype}

    # What it is

    @property
    def trainable(self) -> bool:
        """Whether training may change it."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        if self._graph is None:
            self._store.trainable = self._trainable

    @property
    def regularizer(self) -> Callable[..., Any] | None:
        """The penalty on it, a function of its value; None for none."""
        return self._regularizer

    @regularizer.setter
    def regularizer(self, value: Callable[..., Any] | None) -> None:
        self._regularizer = self._callable("regularizer", value)

    @property
    def constraint(self) -> Callable[..., Any] | None:
        """What projects it after an update, a function of its value; None for nothing."""
        return self._constraint

    @constraint.setter
    def constraint(self, value: Callable[..., Any] | None) -> None:
        self._constraint = self._callable("constraint", value)

    def _callable(self, what: str, value: Any) -> Any:
        if value is not None and not callable(value):
            raise InvalidArgumentError(
                f"variable {self._path!r}: a {what} is a function of the value, got {value!r}",
                remedy=f"set {what} = laminar.{what}s.get(...), or a function",
            )
        return value

    @property
    def overwrite_with_gradient(self) -> bool:
        """Whether optimizers take its "gradient" for its next value."""
        return self._overwrite_with_gradient

    @overwrite_with_gradient.setter
    def overwrite_with_gradient(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise DTypeError(
                f"variable {self._path!r}: overwrite_with_gradient is a bool, got {value!r}"
            )
        self._overwrite_with_gradient = value

    @property
    def handle(self) -> Tensor:
        """The resource tensor that stands for it; gradients with respect to it arrive there."""
        return self._handle

    @property
    def store(self) -> variable.VariableStore:
        """Where the value of a variable outside of graphs is kept."""
        return self._store

    @property
    def graph(self) -> Graph | None:
        """The plain graph it belongs to, None for a variable that has an eager value."""
        return self._graph

    @property
    def name(self) -> str:
        """The last part of its path; in a graph, the name of its operation."""
        return self._name

    @property
    def path(self) -> str:
        """The layers it was made under, and its name: "model/dense/kernel"."""
        return self._path

    @path.setter
    def path(self, value: str) -> None:
        self._path = value
        if self._graph is None:
            self._store.name = value

    @property
    def shape(self) -> TensorShape:
        """Its dimensions."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """Its element type, as read: under a mixed-precision policy, the compute type."""
        wanted = reading.dtype
        return wanted if wanted is not None and self._casts else self._dtype

    @property
    def stored_dtype(self) -> DType:
        """Its element type, as it is kept."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod([d or 0 for d in self._shape], dtype=np.int64))

    @property
    def spec(self) -> TensorSpec:
        """Shape and dtype together."""
        return TensorSpec(self._shape, self.dtype)

    @property
    def aggregation(self) -> str:
        """How replicas combine it."""
        return self._aggregation

    @property
    def device(self) -> str:
        """The device that holds it."""
        return self._handle.device

    @property
    def op(self) -> Operation:
        """The operation that makes the handle, in a graph."""
        if not isinstance(self._handle, GraphTensor):
            raise InvalidArgumentError(f"variable {self._path!r} belongs to no graph")
        return self._handle.op

    @property
    def _casts(self) -> bool:
        return self._autocast and self._dtype.is_floating

    # Reading

    @property
    def value(self) -> Tensor:
        """The value now, as a tensor."""
        return self.as_tensor()

    def as_tensor(self) -> Tensor:
        """`value`, as a call."""
        read = self.read_value()
        wanted = reading.dtype
        return cast(read, wanted) if wanted is not None and self._casts else read

    def read_value(self) -> Tensor:
        """The value at this point of the program, in its own type."""
        scope = current_scope()
        if scope is not None and (held := scope.value_of(self)) is not None:
            return held
        return self.whole_value()

    def whole_value(self) -> Tensor:
        """The value at this point of the program, whatever it is in a scope around."""
        graph = building()
        handle = self._handle if graph is None else as_input(graph, self._handle)
        if self.trainable and recorders.active:
            for recorder in recorders.active:
                recorder.watched_variable(handle, self)
        if graph is None and self._graph is not None:
            return self._read
        return variable.read(handle, self._shape, self._dtype)

    def graph_element(self, graph: Graph) -> GraphTensor:
        """The tensor that stands for it among the fetches and feeds of a graph."""
        if self._graph is not graph:
            raise InvalidArgumentError(f"variable {self._path!r} belongs to another graph")
        return self._read

    def initialized_value(self) -> Tensor:
        """The value, or else the initial value, in a graph: what initial values of others read.

        Where the initializer runs in the same step, it is what that assigns.
        """
        if self._graph is None:
            return self.as_tensor()
        with self._graph.as_default(), self._graph.colocate_with(self.op):
            return variable.initialized_value(self._handle, self.initial_value)

    def eval(self, session: Any = None) -> Any:
        """The value in a session."""
        return self._read.eval(session=session)

    def load(self, value: Any, session: Any = None) -> None:
        """Give it a value in a session; eagerly, at once.

        Args:
            value: of the variable's shape and dtype.
            session: by default that of the block around.
        """
        if self._graph is None:
            self.assign(value)
            return
        runner = self._graph.session_for(session, f"load of variable {self._path!r}")
        runner.run(self.initializer, {self.initial_value: value})

    def is_initialized(self, name: str | None = None) -> Tensor:
        """Whether it has a value; a variable outside of graphs always has."""
        return apply(variable.is_initialized, (self._handle,), {}, name)[0]

    # Updating

    def assign(self, value: Any, *, validate_shape: bool = True, name: str | None = None) -> Tensor:
        """Store `value` in the variable's dtype; gives the new value.

        A tensor is cast, of other values each number must fit; likewise in other updates.

        Args:
            value: of the variable's shape.
            validate_shape: False for a value of any shape. From then on the variable's shape is
                what both have in common; what was built before still needs the old one.
            name: in a graph, that of the operation; likewise in other updates.
        """
        if not validate_shape:
            value = convert_to_tensor(value, self._dtype)
            self._open_shape(value)
        return self._apply(variable.assign, value, name)

    def _open_shape(self, value: Tensor) -> None:
        """Let the variable have the shape of a value too."""
        before = self._shape
        self._shape = relaxed([TensorSpec(before, self._dtype), value.spec]).shape
        if self._graph is not None and self._shape != before:
            graph, handle = self._graph, self.op
            with graph.control_dependencies(None), graph.colocate_with(handle):
                self._read = graph.add(
                    variable.read_variable, handle.outputs, self._attrs, name=f"{self._name}/read"
                ).outputs[0]

    def assign_add(self, value: Any, *, name: str | None = None) -> Tensor:
        """Add `value`; gives the sum."""
        return self._apply(variable.assign_add, value, name)

    def assign_sub(self, value: Any, *, name: str | None = None) -> Tensor:
        """Subtract `value`; gives the difference."""
        return self._apply(variable.assign_sub, value, name)

    def _apply(self, op: Any, value: Any, name: str | None) -> Tensor:
        operand = convert_to_tensor(value, self._dtype)
        scope = current_scope()
        shape = self._shape if scope is None else scope.shape_of(self)
        if not operand.shape.is_compatible_with(shape):
            raise ShapeError(
                f"variable {self._path!r} is {self._dtype}{shape}, "
                f"the value assigned to it is {operand.spec}",
                remedy="give a value of the variable's shape",
            )
        if scope is not None and scope.takes(self):
            updated: Tensor = _UPDATES[op](self.read_value(), operand)
            scope.add_update((self, updated))
            return updated
        return apply(op, (self._handle, operand), self._attrs, name)[0]

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        copied = Variable(
            self.numpy(),
            dtype=self._dtype,
            trainable=self.trainable,
            autocast=self._autocast,
            aggregation=self._aggregation,
            name=self._name,
        )
        copied.path = self._path
        memo[id(self)] = copied
        return copied

    def __repr__(self) -> str:
        kind = "trainable" if self.trainable else "not trainable"
        return f"<Variable {self._path!r} {self._dtype}{self._shape}, {kind}>"


# What the updates make of the old value and the operand.
_UPDATES: dict[OpDef, Callable[[Tensor, Tensor], Tensor]] = {
    variable.assign: lambda _, new: new,
    variable.assign_add: add,
    variable.assign_sub: subtract,
}
