"""Where the values of a program live: in registers, in a variable's own memory, or in an arena."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..ir.kernel import Kernel, fills, is_column, is_same_element, squeezed
from ..ir.machine import HOST, Machine
from ..ir.program import (
    IndirectLoad,
    KernelCall,
    LoopProgram,
    Pointwise,
    Reduce,
    View,
    views_of,
)
from ..ir.recording_scalars import same
from ..target import host
from ..target.llvm import vector_bytes
from .fusion import fuse
from .in_place import overwrite
from .phases import last_use, moment, phases_of
from .remove_dead_stores import remove_dead_stores
from .sink_casts import sink_casts
from .sink_updates import sink_updates
from .spilled_rows import spilled_values, stack_rows
from .unrolled_rows import has_short_rows

# What is needed for a short time meets few others: they are listed for so many kernels together.
_WINDOW = 16


@dataclass(eq=False)
class BufferAssignment:
    """A program cut into kernels, with a place for each value.

    Attributes:
        kernels: in order.
        stored: the storages that are in memory.
        place: storage -> the storage whose memory it shares; itself in most cases.
        rows: the storages of which each thread has a row, for as long as a kernel works on it.
    """

    program: LoopProgram
    kernels: list[Kernel]
    stored: set[int]
    place: dict[int, int]
    rows: set[int]


def assign_buffers(
    program: LoopProgram, copy: Callable[[View], View], machine: Machine = HOST
) -> BufferAssignment:
    """The kernels of a program and where its values live.

    Args:
        program: its outputs and updates get memory of their own.
        copy: adds a copy of a view to the program.
        machine: what it is for.
    """
    _own_outputs(program, copy)
    remove_dead_stores(program)
    kernels = sink_casts(program, fuse(program), machine)
    place = {n: n for n in range(len(program.storages))}
    checked = max((k for k, kernel in enumerate(kernels) if _has_checks(kernel)), default=-1)
    _update_in_place(program, kernels, program.updates, place, checked)
    kernels = sink_updates(program, kernels, place)
    for loop in loops_in(kernels):
        assert loop.loop is not None
        _update_in_place(program, loop.body, loop.loop.carried, place, -1)
    parts = [kernels, *(part for k in loops_in(kernels) for part in (k.test, k.body))]
    stored = set[int]().union(*(_stored(program, part) for part in parts))
    along = [k for part in parts for k in part if k.axes is not None and k.call is None]
    kept = {
        number
        for kernel in along
        if not machine.recomputes and not has_short_rows(program, kernel, vector_bytes())
        for number in spilled_values(kernel, stored)
    }
    stored |= kept
    for part in parts:
        _share_products(program, part, stored, place)
    overwrite(program, kernels, stored, kept, place)
    rows = {n for kernel in along for n in stack_rows(program, kernel, kept, place)}
    return BufferAssignment(program, kernels, stored - rows, place, rows)


def loops_in(kernels: Sequence[Kernel]) -> Iterator[Kernel]:
    """The loops among kernels, those inside of others too."""
    for kernel in kernels:
        if kernel.loop is not None:
            yield kernel
            yield from loops_in([*kernel.test, *kernel.body])


def _has_checks(kernel: Kernel) -> bool:
    return kernel.check is not None or (kernel.loop is not None and kernel.loop.has_checks)


def _own_outputs(program: LoopProgram, copy: Callable[[View], View]) -> None:
    """Copy what goes out, or becomes a variable's value, where it is no array of its own."""
    taken: set[int] = set()

    def owned(view: View) -> View:
        storage = program.storages[view.storage]
        if (
            storage.role != "temporary"
            or view.storage in taken
            or not view.is_contiguous
            or squeezed(view.shape) != squeezed(storage.shape)
        ):
            view = copy(view)
        taken.add(view.storage)
        return view

    for number, view in list(program.updates.items()):
        if view == program.whole(number):
            del program.updates[number]  # it keeps its value
        else:
            program.updates[number] = owned(view)
    program.outputs = [owned(view) for view in program.outputs]
    for view in program.outputs:
        program.storages[view.storage].role = "output"


def _update_in_place(
    program: LoopProgram,
    kernels: list[Kernel],
    updates: Mapping[int, View],
    place: dict[int, int],
    checked: int,
) -> None:
    """Let new values of variables be written over the old ones, or copied there at the end.

    Kernels up to number `checked` write over nothing: a check that fails has changed no variable.
    """
    homes: dict[int, list[int]] = {}  # storage -> the kernels of the statements that write it
    for k, kernel in enumerate(kernels):
        for number in (n for s in kernel.all_statements for n in s.writes):
            homes.setdefault(number, []).append(k)
    last = {v.storage: k for k, kernel in enumerate(kernels) for v in kernel.views}  # that reads it
    new = {view.storage for view in updates.values()}
    for variable, view in updates.items():
        first, *others = homes[view.storage]
        read = last.get(variable, -1)
        is_free = checked < first and all(kernels[k].loop is None for k in homes[view.storage])
        if is_free and read == first and first not in others:
            is_free = _may_overwrite(kernels[first], view.storage, variable, new)
        elif read >= first:
            is_free = False
        if is_free:
            place[view.storage] = variable
            continue
        target = program.whole(variable)
        shaped = view._replace(shape=target.shape, strides=target.strides)
        statement = Pointwise(target, (shaped,), same(program.dtype(target)))
        last[view.storage] = len(kernels)
        kernels.append(Kernel(squeezed(target.shape), [statement]))


def _may_overwrite(kernel: Kernel, number: int, variable: int, stored: Collection[int]) -> bool:
    """Whether a kernel has read each element of a variable when it writes the same of a storage.

    Of what it makes, `stored` is in memory in any case.
    """
    (writer,) = (s for s in kernel.all_statements if number in s.writes)
    if isinstance(writer, KernelCall) and writer.alias is not None:
        return [v.storage for v in writer.inputs].count(variable) == (
            writer.alias.storage == variable
        )
    if not isinstance(writer, Pointwise | Reduce):
        return False  # the statements behind it read later
    if kernel.call is not None and any(v.storage == variable for v in kernel.call.inputs):
        return False
    views = {v for v in kernel.views if v.storage == variable}
    gathered = {
        x.view.storage for s in kernel.statements for x in s.operands if isinstance(x, IndirectLoad)
    }
    if variable in gathered:
        return False
    if kernel.axes is None:
        return all(is_same_element(v, kernel) for v in (writer.target, *views))
    is_on_rows = writer.target.storage in kernel.rows
    covers = is_column if is_on_rows or not kernel.is_along else is_same_element
    if not all(covers(v, kernel) for v in (writer.target, *views)):
        return False
    if kernel.is_along:
        phases = phases_of(kernel)
        now = moment(writer, kernel, phases)
        if last_use(variable, kernel, phases, stored) > now:
            return False
        if not is_on_rows or isinstance(writer, Reduce):
            return True
    # The values for a row, or a column, come one by one: the reductions, then what is made of them.
    # Down the rows of a column all is read before the first of them is written.
    behind = kernel.statements
    if isinstance(writer, Pointwise):
        behind = behind[behind.index(writer) + 1 :]
    rows = (s for s in behind if isinstance(s, Pointwise) and s.target.storage in kernel.rows)
    return not any(v in views for s in rows for v in views_of(s.operands))


def _stored(program: LoopProgram, kernels: Sequence[Kernel]) -> set[int]:
    """The storages that some other kernel or the outside needs."""
    home = {number: k for k, kernel in enumerate(kernels) for number in kernel.writes}
    stored = {n for n, s in enumerate(program.storages) if s.role != "temporary"}
    stored |= {view.storage for view in program.updates.values()}
    for k, kernel in enumerate(kernels):
        for view in kernel.views:
            if home.get(view.storage) != k:
                stored.add(view.storage)
        if kernel.call is not None:
            stored |= set(kernel.call.writes)
        if kernel.loop is not None:
            stored |= set(kernel.loop.writes)
            stored |= {view.storage for view in kernel.loop.carried.values()}
            if kernel.loop.stop is not None:
                stored.add(kernel.loop.stop.storage)
        for statement in kernel.statements:
            if isinstance(statement, Pointwise) and not fills(program, statement.target):
                stored.add(statement.target.storage)
    return stored


def _share_products(
    program: LoopProgram, kernels: Sequence[Kernel], stored: set[int], place: dict[int, int]
) -> None:
    """Let the result of an epilogue take the memory of the product that it was made of."""
    readers: dict[int, set[int]] = {}
    for k, kernel in enumerate(kernels):
        for view in kernel.views:
            readers.setdefault(view.storage, set()).add(k)
    kept = {view.storage for view in (*program.outputs, *program.updates.values())}
    for k, kernel in enumerate(kernels):
        if kernel.call is None or not kernel.statements:
            continue
        (raw,) = kernel.call.writes
        if raw in kept or readers.get(raw, set()) - {k}:
            continue
        if place[raw] != raw or program.storages[raw].role != "temporary":
            continue
        derived = {raw}
        for statement in kernel.statements:
            number = statement.target.storage
            if not derived & {v.storage for v in views_of(statement.operands)}:
                continue
            derived.add(number)
            storage = program.storages[number]
            if (
                number in stored
                and place[number] == number
                and storage.dtype == program.storages[raw].dtype
            ):
                place[raw] = number
                break


# The arena


def live_ranges(layout: BufferAssignment) -> dict[int, tuple[int, int]]:
    """Storage -> the first and the last kernel that need its memory; of temporaries alone.

    Kernels are counted as `in_order` gives them. What a loop shares with what is around it, or with
    its next iteration, is needed for all of it.
    """
    ranges: dict[int, tuple[int, int]] = {}
    order = list(in_order(layout.kernels))

    def use(number: int, first: int, last: int) -> None:
        number = layout.place[number]
        if number in layout.stored and layout.program.storages[number].role == "temporary":
            begin, end = ranges.get(number, (first, last))
            ranges[number] = min(begin, first), max(end, last)

    for k, kernel in enumerate(order):
        # Each thread reads the result of a check when it gets there, some late.
        last = len(order) if kernel.check is not None else k
        if kernel.loop is not None:
            last = k + len(list(in_order([*kernel.test, *kernel.body])))
            if kernel.loop.stop is not None:
                use(kernel.loop.stop.storage, k, len(order))
        for number in {v.storage for v in kernel.views} | kernel.writes:
            if number in layout.stored:
                use(number, k, last)
    return ranges


def in_order(kernels: Sequence[Kernel]) -> Iterator[Kernel]:
    """Kernels as they come, a loop before those inside of it."""
    for kernel in kernels:
        yield kernel
        yield from in_order([*kernel.test, *kernel.body])


def arrange(
    ranges: Mapping[object, tuple[int, int]], sizes: Mapping[object, int]
) -> tuple[dict[object, int], int]:
    """An offset for each piece of memory, so that those alive together do not overlap.

    Args:
        ranges: the first and last time that a piece is needed.
        sizes: in bytes.

    Returns:
        The offsets, and how much memory there is in all. The largest pieces are placed first, each
        in the lowest gap that holds it.
    """
    offsets: dict[object, int] = {}
    # Those that are placed, all of them and by windows of time: offset, end, first, last.
    placed: list[tuple[int, int, int, int]] = []
    windows: dict[int, list[tuple[int, int, int, int]]] = {}
    total = 0
    for piece in sorted(ranges, key=lambda p: -sizes[p]):
        first, last = ranges[piece]
        size = host.whole_lines(max(sizes[piece], 1))
        touched = range(first // _WINDOW, last // _WINDOW + 1)
        near = windows.setdefault(touched[0], []) if len(touched) == 1 else placed
        at = 0
        for low, high, begin, end in near:
            if begin <= last and first <= end:
                if low - at >= size:
                    break
                if high > at:
                    at = high
        offsets[piece] = at
        entry = at, at + size, first, last
        bisect.insort(placed, entry)
        for number in touched:
            bisect.insort(windows.setdefault(number, []), entry)
        total = max(total, at + size)
    return offsets, total
