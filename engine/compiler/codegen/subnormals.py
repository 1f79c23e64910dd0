"""The control word of the processor that has numbers below the normal ones count as 0.

Such subnormal numbers (below 2^-126 in float32, 2^-1022 in float64) cost a processor up to a
hundred times as much as others, and a training step comes to have many: moments of units that get
no gradient any more decay through them. So native code takes them for 0, of the same sign, where it
computes with them, and gives 0 for them. Where it only moves numbers, they keep their bits; so do
those of float16, which are normal numbers of the float32 that is computed with.

Sources: "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 1, section 10.2.3
    (MXCSR: DAZ, FTZ); "Arm Architecture Reference Manual", A-profile, FPCR (FZ).
"""

from __future__ import annotations

from collections.abc import Callable

from ...graph import int64
from ..target import host
from .function import IRFunction

_X86 = 1 << 6 | 1 << 15  # subnormal operands are 0, and so are results
_ARM = 1 << 24  # both


def flushed(fn: IRFunction, body: Callable[[], object]) -> None:
    """Write what runs with subnormal numbers as 0; after it the thread computes as before."""
    if host.is_x86():
        _on_x86(fn, body)
    elif host.is_arm():
        _on_arm(fn, body)
    else:
        body()


def _on_x86(fn: IRFunction, body: Callable[[], object]) -> None:
    names = "llvm.x86.sse.stmxcsr", "llvm.x86.sse.ldmxcsr"
    fn.module.declarations.update({name: f"declare void @{name}(ptr)" for name in names})
    read, write = names
    before, within = fn.named("alloca i32, align 4"), fn.named("alloca i32, align 4")
    fn.line(f"call void @{read}(ptr {before})")
    old = fn.named(f"load i32, ptr {before}, align 4")
    fn.line(f"store i32 {fn.named(f'or i32 {old}, {_X86}')}, ptr {within}, align 4")
    fn.line(f"call void @{write}(ptr {within})")
    body()
    fn.line(f"call void @{write}(ptr {before})")


def _on_arm(fn: IRFunction, body: Callable[[], object]) -> None:
    read, write = "llvm.aarch64.get.fpcr", "llvm.aarch64.set.fpcr"
    fn.module.declarations[read] = f"declare i64 @{read}()"
    fn.module.declarations[write] = f"declare void @{write}(i64)"
    old = fn.instruction(f"call i64 @{read}()", int64, 0)
    fn.line(f"call void @{write}({fn.binary('or', old, _ARM)})")
    body()
    fn.line(f"call void @{write}({old})")
