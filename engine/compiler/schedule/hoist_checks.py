"""Which statements of a program come first, wherever they stand in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.kernel import squeezed
from ..ir.program import (
    Check,
    Fence,
    KernelCall,
    Literal,
    Loop,
    Pointwise,
    Reduce,
    Size,
    Statement,
    View,
    views_of,
)


def hoist_checks(statements: Sequence[Statement]) -> list[Statement]:
    """The checks, and what they need, before all else: a run that stops has changed nothing.

    So do the kernels that are early, and numbers made of sizes alone, which all can then join that
    need them.
    """
    fenced = _behind_fences(statements)
    makers: dict[int, list[Statement]] = {}
    for s in statements:
        for number in s.writes:
            makers.setdefault(number, []).append(s)
    begin = [s for s in statements if _is_early(s) and id(s) not in fenced]
    begin += _of_sizes(statements, makers)
    if not begin:
        return list(statements)
    early: set[int] = set()
    todo: list[Statement] = begin
    while todo:
        statement = todo.pop()
        if id(statement) not in early:
            early.add(id(statement))
            for view in views_of(statement.operands):
                todo.extend(makers.get(view.storage, ()))
    first = [s for s in statements if id(s) in early]
    return [*first, *(s for s in statements if id(s) not in early)]


def _behind_fences(statements: Sequence[Statement]) -> set[int]:
    """The ids of the kernel calls that need what is read through a fence."""
    found: set[int] = set()
    made: set[int] = set()
    if any(isinstance(s, Fence) for s in statements):
        for s in statements:
            if any(v.fence or v.storage in made for v in views_of(s.operands)):
                made.update(s.writes)
                if isinstance(s, KernelCall):
                    found.add(id(s))
    return found


def _of_sizes(
    statements: Sequence[Statement], makers: Mapping[int, Sequence[Statement]]
) -> list[Statement]:
    """The statements that make one number of sizes and literals."""
    made: set[int] = set()
    found: list[Statement] = []
    for s in statements:
        if not isinstance(s, Pointwise | Reduce) or squeezed(s.shape):
            continue
        is_of_sizes = all(
            isinstance(x, Literal | Size)
            or (isinstance(x, View) and x.storage in made and not x.fence)
            for x in s.operands
        )
        if is_of_sizes and len(makers[s.target.storage]) == 1:
            made.add(s.target.storage)
            found.append(s)
    return found


def _is_early(s: Statement) -> bool:
    if isinstance(s, Loop):
        return s.has_checks
    return isinstance(s, Check) or (isinstance(s, KernelCall) and s.hoisted)
