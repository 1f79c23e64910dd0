"""Running generated code on arrays, and compiling it for other processors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from laminar.engine.compiler.codegen.control import loop
from laminar.engine.compiler.codegen.function import POINTER, IRFunction, Module, Value
from laminar.engine.compiler.codegen.memory import address_at, store
from laminar.engine.compiler.codegen.memory import load as load_elements
from laminar.engine.compiler.target.llvm import compile_object, load_objects, vector_bytes
from laminar.engine.graph import DType, as_dtype, int64

Array = np.ndarray[Any, Any]
Body = Callable[..., Value]


def load(
    module: Module, name: str, compile: Callable[[str], bytes] = compile_object
) -> Callable[..., None]:
    """The function `name` of a module; it takes arrays, as pointers to their data, and integers."""
    (kinds,) = (f.types for f in module.functions if f.name == name)
    signature = [ctypes.c_void_p if kind == POINTER else ctypes.c_int64 for kind in kinds]
    address = load_objects([compile(module.text())], [name])[name]
    function = ctypes.CFUNCTYPE(None, *signature)(address)

    def call(*arguments: Array | int) -> None:
        for a in arguments:
            assert isinstance(a, int) or a.flags.c_contiguous
        function(*(a if isinstance(a, int) else a.ctypes.data for a in arguments))

    return call


def elementwise(
    body: Body,
    dtypes: Sequence[Any],
    result: Any,
    *,
    lanes: int = 16,
    compile: Callable[[str], bytes] = compile_object,
) -> Callable[..., Array]:
    """`body(fn, *values)` as a function of arrays: whole vectors, then what is left one by one."""
    inputs, output = [as_dtype(d) for d in dtypes], as_dtype(result)
    here = vector_bytes() if compile is compile_object else 0
    module = elementwise_module(body, inputs, output, lanes=lanes, vector_bytes=here)
    native = load(module, "kernel", compile)

    def call(*arrays: Any) -> Array:
        xs = [
            np.ascontiguousarray(a, d.numpy)
            for a, d in zip(np.broadcast_arrays(*arrays), inputs, strict=True)
        ]
        y = np.empty(xs[0].shape, output.numpy)
        native(*xs, y, y.size)
        return y

    return call


def elementwise_module(
    body: Body, inputs: Sequence[DType], output: DType, *, lanes: int = 16, vector_bytes: int = 0
) -> Module:
    """A module with the function kernel(pointers to inputs..., to the output, count)."""
    module = Module(vector_bytes)
    fn = IRFunction(module, "kernel", [POINTER] * (len(inputs) + 1) + ["i64"])
    *pointers, target, count = fn.arguments
    size = Value(fn, count, int64, 0)

    def step(width: int) -> Callable[[Value], None]:
        def at(i: Value) -> None:
            places = [address_at(fn, p, i, d.size) for p, d in zip(pointers, inputs, strict=True)]
            values = [load_elements(fn, p, d, width) for p, d in zip(places, inputs, strict=True)]
            store(fn, fn.splat(body(fn, *values), width), address_at(fn, target, i, output.size))

        return at

    whole = fn.number(0)
    if lanes:
        whole = size - fn.binary("srem", size, lanes)
        loop(fn, fn.number(0), whole, lanes, step(lanes))
    loop(fn, whole, size, 1, step(0))
    return module


class Processor:
    """Another processor to compile for.

    Args:
        triple: LLVM's name of the machine.
        name: LLVM's name of the processor.
    """

    def __init__(self, triple: str, name: str) -> None:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        target = llvm.Target.from_triple(triple)
        self._machine = target.create_target_machine(cpu=name, opt=2, reloc="pic", jit=True)
        self._triple = triple

    def _parsed(self, text: str) -> Any:
        module = llvm.parse_assembly(text)
        module.triple = self._triple
        module.data_layout = str(self._machine.target_data)
        return module

    def compile(self, text: str, suffix: str = "") -> bytes:
        """Object code of IR text; `suffix` goes behind the name of each function."""
        module = self._parsed(text)
        for function in [f for f in module.functions if not f.is_declaration]:
            function.name += suffix
        module.verify()
        code: bytes = self._machine.emit_object(module)
        return code

    def assembly(self, text: str) -> str:
        """The assembly that IR text becomes."""
        found: str = self._machine.emit_assembly(self._parsed(text))
        return found
