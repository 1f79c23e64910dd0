"""What can be called on symbolic tensors: layers, and the ops of `laminar.ops`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Self

from laminar.copying import Copied
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
    UnimplementedError,
)
from laminar.engine.functions import FuncGraph, converted_in_graph
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.naming import auto_name
from laminar.recorded import is_read_by_us, is_recorded
from laminar.serialization import deserialize_keras_object, serialize_keras_object
from laminar.tree import flatten, map_structure, pack_sequence_as

from .masking import get_mask, set_mask
from .open_property import open_property
from .remat import get_current_remat_mode, rematerialized
from .symbolic import KerasTensor, Node, any_symbolic


class Operation(Copied):
    """A callable with a name that remembers its symbolic calls.

    Attributes:
        inbound_nodes: its symbolic calls.
        outbound_nodes: the calls of others that take its results.

    Examples:
        >>> layers.Dense(2, name="head").name
        'head'
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remember the arguments, for the config of classes that do not write one."""
        instance = super().__new__(cls)
        object.__setattr__(instance, "_laminar_init_arguments", (args, kwargs))
        return instance

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = auto_name(type(self).__name__)
        self._laminar_name = _checked_name(self, name)
        self._laminar_remat_mode = get_current_remat_mode()
        self.inbound_nodes: list[Node] = []
        self.outbound_nodes: list[Node] = []

    def _laminar_not_copied(self, memo: dict[int, Any]) -> dict[str, Any]:
        """A copy belongs to the calls that are copied with it, and to no others."""
        calls: dict[str, Any] = {"outbound_nodes": []}
        return calls if memo else {**calls, "inbound_nodes": []}

    @property
    def name(self) -> str:
        """Its name: unique in a model."""
        return self._laminar_name

    @name.setter
    def name(self, value: str) -> None:
        self._laminar_name = _checked_name(self, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result, or record a symbolic call."""
        if any_symbolic(args, kwargs):
            return self.symbolic_call(*args, **kwargs)
        return self.rematerialized_call(self.call, *args, **kwargs)(*args, **kwargs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result from tensors."""
        raise NotImplementedError

    def quantized_call(self, *args: Any, **kwargs: Any) -> Any:
        """The call in few bits, as the class writes it for its mode: `_int8_call` and the like.

        Raises:
            UnimplementedError: it does not.
        """
        mode = getattr(self, "quantization_mode", None)
        written = getattr(self, f"_{mode}_call", None)
        if written is None:
            raise UnimplementedError(
                f"{type(self).__name__} {self.name!r}: there is no call in the mode {mode!r}"
            )
        return written(*args, **kwargs)

    def rematerialized_call(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Callable[..., Any]:
        """`fn`, such as its `call`, as the RematScope in which it was made asks.

        The arguments are those of the call; a class that decides by them can write its own.
        """
        return rematerialized(self, fn, self._laminar_remat_mode)

    def symbolic_call(self, *args: Any, **kwargs: Any) -> Any:
        """Record a call on symbolic tensors, and give symbolic results."""
        outputs = self.compute_output_spec(*args, **without_training(kwargs, self))
        Node(self, args, kwargs, outputs)
        return outputs

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """The symbolic results of a call: `call` is traced on placeholders, and thrown away."""
        return infer_outputs(self.call, args, kwargs)

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make an equal one.

        A class that does not write its own gets the arguments of its constructor.
        """
        base = {"name": self.name}
        if not is_recorded(type(self)):
            return base
        parameters = inspect.signature(type(self).__init__).parameters.values()
        takes_name = any(p.name == "name" or p.kind is p.VAR_KEYWORD for p in parameters)
        return (base if takes_name else {}) | recorded_arguments(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Make one from what `get_config` gave.

        Raises:
            InvalidArgumentError: the config does not fit the constructor.
        """
        if is_read_by_us(cls):
            config = {key: deserialize_keras_object(value) for key, value in config.items()}
        try:
            return cls(**config)
        except LaminarError:
            raise
        except TypeError as cause:
            raise InvalidArgumentError(
                f"{cls.__name__} cannot be made from its config: {cause}",
                remedy="give the class a constructor that takes the keys of get_config(): "
                + ", ".join(config),
            ) from cause

    @open_property
    def input(self) -> Any:
        """The symbolic input of its first call."""
        node = self._laminar_first_node("input")
        inputs = [a for a in node.args if flatten(a)]
        return inputs[0] if len(inputs) == 1 else node.inputs

    @open_property
    def output(self) -> Any:
        """The symbolic output of its first call."""
        return self._laminar_first_node("output").structured_outputs

    def _laminar_first_node(self, what: str) -> Node:
        if not self.inbound_nodes:
            raise NotCalledError(
                f"{self.name!r} has no {what}: it was never called on a symbolic tensor",
                remedy="call it on Input(shape=...), or put it into a Sequential with an Input",
            )
        return self.inbound_nodes[0]


class NotCalledError(FailedPreconditionError, AttributeError):
    """There is no symbolic call to tell the attribute, so `hasattr` says no."""


def _checked_name(operation: Operation, name: str) -> str:
    if not isinstance(name, str) or "/" in name or not name:
        raise InvalidArgumentError(
            f"{type(operation).__name__}: a name is a string without '/', got {name!r}"
        )
    return name


def recorded_arguments(operation: Operation) -> dict[str, Any]:
    """The constructor arguments of an operation as data, for a class that writes no config."""
    args, kwargs = operation._laminar_init_arguments  # type: ignore[attr-defined]  # set in __new__
    signature = inspect.signature(type(operation).__init__)
    bound = signature.bind(operation, *args, **kwargs)
    bound.apply_defaults()
    found: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            found |= value
        elif kind is not inspect.Parameter.VAR_POSITIONAL:
            found[name] = value
    for name in ("name", "trainable", "dtype", "activity_regularizer"):
        found.pop(name, None)
    return {name: serialize_keras_object(value) for name, value in found.items()}


def without_training(kwargs: dict[str, Any], operation: Any) -> dict[str, Any]:
    """`kwargs` of a call, for `compute_output_spec`: one may be written for the inputs alone."""
    if "training" not in kwargs:
        return kwargs
    parameters = inspect.signature(operation.compute_output_spec).parameters.values()
    if any(p.name == "training" or p.kind is p.VAR_KEYWORD for p in parameters):
        return kwargs
    return {k: v for k, v in kwargs.items() if k != "training"}


def infer_outputs(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The specs of `fn(*args, **kwargs)` as symbolic tensors; nothing is computed."""
    graph = FuncGraph("spec")
    structure = [list(args), kwargs]

    def placeholder(leaf: Any, name: str) -> Any:
        if not isinstance(leaf, KerasTensor):
            return leaf
        found = graph.add_argument(leaf.spec, name)
        mask = get_mask(leaf)
        if mask is not None:
            set_mask(found, graph.add_argument(mask.spec, f"{name}_mask"))
        return found

    with graph.as_default():
        leaves = [placeholder(leaf, f"arg_{i}") for i, leaf in enumerate(flatten(structure))]
        inner_args, inner_kwargs = pack_sequence_as(structure, leaves)
        result = converted_in_graph(fn)(*inner_args, **inner_kwargs)
        return map_structure(_as_symbol, result)


def _as_symbol(y: Any) -> Any:
    if y is None:
        return None
    tensor = convert_to_tensor(y)
    symbol = KerasTensor(tensor.shape, tensor.dtype)
    mask = get_mask(tensor)
    if mask is not None:
        carried = KerasTensor(mask.shape, mask.dtype)
        carried._carrier = symbol
        set_mask(symbol, carried)
    return symbol
