"""Running generated code on arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from laminar.engine.compiler.emit import POINTER, Function, Module, Value
from laminar.engine.compiler.llvm import compile_object, load_object
from laminar.engine.graph import DType, as_dtype

Array = np.ndarray[Any, Any]


def load(module: Module, name: str) -> Callable[..., None]:
    """The function `name` of a module; it takes arrays, as pointers to their data, and integers."""
    (address,) = load_object(compile_object(module.text()), [name]).values()
    kinds = [f._types for f in module.functions if f.name == name][0]
    signature = [ctypes.c_void_p if kind == POINTER else ctypes.c_int64 for kind in kinds]
    function = ctypes.CFUNCTYPE(None, *signature)(address)

    def call(*arguments: Array | int) -> None:
        for a in arguments:
            assert isinstance(a, int) or a.flags.c_contiguous
        function(*(a if isinstance(a, int) else a.ctypes.data for a in arguments))

    return call


def elementwise(
    body: Callable[..., Value],
    dtypes: Sequence[Any],
    result: Any,
    *,
    lanes: int = 16,
) -> Callable[..., Array]:
    """`body(fn, *values)` as a function of arrays: whole vectors first, the rest one by one."""
    types = [as_dtype(d) for d in dtypes]
    out = as_dtype(result)
    module = elementwise_module(body, types, out, lanes=lanes)
    native = load(module, "kernel")

    def call(*arrays: Array) -> Array:
        broadcast = np.broadcast_arrays(*arrays)
        inputs = [
            np.ascontiguousarray(a, dtype=t.numpy) for a, t in zip(broadcast, types, strict=True)
        ]
        y = np.empty(inputs[0].shape, out.numpy)
        native(*inputs, y, y.size)
        return y

    return call


def elementwise_module(
    body: Callable[..., Value], dtypes: Sequence[DType], result: DType, *, lanes: int
) -> Module:
    """The module of `elementwise`: kernel(inputs..., output, count)."""
    module = Module()
    fn = Function(module, "kernel", [POINTER] * (len(dtypes) + 1) + ["i64"])
    *inputs, output, count = fn.arguments
    size = fn.named(f"add i64 {count}, 0")
    length = Value(fn, size, as_dtype("int64"), 0)
    whole = length - fn.binary("srem", length, max(lanes, 1))

    def step(width: int) -> Callable[[Value], None]:
        def at(i: Value) -> None:
            values = [
                fn.load(fn.offset(p, i, d.size), d, width)
                for p, d in zip(inputs, dtypes, strict=True)
            ]
            fn.store(fn.splat(body(fn, *values), width), fn.offset(output, i, result.size))

        return at

    if lanes:
        fn.loop(fn.number(0), whole, lanes, step(lanes))
    fn.loop(whole if lanes else fn.number(0), length, 1, step(0))
    return module
