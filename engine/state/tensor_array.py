"""TensorArray: tensors by index, written and read one by one, also from loops."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidArgumentError, ShapeError
from ..graph import (
    EagerTensor,
    Operation,
    Tensor,
    TensorShape,
    TensorSpec,
    as_dtype,
    float32,
    int32,
)
from ..ops.array.creation import arange
from ..ops.array.shape import dim_of
from ..ops.core.basic import constant, identity
from ..ops.core.convert import convert_to_tensor
from ..ops.core.effects import perform
from ..ops.state import tensor_array as ops


class _Elements:
    """What is known of the elements of one array, shared by all that stand for it."""

    def __init__(self, shape: TensorShape, infer: bool, size: int | None) -> None:
        self.shape = shape
        self.infer = infer
        self.size = size  # None: known at run time only


class TensorArray:
    """Tensors by index: each is written once, and read.

    A change gives a new TensorArray of the same elements, whose `flow` puts what is done with it
    behind the change; use that from then on. It can be a loop variable of `while_loop`, be given
    back by the branches of a condition, and gradients pass through it. In a graph the elements live
    as long as a step.

    Args:
        dtype: of the elements.
        size: how many there are, an int or scalar.
        dynamic_size: whether a write behind the end makes it longer.
        clear_after_read: whether an element is dropped when it is read: then it can be read once.
        tensor_array_name: its name in errors.
        handle, flow: of an array that is there.
        infer_shape: whether all elements have one shape.
        element_shape: of an element, as far as it is known.
        name: of the operation.

    Raises:
        InvalidArgumentError: both a size and a handle are given, or neither.

    Source: Yu et al., "Dynamic Control Flow in Large-Scale Machine Learning", 2018,
        arXiv:1805.01772, section 2.1.

    Examples:
        >>> array = engine.TensorArray("float32", size=2)
        >>> array = array.write(0, 1.0).write(1, 5.0)
        >>> array.stack()
        Tensor([1., 5.], shape=(2,), dtype=float32)
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Tensor | None = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        name: str | None = None,
    ) -> None:
        if (handle is None) == (size is None and not dynamic_size):
            raise InvalidArgumentError(
                "TensorArray: give either the size, or the handle of an array that is there"
            )
        if handle is not None and (flow is None or tensor_array_name or clear_after_read):
            raise InvalidArgumentError(
                "TensorArray: with a handle there is its flow, and nothing else is declared"
            )
        self.dtype = as_dtype(dtype)
        self.dynamic_size = bool(dynamic_size)
        shape = TensorShape(element_shape)
        known = int(size) if isinstance(size, int | EagerTensor) else 0 if size is None else None
        self._elements = _Elements(shape, infer_shape, None if self.dynamic_size else known)
        self.handle: Tensor
        self.flow: Tensor
        if handle is not None:
            assert flow is not None
            self._elements.size = None
            self.handle, self.flow = handle, flow
            return
        self.handle, self.flow = ops.tensor_array.many(
            convert_to_tensor(0 if size is None else size),
            name=name,
            dtype=self.dtype,
            element_shape=shape,
            dynamic_size=self.dynamic_size,
            clear_after_read=clear_after_read is None or bool(clear_after_read),
            identical_element_shapes=bool(infer_shape),
            tensor_array_name=tensor_array_name or name or "tensor_array",
        )

    @property
    def element_shape(self) -> TensorShape:
        """What is known of the shape of an element."""
        return self._elements.shape

    def after(self, flow: Any) -> TensorArray:
        """The same array, as it is after the change that gave `flow`."""
        made = object.__new__(TensorArray)
        made.dtype, made.dynamic_size = self.dtype, self.dynamic_size
        made._elements, made.handle = self._elements, self.handle
        made.flow = convert_to_tensor(flow)
        if made.flow.dtype != float32 or made.flow.shape.rank not in (0, None):
            raise InvalidArgumentError(
                f"TensorArray: a flow is a float32 scalar, got {made.flow.spec}"
            )
        return made

    def _learn(self, shape: TensorShape) -> None:
        """Take note of the shape of an element; ShapeError when it contradicts the others."""
        elements = self._elements
        if not elements.shape.is_compatible_with(shape):
            raise ShapeError(
                f"TensorArray: an element has shape {shape}, expected {elements.shape}",
                remedy="declare infer_shape=False where the shapes of elements differ",
            )
        if elements.infer:
            elements.shape = elements.shape.merge_with(shape)

    def _value(self, value: Any) -> Tensor:
        return value if isinstance(value, Tensor) else convert_to_tensor(value, self.dtype)

    def _check_type(self, value: Tensor) -> Tensor:
        if value.dtype != self.dtype:
            raise InvalidArgumentError(
                f"TensorArray: the elements are {self.dtype}, got {value.spec}",
                remedy="cast it first",
            )
        return value

    def identity(self) -> TensorArray:
        """The same array, with a flow of its own."""
        return self.after(identity(self.flow))

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        """The array of the gradients of the elements, for one `source`.

        Elements that have got none are zeros; what is written to one index adds up.

        Args:
            source: a name for one use: another name, another array.
            flow: after which change of this array its size and shapes are looked at.
            name: of the operation.
        """
        where = self.flow if flow is None else flow
        handle, first = ops.tensor_array_grad.many(self.handle, where, name=name, source=source)
        return TensorArray(
            self.dtype,
            handle=handle,
            flow=first,
            infer_shape=self._elements.infer,
            element_shape=self.element_shape,
        )

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at `index`.

        Args:
            index: from 0, an integer scalar.
            name: of the operation.

        Raises:
            InvalidArgumentError: at run time, the index is not there, or its element was dropped
                when it was read.
        """
        return ops.tensor_array_read(
            self.handle,
            convert_to_tensor(index),
            self.flow,
            name=name,
            dtype=self.dtype,
            element_shape=self.element_shape,
        )

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Store an element.

        Args:
            index: from 0, an integer scalar.
            value: of the element type; Python's numbers are converted to it.
            name: of the operation.

        Returns:
            the array after the change, which is to be used from then on.

        Raises:
            InvalidArgumentError: the type is another; at run time, the index is not there, or has
                been written.
            ShapeError: the shape is not that of elements.
        """
        value = self._check_type(self._value(value))
        self._learn(value.shape)
        return self.after(
            ops.tensor_array_write(
                self.handle, convert_to_tensor(index), value, self.flow, name=name
            )
        )

    def stack(self, name: str | None = None) -> Tensor:
        """All elements along a new first axis."""
        size: Any = self._elements.size
        return self.gather(arange(0, self.size() if size is None else size), name)

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at `indices`, a vector, along a new first axis.

        Args:
            indices: from 0, integers; what was not written is 0 there.
            name: of the operation.

        Raises:
            InvalidArgumentError: at run time, an index is not there, or was not written and
                the shape of elements is not known.
        """
        return ops.tensor_array_gather(
            self.handle,
            convert_to_tensor(indices, None if isinstance(indices, Tensor) else int32),
            self.flow,
            name=name,
            dtype=self.dtype,
            element_shape=self.element_shape,
        )

    def concat(self, name: str | None = None) -> Tensor:
        """All elements joined along their first axis, in which their lengths may differ."""
        shape = self.element_shape
        rest = None if shape.rank is None else shape[1:]
        joined, _ = ops.tensor_array_concat.many(
            self.handle, self.flow, name=name, dtype=self.dtype, element_shape=TensorShape(rest)
        )
        return joined

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Store the slices of `value` along its first axis, from index 0.

        Args:
            value: (n, ...), n not above the size of the array unless that is dynamic.
            name: of the operation.

        Returns:
            the array after the change.

        Raises:
            InvalidArgumentError: at run time, there are more slices than the array has places.
        """
        value = self._value(value)
        if value.shape.rank is not None and value.shape[0] is not None:
            count: Any = value.shape[0]
        else:
            count = dim_of(value, axis=0)
        return self.scatter(arange(0, count, dtype=int32), value, name)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Store the slices of `value` along its first axis at `indices`, a vector.

        Args:
            indices: (n,), from 0, integers.
            value: (n, ...).
            name: of the operation.

        Returns:
            the array after the change.

        Raises:
            InvalidArgumentError: at run time, an index is not there, or has been written.
            ShapeError: there are not as many slices as indices.
        """
        value = self._check_type(self._value(value))
        if value.shape.rank is not None:
            self._learn(TensorShape(value.shape[1:]))
        places = convert_to_tensor(indices, None if isinstance(indices, Tensor) else int32)
        return self.after(
            ops.tensor_array_scatter(self.handle, places, value, self.flow, name=name)
        )

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Store the pieces of `value` along its first axis, of these lengths, from index 0.

        Args:
            value: (n, ...).
            lengths: as many as the array has places, unless its size is dynamic; their sum is n.
            name: of the operation.

        Returns:
            the array after the change.

        Raises:
            InvalidArgumentError: at run time, the lengths are not so many, or do not make up n.
        """
        value = self._check_type(self._value(value))
        pieces = convert_to_tensor(lengths)
        if value.shape.rank is not None:
            given = {int(n) for n in pieces.tolist()} if isinstance(pieces, EagerTensor) else set()
            self._learn(TensorShape([given.pop() if len(given) == 1 else None, *value.shape[1:]]))
        return self.after(ops.tensor_array_split(self.handle, value, pieces, self.flow, name=name))

    def size(self, name: str | None = None) -> Tensor:
        """How many elements there are, an int32 scalar."""
        size = self._elements.size
        if size is not None:
            return constant(size, int32, name=name)
        return ops.tensor_array_size(self.handle, self.flow, name=name)

    def close(self, name: str | None = None) -> Operation | None:
        """Drop the elements: nothing can be done with it any more."""
        return perform(ops.tensor_array_close, [self.handle], {}, name)

    @property
    def spec(self) -> TensorSpec:
        """What is known of an element."""
        return TensorSpec(self.element_shape, self.dtype)

    def __repr__(self) -> str:
        return f"<TensorArray of {self.spec}>"
