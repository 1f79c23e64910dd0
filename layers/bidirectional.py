"""Bidirectional: a sequence read from both ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, Unpack

from laminar import ops
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.naming import who
from laminar.registration import in_memory
from laminar.serialization import deserialize_keras_object, serialize_keras_object
from laminar.tree import flatten
from laminar.typing import Shape, TensorLike

from .layer import Layer, refuse_layer
from .layer_options import LayerOptions

_MODES = ("concat", "sum", "mul", "ave", None)


class NoStateError(FailedPreconditionError, AttributeError):
    """A layer that is not stateful has no state."""


class Bidirectional(Layer):
    """A recurrent layer, and a copy of it that reads sequences from their end.

    Args:
        layer: the recurrent layer; it serves as a pattern for both directions.
        merge_mode: what is made of the two outputs: "concat" along the last axis, "sum", "mul" (the
            product), "ave" (the mean), or None for both.
        weights: first values of the weights, those of `layer` before those of the other direction.
        backward_layer: the layer of the other direction, instead of a copy.

    Shapes:
        sequences: (batch, steps, features); initial_state: the states of both directions, in a list
        -> (batch, 2 * units) with "concat", or (batch, steps, 2 * units); with return_state also
        the states of both directions

    Raises:
        InvalidArgumentError: something that is no recurrent layer, another mode, or two layers of
            one direction or of different kinds of outputs.

    Source: Schuster and Paliwal, "Bidirectional recurrent neural networks", 1997.

    Examples:
        >>> layers.Bidirectional(layers.LSTM(4))(np.zeros((2, 5, 3))).shape
        (2, 8)
    """

    def __init__(
        self,
        layer: Any,  # with the attributes of RNN
        merge_mode: str | None = "concat",
        weights: Sequence[TensorLike] | None = None,
        backward_layer: Any = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        for given in (layer, backward_layer):
            if given is not None and not isinstance(given, Layer):
                refuse_layer(given, who(self))
        if not hasattr(layer, "go_backwards"):
            raise InvalidArgumentError(
                f"{who(self)}: expected a recurrent layer, got {layer!r}",
                remedy="pass LSTM(units), GRU(units), RNN(cell) or the like",
            )
        if merge_mode not in _MODES:
            raise InvalidArgumentError(
                f"{who(self)}: merge_mode must be one of {', '.join(map(repr, _MODES))}, "
                f"got {merge_mode!r}"
            )
        self.forward_layer = _copy(layer, "forward")
        self.backward_layer = backward_layer or _copy(
            layer, "backward", go_backwards=not layer.go_backwards
        )
        self._check_directions()
        self.merge_mode = merge_mode
        self.return_sequences = layer.return_sequences
        self.return_state = layer.return_state
        self.stateful = layer.stateful
        # where both are put together, a masked step is the last one of one of them
        for one in (self.forward_layer, self.backward_layer):
            one.zero_output_for_mask = one.return_sequences
        self._first_weights = weights
        self.supports_masking = True
        self.input_spec = layer.input_spec

    def _check_directions(self) -> None:
        forward, backward = self.forward_layer, self.backward_layer
        if forward.go_backwards == backward.go_backwards:
            raise InvalidArgumentError(
                f"{who(self)}: both layers have go_backwards={forward.go_backwards}",
                remedy="give one of them go_backwards=True",
            )
        for name in ("stateful", "return_sequences", "return_state"):
            first, second = getattr(forward, name), getattr(backward, name)
            if first != second:
                raise InvalidArgumentError(
                    f"{who(self)}: {name} is {first} in the forward layer, {second} in the "
                    "backward layer",
                    remedy="give both the same",
                )

    def build(self, sequences_shape: Shape, initial_state_shape: Shape | None = None) -> None:
        for layer in (self.forward_layer, self.backward_layer):
            if not layer.built:
                layer.build(sequences_shape)
        if self._first_weights is not None:
            half = len(self._first_weights) // 2
            self.forward_layer.set_weights(self._first_weights[:half])
            self.backward_layer.set_weights(self._first_weights[half:])

    def call(
        self,
        sequences: Tensor,
        initial_state: Any = None,
        mask: Any = None,
        training: bool | None = None,
    ) -> Any:
        half = 0 if initial_state is None else len(initial_state) // 2
        found = []
        for layer, part in (
            (self.forward_layer, slice(None, half)),
            (self.backward_layer, slice(half, None)),
        ):
            state = None if initial_state is None else list(initial_state[part])
            found.append(layer(sequences, initial_state=state, mask=mask, training=training))
        outputs = [y[0] if self.return_state else y for y in found]
        states = [state for y in found for state in y[1:]] if self.return_state else []
        y = self._merged(*(ops.cast(y, self.compute_dtype) for y in outputs))
        if not self.return_state:
            return y
        return (*y, *states) if self.merge_mode is None else (y, *states)

    def _merged(self, forward: Any, backward: Any) -> Any:
        if self.return_sequences:
            backward = ops.flip(backward, axis=1)
        if self.merge_mode == "concat":
            return ops.concatenate([forward, backward], axis=-1)
        if self.merge_mode == "mul":
            return forward * backward
        if self.merge_mode is None:
            return forward, backward
        total = forward + backward
        return total if self.merge_mode == "sum" else total / 2

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the sequences, where sequences are given."""
        steps = flatten(mask)[0] if self.return_sequences else None
        masks = [steps] if self.merge_mode is not None else [steps, steps]
        if self.return_state:
            sizes = [*self.forward_layer.state_size, *self.backward_layer.state_size]
            masks += [None] * len(sizes)
        return masks if len(masks) > 1 else steps

    @property
    def states(self) -> Any:
        """The states of both directions, in a stateful layer; else None."""
        forward, backward = self.forward_layer.states, self.backward_layer.states
        return None if forward is None or backward is None else (*forward, *backward)

    def reset_state(self) -> None:
        """Begin the next batch with zeros.

        Raises:
            NoStateError: the layer is not stateful.
        """
        if not self.stateful:
            raise NoStateError(
                f"{who(self)}: there is no state to reset",
                remedy="make the layer inside with stateful=True",
            )
        self.forward_layer.reset_state()
        self.backward_layer.reset_state()

    reset_states = reset_state

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "merge_mode": self.merge_mode,
            "layer": serialize_keras_object(self.forward_layer),
            "backward_layer": serialize_keras_object(self.backward_layer),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        """Make a layer from what `get_config` gave."""
        layers = {
            name: deserialize_keras_object(config[name], custom_objects)
            for name in ("layer", "backward_layer")
            if config.get(name) is not None
        }
        return super().from_config({**config, **layers})


def _copy(layer: Any, direction: str, **changes: Any) -> Any:
    """A layer like `layer`, with weights of its own, named for its direction."""
    with in_memory():
        config = layer.get_config() | changes
        config["name"] = f"{direction}_{layer.name.removeprefix(f'{direction}_')}"
        found = type(layer).from_config(config)
    if hasattr(layer, "use_cudnn"):  # no part of the config
        found.use_cudnn = layer.use_cudnn
    if layer.built:
        found.build_from_config(layer.get_build_config())
    return found
