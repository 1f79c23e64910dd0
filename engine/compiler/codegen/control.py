"""Loops and conditions in generated code.

Loops are bottom-tested, and what they carry is in phi instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...graph import bool_, int64
from .function import IRFunction
from .values import Value


def loop(
    fn: IRFunction, start: Value, stop: Value, step: int, body: Callable[[Value], None]
) -> None:
    """Run `body(i)` for i = start, start + step, ... below `stop`."""

    def carry_nothing(i: Value, _: list[Value]) -> Sequence[Value]:
        body(i)
        return ()

    fold(fn, start, stop, step, (), carry_nothing)


def fold(
    fn: IRFunction,
    start: Value,
    stop: Value,
    step: int,
    carried: Sequence[Value],
    body: Callable[[Value, list[Value]], Sequence[Value]],
) -> list[Value]:
    """Carry values through a loop: `carried = body(i, carried)` for i = start, ... below stop.

    Gives the values after the last round; those given where there is none.
    """
    inside, after = fn.label(), fn.label()
    before = fn.block
    enter = fn.compare("lt", start, stop)
    fn.line(f"br i1 {enter.name}, label %{inside}, label %{after}")
    fn.start(inside)
    index = Value(fn, fn.fresh(), int64, 0)
    current = [Value(fn, fn.fresh(), c.dtype, c.lanes) for c in carried]
    place = len(fn.lines)
    fn.lines.extend([""] * (1 + len(current)))
    found = list(body(index, current))
    following = index + step
    again = fn.compare("lt", following, stop)
    latch = fn.block
    fn.line(f"br i1 {again.name}, label %{inside}, label %{after}, !llvm.loop !0")
    phis = [(index, start, following), *zip(current, carried, found, strict=True)]
    for i, (name, first, later) in enumerate(phis):
        fn.lines[place + i] = (
            f"  {name.name} = phi {name.type} "
            f"[ {first.name}, %{before} ], [ {later.name}, %{latch} ]"
        )
    fn.start(after)
    return [
        fn.instruction(
            f"phi {old.type} [ {old.name}, %{before} ], [ {new.name}, %{latch} ]",
            old.dtype,
            old.lanes,
        )
        for old, new in zip(carried, found, strict=True)
    ]


def when(fn: IRFunction, condition: Value, body: Callable[[], object]) -> None:
    """Run `body` if a scalar condition holds."""

    def run() -> list[Value]:
        body()
        return []

    replaced(fn, condition, [], run)


def any_lane(fn: IRFunction, condition: Value) -> Value:
    """Whether it holds in some lane: a scalar condition."""
    lanes = condition.lanes
    if not lanes:
        return condition
    mangled = f"llvm.vector.reduce.or.v{lanes}i1"
    fn.module.declarations[mangled] = f"declare i1 @{mangled}(<{lanes} x i1>)"
    return fn.instruction(f"call i1 @{mangled}({condition})", bool_, 0)


def replaced(
    fn: IRFunction, condition: Value, values: Sequence[Value], body: Callable[[], Sequence[Value]]
) -> list[Value]:
    """What `body` gives if a scalar condition holds, else `values`."""
    inside, after = fn.label(), fn.label()
    before = fn.block
    fn.line(f"br i1 {condition.name}, label %{inside}, label %{after}")
    fn.start(inside)
    found = body()
    end = fn.block
    fn.line(f"br label %{after}")
    fn.start(after)
    return [
        fn.instruction(
            f"phi {old.type} [ {old.name}, %{before} ], [ {new.name}, %{end} ]",
            old.dtype,
            old.lanes,
        )
        for old, new in zip(values, found, strict=True)
    ]


def repeat(fn: IRFunction, value: Value, body: Callable[[Value], tuple[Value, Value]]) -> Value:
    """Run `body(value)` -> its next value, and a scalar condition: whether to run again."""
    inside, after = fn.label(), fn.label()
    before = fn.block
    fn.line(f"br label %{inside}")
    fn.start(inside)
    current = Value(fn, fn.fresh(), value.dtype, value.lanes)
    place = len(fn.lines)
    fn.lines.append("")
    following, again = body(current)
    fn.lines[place] = (
        f"  {current.name} = phi {value.type} "
        f"[ {value.name}, %{before} ], [ {following.name}, %{fn.block} ]"
    )
    fn.line(f"br i1 {again.name}, label %{inside}, label %{after}, !llvm.loop !0")
    fn.start(after)
    return following
