"""Python functions of arrays as operations of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import DTypeError, ShapeError
from ...graph import Array, Tensor, TensorSpec
from .arrays import to_array
from .registry import define, no_gradient


@define("HostFunction", dtypes={})
def host_function_op(
    *xs: TensorSpec, function: Callable[..., Any], specs: tuple[TensorSpec, ...]
) -> tuple[TensorSpec, ...]:
    """The arrays that a Python function makes of those of the inputs, which are as `specs` say.

    The function must depend on its arguments alone. A graph that holds one cannot be written.
    """
    return specs


@host_function_op.kernel("cpu")
def _host_function_kernel(
    *xs: Array, function: Callable[..., Any], specs: tuple[TensorSpec, ...]
) -> tuple[Array, ...] | Array:
    results = function(*xs)
    if len(results) != len(specs):
        raise ShapeError(f"{function} gave {len(results)} arrays, expected {len(specs)}")
    arrays = []
    for value, spec in zip(results, specs, strict=True):
        if getattr(getattr(value, "dtype", None), "names", None) is not None:
            raise DTypeError(f"{function} gave records, {value.dtype}: they are no tensor")
        array, _ = to_array(value, spec.dtype)
        if not spec.shape.is_compatible_with(array.shape):
            raise ShapeError(
                f"{function} gave an array of shape {list(array.shape)}, expected {spec.shape}"
            )
        arrays.append(array)
    return tuple(arrays) if len(arrays) > 1 else arrays[0]


host_function_op.grad(no_gradient)


def host_function(
    function: Callable[..., Sequence[Any]],
    xs: Sequence[Tensor],
    specs: Sequence[TensorSpec],
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """What a Python function makes of tensors, in a graph too, where it is called at run time.

    Args:
        function: of NumPy arrays (of bytes objects for strings), gives one array for each spec;
            it must depend on its arguments alone.
        xs: its arguments.
        specs: shapes, as far as they are known, and dtypes of the results.

    Raises:
        ShapeError: at run time, if a result does not fit its spec.

    Examples:
        >>> engine.host_function(
        ...     lambda x: (np.sort(x),),
        ...     [engine.constant([3, 1, 2])],
        ...     [engine.TensorSpec((3,), "int32")],
        ... )
        (Tensor([1, 2, 3], shape=(3,), dtype=int32),)
    """
    return host_function_op.many(*xs, name=name, function=function, specs=tuple(specs))
