"""Placeholders that have a value where none is fed."""

from __future__ import annotations

from typing import Any

from ...errors import ShapeError
from ...graph import Array, OpView, Tensor, TensorShape, TensorSpec
from .convert import convert_to_tensor
from .op_def import Grads, KernelContext
from .registry import define
from .traits import Traits, Work


@define("PlaceholderWithDefault", traits=Traits(work=Work.NONE))
def _placeholder_with_default(default: TensorSpec, *, shape: TensorShape) -> TensorSpec:
    """`default`, where no other value of `shape` is fed."""
    if not default.shape.is_compatible_with(shape):
        raise ShapeError(f"placeholder_with_default: the default {default} is not of {shape}")
    return TensorSpec(shape, default.dtype)


@_placeholder_with_default.effect  # so that nothing takes the default for its value
def _placeholder_with_default_kernel(
    context: KernelContext, default: Array, *, shape: TensorShape
) -> Array:
    return default


@_placeholder_with_default.grad
def _placeholder_with_default_grad(op: OpView, dy: Tensor) -> Grads:
    return (dy,)


def placeholder_with_default(default: Any, shape: Any, name: str | None = None) -> Tensor:
    """A tensor that may be fed; its value is `default` where it is not.

    Args:
        default: a tensor or value.
        shape: of what may be fed, None for unknown dimensions.
        name: of the operation.

    Raises:
        ShapeError: the default has no such shape.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     x = engine.placeholder_with_default(1.0, [])
        ...     session.run(x * 2), session.run(x * 2, {x: 5.0})
        (np.float32(2.0), np.float32(10.0))
    """
    return _placeholder_with_default(
        convert_to_tensor(default), name=name, shape=TensorShape(shape)
    )
