"""AddN: the sum of any number of tensors of one shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import NUMERIC, Array, OpView, Tensor, TensorShape, TensorSpec
from ..core.convert import convert_to_tensor
from ..core.op_def import Grads
from ..core.registry import define


@define("AddN", dtypes=NUMERIC)
def _add_n(*xs: TensorSpec) -> TensorSpec:
    """xs[0] + xs[1] + ..., added in this order; all have one shape."""
    if not xs:
        raise InvalidArgumentError("AddN: expected at least one tensor, got none")
    shape = TensorShape(None)
    for x in xs:
        if not shape.is_compatible_with(x.shape):
            raise ShapeError(
                f"AddN: the shapes differ: {', '.join(str(x.shape) for x in xs)}",
                remedy="use +, which broadcasts",
            )
        shape = shape.merge_with(x.shape)
    return TensorSpec(shape, xs[0].dtype)


@_add_n.reference
def _add_n_kernel(xp: Any, *xs: Array) -> Array:
    if any(x.shape != xs[0].shape for x in xs):
        raise ShapeError(f"AddN: the shapes differ: {', '.join(str(x.shape) for x in xs)}")
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


@_add_n.grad
def _add_n_grad(op: OpView, dy: Tensor) -> Grads:
    return [dy] * len(op.inputs)


def add_n(inputs: Sequence[Any], name: str | None = None) -> Tensor:
    """The sum of tensors of one shape and element type, added in order.

    Args:
        inputs: the tensors, or one alone.
        name: of the operation.

    Raises:
        InvalidArgumentError: there are none.
        ShapeError: their shapes differ: nothing is broadcast.
        DTypeError: they differ in element type.

    Examples:
        >>> engine.add_n([engine.constant([1.0, 2.0]), engine.constant([10.0, 20.0])])
        Tensor([11., 22.], shape=(2,), dtype=float32)
    """
    values = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    found = [getattr(v, "dtype", None) for v in values]
    common = next((d for d in found if d is not None), None)  # what Python's numbers become
    xs = [
        convert_to_tensor(v, common if d is None else None)
        for v, d in zip(values, found, strict=True)
    ]
    return _add_n(*xs, name=name)
