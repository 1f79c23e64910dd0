"""The ops every graph has: constants, placeholders, identity, nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import graph
from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import (
    DENSE,
    Array,
    GraphTensor,
    Operation,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    as_dtype,
    get_default_graph,
)
from .arrays import to_array
from .op_def import Grads
from .registry import define, no_gradient
from .traits import Traits, Work, same_entries


@define("Const", traits=Traits(work=Work.NONE))
def const_op(*, value: Any, dtype: str) -> TensorSpec:
    """A value that is part of the graph."""
    if as_dtype(value.dtype) != dtype:
        raise DTypeError(f"Const: the value is {value.dtype}, the attribute says {dtype}")
    return TensorSpec(value.shape, as_dtype(dtype))


@const_op.reference
def _const_kernel(xp: Any, *, value: Any, dtype: str) -> Array:
    return xp.asarray(value)


const_op.grad(no_gradient)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor of `value`, with `shape` if one is given.

    Args:
        value: a number, nested list or array.
        dtype: element type; by default Python's floats become the default float, its integers
            int32, and arrays keep their type.
        shape: that the elements of `value` are put into, row by row, or that it broadcasts to.
        name: of the operation.

    Raises:
        InvalidArgumentError: a number does not fit `dtype`.
        ShapeError: `value` neither has as many elements as `shape`, nor broadcasts to it.

    Examples:
        >>> engine.constant([1, 2], dtype="float32")
        Tensor([1., 2.], shape=(2,), dtype=float32)
        >>> engine.constant(0.5, shape=(2,))
        Tensor([0.5, 0.5], shape=(2,), dtype=float32)
    """
    array, found = to_array(value, None if dtype is None else as_dtype(dtype))
    if shape is not None:
        array = _shaped(array, TensorShape([shape] if isinstance(shape, int) else shape))
    return const_op(name=name, value=array, dtype=found)


def _shaped(array: Array, wanted: TensorShape) -> Array:
    if not wanted.is_fully_defined:
        raise ShapeError(f"constant: every size of the shape must be known, got {wanted}")
    shape: tuple[Any, ...] = tuple(wanted)
    if array.size == math.prod(shape):
        return array.reshape(shape)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ShapeError(
            f"constant: {array.size} elements of shape {array.shape} do not make {shape}",
            remedy="give as many elements as the shape has, or one number for all",
        ) from None


@define("Placeholder", traits=Traits(work=Work.NONE))
def placeholder_op(*, shape: TensorShape, dtype: str) -> TensorSpec:
    """An input of the graph: its value is given for each run."""
    return TensorSpec(shape, as_dtype(dtype))


@placeholder_op.effect
def _placeholder_kernel(context: Any, *, shape: TensorShape, dtype: str) -> Array:
    raise InvalidArgumentError(
        f"a placeholder of {dtype}{TensorShape(shape)} was not fed",
        remedy="give it a value: feed_dict={placeholder: value}",
    )


placeholder_op.grad(no_gradient)


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> GraphTensor:
    """A tensor of the default graph whose value is fed on each run.

    Args:
        dtype: the element type of what is fed.
        shape: its shape, with None for sizes that differ from run to run; None where nothing is
            known.
        name: of the operation.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     x = engine.placeholder("float32", [None])
        ...     session.run(x * 2, {x: [1.0, 2.0]})
        array([2., 4.], dtype=float32)
    """
    attrs = {"shape": TensorShape(shape), "dtype": as_dtype(dtype)}
    return get_default_graph().add(placeholder_op, (), attrs, name=name).outputs[0]


@define("Identity", traits=Traits(work=Work.NONE, on_sizes=lambda n: n, entries=same_entries))
def identity(x: TensorSpec) -> TensorSpec:
    """`x` itself."""
    return x


@identity.reference
def _identity_kernel(xp: Any, x: Array) -> Array:
    return x


@identity.grad
def _identity_grad(op: OpView, dy: Tensor) -> Grads:
    return (dy,)


@define("StopGradient", traits=Traits(work=Work.NONE))
def stop_gradient(x: TensorSpec) -> TensorSpec:
    """`x` itself, through which no gradient flows."""
    return x


stop_gradient.reference(_identity_kernel)
stop_gradient.grad(no_gradient)


@define("NoOp", traits=Traits(work=Work.NONE))
def _no_op() -> tuple[TensorSpec, ...]:
    """Nothing: something to hang control edges on."""
    return ()


@_no_op.reference
def _no_op_kernel(xp: Any) -> tuple[Array, ...]:
    return ()


_no_op.grad(no_gradient)


@define("ZerosLike")
def zeros_like(x: TensorSpec) -> TensorSpec:
    """Zeros of the shape and dtype of `x`; for strings, empty strings."""
    return x


@zeros_like.reference
def _zeros_like_kernel(xp: Any, x: Array) -> Array:
    return xp.full_like(x, b"") if x.dtype == object else xp.zeros_like(x)


zeros_like.grad(no_gradient)


@define("OnesLike", dtypes=DENSE)
def ones_like(x: TensorSpec) -> TensorSpec:
    """Ones of the shape and dtype of `x`."""
    return x


@ones_like.reference
def _ones_like_kernel(xp: Any, x: Array) -> Array:
    return xp.ones_like(x)


ones_like.grad(no_gradient)


def no_op(name: str | None = None) -> Operation:
    """An operation of the default graph that does nothing.

    Examples:
        >>> with engine.Graph().as_default():
        ...     engine.no_op(name="nothing").name
        'nothing'
    """
    return get_default_graph().add(_no_op, name=name)


def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that has run when all of `inputs` (operations or tensors) have run.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     v = engine.Variable(1.0)
        ...     session.run(engine.global_variables_initializer())
        ...     session.run(engine.group(v.assign_add(2.0)))
        ...     session.run(v)
        np.float32(3.0)
    """
    home = graph.graph_of(inputs)
    with home.control_dependencies(inputs):
        return home.add(_no_op, name=name or "group")
