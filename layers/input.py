"""Input: where a functional model begins."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from laminar.dtype_policies import PolicyLike
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor, TensorShape, as_dtype
from laminar.typing import DTypeLike, Shape

from .layer import Layer
from .symbolic import KerasTensor, Node


class InputLayer(Layer):
    """The layer behind `Input`: gives what the model is fed.

    Args:
        shape: dimensions of one example, without the batch; None for unknown ones.
        batch_size: the batch dimension, unknown by default.
        dtype: element type, "float32" by default.
        sparse, ragged: refused: layers take dense tensors.
        batch_shape: shape with the batch, instead of `shape`.
        input_tensor: a symbolic tensor to take shape and dtype from.
        optional: whether None may be fed.
        name: of the input; the key when data comes in a dict.

    Shapes:
        y: `batch_shape`, or (batch_size, *shape)

    Raises:
        InvalidArgumentError: no shape, sparse or ragged data, or what `input_tensor` is not.

    Examples:
        >>> layers.InputLayer(shape=(784,)).output.shape
        (None, 784)
    """

    def __init__(
        self,
        shape: Shape | None = None,
        batch_size: int | None = None,
        dtype: PolicyLike | None = None,
        sparse: bool | None = None,
        ragged: bool | None = None,
        batch_shape: Shape | None = None,
        input_tensor: KerasTensor | None = None,
        optional: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name or None)
        if "input_shape" in kwargs:
            warnings.warn(f"Input {self.name!r}: input_shape is called shape now", stacklevel=2)
            shape = kwargs.pop("input_shape")
        if sparse or ragged:
            raise InvalidArgumentError(
                f"Input {self.name!r}: sparse and ragged inputs are not supported",
                remedy="pad or densify the data",
            )
        if input_tensor is not None:
            if not isinstance(input_tensor, KerasTensor | Tensor):
                raise InvalidArgumentError(
                    f"Input {self.name!r}: tensor must be a symbolic tensor, got {input_tensor!r}",
                    remedy="give the output of another Input or of a layer",
                )
            _check_fits(self.name, input_tensor, batch_size, shape, batch_shape, dtype)
            batch_shape, dtype = input_tensor.shape, input_tensor.dtype
        elif batch_shape is not None and (shape is not None or batch_size is not None):
            raise InvalidArgumentError(
                f"Input {self.name!r}: give batch_shape, or shape and batch_size, not both; "
                f"got {batch_shape}, {shape} and {batch_size}"
            )
        elif batch_shape is None:
            if shape is None:
                raise InvalidArgumentError(
                    f"Input {self.name!r}: the shape is missing",
                    remedy="Input(shape=(28, 28, 1)), without the batch",
                )
            if not isinstance(shape, Iterable) or isinstance(shape, str | bytes | Mapping):
                raise InvalidArgumentError(
                    f"Input {self.name!r}: a shape is a tuple, got {shape!r}",
                    remedy=f"write shape=({shape if isinstance(shape, int) else 28},)",
                )
            batch_shape = (batch_size, *shape)
        self.batch_shape = tuple(TensorShape(batch_shape))
        self.optional = optional
        self._dtype = as_dtype(dtype or "float32")
        self.built = True
        # A tensor that nothing made becomes the input itself: what was computed from it holds.
        if isinstance(input_tensor, KerasTensor) and not input_tensor.has_history:
            output = input_tensor
        else:
            output = KerasTensor(self.batch_shape, self._dtype, name=self.name)
        Node(self, (), {}, output)

    @property
    def dtype(self) -> str:
        return str(self._dtype)

    @property
    def output_tensor(self) -> KerasTensor:
        """The symbolic tensor that it gives."""
        return self.inbound_nodes[0].outputs[0]

    def call(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: an input is fed, not computed."""

    def get_config(self) -> dict[str, Any]:
        return {
            "batch_shape": list(self.batch_shape),
            "dtype": self.dtype,
            "sparse": False,
            "ragged": False,
            "name": self.name,
            "optional": self.optional,
        }

    def get_build_config(self) -> None:
        """An input has none."""


def _check_fits(
    name: str,
    tensor: KerasTensor | Tensor,
    batch_size: int | None,
    shape: Shape | None,
    batch_shape: Shape | None,
    dtype: PolicyLike | None,
) -> None:
    """InvalidArgumentError if `tensor`, which has a shape and a dtype, is said to have others."""
    found = tuple(tensor.shape)
    wrong = {
        "batch_size": (batch_size, batch_size in (None, *found[:1])),
        "shape": (shape, shape is None or tuple(TensorShape(shape)) == found[1:]),
        "batch_shape": (batch_shape, batch_shape is None or TensorShape(batch_shape) == found),
        "dtype": (dtype, dtype is None or as_dtype(dtype) == tensor.dtype),
    }
    for argument, (given, fits) in wrong.items():
        if not fits:
            raise InvalidArgumentError(
                f"Input {name!r}: {argument} is {given!r}, the tensor is {tensor!r}",
                remedy=f"leave {argument} out: the tensor has it",
            )


def Input(  # noqa: N802  # Keras's name
    shape: Sequence[int | None] | None = None,
    batch_size: int | None = None,
    dtype: DTypeLike | None = None,
    sparse: bool | None = None,
    ragged: bool | None = None,
    batch_shape: Sequence[int | None] | None = None,
    name: str | None = None,
    tensor: KerasTensor | None = None,
    optional: bool = False,
) -> KerasTensor:
    """A symbolic tensor to build a functional model from.

    Args:
        shape: dimensions of one example, without the batch; None for unknown ones.
        batch_size: the batch dimension, unknown by default.
        dtype: element type, "float32" by default.
        batch_shape: shape with the batch, instead of `shape`.
        name: of the input; the key when data comes in a dict.
        tensor: a symbolic tensor to take shape and dtype from.
        optional: whether None may be fed.

    Raises:
        InvalidArgumentError: no shape, or another one, or another dtype, than that of `tensor`.

    Examples:
        >>> x = layers.Input((784,), name="pixels")
        >>> x
        <KerasTensor shape=(None, 784), dtype=float32, name=pixels>
        >>> model = laminar.Model(x, layers.Dense(10)(x))
        >>> model.output_shape
        (None, 10)
    """
    layer = InputLayer(
        shape=shape,
        batch_size=batch_size,
        dtype=dtype,
        sparse=sparse,
        ragged=ragged,
        batch_shape=batch_shape,
        input_tensor=tensor,
        optional=optional,
        name=name,
    )
    return layer.output_tensor
