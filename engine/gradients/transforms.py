"""Functions of functions: `grad` and `value_and_grad`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import InvalidArgumentError
from ..ops.core.convert import convert_to_tensor
from ..tree import map_structure
from .tape import GradientTape, to_tensors


def value_and_grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives `fn(*args)` and its gradient with respect to some arguments.

    Args:
        fn: returns a scalar; with `has_aux`, a pair (scalar, anything).
        argnums: the argument, or arguments, to differentiate: each a structure of tensors,
            arrays or variables.
        has_aux: whether `fn` returns something besides the scalar.

    Returns:
        A function of the same arguments, giving (value, gradients); the value is what `fn` returns.

    Examples:
        >>> engine.value_and_grad(lambda x: x * x)(engine.constant(3.0))
        (Tensor(9., shape=(), dtype=float32), Tensor(6., shape=(), dtype=float32))
    """
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        arguments = list(args)
        for position in positions:
            if not -len(args) <= position < len(args):
                raise InvalidArgumentError(
                    f"grad: argument {position} was asked for, the call has {len(args)}"
                )
            arguments[position] = to_tensors(arguments[position])
        sources = [arguments[p] for p in positions]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            result = fn(*arguments, **kwargs)
        target = result[0] if has_aux else result
        value = convert_to_tensor(target)
        if value.shape.rank not in (0, None):
            raise InvalidArgumentError(
                f"grad: the function must return a scalar, got {value.spec}",
                remedy="reduce it with mean or sum, or use GradientTape",
            )
        found = map_structure(_as_tensor, tape.gradient(target, sources))
        return result, (found[0] if isinstance(argnums, int) else tuple(found))

    return wrapped


def _as_tensor(gradient: Any) -> Any:
    return None if gradient is None else convert_to_tensor(gradient)


def grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of `fn`; with `has_aux`, (gradient, aux).

    See `value_and_grad`.

    Args:
        fn: returns a scalar; with `has_aux`, a pair (scalar, anything).
        argnums: the argument, or arguments, to differentiate.
        has_aux: whether `fn` returns something besides the scalar.

    Returns:
        A function of the same arguments; for several `argnums` it gives a gradient for each.

    Raises:
        InvalidArgumentError: on a call, there is no such argument.

    Examples:
        >>> engine.grad(lambda x: x * x)(engine.constant(3.0))
        Tensor(6., shape=(), dtype=float32)
    """
    both = value_and_grad(fn, argnums, has_aux)

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped
