"""TimeDistributed: a layer applied to each step of a sequence."""

from __future__ import annotations

from typing import Any, Unpack

from laminar import ops
from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor, TensorShape
from laminar.naming import who
from laminar.tree import map_structure
from laminar.typing import Shape

from .layer import Layer
from .layer_options import LayerOptions
from .wrapper import Wrapper


class TimeDistributed(Wrapper):
    """y(t) = layer(x(t)) for each step t.

    All steps are computed at once, as one larger batch, but for layers that learn from the
    statistics of a batch: for these, in training, each step is a batch, as in Keras.

    Args:
        layer: the layer.

    Shapes:
        x: (batch, steps, ...) -> y: (batch, steps, ...), with what the layer makes of (batch, ...)

    Raises:
        InvalidArgumentError: `layer` is no layer.
        ShapeError: an input or a mask without steps.

    Examples:
        >>> layers.TimeDistributed(layers.Dense(4))(np.zeros((2, 5, 3))).shape
        (2, 5, 4)
    """

    def __init__(self, layer: Layer, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(layer, **kwargs)
        self.supports_masking = True

    def build(self, input_shape: Shape | None = None) -> None:
        if input_shape is None or len(input_shape) < 3:
            raise ShapeError(
                f"{who(self)}: expected an input (batch, steps, ...) of rank 3 or more, "
                f"got the shape {input_shape}"
            )
        if not self.layer.built:
            self.layer.build((input_shape[0], *input_shape[2:]))

    def call(self, inputs: Tensor, training: bool | None = None, mask: Any = None) -> Any:
        if mask is not None:
            self._check_mask(inputs.shape, mask.shape)
        takes = self.layer._laminar_call_parameters
        options: dict[str, Any] = {"training": training} if "training" in takes else {}
        x = inputs if mask is None or "mask" not in takes else (inputs, mask)
        if training and _learns_from_batches(self.layer):
            y = ops.map(lambda item: self._one(item, options), map_structure(_swapped, x))
            return map_structure(_swapped, y)
        sizes = ops.shape(inputs)[:2]
        flat = map_structure(lambda t: ops.reshape(t, (-1, *ops.shape(t)[2:])), x)
        y = self._one(flat, options)
        return map_structure(lambda t: ops.reshape(t, (*sizes, *ops.shape(t)[1:])), y)

    def _check_mask(self, shape: TensorShape, mask: TensorShape) -> None:
        if len(mask) < 2 or not TensorShape(mask[:2]).is_compatible_with(shape[:2]):
            raise ShapeError(
                f"{who(self)}: expected a mask {tuple(shape[:2])} or (batch, steps, ...), for an "
                f"input of shape {tuple(shape)}, got the shape {tuple(mask)}",
                remedy="give a mask that says of each step whether it counts",
            )

    def _one(self, item: Any, options: dict[str, Any]) -> Any:
        if isinstance(item, tuple):
            return self.layer.call(item[0], mask=item[1], **options)
        return self.layer.call(item, **options)


def _swapped(x: Any) -> Any:
    return ops.swapaxes(x, 0, 1)


def _learns_from_batches(layer: Layer) -> bool:
    """Whether there are weights that training changes though they are not trainable."""
    return bool(layer.non_trainable_weights) and layer.trainable
