"""`elementwise`: an op that treats every element alike, made of one scalar expression."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any

from ... import ops
from ...graph import (
    NUMERIC,
    Array,
    DType,
    OpView,
    Tensor,
    TensorSpec,
    bfloat16,
    broadcast_shapes,
    float16,
)
from .registry import Gradient, Grads, OpDef, no_gradient, register
from .scalars import array_scalars
from .traits import Traits

_NO_TRAITS = Traits()
# Half-precision types are computed in float32 and rounded once: NumPy's own half loops are slow,
# and each step of an expression would round.
_HALVES = frozenset(d.numpy for d in (float16, bfloat16))


def elementwise(
    type: str,
    doc: str,
    *,
    scalar: Callable[..., Any],
    grad: Gradient | None = None,
    dtypes: Collection[DType] = NUMERIC,
    result: DType | Callable[[DType], DType] | None = None,
    traits: Traits = _NO_TRAITS,
) -> OpDef:
    """Define an op that applies `scalar` to the elements of its broadcast inputs.

    Args:
        type: the op's name.
        doc: its definition.
        scalar: `scalar(s, x, y, ..., *, attribute=default)`, see scalars.py.
        grad: `grad(op, dy)` -> the gradient for each input before broadcasting is undone (that is
            done here); None for an op through which no gradient flows.
        dtypes: element types of the inputs, which must agree.
        result: dtype of the output; by default that of the inputs.
        traits: what passes and compilers may know of it (see traits.py).
    """
    parameters = list(inspect.signature(scalar).parameters.values())[1:]

    def rule(*inputs: TensorSpec, **attrs: Any) -> TensorSpec:
        dtype = inputs[0].dtype
        if result is not None:
            dtype = result if isinstance(result, DType) else result(dtype)
        if len(inputs) == 1:
            return TensorSpec(inputs[0].shape, dtype)
        return TensorSpec(broadcast_shapes(type, *(x.shape for x in inputs)), dtype)

    rule.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # names of inputs and attributes
    rule.__doc__ = doc
    op = OpDef(type, rule, dtypes=dtypes, traits=traits)
    op.scalar = scalar

    @op.reference
    def kernel(xp: Any, *arrays: Array, **attrs: Any) -> Array:
        s = array_scalars(xp)
        half = arrays[0].dtype
        if half in _HALVES:
            y = scalar(s, *(a.astype(xp.float32) for a in arrays), **attrs)
            return y.astype(half) if y.dtype == xp.float32 else y
        return scalar(s, *arrays, **attrs)

    if grad is None:
        op.grad(no_gradient)
    elif len(op.input_names) == 1:
        op.grad(grad)
    else:

        @op.grad
        def reduced(view: OpView, dy: Tensor) -> Grads:
            dxs = grad(view, dy)
            assert dxs is not None
            assert not isinstance(dxs, Tensor)
            return [
                None if dx is None else ops.broadcast.unbroadcast(dx, i, view.inputs)
                for i, dx in enumerate(dxs)
            ]

    return register(op)
