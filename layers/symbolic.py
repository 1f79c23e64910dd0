"""Symbolic calls: the tensors of the functional API, and the record of who made them.

`Input(...)` gives a KerasTensor; calling a layer or an op of `laminar.ops` on one computes the spec
of the result alone, and leaves a `Node` behind. A functional model is the graph of these nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn, Protocol

from laminar import ops
from laminar.dtype_policies import PolicyLike
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
    UnimplementedError,
    UnknownSizeError,
    UnknownTruthError,
    UnknownValueError,
)
from laminar.engine.graph import DType, Operators, TensorShape, TensorSpec, as_dtype
from laminar.engine.late import later
from laminar.naming import auto_name
from laminar.tree import flatten, map_structure
from laminar.typing import Shape

record_mask = later("laminar.layers.op_layers", "record_mask")


class Callee(Protocol):
    """What can be called on symbolic tensors: an `Operation`, which remembers its calls."""

    inbound_nodes: list[Node]
    outbound_nodes: list[Node]

    @property
    def name(self) -> str:
        """Its name: unique in a model."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result, or record a symbolic call."""


class KerasHistory(NamedTuple):
    """Who made a symbolic tensor: an operation, which of its calls, which output."""

    operation: Callee
    node_index: int
    tensor_index: int


class KerasTensor(Operators):
    """A tensor without a value: shape, dtype, and the layer or op that made it.

    One that a program makes itself was made by nothing (`has_history` is false): layers and ops
    take it like any other, and a Function or Model can have it as an input.

    Args:
        shape: dimensions, the batch first, None where unknown.
        dtype: element type.
        sparse: whether it stands for a sparse tensor; nothing here makes or takes those.
        ragged: whether it stands for a ragged tensor; likewise.
        record_history: taken for Keras's sake; who makes a tensor is always noted.
        name: shown in summaries.

    Raises:
        InvalidArgumentError: sparse and ragged at once.

    Examples:
        >>> x = laminar.KerasTensor((None, 3))
        >>> (x * 2).shape, ops.sum(x, axis=1).shape
        ((None, 3), (None,))
    """

    __slots__ = (
        "__weakref__",
        "_carrier",
        "_dtype",
        "_history",
        "_keras_mask",
        "_ragged",
        "_shape",
        "_sparse",
        "name",
    )

    is_keras_tensor = True
    table: ClassVar[Any] = ops  # laminar.ops has every operator under its name

    def __init__(
        self,
        shape: Shape | int,
        dtype: PolicyLike = "float32",
        sparse: bool = False,
        ragged: bool = False,
        record_history: bool = True,
        name: str | None = None,
    ) -> None:
        if sparse and ragged:
            raise InvalidArgumentError("KerasTensor: a tensor is sparse or ragged, not both")
        self._sparse = sparse
        self._ragged = ragged
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._history: KerasHistory | None = None
        self._carrier: KerasTensor | None = None  # whose mask this is
        self._keras_mask: Any = None
        self.name = name or auto_name("keras_tensor")

    @property
    def shape(self) -> TensorShape:
        """The dimensions, None where unknown."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def sparse(self) -> bool:
        """Whether it stands for a sparse tensor."""
        return self._sparse

    @property
    def ragged(self) -> bool:
        """Whether it stands for a ragged tensor."""
        return self._ragged

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def spec(self) -> TensorSpec:
        """Shape and dtype together."""
        return TensorSpec(self._shape, self._dtype)

    @property
    def has_history(self) -> bool:
        """Whether a layer, an op or Input made it."""
        return self._history is not None or self._carrier is not None

    @property
    def history(self) -> KerasHistory:
        """Who made it.

        Raises:
            FailedPreconditionError: it was not made by a layer, an op or Input.
        """
        if self._history is None and self._carrier is not None:
            record_mask(self._carrier, self)
        if self._history is None:
            raise FailedPreconditionError(
                f"{self!r} was not made by a layer", remedy="start from Input(shape=...)"
            )
        return self._history

    _keras_history = history

    def reshape(self, newshape: Shape) -> Any:
        """The tensor in another shape of as many elements; see `ops.reshape`."""
        return ops.reshape(self, newshape)

    def squeeze(self, axis: int | Sequence[int] | None = None) -> Any:
        """The tensor without axes of size 1; see `ops.squeeze`."""
        return ops.squeeze(self, axis=axis)

    def serialize(self) -> dict[str, Any]:
        """The form in which a config refers to it."""
        operation, node_index, tensor_index = self.history
        return {
            "class_name": "__keras_tensor__",
            "config": {
                "shape": list(self._shape),
                "dtype": str(self._dtype),
                "keras_history": [operation.name, node_index, tensor_index],
            },
        }

    def _refuse(self, what: str, error: type[LaminarError] = UnknownValueError) -> NoReturn:
        raise error(
            f"{what}: a symbolic tensor ({self.spec}) of the functional API has no value",
            remedy="use functions of laminar.ops and layers on it, and read values with predict()",
        )

    def numpy(self) -> Any:
        """Refuse: there is no value."""
        self._refuse("numpy()")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse("conversion to an array")

    def __bool__(self) -> bool:
        self._refuse("a truth value", UnknownTruthError)

    def __len__(self) -> int:
        self._refuse("len()", UnknownSizeError)

    def __iter__(self) -> Any:
        raise UnimplementedError(
            f"iteration: {self!r} has no value to take apart",
            remedy="use laminar.ops.unstack(x, num, axis=0)",
        )

    def __float__(self) -> float:
        self._refuse("float()")

    def __int__(self) -> int:
        self._refuse("int()")

    def __repr__(self) -> str:
        return f"<KerasTensor shape={tuple(self._shape)}, dtype={self._dtype}, name={self.name}>"


def is_keras_tensor(x: Any) -> bool:
    """Whether `x` is a symbolic tensor of the functional API.

    Examples:
        >>> (
        ...     laminar.utils.is_keras_tensor(layers.Input((3,))),
        ...     laminar.utils.is_keras_tensor(np.ones(3)),
        ... )
        (True, False)
    """
    return isinstance(x, KerasTensor)


def any_symbolic(*structures: Any) -> bool:
    """Whether a symbolic tensor is among the leaves."""
    return any(isinstance(leaf, KerasTensor) for s in structures for leaf in flatten(s))


class Node:
    """One symbolic call of an operation: its arguments, and the tensors it gave.

    Attributes:
        operation: what was called.
        args: the positional arguments, with symbolic tensors among the leaves.
        kwargs: the keyword arguments.
        outputs: the results, flat.
    """

    def __init__(
        self, operation: Callee, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any
    ) -> None:
        self.operation = operation
        self.args = args
        self.kwargs = kwargs
        self.structured_outputs = outputs
        self.outputs: list[KerasTensor] = [t for t in flatten(outputs) if is_keras_tensor(t)]
        index = len(operation.inbound_nodes)
        operation.inbound_nodes.append(self)
        for i, tensor in enumerate(self.outputs):
            tensor._history = KerasHistory(operation, index, i)
        for parent in self.parents:
            parent.operation.outbound_nodes.append(self)

    @property
    def inputs(self) -> list[KerasTensor]:
        """The symbolic tensors among the arguments."""
        leaves = flatten([list(self.args), self.kwargs])
        return [leaf for leaf in leaves if isinstance(leaf, KerasTensor)]

    @property
    def parents(self) -> list[Node]:
        """The calls that made the inputs."""
        made = [x.history for x in self.inputs if x.has_history]
        return [history.operation.inbound_nodes[history.node_index] for history in made]

    def fill(self, values: dict[int, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with symbolic tensors replaced by `values[id(tensor)]`."""

        def replace(leaf: Any) -> Any:
            return values[id(leaf)] if isinstance(leaf, KerasTensor) else leaf

        args = tuple(map_structure(replace, arg) for arg in self.args)
        return args, {key: map_structure(replace, arg) for key, arg in self.kwargs.items()}


def unique(tensors: Sequence[Any]) -> list[Any]:
    """The tensors, each once, in order."""
    return list({id(t): t for t in tensors}.values())
