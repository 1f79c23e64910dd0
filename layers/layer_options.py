"""The arguments that all layers have in common."""

from __future__ import annotations

from typing import Any, TypedDict

from laminar.dtype_policies import PolicyLike
from laminar.engine.errors import InvalidArgumentError
from laminar.naming import who
from laminar.regularizers import RegularizerLike
from laminar.typing import Shape


class FirstShape(TypedDict, total=False):
    """Keras 2's arguments of a first layer, which say what its input is like."""

    input_shape: Shape | int
    batch_input_shape: Shape
    input_dim: int


class CommonOptions(FirstShape, total=False):
    """The arguments that every layer takes, but for the penalty on its output; see `Layer`."""

    trainable: bool
    dtype: PolicyLike | None
    autocast: bool
    name: str | None


class LayerOptions(CommonOptions, total=False):
    """The arguments that every layer takes; see `Layer`."""

    activity_regularizer: RegularizerLike | None


def checked_trainable(layer: Any, value: Any) -> bool:
    """`value` of the argument `trainable`.

    Raises:
        InvalidArgumentError: it is neither True nor False.
    """
    if not isinstance(value, bool):
        raise InvalidArgumentError(f"{who(layer)}: trainable must be True or False, got {value!r}")
    return value
