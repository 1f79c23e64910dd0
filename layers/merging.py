"""Layers that make one tensor of several: sums, products, extremes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Unpack

from laminar import ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, TensorShape, broadcast_shapes
from laminar.naming import who
from laminar.typing import Shape

from .layer import Layer
from .layer_options import LayerOptions


def check_list(layer: Layer, shapes: Sequence[Shape]) -> None:
    """Refuse anything but a list of shapes of known rank.

    Raises:
        InvalidArgumentError: there is no list, or nothing in it.
    """
    if (
        not isinstance(shapes, list | tuple)
        or not shapes
        or not isinstance(shapes[0], list | tuple)
    ):
        raise InvalidArgumentError(
            f"{who(layer)}: expected a list of tensors, got one of shape {shapes}",
            remedy=f"call it as {layer.name}([a, b])",
        )


def check_masks(layer: Layer, inputs: Any, mask: Any) -> None:
    """InvalidArgumentError unless `mask` is None, or a list with an entry for each input."""
    if mask is None:
        return
    for name, value in (("inputs", inputs), ("mask", mask)):
        if not isinstance(value, list | tuple):
            raise InvalidArgumentError(
                f"{who(layer)}: compute_mask() takes lists, {name} is a {type(value).__name__}",
                remedy="give a mask, or None, for each of the inputs",
            )
    if len(mask) != len(inputs):
        raise InvalidArgumentError(
            f"{who(layer)}: compute_mask() got {len(mask)} masks for {len(inputs)} inputs",
            remedy="give a mask, or None, for each of the inputs",
        )


class Merge(Layer):
    """What layers that combine tensors number by number have in common. Abstract in `merge`.

    The shapes broadcast; a tensor with fewer axes gets axes of size 1 after the batch. Where all
    inputs have a mask, the output has one: a step counts where it counts in any input.
    """

    def __init__(self, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape: Sequence[Shape]) -> None:
        check_list(self, input_shape)
        rank = max(len(shape) for shape in input_shape)
        shape = TensorShape(())
        for given in input_shape:
            full = TensorShape((*given[:1], *(1,) * (rank - len(given)), *given[1:]))
            if len({s for s in (full[:1] + shape[:1]) if s is not None}) > 1:
                raise ShapeError(
                    f"{who(self)}: the batches differ: the inputs are {list(input_shape)}"
                )
            shape = broadcast_shapes(who(self), shape, full)

    def call(self, inputs: Sequence[Tensor], mask: Sequence[Tensor | None] | None = None) -> Any:
        rank = max(len(x.shape) for x in inputs)
        expanded = [_expand(x, rank, 1) for x in inputs]
        return self.merge(expanded, mask)

    def merge(self, inputs: Sequence[Any], masks: Sequence[Any] | None) -> Any:
        """The result for inputs with the same number of axes; `masks` is None when none has one."""
        raise NotImplementedError

    def compute_mask(
        self, inputs: Sequence[Tensor], mask: Sequence[Tensor | None] | None = None
    ) -> Any:
        """Where any input counts; None unless all have a mask."""
        check_masks(self, inputs, mask)
        masks = [m for m in mask or () if m is not None]
        if mask is None or len(masks) < len(mask):
            return None
        return reduce(ops.logical_or, masks)

    def get_config(self) -> dict[str, Any]:
        return super().get_config()


def _expand(x: Tensor, rank: int, axis: int) -> Any:
    """`x` with axes of size 1 inserted at `axis`, until it has `rank` of them."""
    missing = rank - len(x.shape)
    return ops.expand_dims(x, list(range(axis, axis + missing))) if missing else x


def _over(mask: Any, x: Tensor) -> Any:
    """A mask of steps with axes of size 1 for the features of `x`."""
    return None if mask is None else _expand(mask, len(x.shape), len(mask.shape))


def _fold_masked(combine: Callable[[Any, Any], Any], xs: Sequence[Any], masks: Any) -> Any:
    """`combine` of all `xs`, where a masked step leaves the value to the other operand."""
    y, y_mask = xs[0], _over(masks[0], xs[0])
    for x, given in zip(xs[1:], masks[1:], strict=True):
        mask = _over(given, x)
        if mask is not None:
            x = ops.where(mask, x, y)
        if y_mask is not None:
            y = ops.where(y_mask, y, x)
        both = mask is not None and y_mask is not None
        y_mask = ops.logical_or(y_mask, mask) if both else None
        y = combine(y, x)
    return y


class Add(Merge):
    """y = the sum of the inputs.

    Shapes:
        [x, ...], which broadcast -> y: their common shape

    Examples:
        >>> layers.Add()([np.array([1.0, 2.0]), np.array([10.0, 20.0])])
        Tensor([11., 22.], shape=(2,), dtype=float32)
    """

    def merge(self, inputs: Sequence[Any], masks: Sequence[Any] | None) -> Any:
        return reduce(ops.add, inputs)


class Subtract(Merge):
    """y = the first input minus the second.

    Shapes:
        [x1, x2], which broadcast -> y: their common shape

    Raises:
        InvalidArgumentError: there are not two inputs.

    Examples:
        >>> layers.Subtract()([np.array([5.0, 7.0]), np.array([1.0, 2.0])])
        Tensor([4., 5.], shape=(2,), dtype=float32)
    """

    def build(self, input_shape: Sequence[Shape]) -> None:
        super().build(input_shape)
        if len(input_shape) != 2:
            raise InvalidArgumentError(f"{who(self)}: expected two inputs, got {len(input_shape)}")

    def merge(self, inputs: Sequence[Any], masks: Sequence[Any] | None) -> Any:
        return ops.subtract(*inputs)


class Multiply(Merge):
    """y = the product of the inputs; a masked step counts as 1, and is 0 if all mask it.

    Shapes:
        [x, ...], which broadcast -> y: their common shape

    Examples:
        >>> layers.Multiply()([np.array([1.0, 2.0]), np.array([10.0, 20.0])])
        Tensor([10., 40.], shape=(2,), dtype=float32)
    """

    def merge(self, inputs: Sequence[Any], masks: Sequence[Any] | None) -> Any:
        if masks is None:
            return reduce(ops.multiply, inputs)
        over = [_over(m, x) for m, x in zip(masks, inputs, strict=True)]
        factors = [
            x if m is None else ops.where(m, x, 1) for m, x in zip(over, inputs, strict=True)
        ]
        y = reduce(ops.multiply, factors)
        return y if None in over else ops.where(reduce(ops.logical_or, over), y, 0)


class Average(Merge):
    """y = the mean of the inputs.

    Shapes:
        [x, ...], which broadcast -> y: their common shape

    Examples:
        >>> layers.Average()([np.array([1.0, 2.0]), np.array([3.0, 6.0])])
        Tensor([2., 4.], shape=(2,), dtype=float32)
    """

    def merge(self, inputs: Sequence[Any], masks: Sequence[Any] | None) -> Any:
        return reduce(ops.add, inputs) / len(inputs)


class Maximum(Merge):
    """y = the largest of the inputs; a masked step counts only if all mask it.

    Shapes:
        [x, ...], which broadcast -> y: their common shape

    Examples:
        >>> layers.Maximum()([np.array([1.0, 5.0]), np.array([4.0, 2.0])])
        Tensor([4., 5.], shape=(2,), dtype=float32)
    """

    def merge(self, inputs: Sequence[Any], masks: Sequence[Any] | None) -> Any:
        if masks is None:
            return reduce(ops.maximum, inputs)
        return _fold_masked(ops.maximum, inputs, masks)


class Minimum(Merge):
    """y = the smallest of the inputs; a masked step counts only if all mask it.

    Shapes:
        [x, ...], which broadcast -> y: their common shape

    Examples:
        >>> layers.Minimum()([np.array([1.0, 5.0]), np.array([4.0, 2.0])])
        Tensor([1., 2.], shape=(2,), dtype=float32)
    """

    def merge(self, inputs: Sequence[Any], masks: Sequence[Any] | None) -> Any:
        if masks is None:
            return reduce(ops.minimum, inputs)
        return _fold_masked(ops.minimum, inputs, masks)


def add(inputs: Sequence[Any], **kwargs: Unpack[LayerOptions]) -> Any:
    """The sum of the inputs: `Add(**kwargs)(inputs)`.

    Args:
        inputs: a list of tensors, of shapes that broadcast against each other.

    Returns:
        a tensor of the common shape: the sum.

    Examples:
        >>> layers.add([np.array([1.0, 2.0]), np.array([10.0, 20.0])])
        Tensor([11., 22.], shape=(2,), dtype=float32)
    """
    return Add(**kwargs)(inputs)


def subtract(inputs: Sequence[Any], **kwargs: Unpack[LayerOptions]) -> Any:
    """The first input minus the second: `Subtract(**kwargs)(inputs)`.

    Args:
        inputs: two tensors, of shapes that broadcast against each other.

    Returns:
        a tensor of the common shape: the difference.

    Examples:
        >>> layers.subtract([np.array([5.0, 7.0]), np.array([1.0, 2.0])])
        Tensor([4., 5.], shape=(2,), dtype=float32)
    """
    return Subtract(**kwargs)(inputs)


def multiply(inputs: Sequence[Any], **kwargs: Unpack[LayerOptions]) -> Any:
    """The product of the inputs: `Multiply(**kwargs)(inputs)`.

    Args:
        inputs: a list of tensors, of shapes that broadcast against each other.

    Returns:
        a tensor of the common shape: the product.

    Examples:
        >>> layers.multiply([np.array([1.0, 2.0]), np.array([10.0, 20.0])])
        Tensor([10., 40.], shape=(2,), dtype=float32)
    """
    return Multiply(**kwargs)(inputs)


def average(inputs: Sequence[Any], **kwargs: Unpack[LayerOptions]) -> Any:
    """The mean of the inputs: `Average(**kwargs)(inputs)`.

    Args:
        inputs: a list of tensors, of shapes that broadcast against each other.

    Returns:
        a tensor of the common shape: the mean.

    Examples:
        >>> layers.average([np.array([1.0, 2.0]), np.array([3.0, 6.0])])
        Tensor([2., 4.], shape=(2,), dtype=float32)
    """
    return Average(**kwargs)(inputs)


def maximum(inputs: Sequence[Any], **kwargs: Unpack[LayerOptions]) -> Any:
    """The largest of the inputs: `Maximum(**kwargs)(inputs)`.

    Args:
        inputs: a list of tensors, of shapes that broadcast against each other.

    Returns:
        a tensor of the common shape: the greatest of each.

    Examples:
        >>> layers.maximum([np.array([1.0, 5.0]), np.array([4.0, 2.0])])
        Tensor([4., 5.], shape=(2,), dtype=float32)
    """
    return Maximum(**kwargs)(inputs)


def minimum(inputs: Sequence[Any], **kwargs: Unpack[LayerOptions]) -> Any:
    """The smallest of the inputs: `Minimum(**kwargs)(inputs)`.

    Args:
        inputs: a list of tensors, of shapes that broadcast against each other.

    Returns:
        a tensor of the common shape: the least of each.

    Examples:
        >>> layers.minimum([np.array([1.0, 5.0]), np.array([4.0, 2.0])])
        Tensor([1., 2.], shape=(2,), dtype=float32)
    """
    return Minimum(**kwargs)(inputs)
