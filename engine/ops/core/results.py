"""What the kernels of users give, against what the rule of their op says."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import Array, TensorSpec, as_dtype, resource
from .arrays import to_array


def checked_kernel(
    who: str, infer: Callable[..., Any], kernel: Callable[..., Any], leading: int
) -> Callable[..., Any]:
    """A kernel that a user registers, with its results checked.

    Args:
        who: the type of the op.
        infer: what its rule says of inputs and attributes, see `OpDef.infer`.
        kernel: of arrays and attributes.
        leading: how many arguments stand before the arrays.
    """

    @functools.wraps(kernel)
    def checked(*args: Any, **attrs: Any) -> Any:
        result = kernel(*args, **attrs)
        if not all(hasattr(x, "dtype") for x in args[leading:]):
            return result  # called with what is no array, such as a handle: there is no telling
        specs, _ = infer([_spec_of(x) for x in args[leading:]], attrs)
        if len(specs) == 1:
            return _checked(who, 0, result, specs[0])
        results = result if isinstance(result, tuple | list) else [result]
        if len(results) != len(specs):
            raise InvalidArgumentError(
                f"{who}: the kernel gave {len(results)} results, the rule says {len(specs)}"
            )
        return tuple(
            _checked(who, i, y, s) for i, (y, s) in enumerate(zip(results, specs, strict=True))
        )

    return checked


def _spec_of(x: Any) -> TensorSpec:
    return TensorSpec(x.shape, as_dtype(x.dtype))


def _checked(who: str, place: int, value: Any, spec: TensorSpec) -> Array:
    """A result of the type and shape that the rule says; Python's numbers become arrays."""
    if value is None or spec.dtype == resource:
        return value  # what nobody takes may be None
    if not hasattr(value, "dtype"):
        value, _ = to_array(value, spec.dtype)
    said = f"{who}: the kernel gave {as_dtype(value.dtype)}{[*value.shape]} as output {place}"
    if as_dtype(value.dtype) != spec.dtype:
        raise DTypeError(f"{said}, the rule says {spec}", remedy="cast it in the kernel")
    if not spec.shape.is_compatible_with(value.shape):
        raise ShapeError(f"{said}, the rule says {spec}", remedy="mend the rule or the kernel")
    return value
