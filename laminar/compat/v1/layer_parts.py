"""What layers that are functions share: their variables, and what is done with their outputs."""

from __future__ import annotations

from typing import Any

from laminar.engine.errors import ShapeError
from laminar.engine.graph import GraphTensor, Tensor
from laminar.engine.state import GraphKeys
from laminar.engine.state.variable_scope import VariableScope

from . import neural
from .variables import get_variable, variable_scope


def scope(name: str | None, default: str, reuse: Any) -> variable_scope:
    """Where the variables of a layer are."""
    given: str | VariableScope | None = name
    return variable_scope(given, None if name else default, reuse=reuse if name else None)


def known_size(who: str, x: Tensor, axis: int) -> int:
    """The size of an axis that sizes variables; ShapeError where it is unknown."""
    found = x.shape[axis] if x.shape.rank else None
    if found is None:
        raise ShapeError(
            f"{who}: axis {axis} of the input sizes its variables, but it is unknown: {x.spec}",
            remedy="use set_shape, or reshape to a known size",
        )
    return int(found)


def with_bias(
    x: Tensor,
    use_bias: bool,
    size: int,
    initializer: Any,
    regularizer: Any,
    trainable: bool,
    constraint: Any,
    *,
    channels_first: bool = False,
) -> Tensor:
    """`x` + the variable "bias" of the scope, along the channels."""
    if not use_bias:
        return x
    bias = get_variable(
        "bias", [size], x.dtype, initializer, regularizer, trainable, constraint=constraint
    )
    found: Tensor = neural.bias_add(x, bias, "NCHW" if channels_first else None)
    return found


def finished(x: Tensor, activation: Any, activity_regularizer: Any) -> Any:
    """activation(x), whose penalty is collected."""
    y = x if activation is None else activation(x)
    if activity_regularizer is not None and isinstance(y, GraphTensor):
        penalty = activity_regularizer(y)
        y.graph.root.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, penalty)
    return y
