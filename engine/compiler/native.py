"""Native functions of clusters: made for the shapes that come, called on NumPy arrays.

`_prepared[input shapes]` is what a call needs; `_compiled[pattern]` the code, which shapes of one
pattern share (a batch of another size never compiles again).
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InternalError, UnimplementedError
from ..graph import Array, Operation, TensorSpec
from ..ops.cluster import Body, Step, run_steps, set_compiler
from ..ops.registry import HOST, OpDef
from . import llvm
from .cache import cached
from .emit import POINTER, Function, Module, NotLoweredError, Value, scalar_type
from .generate import DATA_OFFSET, SYMBOL, evaluate, generate
from .nests import Shape, make_loops, make_nests, shapes_of

_log = logging.getLogger(__name__)

_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)

# Ops that are lowered without a scalar expression.
_PLAIN = frozenset(
    {"Const", "Identity", "StopGradient", "BroadcastTo", "Cast", "ZerosLike", "OnesLike"}
)


class _Prepared:
    """What a call with inputs of certain shapes needs."""

    __slots__ = ("allocate", "entry", "sizes", "table")

    def __init__(
        self, entry: Any, sizes: Any, allocate: list[tuple[Shape, np.dtype[Any]]], table: Any
    ) -> None:
        self.entry = entry
        self.sizes = sizes
        self.allocate = allocate
        self.table = table


class NativeCluster:
    """A body as a function of arrays."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._prepared: dict[tuple[Shape, ...], _Prepared] = {}
        self._compiled: dict[Any, Any] = {}
        self._num_outputs = len(body.outputs)
        self._refused = False

    def __call__(self, *arrays: Array) -> Any:
        """The output arrays (one by itself) for the input arrays."""
        shapes = tuple([a.shape for a in arrays])
        prepared = self._prepared.get(shapes)
        if prepared is None:
            prepared = self._prepare_or_refuse(shapes)
            if prepared is None:
                return run_steps(HOST, *arrays, body=self._body)
        objects = [
            a if type(a) is np.ndarray and a.flags.c_contiguous else np.asarray(a, order="C").view()
            for a in arrays
        ]
        made = [np.empty(shape, dtype) for shape, dtype in prepared.allocate]
        table = prepared.table(*map(id, objects), *map(id, made))
        prepared.entry(table, prepared.sizes)
        return made[0] if self._num_outputs == 1 else made[: self._num_outputs]

    def _prepare_or_refuse(self, shapes: tuple[Shape, ...]) -> _Prepared | None:
        """What a call needs; None when no code can be made, and the reference kernels run."""
        if self._refused:
            return None
        try:
            prepared = self._prepare(shapes)
        except (UnimplementedError, InternalError, RuntimeError) as error:
            self._refused = True
            _log.debug("a cluster of %d steps is not compiled: %s", len(self._body.steps), error)
            return None
        self._prepared[shapes] = prepared
        return prepared

    def _prepare(self, inputs: tuple[Shape, ...]) -> _Prepared:
        body = self._body
        shapes = shapes_of(body, inputs)
        nests = make_nests(body, shapes)
        loops = [make_loops(nest, shapes) for nest in nests]
        stored = [v for nest in nests for v in nest.writes if v not in body.outputs]
        in_memory = [*range(body.num_inputs), *body.outputs, *stored]
        slots = {v: i for i, v in enumerate(in_memory)}
        pattern = tuple(
            (tuple(nest.steps), tuple(nest.reads), tuple(nest.writes), nest_loops.pattern)
            for nest, nest_loops in zip(nests, loops, strict=True)
        )
        entry = self._compiled.get(pattern)
        if entry is None:
            text = generate(body, nests, loops, slots, llvm.vector_bytes())
            code = cached(llvm.identity(), text, llvm.compile_object)
            entry = _ENTRY(llvm.load_object(code, [SYMBOL])[SYMBOL])
            self._compiled[pattern] = entry
        numbers: list[int] = []
        for nest_loops in loops:
            numbers.extend(nest_loops.sizes)
            for strides in nest_loops.strides:
                numbers.extend(strides[:-1])
        sizes = (ctypes.c_int64 * max(len(numbers), 1))(*numbers)
        allocate = [(shapes[v], body.specs[v].dtype.numpy) for v in in_memory[body.num_inputs :]]
        return _Prepared(entry, sizes, allocate, ctypes.c_void_p * len(in_memory))


class NativeCompiler:
    """Compiles clusters for this host; `_known` remembers which kinds of operation it accepts."""

    def __init__(self) -> None:
        self._known: dict[Any, bool] = {}

    def accepts(self, op: Operation) -> bool:
        """Whether the operation works element by element, in types that have native code."""
        definition: OpDef = op.definition  # type: ignore[assignment]  # the table's only kind
        kind = definition.type
        if definition.scalar is None and kind not in _PLAIN:
            return False
        if len(op.outputs) != 1 or any(t.shape.rank is None for t in (*op.inputs, *op.outputs)):
            return False
        if kind == "Const":
            (y,) = op.outputs
            return y.shape.num_elements() == 1 and len(y.shape) == 0 and _has_type(y.spec)
        if kind == "BroadcastTo" and len(op.inputs) != 1:
            return False
        try:
            key = (
                kind,
                tuple(x.dtype for x in op.inputs),
                op.outputs[0].dtype,
                tuple(sorted(op.attrs.items())) if kind != "BroadcastTo" else (),
            )
            known = self._known.get(key)
        except TypeError:  # an attribute that cannot be compared
            return False
        if known is None:
            known = self._known[key] = _can_lower(definition, op)
        return known

    def build(self, body: Body) -> Callable[..., Any] | None:
        """The native function of a body; None where the host's Python is laid out otherwise."""
        return NativeCluster(body) if _layout_is_known() else None


def _has_type(spec: TensorSpec) -> bool:
    try:
        scalar_type(spec.dtype)
    except NotLoweredError:
        return False
    return True


def _can_lower(definition: OpDef, op: Operation) -> bool:
    """Whether one step of the operation can be written."""
    if not all(_has_type(t.spec) for t in (*op.inputs, *op.outputs)):
        return False
    fn = Function(Module(), "trial", [POINTER])
    values = [Value(fn, f"%x{i}", x.dtype, 4) for i, x in enumerate(op.inputs)]
    step = Step(definition, tuple(range(len(values))), op.attrs, len(values))
    try:
        evaluate(fn, step, values, op.outputs[0].dtype, 4)
    except UnimplementedError:
        return False
    return True


def _layout_is_known() -> bool:
    """Whether the data pointer of an array is where the native code looks for it."""
    probe: Sequence[Any] = [np.zeros(3), np.zeros((2, 2), np.float32), np.zeros(())]
    return all(
        ctypes.c_void_p.from_address(id(a) + DATA_OFFSET).value == a.ctypes.data for a in probe
    )


set_compiler(NativeCompiler())
