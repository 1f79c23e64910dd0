"""Small pieces that kernels are written with: addresses are int64 values, sizes come in words."""

from __future__ import annotations

from collections.abc import Sequence

from ...graph import DType, int64
from ..codegen.function import IRFunction, Module, Value, scalar_type
from ..codegen.memory import load as load_elements
from ..codegen.memory import store as store_elements
from ..codegen.values import vector_type

WORD_BYTES = 8


def function(module: Module, name: str, num_arguments: int) -> tuple[IRFunction, list[Value]]:
    """A function of integers and addresses, which are integers here."""
    fn = IRFunction(module, name, ["i64"] * num_arguments)
    return fn, [Value(fn, a, int64, 0) for a in fn.arguments]


def place(fn: IRFunction, address: Value) -> str:
    """An address as LLVM's pointer."""
    return fn.named(f"inttoptr {address} to ptr")


def load(
    fn: IRFunction,
    address: Value,
    dtype: DType,
    lanes: int = 0,
    mask: Value | None = None,
    *,
    is_fixed: bool = False,
) -> Value:
    """Elements at an address; lanes outside of `mask` are 0.

    If it `is_fixed`, it is done once, where it is written; one with a mask always is.
    """
    if is_fixed and mask is None:
        kind = vector_type(scalar_type(dtype), lanes)
        text = f"load volatile {kind}, ptr {place(fn, address)}, align {dtype.size}"
        return fn.instruction(text, dtype, lanes)
    return load_elements(fn, place(fn, address), dtype, lanes, mask)


def store(fn: IRFunction, x: Value, address: Value, mask: Value | None = None) -> None:
    """Write elements to an address."""
    store_elements(fn, x, place(fn, address), mask)


def prefetch(fn: IRFunction, address: Value, *, write: bool = False, level: int = 1) -> None:
    """Fetch a line into a cache, to read it or to write it."""
    fn.module.declarations["llvm.prefetch.p0"] = (
        "declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)"
    )
    how = f"i32 {int(write)}, i32 {4 - level}, i32 1"
    fn.line(f"call void @llvm.prefetch.p0(ptr {place(fn, address)}, {how})")


def word(fn: IRFunction, block: Value, index: int | Value) -> Value:
    """Word `index` of a block of words."""
    return load(fn, block + index * WORD_BYTES, int64)


class Words:
    """The words at an address by name, in the order of `names`; loaded where they are asked for."""

    def __init__(self, fn: IRFunction, block: Value, names: Sequence[str]) -> None:
        self._fn = fn
        self._block = block
        self._names = {name: i for i, name in enumerate(names)}

    def __getitem__(self, name: str) -> Value:
        return word(self._fn, self._block, self._names[name])


def minimum(fn: IRFunction, a: Value, b: Value) -> Value:
    """The smaller one."""
    return fn.select(a < b, a, b)


def quotient(fn: IRFunction, a: Value, b: Value) -> tuple[Value, Value]:
    """a // b and a % b of numbers that are not negative."""
    whole = fn.binary("udiv", a, b)
    return whole, a - whole * b


def share(fn: IRFunction, total: Value, tid: Value, nth: Value) -> tuple[Value, Value]:
    """The first unit of `total` for thread `tid` of `nth`, and the one after its last."""
    return fn.binary("udiv", total * tid, nth), fn.binary("udiv", total * (tid + 1), nth)


def invoke(fn: IRFunction, target: Value | str, *arguments: Value) -> None:
    """Call the function at an address, or the one of a name in this module."""
    callee = f"@{target}" if isinstance(target, str) else place(fn, target)
    fn.line(f"call void {callee}({', '.join(map(str, arguments))})")
