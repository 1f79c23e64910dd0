"""Instructions of the matrix unit: AMX, which multiplies tiles of pairs of bfloat16.

A tile is up to 16 lines of 64 bytes. What each of the eight registers is, a table says.

Source: "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 1, chapter 18;
volume 2, LDTILECFG, TILELOADD, TDPBF16PS.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...codegen.function import IRFunction, Value
from ..addressing import place

LINES = 16
LINE_BYTES = 64
REGISTERS = 8


def configure(fn: IRFunction, name: str, widths: Sequence[int], lines: Sequence[int]) -> None:
    """Set what the registers are: the bytes of a line and the number of lines of each.

    Args:
        fn: where it is done.
        name: of the table, in the module.
        widths: bytes.
        lines: how many.
    """
    # A palette; from byte 16 on the bytes of a line, from byte 48 on the number of lines.
    sizes = b"".join(width.to_bytes(2, "little") for width in widths)
    table = bytes([1, *bytes(15), *sizes, *bytes(16), *lines, *bytes(8)])
    text = "".join(f"\\{byte:02X}" for byte in table)
    fn.module.declarations[name] = (
        f'@{name} = private constant [{len(table)} x i8] c"{text}", align 64'
    )
    _call(fn, "ldtilecfg", "ptr", f"ptr @{name}")


def release(fn: IRFunction) -> None:
    """Have no tiles any more."""
    _call(fn, "tilerelease", "", "")


def load_tile(fn: IRFunction, register: int, address: Value | str, stride: Value | int) -> None:
    """Read a tile from an address, or a pointer; its lines are `stride` bytes apart."""
    _moved(fn, "tileloadd64", register, address, stride)


def store_tile(fn: IRFunction, register: int, address: Value | str, stride: Value | int) -> None:
    """Write a tile to lines that are `stride` bytes apart."""
    _moved(fn, "tilestored64", register, address, stride)


def zero_tile(fn: IRFunction, register: int) -> None:
    """Make a tile zero."""
    _call(fn, "tilezero", "i8 immarg", f"i8 {register}")


def add_products(fn: IRFunction, to: int, a: int, b: int) -> None:
    """Add to a tile of float32 the product of two tiles of pairs."""
    types = ", ".join(["i8 immarg"] * 3)
    _call(fn, "tdpbf16ps", types, f"i8 {to}, i8 {a}, i8 {b}")


def _moved(
    fn: IRFunction, name: str, register: int, address: Value | str, stride: Value | int
) -> None:
    at = address if isinstance(address, str) else place(fn, address)
    step = stride if isinstance(stride, Value) else f"i64 {stride}"
    _call(fn, name, "i8 immarg, ptr, i64", f"i8 {register}, ptr {at}, {step}")


def _call(fn: IRFunction, name: str, types: str, arguments: str) -> None:
    fn.module.declarations[name] = f"declare void @llvm.x86.{name}({types})"
    fn.line(f"call void @llvm.x86.{name}({arguments})")
