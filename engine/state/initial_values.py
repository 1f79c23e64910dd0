"""What a variable begins with: values, functions of a shape, names of initializers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import DTypeError, InvalidArgumentError, ShapeError
from ..graph import Tensor, TensorShape, as_dtype, resource
from ..ops.core.convert import convert_to_tensor


class _Hook:
    """Who knows initializers by name and config: the room of initializers, above this one."""

    find_initializer: Callable[[Any], Any] | None = None


def set_initializer_lookup(find: Callable[[Any], Any]) -> None:
    """Say who gives the initializer of a name, config or class."""
    _Hook.find_initializer = find


def initial_value_of(initializer: Any, shape: Any, dtype: Any, name: str | None) -> Tensor:
    """The initial value of a variable, with the shape and dtype that were asked for."""
    if isinstance(initializer, Mapping | type) or (
        # Without a shape, or with dtype "string", a text is a value.
        isinstance(initializer, str) and shape is not None and dtype not in ("string", str)
    ):
        if _Hook.find_initializer is None:
            raise InvalidArgumentError(
                f"Variable {name!r}: the initializer {initializer!r} is not known here",
                remedy="import laminar.initializers before naming one of them",
            )
        initializer = _Hook.find_initializer(initializer)
    if callable(initializer) and not hasattr(initializer, "shape"):
        if shape is None and _needs_nothing(initializer):
            return initial_value_of(initializer(), shape, dtype, name)
        if shape is None:
            raise InvalidArgumentError(
                f"Variable {name!r}: the initializer is a function of a shape, so shape= is needed"
            )
        full = TensorShape(shape)
        if not full.is_fully_defined:
            raise ShapeError(
                f"Variable {name!r}: the shape must be fully known, got {full}",
                remedy="give the layer before it a full input shape",
            )
        kind = as_dtype("float32" if dtype is None else dtype)
        value = convert_to_tensor(initializer(tuple(full), dtype=kind), kind)
    else:
        value = convert_to_tensor(initializer, dtype)
    if shape is not None and not value.shape.is_compatible_with(shape):
        raise ShapeError(
            f"Variable {name!r}: expected an initial value of shape {TensorShape(shape)}, "
            f"got {value.spec}"
        )
    if value.dtype == resource:
        raise DTypeError(f"Variable {name!r}: a handle cannot be stored in a variable")
    return value


def _needs_nothing(initializer: Callable[..., Any]) -> bool:
    """Whether a function gives the value without being told a shape."""
    try:
        inspect.signature(initializer).bind()
    except (TypeError, ValueError):  # it takes a shape; what is built in may not say what it takes
        return False
    return True
