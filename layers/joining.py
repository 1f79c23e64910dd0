"""Concatenate and Dot: tensors joined along an axis, or multiplied along one."""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import reduce
from typing import Any, Unpack

from laminar import ops
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor
from laminar.naming import who
from laminar.typing import Shape

from .layer import Layer
from .layer_options import LayerOptions
from .merging import check_list, check_masks
from .options import config_of


class Concatenate(Layer):
    """The inputs one after the other along an axis.

    Args:
        axis: along which.

    Shapes:
        [x, ...], of the same shape but for `axis` -> y: the sizes along `axis` add up

    Raises:
        ShapeError: the shapes differ along another axis.

    Examples:
        >>> layers.Concatenate()([np.array([[1.0]]), np.array([[2.0, 3.0]])])
        Tensor([[1., 2., 3.]], shape=(1, 3), dtype=float32)
    """

    def __init__(self, axis: int = -1, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        self.axis = axis
        self.supports_masking = True

    def build(self, input_shape: Sequence[Shape]) -> None:
        check_list(self, input_shape)
        others = [list(shape) for shape in input_shape]
        for shape in others:
            if not -len(shape) <= self.axis < len(shape):
                raise ShapeError(
                    f"{who(self)}: axis {self.axis} does not exist: the inputs are "
                    f"{list(input_shape)}"
                )
            shape[self.axis] = None
        agree = len({len(shape) for shape in others}) == 1 and all(
            len({size for size in sizes if size is not None}) <= 1
            for sizes in zip(*others, strict=True)
        )
        if not agree:
            raise ShapeError(
                f"{who(self)}: the inputs must have the same shape but for axis {self.axis}, got "
                f"{list(input_shape)}"
            )

    def call(self, inputs: Sequence[Tensor]) -> Any:
        return ops.concatenate(inputs, axis=self.axis)

    def compute_mask(
        self, inputs: Sequence[Tensor], mask: Sequence[Tensor | None] | None = None
    ) -> Any:
        """The masks joined as the inputs are; an input without one counts everywhere."""
        check_masks(self, inputs, mask)
        if mask is None or all(m is None for m in mask):
            return None
        rank = next(len(m.shape) for m in mask if m is not None)
        masks = [
            ops.ones(ops.shape(x)[:rank], dtype="bool") if m is None else m
            for x, m in zip(inputs, mask, strict=True)
        ]
        axis = self.axis % len(inputs[0].shape)
        if axis < rank:
            return ops.concatenate(masks, axis=axis)
        return reduce(ops.logical_or, masks)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "axis")


class Dot(Layer):
    """For each example, the sum over an axis of the product of two tensors.

    Args:
        axes: the axis to sum over, or one for each input; not the batch, axis 0.
        normalize: whether the inputs are divided by their length along the axes before, which gives
            the cosine of the angle between them.

    Shapes:
        [x1, x2] -> y: (batch, other axes of x1, other axes of x2), or (batch, 1) if there are none

    Raises:
        DTypeError: the axes are something else than one or two whole numbers.
        InvalidArgumentError: there are not two inputs.
        ShapeError: the sizes along the axes differ.

    Examples:
        >>> layers.Dot(axes=1)([np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])])
        Tensor([[11.]], shape=(1, 1), dtype=float32)
    """

    def __init__(
        self, axes: int | Sequence[int], normalize: bool = False, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**kwargs)
        given = [axes] if isinstance(axes, int) else axes
        if not (
            isinstance(given, list | tuple)
            and len(given) == (1 if isinstance(axes, int) else 2)
            and all(isinstance(a, int) for a in given)
        ):
            raise DTypeError(
                f"{who(self)}: axes must be a whole number, or two of them, got {axes!r}"
            )
        if 0 in given:
            raise InvalidArgumentError(
                f"{who(self)}: axes must not contain the batch (axis 0), got {axes!r}",
                remedy="sum over another axis",
            )
        self.axes = axes
        self.normalize = normalize
        self.supports_masking = True

    def build(self, input_shape: Sequence[Shape]) -> None:
        check_list(self, input_shape)
        if len(input_shape) != 2:
            raise InvalidArgumentError(f"{who(self)}: expected two inputs, got {len(input_shape)}")
        first, second = input_shape
        axis_1, axis_2 = self._axes(len(first), len(second))
        if not (0 < axis_1 < len(first) and 0 < axis_2 < len(second)):
            raise ShapeError(
                f"{who(self)}: axes {self.axes} do not exist in inputs of shapes {first}, {second}"
            )
        sizes = first[axis_1], second[axis_2]
        if None not in sizes and sizes[0] != sizes[1]:
            raise ShapeError(
                f"{who(self)}: the sizes along axes {self.axes} differ ({sizes[0]} and "
                f"{sizes[1]}): the inputs are {tuple(first)} and {tuple(second)}"
            )

    def _axes(self, rank_1: int, rank_2: int) -> tuple[int, int]:
        axis_1, axis_2 = (self.axes, self.axes) if isinstance(self.axes, int) else self.axes
        return (
            axis_1 + rank_1 if axis_1 < 0 else axis_1,
            axis_2 + rank_2 if axis_2 < 0 else axis_2,
        )

    def call(self, inputs: Sequence[Tensor]) -> Any:
        x1, x2 = inputs
        axis_1, axis_2 = self._axes(len(x1.shape), len(x2.shape))
        if self.normalize:
            x1, x2 = ops.normalize(x1, axis=axis_1), ops.normalize(x2, axis=axis_2)
        letters = iter(string.ascii_lowercase)
        batch, summed = next(letters), next(letters)
        names_1, names_2 = (
            [batch] + [summed if i == axis else next(letters) for i in range(1, len(x.shape))]
            for x, axis in ((x1, axis_1), (x2, axis_2))
        )
        kept = [n for n in (*names_1, *names_2) if n not in (batch, summed)]
        equation = f"{''.join(names_1)},{''.join(names_2)}->{''.join([batch, *kept])}"
        y = ops.einsum(equation, x1, x2)
        return y if kept else ops.expand_dims(y, -1)

    def compute_mask(
        self, inputs: Sequence[Tensor], mask: Sequence[Tensor | None] | None = None
    ) -> None:
        """No mask: steps may be summed over."""

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "axes", "normalize")


def concatenate(inputs: Sequence[Any], axis: int = -1, **kwargs: Unpack[LayerOptions]) -> Any:
    """The inputs one after the other along `axis`: `Concatenate(axis, **kwargs)(inputs)`.

    Args:
        inputs: a list of tensors, alike but for the size of one axis.
        axis: along which they are joined.

    Returns:
        a tensor whose size along the axis is the sum of theirs.

    Examples:
        >>> layers.concatenate([np.array([[1.0]]), np.array([[2.0, 3.0]])])
        Tensor([[1., 2., 3.]], shape=(1, 3), dtype=float32)
    """
    return Concatenate(axis=axis, **kwargs)(inputs)


def dot(
    inputs: Sequence[Any], axes: int | Sequence[int] = -1, **kwargs: Unpack[LayerOptions]
) -> Any:
    """Two tensors multiplied along axes: `Dot(axes, **kwargs)(inputs)`.

    Args:
        inputs: two tensors.
        axes: of the sums: one axis for both, or one for each.

    Returns:
        a tensor with the other axes of the first, then those of the second without the batch.

    Examples:
        >>> layers.dot([np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])], axes=1)
        Tensor([[11.]], shape=(1, 1), dtype=float32)
    """
    return Dot(axes=axes, **kwargs)(inputs)
