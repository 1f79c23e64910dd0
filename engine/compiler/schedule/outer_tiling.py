"""Kernels that run together for one piece of their memory after the other.

Attention makes large arrays that only the next kernel reads: scores, and their gradients. Where
kernels that follow each other go through the same outermost axis, they become a loop over it, whose
iterations are shared out to threads. In an iteration each of them makes its piece, which the next
one finds in cache; what nobody else reads has memory for one piece only, for each thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..ir.kernel import Kernel, squeezed
from ..ir.program import (
    IndirectLoad,
    Iota,
    Literal,
    Loop,
    LoopProgram,
    Operand,
    Pointwise,
    Reduce,
    Shape,
    Size,
    Storage,
    View,
    Window,
    outer_axis,
    piece,
    views_of,
    without_axis,
)
from ..ir.sizes import is_known
from ..target import host

# What a piece touches stays in the second cache of a core, of which it has this much.
_MOST_SHARE = 1 / 4
# Beginning an iteration takes as long as going through some kilobytes.
_FEWEST_BYTES = 32 * 1024
# If all of it stays in cache in any case, or there are few pieces, nothing is gained.
_FEWEST_BYTES_IN_ALL = 1024 * 1024
_FEWEST_PIECES = 4


def in_pieces(program: LoopProgram, kernels: Sequence[Kernel]) -> list[Kernel]:
    """The same kernels, runs of which are loops over pieces where that pays."""
    users: dict[int, set[Kernel]] = {}
    for kernel in kernels:
        for number in {v.storage for v in kernel.views} | kernel.writes:
            users.setdefault(number, set()).add(kernel)
    outside = {view.storage for view in (*program.outputs, *program.updates.values())}
    found: list[Kernel] = []
    rest = list(kernels)
    while rest:
        run = _Run(program)
        while len(run.seen) < len(rest) and run.takes(rest[len(run.seen)]):
            pass
        run.end()
        if run.pays(users, outside):
            found += [*run.before, run.loop(users, outside)]
            rest = rest[len(run.seen) :]
        else:
            found.append(rest.pop(0))
    return found


class _Run:
    """Kernels from a first contraction on, which are to become one loop.

    Attributes:
        seen: the kernels that have been looked at, in order.
        inside: those of them that belong to it.
        count: the size of the axis that they share.
        steps: storage -> how far apart its pieces are; 0 for what is the same in all.
    """

    def __init__(self, program: LoopProgram) -> None:
        self.program = program
        self.seen: list[Kernel] = []
        self.inside: list[Kernel] = []
        self.count = 0
        self.steps: dict[int, int] = {}

    @property
    def before(self) -> list[Kernel]:
        """The kernels seen that come before the loop."""
        return [kernel for kernel in self.seen if kernel not in self.inside]

    def takes(self, kernel: Kernel) -> bool:
        """Take the next kernel, into the loop or before it; False if it can be in neither."""
        count = _count(kernel)
        if not self.inside:
            if kernel.call is None or not count:
                return False
            self.count = count
        steps = self._steps(kernel) if count == self.count else None
        if steps is not None and all(self.steps.get(n, step) == step for n, step in steps.items()):
            self.inside.append(kernel)
            self.steps |= steps
        elif not self._may_come_first(kernel):
            return False
        self.seen.append(kernel)
        return True

    def _steps(self, kernel: Kernel) -> dict[int, int] | None:
        """How far apart the pieces of each storage are; None if some are in no order."""
        found: dict[int, int] = {}
        for number, step, extent in _pieces(kernel, self.count):
            size = self.program.storages[number].num_elements
            is_piece = is_known(step) and step * self.count == size and extent <= step
            if found.setdefault(number, step) != step or not (is_piece or step == 0):
                return None
        if any(found[n] == 0 for n in kernel.writes):
            return None
        return found

    def _may_come_first(self, kernel: Kernel) -> bool:
        """Whether a kernel of loops has nothing to do with those before it."""
        if kernel.call or kernel.check or kernel.loop or any(v.fence for v in kernel.views):
            return False
        made = {n for k in self.inside for n in k.writes}
        reads = {v.storage for v in kernel.views}
        return not (reads | kernel.writes) & made and not kernel.writes & self.steps.keys()

    def end(self) -> None:
        """Give up what comes after the last contraction."""
        last = max((i for i, k in enumerate(self.inside) if k.call is not None), default=-1)
        del self.inside[last + 1 :]
        end = self.seen.index(self.inside[-1]) + 1 if self.inside else 0
        del self.seen[end:]
        made = {n for k in self.inside for n in ({v.storage for v in k.views} | k.writes)}
        self.steps = {n: step for n, step in self.steps.items() if n in made}

    def pays(self, users: Mapping[int, set[Kernel]], outside: set[int]) -> bool:
        """Whether there is something that only needs memory for a piece, and pieces fit a cache."""
        if sum(kernel.call is not None for kernel in self.inside) < 2:
            return False
        own = self._own(users, outside)
        passed = {n for n in own if len(users[n]) > 1}
        if not passed:
            return False
        storages = self.program.storages
        num_bytes = sum(
            step * storages[n].dtype.size
            for n, step in self.steps.items()
            if n not in own or n in passed  # the others stay in registers
        )
        if not _FEWEST_BYTES <= num_bytes <= host.in_second_cache(_MOST_SHARE):
            return False
        in_all = num_bytes * self.count
        return self.count >= _FEWEST_PIECES and in_all >= _FEWEST_BYTES_IN_ALL

    def _own(self, users: Mapping[int, set[Kernel]], outside: set[int]) -> set[int]:
        """What nobody else reads."""
        made = {n for kernel in self.inside for n in kernel.writes}
        return {n for n in made - outside if users[n] <= set(self.inside)}

    def loop(self, users: Mapping[int, set[Kernel]], outside: set[int]) -> Kernel:
        """The kernel that runs all of them for each piece."""
        program, own = self.program, self._own(users, outside)
        numbers: dict[int, int] = {}
        windows = []
        for number, step in self.steps.items():
            if step:
                whole = program.storages[number]
                storage = Storage(whole.dtype, _piece_shape(whole.shape, self.count, step))
                if number not in own:
                    storage.role, storage.window = "window", Window(number, 0, step)
                numbers[number] = program.add(storage)
                if number not in own:
                    windows.append(numbers[number])
        body = [self._piece(kernel, numbers) for kernel in self.inside]
        made = {n for kernel in self.inside for n in kernel.writes}
        reads = {v.storage for kernel in self.inside for v in kernel.views} - made
        loop = Loop(
            self.count,
            [],
            None,
            [s for kernel in body for s in kernel.all_statements],
            tuple(windows),
            {},
            tuple(program.whole(n) for n in sorted(reads)),
            tuple(sorted(made - own)),
            is_shared=True,
        )
        names = [program.labels.get(id(s), "") for k in self.inside for s in k.all_statements]
        program.labels[id(loop)] = "+".join(dict.fromkeys(filter(None, names)))
        return Kernel((), loop=loop, body=body)

    def _piece(self, kernel: Kernel, numbers: Mapping[int, int]) -> Kernel:
        """A kernel for one piece; `numbers` has the storages of the pieces."""
        made = Kernel(kernel.shape[1:])
        made.axes = None if kernel.axes is None else frozenset(a - 1 for a in kernel.axes)
        made.rows = {numbers.get(n, n) for n in kernel.rows}
        labels = self.program.labels
        if kernel.call is not None:
            assert kernel.call.pieces is not None
            made.call = kernel.call.pieces.make(numbers)
            labels[id(made.call)] = labels.get(id(kernel.call), "")
        for s in kernel.statements:
            part = _piece_of(s, numbers)
            labels[id(part)] = labels.get(id(s), "")
            made.statements.append(part)
        return made


def _count(kernel: Kernel) -> int:
    """The size of the outermost axis, if a kernel can be run for each piece of it; or 0."""
    if kernel.check is not None or kernel.loop is not None or kernel.split is not None:
        return 0
    if kernel.call is not None:
        pieces = kernel.call.pieces
        count = pieces.number if pieces is not None else 0
        shape = squeezed(kernel.call.shape or ())
        if kernel.call.shape is not None and shape[:1] != (count,):
            return 0
        if kernel.statements and len(shape) < 3:  # an epilogue goes along rows
            return 0
    else:
        count = kernel.shape[0] if len(kernel.shape) > 1 else 0
    if kernel.axes is not None and 0 in kernel.axes:
        return 0
    return count if all(_is_cut(s, count) for s in kernel.statements) else 0


def _is_cut(statement: Pointwise | Reduce, count: int) -> bool:
    """Whether all that a statement touches has pieces."""
    for x in (statement.target, *statement.operands):
        if isinstance(x, IndirectLoad):
            return False
        if isinstance(x, View | Iota):
            a = outer_axis(x.shape)
            if x.shape[a : a + 1] != (count,) or (isinstance(x, Iota) and x.strides[a]):
                return False
    return True


def _piece_shape(shape: Shape, count: int, step: int) -> Shape:
    """The shape of a piece of a storage; what has other axes outermost is one row."""
    a = outer_axis(shape)
    return without_axis(shape, a) if shape[a : a + 1] == (count,) else (step,)


def _pieces(kernel: Kernel, count: int) -> Iterator[tuple[int, int, int]]:
    """Of all that a kernel touches the storage, how far apart pieces are, and how far one goes."""
    views = [v for s in kernel.statements for v in (s.target, *views_of(s.operands))]
    if kernel.call is not None:
        assert kernel.call.pieces is not None
        views += kernel.call.inputs
        yield kernel.call.writes[0], kernel.call.pieces.step, 0
    for view in views:
        a = outer_axis(view.shape)
        sizes, strides = without_axis(view.shape, a), without_axis(view.strides, a)
        is_upward = view.offset >= 0 and min(strides, default=0) >= 0
        ends = (s * (n - 1) for n, s in zip(sizes, strides, strict=True))
        extent = view.offset + sum(ends) + 1
        step = view.strides[a] if view.shape[a : a + 1] == (count,) else -1
        yield view.storage, step if is_upward else -1, extent


def _piece_of(s: Pointwise | Reduce, numbers: Mapping[int, int]) -> Pointwise | Reduce:
    def operand(x: Operand) -> Operand:
        if isinstance(x, Literal | Size):
            return x
        if isinstance(x, View):
            return piece(x, numbers)
        assert isinstance(x, Iota)
        a = outer_axis(x.shape)
        return x._replace(shape=without_axis(x.shape, a), strides=without_axis(x.strides, a))

    target = piece(s.target, numbers)
    if isinstance(s, Pointwise):
        return Pointwise(target, tuple(map(operand, s.operands)), s.expression)
    a = outer_axis(s.shape)
    shape = without_axis(s.shape, a)
    axes = tuple(axis - (axis > a) for axis in s.axes)
    return Reduce(target, operand(s.operand), shape, axes, s.kind, None, s.is_of_parts)
