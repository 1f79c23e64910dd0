"""What writes nodes of TensorFlow, and the table of rules that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import UnimplementedError
from ...graph import DType, GraphTensor, Operation, TensorShape
from .graph_def import NUMBERS

INT32 = DType("int32")
VARIANT = "variant"  # TensorFlow's type of lists
_VARIANT_NUMBER = 21


class Writer:
    """Adds nodes.

    In a loop a constant has to wait for something there, or it would stand outside.

    Args:
        message: the GraphDef.

    State: `_depths` are the numbers of loops around operations, by id(), where there are some;
    `_beside` is what constants of the operation at hand wait for.

    Attributes:
        outputs: the names of what gives the graph's tensors, by id().
        variants: ids of the handles that are lists of TensorFlow's.
    """

    def __init__(self, message: Any) -> None:
        self._message = message
        self._device = ""
        self._controls: list[str] = []
        self._beside: list[str] = []
        self._depths: dict[int, int] = {}
        self._scope = ""
        self.outputs: dict[int, str] = {}
        self.variants: set[int] = set()

    def begin(self, op: Operation) -> None:
        """What is added now belongs to an operation."""
        self._device = op.device.replace(":cpu:", ":CPU:").replace(":gpu:", ":GPU:")
        self._controls = [c.name for c in op.control_inputs]
        self._scope = op.name
        inside = [x for x in op.inputs if self._depths.get(id(x.op))]
        before = [*(x.op for x in inside), *op.control_inputs]
        depth = max((self._depths.get(id(o), 0) for o in before), default=0)
        depth += (op.type == "Enter") - (op.type == "Exit")
        if depth:
            self._depths[id(op)] = depth
        self._beside = []
        if depth and inside and op.type not in ("Enter", "Merge"):
            self._beside = [self.outputs[id(inside[0])].partition(":")[0]]

    def end(self) -> None:
        """What is added now belongs to none."""
        self._device, self._scope, self._controls, self._beside = "", "", [], []

    def dtype(self, x: GraphTensor) -> DType | str:
        """The element type of a tensor there."""
        return VARIANT if id(x) in self.variants else x.dtype

    def names(self, tensors: Iterable[GraphTensor]) -> list[str]:
        """What gives each of these."""
        return [self._inside(x) if self._beside else self.outputs[id(x)] for x in tensors]

    def _inside(self, x: GraphTensor) -> str:
        """What gives a tensor in a loop: a constant from outside is written again."""
        if x.op.type != "Const" or id(x.op) in self._depths:
            return self.outputs[id(x)]
        return self.constant(f"{self._scope}/{x.op.name}", x.op.attrs["value"])

    def node(
        self,
        name: str,
        op: str,
        inputs: Sequence[str] = (),
        after: Sequence[str] = (),
        **attrs: Any,
    ) -> str:
        """Add a node; gives its name."""
        made = self._message.node.add(name=name, op=op, device=self._device)
        made.input.extend([*inputs, *(f"^{c}" for c in (*self._controls, *after))])
        for key, value in attrs.items():
            _write(made.attr[key], value)
        return name

    def constant(self, name: str, value: Any) -> str:
        """Add a constant."""
        array = np.asarray(value)
        dtype = DType("string" if array.dtype == object else str(array.dtype))
        return self.node(name, "Const", (), self._beside, dtype=dtype, value=array)

    def ints(self, name: str, values: Any) -> str:
        """Add a constant of int32."""
        return self.constant(name, np.array(values, np.int32))

    def vector(self, name: str, sizes: Sequence[int | str]) -> str:
        """Add a vector of int32, of numbers and of what nodes give."""
        if not any(isinstance(size, str) for size in sizes):
            return self.ints(name, sizes)
        parts = [
            size if isinstance(size, str) else self.ints(f"{name}/size_{i}", size)
            for i, size in enumerate(sizes)
        ]
        return self.node(name, "Pack", parts, T=INT32, N=len(parts), axis=0)

    def size(self, name: str, x: GraphTensor, axis: int) -> int | str:
        """One size of a tensor."""
        known = None if x.shape.rank is None else x.shape[axis]
        if known is not None:
            return known
        sizes = self.node(f"{name}/sizes", "Shape", self.names([x]), T=x.dtype, out_type=INT32)
        kinds = {"Tparams": INT32, "Tindices": INT32, "Taxis": INT32}
        place, along = self.ints(f"{name}/place", axis), self.ints(f"{name}/along", 0)
        return self.node(name, "GatherV2", [sizes, place, along], batch_dims=0, **kinds)

    def give(self, op: Operation, names: Sequence[str]) -> None:
        """Say what gives the outputs of an operation."""
        self.outputs.update({id(y): name for y, name in zip(op.outputs, names, strict=True)})

    def shape(self, op: Operation, sizes: Sequence[int | None], dims: Sequence[GraphTensor]) -> str:
        """A vector of sizes, of which those that are None come from scalars."""
        given = iter(self.names(dims))
        return self.vector(f"{op.name}/shape", [next(given) if n is None else n for n in sizes])


def _write(attr: Any, value: Any) -> None:
    """An attribute."""
    if isinstance(value, DType) or value is VARIANT:
        attr.type = _number(value)
    elif isinstance(value, float):
        attr.f = value
    elif isinstance(value, bool):
        attr.b = value
    elif isinstance(value, int):
        attr.i = value
    elif isinstance(value, str):
        attr.s = value.encode()
    elif isinstance(value, TensorShape):
        attr.shape.SetInParent()  # a scalar's has nothing in it
        write_shape(attr.shape, value)
    elif isinstance(value, np.ndarray):
        write_array(attr.tensor, value)
    elif value and isinstance(value[0], int):
        attr.list.i.extend(value)
    elif value and isinstance(value[0], TensorShape):
        for shape in value:
            write_shape(attr.list.shape.add(), shape)
    else:
        attr.list.SetInParent()
        attr.list.type.extend(_number(dtype) for dtype in value)


def _number(dtype: str) -> int:
    """TensorFlow's number of an element type."""
    return _VARIANT_NUMBER if dtype is VARIANT else NUMBERS[str(dtype)]


def write_shape(message: Any, shape: TensorShape) -> None:
    """Be a shape: a TensorShapeProto."""
    if shape.rank is None:
        message.unknown_rank = True
        return
    for size in shape:
        message.dim.add(size=-1 if size is None else size)


def write_array(message: Any, array: np.ndarray[Any, Any]) -> None:
    """Be an array: a TensorProto."""
    is_text = array.dtype == object
    message.tensor_shape.SetInParent()
    message.dtype = NUMBERS["string" if is_text else str(array.dtype)]
    write_shape(message.tensor_shape, TensorShape(array.shape))
    if is_text:
        message.string_val.extend(
            x if isinstance(x, bytes) else str(x).encode() for x in array.flat
        )
    else:
        message.tensor_content = np.ascontiguousarray(array).tobytes()


Rule = Callable[[Writer, Operation], None]
RULES: dict[str, Rule] = {}


def rule(*types: str) -> Callable[[Rule], Rule]:
    """Register a rule for operations of these types."""

    def register(fn: Rule) -> Rule:
        RULES.update(dict.fromkeys(types, fn))
        return fn

    return register


def refused(op: Operation, why: str) -> UnimplementedError:
    """The error of an operation, one use of which has no form in TensorFlow."""
    return UnimplementedError(
        f"{op.name!r} ({op.type}) has no form for TensorFlow: {why}",
        remedy="export the graph in laminar's own form; ONNX has more of a model's operations",
    )
