"""Arg and Retval: where the values that a step is given come in, and those that it gives go out.

They stand in graphs that were made for a step (`passes/client_graph.py`); users do not write them.
"""

from __future__ import annotations

from typing import Any

from ...graph import ANY, TensorShape, TensorSpec, as_dtype
from .registry import define, no_gradient


@define("_Arg", stateful=True)
def arg(*, shape: TensorShape, dtype: str, index: int) -> TensorSpec:
    """Argument `index` of the step's call frame, as soon as it is there."""
    return TensorSpec(shape, as_dtype(dtype))


@arg.asynchronous
def _arg_kernel(context: Any, done: Any, *, shape: TensorShape, dtype: str, index: int) -> None:
    token = context.cancellation.register(done.fail)
    if token is None:
        done.fail(context.cancelled)
        return

    def come(value: Any) -> None:
        if context.cancellation.deregister(token):  # else the kernel has ended with the step
            done(value)

    context.frame.get_arg(index, come)


arg.grad(no_gradient)


@define("_Retval", dtypes=ANY, stateful=True)
def retval(*xs: TensorSpec, index: int) -> tuple[TensorSpec, ...]:
    """Fill slot `index` of the step's call frame with the input, or tell that it has run."""
    return ()


@retval.effect
def _retval_kernel(context: Any, *xs: Any, index: int) -> tuple[Any, ...]:
    context.frame.set_retval(index, xs[0] if xs else None)
    return ()


retval.grad(no_gradient)
