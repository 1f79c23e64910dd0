"""Stacks of tensors, in steps and at once."""

from __future__ import annotations

from typing import Any

from ..graph import Operation, Tensor, TensorShape, as_dtype, int32
from ..ops.core.convert import convert_to_tensor
from ..ops.core.effects import perform
from ..ops.state import stack as ops
from .handles import as_tensor


class Stack:
    """Tensors of which the last that was pushed is popped first.

    In a graph it lives as long as a step, and what is done with it is put in order by control
    dependencies; in a function and at once, by the order in which it is written.

    Args:
        dtype: of the tensors.
        max_size: how many fit, -1 for any number.
        shape: of the tensors, as far as it is known.
        name: of the operation.

    Examples:
        >>> stack = engine.Stack("int32", shape=())
        >>> _ = stack.push(1)
        >>> _ = stack.push(2)
        >>> stack.pop()
        Tensor(2, shape=(), dtype=int32)
    """

    def __init__(
        self, dtype: Any, max_size: Any = -1, shape: Any = None, name: str = "stack"
    ) -> None:
        self.dtype = as_dtype(dtype)
        self.shape = TensorShape(shape)
        self.handle = ops.stack(convert_to_tensor(max_size, int32), name=name, stack_name=name)

    def push(self, x: Any, name: str | None = None) -> Tensor:
        """`x` itself, once it is on top.

        Raises:
            ResourceExhaustedError: at run time, the stack is full.
        """
        return ops.stack_push(self.handle, as_tensor(x, self.dtype), name=name)

    def pop(self, name: str | None = None) -> Tensor:
        """The tensor on top, which leaves the stack.

        Raises:
            InvalidArgumentError: at run time, the stack is empty.
        """
        return ops.stack_pop(self.handle, name=name, dtype=self.dtype, shape=self.shape)

    def close(self, name: str | None = None) -> Operation | None:
        """Drop what is on it: nothing can be done with it any more."""
        return perform(ops.stack_close, [self.handle], {}, name)
