"""The nodes of a graph of ONNX, as they are made of operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from laminar.engine.graph import GraphTensor, Operation, TensorSpec, as_dtype

from .library import element_type, library
from .scalars import expression_of, written_elementwise
from .table import RULES, refused

Array = np.ndarray[Any, Any]


class GraphWriter:
    """Writes operations as nodes.

    Attributes:
        nodes: what has been written, in order.
        names: by tensor, what its value is called; bodies of loops see those around them.
        arrays: by name, values that are known: variables and constants. They belong to the
            outermost graph, and are in the file where a node uses them.

    Args:
        outer: the writer of the graph that holds this one, a body.
    """

    def __init__(self, outer: GraphWriter | None = None) -> None:
        self.nodes: list[Any] = []
        self.names: dict[GraphTensor, str] = {} if outer is None else dict(outer.names)
        self.arrays: dict[str, Array] = {} if outer is None else outer.arrays
        self._numbers: Iterator[int] = count() if outer is None else outer._numbers
        self._constants: dict[tuple[Any, ...], str] = {} if outer is None else outer._constants

    def unique(self, base: str) -> str:
        """A name that no other value has."""
        return f"{base}_{next(self._numbers)}"

    def node(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """A node with one output; its name."""
        return self.nodes_of(kind, inputs, 1, name, **attributes)[0]

    def nodes_of(
        self,
        kind: str,
        inputs: Sequence[str],
        outputs: int,
        name: str | None = None,
        **attributes: Any,
    ) -> list[str]:
        """A node with several outputs; their names."""
        base = kind if name is None else name
        made = [self.unique(base) for _ in range(outputs)]
        given = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(library().helper.make_node(kind, list(inputs), made, made[0], **given))
        return made

    def known(self, name: str) -> Array | None:
        """The value of a variable or constant; None of what is computed."""
        return self.arrays.get(name)

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A constant; equal ones are one."""
        array = np.asarray(value, None if dtype is None else as_dtype(dtype).numpy)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.array("constant", array)
        return self._constants[key]

    def array(self, base: str, array: Array) -> str:
        """A value that is known."""
        name = self.unique(base)
        self.arrays[name] = array
        return name

    def ints(self, values: Iterable[int]) -> str:
        """A vector of int64, such as axes and shapes."""
        return self.constant(list(values), "int64")

    # What rules use often

    def cast(self, name: str, dtype: Any) -> str:
        """The value as another element type."""
        array = self.known(name)
        if array is not None:
            return self.constant(array.astype(as_dtype(dtype).numpy))
        return self.cast_at_run_time(name, dtype)

    def cast_at_run_time(self, name: str, dtype: Any) -> str:
        """The value as another element type, also of what is known: the file has it as it is."""
        return self.node("Cast", name, to=element_type(dtype))

    def transpose(self, name: str, axes: Sequence[int]) -> str:
        """The value with its axes in another order; what is known is turned now."""
        if list(axes) == sorted(axes):
            return name
        array = self.known(name)
        if array is not None:
            return self.array(name, np.ascontiguousarray(array.transpose(axes)))
        return self.node("Transpose", name, perm=list(axes))

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """The value under a known shape, in which one entry may be -1."""
        array = self.known(name)
        if array is not None:
            return self.array(name, array.reshape(shape))
        return self.node("Reshape", name, self.ints(shape), allowzero=int(0 in shape))

    def shape_vector(self, dims: Sequence[int | None], given: Sequence[str]) -> str:
        """A shape as a vector: each None comes from `given`, which are scalars."""
        if None not in dims:
            return self.ints(d for d in dims if d is not None)
        rest = iter(given)
        parts = [self.vector(next(rest)) if d is None else self.ints([d]) for d in dims]
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=0)

    def vector(self, scalar: str) -> str:
        """A whole number as a vector of one int64."""
        return self.node("Reshape", self.cast(scalar, "int64"), self.ints([1]))

    # Operations

    def write(self, operations: Iterable[Operation]) -> None:
        """Write operations, inputs before what uses them.

        Raises:
            UnimplementedError: there is no rule for one.
        """
        for op in operations:
            if all(y in self.names for y in op.outputs):
                continue
            found = self._written(op, [self.names[x] for x in op.inputs])
            names = [found] if isinstance(found, str) else found
            self.names.update(zip(op.outputs, names, strict=False))

    def _written(self, op: Operation, names: Sequence[str]) -> str | Sequence[str]:
        rule = RULES.get(op.type)
        if rule is not None:
            return rule(self, op, *names)
        if expression_of(op) is not None:
            return written_elementwise(self, op, names)
        raise refused(op, "ONNX has no counterpart here")

    def described(self, name: str, spec: TensorSpec, dims: Sequence[Any] | None = None) -> Any:
        """What ONNX says of an input or output: name, element type and shape."""
        shape = None if spec.shape.rank is None else list(spec.shape)
        return library().helper.make_tensor_value_info(
            name, element_type(spec.dtype), shape if dims is None else dims
        )
