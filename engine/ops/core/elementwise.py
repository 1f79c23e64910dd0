"""`elementwise`: an op that treats every element alike, made of one scalar expression."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import ops
from ...graph import (
    NUMERIC,
    Array,
    DType,
    EagerTensor,
    OpView,
    Tensor,
    TensorSpec,
    broadcast_shapes,
    float32,
    float64,
    int32,
    int64,
    stack,
)
from .arrays import is_half
from .kernels import HOST, HOST_TYPE, hush, restore
from .op_def import Gradient, Grads, OpDef
from .recording import notify, recorders
from .registry import no_gradient, register
from .scalars import array_scalars
from .traits import Traits

_NO_TRAITS = Traits()
# Types that Python's numbers take without a further look, if they are no larger than this.
_OF_NUMBERS = {float: (float32, float64), int: (float32, float64, int32, int64)}
_SMALL = 60000.0
_ndarray = np.ndarray


class _Direct(NamedTuple):
    """What an op does with values of one type on the host.

    Attributes:
        scalar: its expression, or another function of `s` and arrays.
        s: what evaluates the expression.
        dtype: the type of the result.
        numbers: Python's types that may stand for one of two values, with the type they take.
    """

    scalar: Callable[..., Any]
    s: Any
    dtype: DType
    numbers: Mapping[type, np.dtype[Any]]


class ElementwiseOp(OpDef):
    """An op that treats every element alike.

    Of values of one type on the host, NumPy itself finds the shape of the result: a call of such
    goes straight to the expression. What NumPy refuses goes the way of all ops (`apply`), which
    says what is wrong.
    """

    own_kernel: Callable[..., Any] | None = None  # the reference kernel made of the expression

    def forget_host_kernel(self) -> None:
        super().forget_host_kernel()
        self._direct: dict[DType | None, _Direct] = {}

    def __call__(self, *inputs: Any, name: str | None = None, **attrs: Any) -> Tensor:
        """Compute the output, or add the operation to the graph being built."""
        if not attrs and name is None:
            output = self.directly(*inputs) if len(inputs) == len(self.input_names) < 3 else None
            if output is not None:
                return output
        return self._apply(inputs, attrs, name)

    def directly(self, x: Any, y: Any = None) -> EagerTensor | None:
        """The output for one or two tensors, None where the op goes the way of all.

        One of two may be a Python number.
        """
        if stack.items or stack.place is not None:
            return None
        is_first = type(x) is EagerTensor
        if not is_first and type(y) is not EagerTensor:
            return None
        found = self._direct.get(x._dtype if is_first else y._dtype)
        if found is None:
            return None
        scalar, s, dtype, numbers = found
        if y is not None and not (is_first and type(y) is EagerTensor and x._dtype is y._dtype):
            number = y if is_first else x
            kind = numbers.get(type(number))
            if kind is None or not -_SMALL < number < _SMALL:
                return None
            if is_first:
                y = EagerTensor(np.array(y, kind), x._dtype)
            else:
                x = EagerTensor(np.array(x, kind), y._dtype)
        before = hush()
        try:
            value = scalar(s, x._value) if y is None else scalar(s, x._value, y._value)
        except Exception:
            return None
        finally:
            restore(before)
        if type(value) is not _ndarray:  # NumPy's scalars, of arrays of rank 0
            value = np.asarray(value)
        output = EagerTensor(value, dtype)
        if recorders.active:
            notify(self, (x,) if y is None else (x, y), self.defaults, (output,))
        return output

    def _apply(self, inputs: Sequence[Any], attrs: Mapping[str, Any], name: str | None) -> Tensor:
        """As any op does; calls like this one go straight from now on, where they can."""
        (output,) = OpDef.applied(self, inputs, attrs, name)
        if type(output) is EagerTensor and not attrs:
            dtypes = {x.dtype if type(x) is EagerTensor else None for x in inputs}
            (dtype, *more) = dtypes
            if dtype is not None and not more:
                self._learn(dtype, output.dtype)
        return output

    def with_attributes(self, dtype: DType | None, attrs: Mapping[str, Any]) -> Callable[..., Any]:
        if self._has_another_kernel or dtype is None or is_half(dtype.numpy):
            return super().with_attributes(dtype, attrs)
        assert self.scalar is not None
        return functools.partial(self.scalar, array_scalars(HOST), **attrs)

    @property
    def _has_another_kernel(self) -> bool:
        return HOST_TYPE in self.kernels or self.reference_kernel is not self.own_kernel

    def _learn(self, dtype: DType, result: DType) -> None:
        kernel, scalar = self.reference_kernel, self.scalar
        if self._has_another_kernel:
            return
        assert kernel is not None
        assert scalar is not None
        half = is_half(dtype.numpy)
        compute, s = (kernel, HOST) if half else (scalar, array_scalars(HOST))
        if self.defaults:
            compute = functools.partial(compute, **self.defaults)
        numbers = {kind: dtype.numpy for kind, taken in _OF_NUMBERS.items() if dtype in taken}
        self._direct[dtype] = _Direct(compute, s, result, numbers)


def elementwise(
    type: str,
    doc: str,
    *,
    scalar: Callable[..., Any],
    grad: Gradient | None = None,
    dtypes: Collection[DType] = NUMERIC,
    result: DType | Callable[[DType], DType] | None = None,
    traits: Traits = _NO_TRAITS,
) -> ElementwiseOp:
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
    op = ElementwiseOp(type, rule, dtypes=dtypes, traits=traits)
    op.scalar = scalar

    @op.reference
    def kernel(xp: Any, *arrays: Array, **attrs: Any) -> Array:
        s = array_scalars(xp)
        half = arrays[0].dtype
        # Computed in float32 and rounded once: NumPy's own half loops are slow, and each step of an
        # expression would round.
        if is_half(half):
            y = scalar(s, *(a.astype(xp.float32) for a in arrays), **attrs)
            return y.astype(half) if y.dtype == xp.float32 else y
        return scalar(s, *arrays, **attrs)

    op.own_kernel = op.reference_kernel
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

    register(op)
    return op
