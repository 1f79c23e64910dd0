"""Gradient functions by name: of an op, or for `Graph.gradient_override_map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import AlreadyExistsError, NotFoundError
from ..ops.core.registry import find, no_gradient

F = TypeVar("F", bound=Callable[..., Any])
_functions: dict[str, Callable[..., Any]] = {}


def register_gradient(op_type: str) -> Callable[[F], F]:
    """Decorate `fn(op, *douts)`, one gradient or None per input, as the gradient of an op.

    Where no op has that name, it is the function's own, for `Graph.gradient_override_map`.

    Raises:
        AlreadyExistsError: the op has a gradient, or the name a function.

    Examples:
        >>> @engine.register_gradient("DocDoubled")
        ... def doubled(op, dy):
        ...     return 2 * dy
        >>> with engine.Graph().as_default() as graph, engine.Session() as session:
        ...     x = engine.constant(3.0)
        ...     with graph.gradient_override_map({"Identity": "DocDoubled"}):
        ...         y = engine.identity(x)
        ...     session.run(engine.gradients(y, [x]))
        [np.float32(2.0)]
    """

    def decorate(fn: F) -> F:
        op = find(op_type)
        if op is not None:
            return op.grad(fn)
        if op_type in _functions:
            raise AlreadyExistsError(
                f"the gradient {op_type!r} is registered already",
                remedy="take another name",
            )
        _functions[op_type] = fn
        return fn

    return decorate


def not_differentiable(op_type: str) -> None:
    """Have an op pass no gradient on.

    Raises:
        AlreadyExistsError: it has a gradient.
    """
    register_gradient(op_type)(no_gradient)


def named_gradient(name: str) -> Callable[..., Any]:
    """The function of a name, or the gradient of an op.

    Raises:
        NotFoundError: nothing is registered under it.
    """
    op = find(name)
    found = _functions.get(name) if op is None else op.gradient
    if found is None:
        raise NotFoundError(
            f"no gradient is registered under {name!r}",
            remedy=f"@register_gradient({name!r}) over a function of (op, *douts)",
        )
    return found
