"""What nobody reads: stacks, whose values stay where they are computed, and spare storages.

The gradient of a loop takes values of the forward loop that it only asks for their shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.program import Loop, LoopProgram, Pointwise, Statement, views_of


def remove_dead_stores(program: LoopProgram) -> None:
    """Take out of a program the maps to spare storages and the stacks of loops nobody reads."""
    kept = {view.storage for view in (*program.outputs, *program.updates.values())}
    kept |= _reads(program)
    loops = list(_loops(program.statements))
    spare = program.removable - kept
    for part in (program.statements, *(p for loop in loops for p in (loop.test, loop.body))):
        part[:] = [s for s in part if not (isinstance(s, Pointwise) and s.target.storage in spare)]
    kept |= {n for loop in loops for n in loop.writes if _is_part(program, n, kept)}
    unread = {n for loop in loops for n in loop.writes if n not in kept and n not in loop.carried}
    for loop in loops:
        for number in loop.windows:
            storage = program.storages[number]
            if storage.window is not None and storage.window.base in unread:
                storage.role, storage.window = "temporary", None
        loop.windows = tuple(n for n in loop.windows if program.storages[n].window is not None)
        loop.writes = tuple(n for n in loop.writes if n not in unread)
        loop.inputs = tuple(view for view in loop.inputs if view.storage not in unread)


def _loops(statements: Sequence[Statement]) -> Iterator[Loop]:
    for s in statements:
        if isinstance(s, Loop):
            yield s
            yield from _loops([*s.test, *s.body])


def _is_part(program: LoopProgram, number: int, kept: set[int]) -> bool:
    """Whether a storage is a window of one that is kept."""
    window = program.storages[number].window
    while window is not None and window.base not in kept:
        window = program.storages[window.base].window
    return window is not None


def _reads(program: LoopProgram) -> set[int]:
    """The storages that are read, through windows too.

    What an iteration has put into a window of its own, and then reads, is not read from the stack.
    """
    found: set[int] = set()
    made: set[int] = set()
    todo = list(program.statements)
    while todo:
        s = todo.pop()
        if isinstance(s, Loop):
            todo += [*s.test, *s.body]
            found |= {view.storage for view in s.carried.values()}
        else:
            found |= {view.storage for view in views_of(s.operands)}
            made |= set(s.writes)
    windows = list(found - made)
    while windows:
        window = program.storages[windows.pop()].window
        if window is not None and window.base not in found:
            found.add(window.base)
            windows.append(window.base)
    return found
