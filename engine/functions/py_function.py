"""Python functions as operations that run them at run time, with gradients.

A `py_function` gets eager tensors; its gradient calls it once more under a tape. Both ops call what
is in this process, so a graph that holds one cannot be written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError, InvalidArgumentError
from ..gradients.tape import GradientTape
from ..graph import ANY, Array, DType, EagerTensor, OpView, Tensor, TensorSpec, as_dtype
from ..graph.default import eager_scope
from ..ops.core.arrays import to_array
from ..ops.core.basic import zeros_like
from ..ops.core.convert import convert_to_tensor
from ..ops.core.effects import perform
from ..ops.core.op_def import Grads
from ..ops.core.recording import paused
from ..ops.core.registry import define


@define("PyFunction", dtypes=ANY, same_dtype=False, stateful=True)
def _py_function(
    *xs: TensorSpec, function: Callable[..., Any], dtypes: tuple[DType, ...], eager: bool
) -> tuple[TensorSpec, ...]:
    """What a Python function gives for the values of `xs`; its results have these dtypes.

    It is called with eager tensors (`eager`) or arrays, each time that the operation runs.
    """
    return tuple(TensorSpec(None, dtype) for dtype in dtypes)


@_py_function.kernel("cpu")
def _py_function_kernel(
    *xs: Array, function: Callable[..., Any], dtypes: tuple[DType, ...], eager: bool
) -> Any:
    with eager_scope(), paused():
        found = function(*(map(EagerTensor, xs) if eager else xs))
    who = f"the Python function {getattr(function, '__name__', function)!r}"
    several = isinstance(found, list | tuple) and not (len(dtypes) == 1 and len(found) != 1)
    results = list(found) if several else [] if found is None and not dtypes else [found]
    if len(results) != len(dtypes):
        raise InvalidArgumentError(f"{who} returned {len(results)} values, expected {len(dtypes)}")
    arrays = tuple(
        _checked(who, y, i, d) for i, (y, d) in enumerate(zip(results, dtypes, strict=True))
    )
    return arrays[0] if len(arrays) == 1 else arrays


def _checked(who: str, value: Any, place: int, dtype: DType) -> Array:
    """A result as an array; what has a type has that which was declared."""
    if hasattr(value, "__laminar_tensor__"):
        value = value.__laminar_tensor__()
    if isinstance(value, Tensor):
        value = value.numpy()
    if isinstance(value, np.ndarray | np.generic) and as_dtype(value.dtype) != dtype:
        raise DTypeError(
            f"{who} returned {value.dtype} as result {place}, expected {dtype}",
            remedy="convert it in the function, or declare its type",
        )
    if value is None:
        raise InvalidArgumentError(f"{who} returned None as result {place}, expected {dtype}")
    return to_array(value, dtype)[0]


class _Backward:
    """The gradient of an eager function: the function once more, under a tape.

    It takes the arguments, then the gradients of the results, and gives the gradients of those
    arguments that have one.
    """

    __hash__ = None  # type: ignore[assignment]  # no cache of attributes may hold on to it

    def __init__(self, function: Callable[..., Any], count: int) -> None:
        self._function = function
        self._count = count
        self.__name__ = f"the gradient of {getattr(function, '__name__', function)}"

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        xs, dys = tensors[: self._count], tensors[self._count :]
        watched = [x for x in xs if x.dtype.is_differentiable]
        with GradientTape() as tape:
            tape.watch(watched)
            ys = self._function(*xs)
        ys = list(ys) if isinstance(ys, list | tuple) else [ys]
        pairs = [(convert_to_tensor(y, dy.dtype), dy) for y, dy in zip(ys, dys, strict=True)]
        kept = [(y, dy) for y, dy in pairs if y.dtype.is_differentiable]
        found = tape.gradient([y for y, _ in kept], watched, [dy for _, dy in kept], "zero")
        return list(found)


@_py_function.grad
def _py_function_grad(op: OpView, *dys: Tensor | None) -> Grads:
    if not op.attrs["eager"]:
        return [None] * len(op.inputs)
    xs = op.inputs
    full = [zeros_like(y) if dy is None else dy for y, dy in zip(op.outputs, dys, strict=True)]
    floats = [x for x in xs if x.dtype.is_differentiable]
    found = iter(
        _py_function.many(
            *xs,
            *full,
            function=_Backward(op.attrs["function"], len(xs)),
            dtypes=tuple(x.dtype for x in floats),
            eager=True,
        )
    )
    return [_like(next(found), x) if x.dtype.is_differentiable else None for x in xs]


def _like(dx: Tensor, x: Tensor) -> Tensor:
    set_shape = getattr(dx, "set_shape", None)
    if set_shape is not None:
        set_shape(x.shape)
    return dx


def _applied(
    function: Callable[..., Any], inp: Sequence[Any], dtypes: Any, name: str | None, eager: bool
) -> Any:
    if not callable(function):
        raise InvalidArgumentError(f"py_function: expected a function, got {function!r}")
    several = isinstance(dtypes, list | tuple)
    xs = [convert_to_tensor(x) for x in (inp if isinstance(inp, list | tuple) else [inp])]
    attrs = {
        "function": function,
        "dtypes": tuple(as_dtype(d) for d in (dtypes if several else [dtypes])),
        "eager": eager,
    }
    if not attrs["dtypes"]:
        return perform(_py_function, xs, attrs, name) or []
    found = _py_function.many(*xs, name=name, **attrs)
    return list(found) if several else found[0]


def py_function(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,  # noqa: N803  # the field's name
    name: str | None = None,
) -> Any:
    """What a Python function makes of tensors, in a graph at run time, with a gradient.

    The function is called with eager tensors and may use everything that computes at once. It runs
    each time that the operation does; the gradient calls it once more, under a GradientTape. A
    graph that holds one cannot be written to a file.

    Args:
        func: the function.
        inp: tensors, its arguments.
        Tout: the dtype of its result, or a list of those of its results; empty for none.
        name: of the operation.

    Returns:
        A tensor of unknown shape, or a list; the operation (eagerly an empty list) when there is no
        result.

    Raises:
        DTypeError: at run time, a result has another type.
        InvalidArgumentError: at run time, there is another number of results.

    Examples:
        >>> engine.py_function(lambda x: x * 2, [engine.constant([3, 1])], "int32")
        Tensor([6, 2], shape=(2,), dtype=int32)
    """
    return _applied(func, inp, Tout, name, eager=True)


def numpy_function(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,  # noqa: N803  # the field's name
    name: str | None = None,
) -> Any:
    """As `py_function` of a function of NumPy arrays; it has no gradient.

    Args:
        func: takes and returns NumPy arrays.
        inp: tensors, its arguments.
        Tout: the dtype of its result, or a list of those of its results; empty for none.
        name: of the operation.

    Returns:
        A tensor (in a graph of unknown shape), or a list, as `Tout` is.

    Raises:
        DTypeError: at run time, a result has another type.

    Examples:
        >>> engine.numpy_function(np.sort, [engine.constant([3, 1, 2])], "int32")
        Tensor([1, 2, 3], shape=(3,), dtype=int32)
    """
    return _applied(func, inp, Tout, name, eager=False)
