"""Sequential: a stack of layers, each taking what the one before gives."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Self

from laminar.distribute.replicas import part_call
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.source import inside_layer
from laminar.layers.input import InputLayer
from laminar.layers.layer import Layer, refuse_layer
from laminar.layers.symbolic import KerasTensor
from laminar.naming import who
from laminar.registration import custom_object_scope
from laminar.serialization import deserialize_keras_object, serialize_keras_object
from laminar.tree import flatten

from ..typing import Shape
from .model import Model
from .network import Network


class Sequential(Model):
    """A stack of layers.

    The weights are made when the shape of the input is known: from an `Input` first, at the first
    call, or by `build(input_shape)`. `_laminar_symbols` are the symbolic outputs of the layers of
    `_laminar_stack`, as many as have been called.

    Args:
        layers: the layers, in order; more can be added with `add`.
        trainable: whether training changes the weights.
        name: of the model.

    Examples:
        >>> model = laminar.Sequential(
        ...     [layers.Input((8,)), layers.Dense(16, "relu"), layers.Dense(1)]
        ... )
        >>> model.count_params(), model(np.ones((4, 8))).shape
        (161, (4, 1))
    """

    _laminar_is_stack = True

    def __init__(
        self,
        layers: Sequence[Any] | None = None,
        trainable: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(trainable=trainable, name=name)
        self._laminar_stack: list[Layer] = []
        self._laminar_symbols: list[Any] = []
        self._laminar_input_is_given = True
        if layers is not None and not isinstance(layers, list | tuple):
            raise InvalidArgumentError(
                f"Sequential: expected a list of layers, got {type(layers).__name__}",
                remedy="Sequential([layer, layer, ...])",
            )
        self._laminar_append(layers or ())
        self._laminar_connect()

    def _laminar_checkpoint_children(self) -> dict[str, Any]:
        return {"layers": self.layers} | super()._laminar_checkpoint_children()

    def add(self, layer: Layer, rebuild: bool = True) -> None:
        """Put a layer on top.

        Args:
            layer: takes what the layer below it gives.
            rebuild: whether the model is built at once, where the shape of its input is known.

        Raises:
            InvalidArgumentError: not a layer, a name that is taken, or an Input that is not first.
        """
        count = len(self._laminar_stack)
        self._laminar_append([layer])
        if rebuild:
            self._laminar_connect_or_drop(slice(count, None))

    def _laminar_append(self, layers: Iterable[Any]) -> None:
        taken = {layer.name for layer in self._laminar_stack}
        for layer in layers:
            if isinstance(layer, KerasTensor):
                layer = layer.history.operation
            if not isinstance(layer, Layer):
                refuse_layer(layer, "Sequential")
            if (
                not self._laminar_stack
                and not isinstance(layer, InputLayer)
                and layer._laminar_first_shape
            ):
                self._laminar_stack.append(InputLayer(batch_shape=layer._laminar_first_shape))
                taken.add(self._laminar_stack[0].name)
            if isinstance(layer, InputLayer) and self._laminar_stack:
                raise InvalidArgumentError(
                    f"{who(self)}: an Input can only stand first",
                    remedy="make another model for another input",
                )
            if layer.name in taken:
                raise InvalidArgumentError(
                    f"{who(self)}: a layer named {layer.name!r} is there already",
                    remedy="make another layer, or give it another name",
                )
            taken.add(layer.name)
            self._laminar_stack.append(layer)

    def pop(self, rebuild: bool = True) -> Layer:
        """Take the top layer off."""
        if not self._laminar_stack:
            raise InvalidArgumentError(f"{who(self)} has no layers")
        layer = self._laminar_stack.pop()
        del self._laminar_symbols[len(self._laminar_stack) :]
        if rebuild:
            self._laminar_connect()
        return layer

    @property
    def _laminar_sublayers(self) -> list[Any]:
        return list(self._laminar_stack)

    def _laminar_listed_layers(self) -> list[Layer]:
        """The layers of the stack, without the Input."""
        return [layer for layer in self._laminar_stack if not isinstance(layer, InputLayer)]

    def _laminar_summarized(self) -> list[Any]:
        return list(self._laminar_listed_layers())

    def _laminar_connect_or_drop(self, added: slice) -> None:
        """Connect the stack; when a layer refuses its input, take those that were added off."""
        try:
            self._laminar_connect()
        except BaseException:
            del self._laminar_stack[added]
            del self._laminar_symbols[added.start :]
            self._laminar_connect()
            raise

    def _laminar_connect(self) -> None:
        """Call the layers that have not been called yet, when the stack begins with an Input."""
        self._laminar_network = None
        self.built = False
        symbols = self._laminar_symbols
        with nullcontext() if self._laminar_is_inside() else inside_layer(self.name):
            for layer in self._laminar_stack[len(symbols) :]:
                if symbols:
                    _check_takes_one(layer)
                    symbols.append(layer(symbols[-1]))
                elif isinstance(layer, InputLayer):
                    symbols.append(layer.output_tensor)
                elif isinstance(layer, Model) and layer._laminar_network is not None:
                    symbols.append(layer(layer._laminar_network.inputs_structure))
                else:
                    return  # built later, for the shape of the data
        if symbols:
            first = self._laminar_stack[0]
            network = first._laminar_network if isinstance(first, Model) else None
            inputs = symbols[0] if network is None else network.inputs_structure
            self._laminar_network = Network(inputs, symbols[-1], who(self))
            shapes = [tuple(t.shape) for t in flatten(inputs)]
            self._laminar_build_shapes = {"input_shape": shapes[0] if len(shapes) == 1 else shapes}
            self.built = True

    def build(self, input_shape: Shape | None = None) -> None:
        """Make the weights for inputs of `input_shape` (with the batch)."""
        if self._laminar_network is not None or not self._laminar_stack:
            return
        if input_shape is None:
            raise InvalidArgumentError(
                f"{who(self)}: the shape of the input is not known",
                remedy="begin with Input(shape=...), or build(input_shape)",
            )
        self._laminar_begin_with(InputLayer(batch_shape=tuple(input_shape)))

    def _laminar_begin_with(self, first: InputLayer) -> None:
        self._laminar_stack.insert(0, first)
        self._laminar_connect_or_drop(slice(0, 1))
        self._laminar_input_is_given = False

    def _laminar_maybe_build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.built:
            return
        if type(self).build is not Sequential.build and not self._laminar_is_building:
            self._laminar_is_building = True  # it may call this model, or `build` above it
            try:
                super(Model, self)._laminar_maybe_build(args, kwargs)
            finally:
                self._laminar_is_building = False
            if self._laminar_network is not None:
                return
        if not self._laminar_stack:
            raise InvalidArgumentError(f"{who(self)} has no layers", remedy="add(layer) first")
        x: Any = args[0] if args else None
        if not hasattr(x, "shape"):  # a structure: each layer builds itself when it is called
            self._laminar_input_is_given = False
            return
        try:
            self._laminar_begin_with(
                InputLayer(batch_shape=(None, *tuple(x.shape)[1:]), dtype=str(x.dtype))
            )
        except NotImplementedError:  # a layer whose outputs are known when it computes them
            self._laminar_input_is_given = False

    @property
    def _laminar_may_compile(self) -> bool:
        return type(self) is Sequential

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Compute the outputs; without an Input, for any shape that the layers take."""
        if self._laminar_input_is_given:
            return super().call(inputs)
        x = inputs
        for layer in self.layers:
            x = part_call(layer, (x,), {})
        return x

    def _laminar_known_outputs(self) -> Any:
        return (
            self._laminar_network_outputs(Sequential.call) if self._laminar_input_is_given else None
        )

    def get_config(self) -> dict[str, Any]:
        """The stack of layers as data."""
        config = Layer.get_config(self)
        config["layers"] = [serialize_keras_object(layer) for layer in self._laminar_stack]
        if self._laminar_build_shapes is not None:
            shape = self._laminar_build_shapes["input_shape"]
            config["build_input_shape"] = shape if isinstance(shape, dict) else list(shape)
        return config

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Self:
        """Make a model from what `get_config` gave."""
        if not isinstance(config, Mapping):
            config = {"name": None, "layers": config}
        if not {"name", "layers"} <= set(config):
            raise InvalidArgumentError(
                f"Sequential: a config has 'name' and 'layers', got {sorted(map(str, config))}",
                remedy="give what get_config() gave",
            )
        model = cls(
            name=config["name"],
            **({"trainable": config["trainable"]} if "trainable" in config else {}),
        )
        with custom_object_scope(custom_objects or {}):
            model._laminar_append(map(deserialize_keras_object, config["layers"]))
        model._laminar_connect()
        shape = config.get("build_input_shape")
        if model._laminar_network is None and shape and _is_one_shape(shape):
            model.build(tuple(shape))
        return model


def _check_takes_one(layer: Layer) -> None:
    """InvalidArgumentError for a layer that cannot be called with one tensor alone."""
    parameters = inspect.signature(layer.call).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty and p.kind in _POSITIONAL]
    if len(needed) > 1:
        raise InvalidArgumentError(
            f"Sequential: a layer takes what the one before gives, and nothing else; "
            f"call() of {type(layer).__name__} {layer.name!r} needs {', '.join(needed)}",
            remedy=f"give {', '.join(needed[1:])} a default, or use Model(inputs, outputs)",
        )


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _is_one_shape(shape: Any) -> bool:
    return isinstance(shape, list | tuple) and all(d is None or isinstance(d, int) for d in shape)
