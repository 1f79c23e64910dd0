"""Layers that lay the numbers of each example out in another way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops
from laminar.config import standardize_data_format
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor
from laminar.naming import who
from laminar.typing import DataFormat

from .input_spec import InputSpec
from .layer import Layer
from .layer_options import LayerOptions
from .options import config_of, whole


class Flatten(Layer):
    """Each example as one row of numbers.

    Args:
        data_format: "channels_last" or "channels_first" (the channels are moved last before), by
            default the global one.

    Shapes:
        x: (batch, ...) -> y: (batch, numbers in an example); (batch,) -> (batch, 1)

    Examples:
        >>> layers.Flatten()(np.zeros((2, 3, 4))).shape
        (2, 12)
    """

    def __init__(
        self, data_format: DataFormat | None = None, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**kwargs)
        self.data_format = standardize_data_format(data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Tensor) -> Any:
        if self.data_format == "channels_first" and len(inputs.shape) > 2:
            inputs = ops.moveaxis(inputs, 1, -1)
        sizes: Any = inputs.shape[1:]
        batch = ops.shape(inputs)[0]
        return ops.reshape(inputs, (batch, -1 if None in sizes else math.prod(sizes)))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "data_format")


class Reshape(Layer):
    """The numbers of each example, in order, in another shape.

    Args:
        target_shape: of one example, without the batch; one size may be -1, for what is left.

    Shapes:
        x: (batch, ...) -> y: (batch, *target_shape)

    Raises:
        InvalidArgumentError: a size below -1, or several of -1.
        ShapeError: the target has another number of places than an example has numbers.

    Examples:
        >>> layers.Reshape((-1, 2))(np.zeros((3, 8))).shape
        (3, 4, 2)
    """

    _laminar_stateless = True

    def __init__(self, target_shape: Sequence[int], **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        self.target_shape = tuple(whole(self, "target_shape", n, least=-1) for n in target_shape)
        if self.target_shape.count(-1) > 1:
            raise InvalidArgumentError(
                f"{who(self)}: target_shape may have one size of -1, got {self.target_shape}",
                remedy="give all sizes but one",
            )

    def call(self, inputs: Tensor) -> Any:
        shape = self._resolved(tuple(inputs.shape[1:]))
        return ops.reshape(inputs, (ops.shape(inputs)[0], *shape))

    def _resolved(self, sizes: tuple[int | None, ...]) -> tuple[int, ...]:
        """The target shape with a number for -1, where the shape of an example is known."""
        if None in sizes:
            return self.target_shape
        count = math.prod(size for size in sizes if size is not None)
        known = math.prod(size for size in self.target_shape if size != -1)
        if -1 not in self.target_shape:
            fits = count == known
        else:
            fits = count % known == 0 if known else count == 0
        if not fits:
            raise ShapeError(
                f"{who(self)}: an example of shape {sizes} has {count} numbers, which do not fill "
                f"target_shape {self.target_shape}",
                remedy="choose sizes whose product is that number; leave the batch out",
            )
        rest = count // known if known else 0
        return tuple(rest if size == -1 else size for size in self.target_shape)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "target_shape")


class Permute(Layer):
    """The axes of each example in another order.

    Args:
        dims: for each axis of the output, which axis of the input it is; they count from 1, as the
            batch is axis 0 and stays.

    Shapes:
        x: (batch, d1, d2, ...) -> y: (batch, d[dims[0]], d[dims[1]], ...)

    Raises:
        InvalidArgumentError: `dims` is no permutation of 1, 2, ...

    Examples:
        >>> layers.Permute((2, 1))(np.zeros((2, 3, 4))).shape
        (2, 4, 3)
    """

    def __init__(self, dims: Sequence[int], **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise InvalidArgumentError(
                f"{who(self)}: dims must be the numbers from 1 to {len(self.dims)} in some order, "
                f"got {self.dims}",
                remedy="axis 0 is the batch: it stays, and is left out",
            )
        self.input_spec = InputSpec(ndim=len(self.dims) + 1)

    def call(self, inputs: Tensor) -> Any:
        return ops.transpose(inputs, (0, *self.dims))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "dims")


class RepeatVector(Layer):
    """Each example `n` times in a row.

    Args:
        n: how often.

    Shapes:
        x: (batch, features) -> y: (batch, n, features)

    Examples:
        >>> layers.RepeatVector(3)(np.array([[1.0, 2.0]])).shape
        (1, 3, 2)
    """

    def __init__(self, n: int, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        self.n = whole(self, "n", n)
        self.input_spec = InputSpec(ndim=2)

    def call(self, inputs: Tensor) -> Any:
        return ops.repeat(ops.expand_dims(inputs, 1), self.n, axis=1)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "n")
