"""Reading and writing memory in generated code: vectors, strided elements, tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...graph import DType, bool_, float64
from ..ir.element_types import HALVES
from ..target.llvm import has_gathers, has_masks, has_scatters
from .function import IRFunction
from .half_precision import in_memory, widened
from .values import SUFFIXES, Value, element_bytes, literal, scalar_type, vector_type


def address_at(fn: IRFunction, pointer: str, index: Value, size: int) -> str:
    """The address `index` elements of `size` bytes after `pointer`."""
    if index.name == "0":
        return pointer
    scaled = index if size == 1 else index * size
    return fn.named(f"getelementptr inbounds i8, ptr {pointer}, i64 {scaled.name}")


def room(fn: IRFunction, size: int) -> str:
    """The address of `size` bytes on the stack, at a line of the cache."""
    return fn.named(f"alloca [{size} x i8], align 64")


def prefetch(fn: IRFunction, pointer: str) -> None:
    """Fetch a line into the L1 cache, to read it; any address will do."""
    fn.module.declarations["llvm.prefetch.p0"] = (
        "declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)"
    )
    fn.line(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 3, i32 1)")


def load_pointer(fn: IRFunction, pointer: str) -> str:
    """The address stored at an address."""
    return fn.named(f"load ptr, ptr {pointer}, align 8")


def _element(dtype: DType) -> str:
    """LLVM's type of an element in memory."""
    if dtype == bool_:
        return "i8"
    return "i16" if dtype in HALVES else scalar_type(dtype)


def _read(fn: IRFunction, raw: str, dtype: DType, lanes: int) -> Value:
    """What has been read from memory, as it is in registers."""
    if dtype == bool_:
        zero = "zeroinitializer" if lanes else "0"
        return fn.instruction(f"icmp ne {vector_type('i8', lanes)} {raw}, {zero}", bool_, lanes)
    if dtype in HALVES:
        return widened(fn, raw, dtype, lanes)
    return Value(fn, raw, dtype, lanes)


def load(
    fn: IRFunction, pointer: str, dtype: DType, lanes: int, mask: Value | None = None
) -> Value:
    """Elements at an address; lanes outside of `mask` are 0."""
    return _read(fn, _load(fn, _element(dtype), pointer, lanes, mask), dtype, lanes)


def _load(fn: IRFunction, element: str, pointer: str, lanes: int, mask: Value | None) -> str:
    kind = vector_type(element, lanes)
    size = element_bytes(element)
    if mask is None:
        return fn.named(f"load {kind}, ptr {pointer}, align {size}")
    count = fn.counts.get(mask.name)
    if count is not None and not has_masks(fn.module.vector_bytes, size):
        if (known := _num_known(count, lanes)) > 0:
            return _load_few(fn, element, pointer, known, lanes)
        return _load_each(fn, element, pointer, fn.number(size), lanes, count)
    mangled = f"llvm.masked.load.v{lanes}{SUFFIXES[element]}.p0"
    masks = f"<{lanes} x i1>"
    fn.module.declarations[mangled] = f"declare {kind} @{mangled}(ptr, i32 immarg, {masks}, {kind})"
    return fn.named(
        f"call {kind} @{mangled}(ptr {pointer}, i32 {size}, {mask}, {kind} zeroinitializer)"
    )


# Where a processor has no instruction for some lanes alone, LLVM branches for each of them. What
# follows reads and writes as many as there are where that is known, else one by one, those that are
# not there at another address: nothing jumps.


def _num_known(count: Value | None, lanes: int) -> int:
    """How many lanes there are where that is known; else -1."""
    return min(int(count.name), lanes) if count is not None and count.is_constant else -1


def _addresses(
    fn: IRFunction, pointer: str, stride: Value, lanes: int, count: Value | None, other: str
) -> list[str]:
    """`pointer` + lane * `stride` bytes for each lane; `other` for those from `count` on."""
    found = []
    for lane in range(lanes):
        address = address_at(fn, pointer, stride * lane, 1) if lane else pointer
        if count is not None:
            address = fn.named(f"select {count > lane}, ptr {address}, ptr {other}")
        found.append(address)
    return found


def _places(lanes: Iterable[int]) -> str:
    """The mask of a shuffle."""
    places = [f"i32 {lane}" for lane in lanes]
    return f"<{len(places)} x i32> <{', '.join(places)}>"


def _load_few(fn: IRFunction, element: str, pointer: str, count: int, lanes: int) -> str:
    """`count` elements, and 0 in the lanes after them."""
    few, size = vector_type(element, count), element_bytes(element)
    x = fn.named(f"load {few}, ptr {pointer}, align {size}")
    # Of zeros that it sees, LLVM 22 takes the quotient for zero and leaves out a mask.
    zero = fn.named(f"load {element}, ptr {_no_element(fn)}, align {size}")
    zeros = fn.named(f"insertelement {few} poison, {element} {zero}, i64 0")
    places = _places(min(lane, count) for lane in range(lanes))
    return fn.named(f"shufflevector {few} {x}, {few} {zeros}, {places}")


def _no_element(fn: IRFunction) -> str:
    """The address of a zero that LLVM does not see."""
    fn.module.declarations["no_element"] = "@no_element = private global i64 0"
    return "@no_element"


def _load_each(
    fn: IRFunction, element: str, pointer: str, stride: Value, lanes: int, count: Value | None
) -> str:
    """Elements that stand `stride` bytes apart; lanes from `count` on are 0."""
    kind, size = vector_type(element, lanes), element_bytes(element)
    found = "poison"
    for lane, address in enumerate(_addresses(fn, pointer, stride, lanes, count, _no_element(fn))):
        x = fn.named(f"load {element}, ptr {address}, align {size}")
        found = fn.named(f"insertelement {kind} {found}, {element} {x}, i64 {lane}")
    return found


def _store_each(
    fn: IRFunction,
    element: str,
    name: str,
    pointer: str,
    stride: Value,
    lanes: int,
    count: Value | None,
) -> None:
    """Write elements `stride` bytes apart; lanes from `count` on go where nobody reads."""
    kind, size = vector_type(element, lanes), element_bytes(element)
    nowhere = fn.nowhere() if count is not None else ""
    for lane, address in enumerate(_addresses(fn, pointer, stride, lanes, count, nowhere)):
        x = fn.named(f"extractelement {kind} {name}, i64 {lane}")
        fn.line(f"store {element} {x}, ptr {address}, align {size}")


def _spread(fn: IRFunction, pointer: str, stride: Value, lanes: int) -> str:
    """The addresses `pointer` + lane * `stride` bytes."""
    wide = f"<{lanes} x i64>"
    steps = ", ".join(f"i64 {i}" for i in range(lanes))
    offsets = fn.named(f"mul {wide} <{steps}>, {fn.splat(stride, lanes).name}")
    return fn.named(f"getelementptr i8, ptr {pointer}, {wide} {offsets}")


def _mask(mask: Value | None, lanes: int) -> str:
    return f"<{lanes} x i1> splat (i1 true)" if mask is None else str(mask)


def gather(
    fn: IRFunction, addresses: str, dtype: DType, lanes: int, mask: Value | None = None
) -> Value:
    """Elements at a vector of addresses; lanes outside of `mask` are 0."""
    element = _element(dtype)
    kind = vector_type(element, lanes)
    mangled = f"llvm.masked.gather.v{lanes}{SUFFIXES[element]}.v{lanes}p0"
    fn.module.declarations[mangled] = (
        f"declare {kind} @{mangled}(<{lanes} x ptr>, i32 immarg, <{lanes} x i1>, {kind})"
    )
    raw = fn.named(
        f"call {kind} @{mangled}(<{lanes} x ptr> {addresses}, i32 {element_bytes(element)}, "
        f"{_mask(mask, lanes)}, {kind} zeroinitializer)"
    )
    return _read(fn, raw, dtype, lanes)


def load_strided(
    fn: IRFunction, pointer: str, stride: Value, dtype: DType, lanes: int, mask: Value | None = None
) -> Value:
    """Elements that stand `stride` bytes apart; lanes outside of `mask` are 0."""
    count = None if mask is None else fn.counts.get(mask.name)
    if (mask is None or count is not None) and not has_gathers(fn.module.vector_bytes):
        raw = _load_each(fn, _element(dtype), pointer, stride, lanes, count)
        return _read(fn, raw, dtype, lanes)
    return gather(fn, _spread(fn, pointer, stride, lanes), dtype, lanes, mask)


def store_strided(
    fn: IRFunction, x: Value, pointer: str, stride: Value, mask: Value | None = None
) -> None:
    """Write elements `stride` bytes apart, those of `mask` alone."""
    lanes = x.lanes
    element, name = in_memory(fn, x)
    count = None if mask is None else fn.counts.get(mask.name)
    if (mask is None or count is not None) and not has_scatters(fn.module.vector_bytes):
        _store_each(fn, element, name, pointer, stride, lanes, count)
        return
    kind = vector_type(element, lanes)
    mangled = f"llvm.masked.scatter.v{lanes}{SUFFIXES[element]}.v{lanes}p0"
    fn.module.declarations[mangled] = (
        f"declare void @{mangled}({kind}, <{lanes} x ptr>, i32 immarg, <{lanes} x i1>)"
    )
    addresses = _spread(fn, pointer, stride, lanes)
    fn.line(
        f"call void @{mangled}({kind} {name}, <{lanes} x ptr> {addresses}, "
        f"i32 {element_bytes(element)}, {_mask(mask, lanes)})"
    )


def store(fn: IRFunction, x: Value, pointer: str, mask: Value | None = None) -> None:
    """Write elements to an address, those of `mask` alone."""
    count = None if mask is None else fn.counts.get(mask.name)
    if count is not None and count.name == "1":
        # Under such a mask LLVM 22 writes elements that it narrows as wide as they were.
        x, mask = fn.element(x, 0), None
    element, name = in_memory(fn, x)
    kind = vector_type(element, x.lanes)
    size = element_bytes(element)
    if mask is None:
        fn.line(f"store {kind} {name}, ptr {pointer}, align {size}")
        return
    if count is not None and not has_masks(fn.module.vector_bytes, size):
        if (known := _num_known(count, x.lanes)) > 0:
            few = vector_type(element, known)
            part = fn.named(f"shufflevector {kind} {name}, {kind} poison, {_places(range(known))}")
            fn.line(f"store {few} {part}, ptr {pointer}, align {size}")
            return
        _store_each(fn, element, name, pointer, fn.number(size), x.lanes, count)
        return
    mangled = f"llvm.masked.store.v{x.lanes}{SUFFIXES[element]}.p0"
    masks = f"<{x.lanes} x i1>"
    fn.module.declarations[mangled] = f"declare void @{mangled}({kind}, ptr, i32 immarg, {masks})"
    fn.line(f"call void @{mangled}({kind} {name}, ptr {pointer}, i32 {size}, {mask})")


def lookup(fn: IRFunction, name: str, table: Sequence[float], index: Value) -> Value:
    """The element of a constant table of float64, called `name`, at each int64 index."""
    lanes = index.lanes
    elements = ", ".join(f"double {literal(x, 'double')}" for x in table)
    kind = f"[{len(table)} x double]"
    fn.module.declarations[name] = f"@{name} = private constant {kind} [{elements}]"
    address = fn.named(f"getelementptr double, ptr @{name}, {index}")
    if not lanes:
        return load(fn, address, float64, 0)
    return gather(fn, address, float64, lanes)


def first_lanes(fn: IRFunction, count: Value, lanes: int) -> Value:
    """The mask of the first `count` lanes."""
    wide = f"<{lanes} x i64>"
    steps = ", ".join(f"i64 {i}" for i in range(lanes))
    limit = fn.splat(count, lanes)
    mask = fn.instruction(f"icmp slt {wide} <{steps}>, {limit.name}", bool_, lanes)
    fn.counts[mask.name] = count
    return mask
