"""`jvp`: the derivative of a function in a direction, from reverse mode applied twice.

The gradient of y for weights u, g(u) = u^T J, is linear in u; its gradient weighted by v is J v.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ops.core.basic import zeros_like
from ..ops.core.convert import convert_to_tensor
from ..tree import flatten, map_structure, pack_sequence_as
from .tape import GradientTape


def jvp(
    fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """The value of `fn(*primals)` and its derivative in the direction of `tangents`.

    Args:
        fn: with `has_aux`, returns a pair (value, anything).
        primals: the arguments, structures of tensors.
        tangents: the direction, of the same structure and dtypes.
        has_aux: whether `fn` returns something besides the value.

    Returns:
        (value, derivative), and what `fn` returned besides with `has_aux`.
    """
    arguments = map_structure(convert_to_tensor, tuple(primals))
    xs = flatten(arguments)
    vs = [convert_to_tensor(v, x.dtype) for v, x in zip(flatten(tuple(tangents)), xs, strict=True)]
    with GradientTape(persistent=True, watch_accessed_variables=False) as outer:
        with GradientTape(watch_accessed_variables=False) as inner:
            inner.watch(xs)
            result = fn(*arguments)
        value = result[0] if has_aux else result
        ys = [convert_to_tensor(y) for y in flatten(value)]
        us = [zeros_like(y) for y in ys]
        outer.watch(us)
        dxs = inner.gradient(ys, xs, us)
    pairs = [(dx, v) for dx, v in zip(dxs, vs, strict=True) if dx is not None]
    found = (
        outer.gradient([dx for dx, _ in pairs], us, [v for _, v in pairs], "zero")
        if pairs
        else [zeros_like(y) for y in ys]
    )
    derivative = pack_sequence_as(value, found)
    return (value, derivative, result[1]) if has_aux else (value, derivative)
