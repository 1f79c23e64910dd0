"""Fusing: which statements of a program run in one kernel.

Kernels run one after the other. A statement joins the last kernel it can: one over the same
elements, with which it shares memory, in which all that it reads is either complete or made for the
very element in registers. A reduction turns a kernel over its elements into one over rows, in which
the reduced values can be used again at once (softmax is one kernel). A contraction is a kernel that
statements on its finished rows join (its epilogue).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.kernel import Kernel, fills, is_same_element, squeezed
from ..ir.program import (
    Check,
    Fence,
    IndirectLoad,
    Iota,
    KernelCall,
    Literal,
    Loop,
    LoopProgram,
    Operand,
    Pointwise,
    Reduce,
    Shape,
    Size,
    Statement,
    View,
    views_of,
)
from .hoist_checks import hoist_checks

# More streams of memory in one loop than this cost more than they save.
_MOST_VIEWS = 24
# What an iteration of a loop takes is small, and near.
_MOST_VIEWS_IN_LOOP = 64
_MOST_STATEMENTS = 96


def fuse(program: LoopProgram) -> list[Kernel]:
    """The kernels of a program, in order."""
    outside = (*program.outputs, *program.updates.values())
    return _Fuser(program, program.statements, outside).run()


class _Fuser:
    def __init__(
        self,
        program: LoopProgram,
        statements: Sequence[Statement],
        outside: Sequence[View],
        most_views: int = _MOST_VIEWS,
    ) -> None:
        self.program = program
        self.statements = statements
        self.most_views = most_views
        self.kernels: list[Kernel] = []
        self.home: dict[int, int] = {}  # storage -> the last kernel that writes it
        # Maps that no kernel has taken yet, by storage: they go where they are first used.
        self.waiting: dict[int, Pointwise] = {}
        # Which kernels read or write a storage, and which are over one element.
        self.touching: dict[int, set[int]] = {}
        self.single: set[int] = set()
        self.fences: dict[int, int] = {}  # the first kernel that what is behind a fence may join
        self.of_parts: dict[Shape, set[int]] = {}  # those that combine parts, by their axes
        self.readers: dict[int, list[Statement]] = {}
        for s in statements:
            for number in {v.storage for v in views_of(s.operands)}:
                self.readers.setdefault(number, []).append(s)
        self.going_out = {v.storage for v in outside}

    def run(self) -> list[Kernel]:
        for statement in hoist_checks(self.statements):
            self._place(statement)
        self._release(list(self.waiting))
        return self.kernels

    def _place(self, statement: Statement) -> None:
        if isinstance(statement, Fence):
            self.fences[statement.number] = len(self.kernels) - 1
            return
        self._release([n for n in statement.writes if n in self.waiting])  # written over in part
        needed = self._awaited([*views_of(statement.operands)])
        if len(needed) >= _MOST_STATEMENTS:  # more than a kernel takes
            self._release(needed)
            needed = []
        if isinstance(statement, KernelCall | Check | Loop):
            self._release(needed)
            shape = squeezed(statement.shape or ()) if isinstance(statement, KernelCall) else ()
            made = Kernel(shape)
            if isinstance(statement, KernelCall):
                made.call = statement
            elif isinstance(statement, Check):
                made.check = statement
            else:
                made.loop = statement
                made.test = self._inside(statement, statement.test)
                made.body = self._inside(statement, statement.body)
            self._append(made)
            return
        sizes = squeezed(statement.shape)
        if all(squeezed(self.waiting[n].shape) == sizes for n in needed):
            bundle = [*(self.waiting[n] for n in needed), statement]
        else:
            self._release(needed)
            bundle = [statement]
        if self._take(bundle):
            for number in needed:
                self.waiting.pop(number, None)
        elif isinstance(statement, Pointwise) and self._fills(statement.target) and sizes:
            self.waiting[statement.target.storage] = statement
        else:
            self._release(needed)
            if len(bundle) == 1 or not self._take([statement]):
                self._append(self._own(statement))

    def _inside(self, loop: Loop, statements: Sequence[Statement]) -> list[Kernel]:
        """The kernels of a part of a loop."""
        outside = [*loop.carried.values(), *map(self.program.whole, loop.windows)]
        if loop.stop is not None:
            outside.append(loop.stop)
        return _Fuser(self.program, statements, outside, _MOST_VIEWS_IN_LOOP).run()

    def _awaited(self, reads: Sequence[View]) -> list[int]:
        """The waiting storages that a statement needs, in order."""
        found: set[int] = set()
        todo = [v.storage for v in reads]
        while todo:
            number = todo.pop()
            if number in self.waiting and number not in found:
                found.add(number)
                todo.extend(v.storage for v in views_of(self.waiting[number].operands))
        return [n for n in self.waiting if n in found]

    def _release(self, numbers: Sequence[int]) -> None:
        """Give waiting maps kernels, each one that nothing else here needs with what it needs."""
        inner = {
            v.storage
            for n in numbers
            if n in self.waiting
            for v in views_of(self.waiting[n].operands)
        }
        for number in [*(n for n in numbers if n not in inner), *numbers]:
            statement = self.waiting.pop(number, None)
            if statement is None:
                continue
            sizes = squeezed(statement.shape)
            needed = self._awaited(views_of(statement.operands))
            self._release([n for n in needed if squeezed(self.waiting[n].shape) != sizes])
            bundle = [self.waiting.pop(n) for n in needed if n in self.waiting]
            self._settle([*bundle, statement])

    def _settle(self, bundle: Sequence[Pointwise | Reduce]) -> None:
        """Give statements of one shape a kernel, one of their own if need be."""
        if self._take(bundle):
            return
        if len(bundle) > 1 and bundle[0].shape:
            self._append(self._own(bundle[0]))
            if self._take(bundle[1:]):
                return
            bundle = bundle[1:]
        for statement in bundle:
            if not self._take([statement]):
                self._append(self._own(statement))

    def _append(self, kernel: Kernel) -> None:
        k = len(self.kernels)
        self.kernels.append(kernel)
        for number in kernel.writes:
            self.home[number] = k
        self._touch(k, kernel.all_statements)
        if not kernel.shape and kernel.statements:
            self.single.add(k)
        if any(_is_of_parts(s) for s in kernel.statements):
            self.of_parts.setdefault(kernel.shape, set()).add(k)

    def _touch(self, k: int, statements: Sequence[Statement]) -> None:
        for s in statements:
            for number in (*(v.storage for v in views_of(s.operands)), *s.writes):
                self.touching.setdefault(number, set()).add(k)

    def _take(self, bundle: Sequence[Pointwise | Reduce]) -> bool:
        """Let the last kernel that can do it take statements of one shape."""
        made = {s.target.storage for s in bundle}
        reads = [v for s in bundle for v in views_of(s.operands) if v.storage not in made]
        touched = (*(v.storage for v in reads), *made)
        least = max((self.home[n] for n in touched if n in self.home), default=0)
        least = max((least, *(self.fences.get(v.fence, 0) for v in reads if v.fence)))
        near = set().union(*(self.touching.get(v.storage, ()) for v in reads))
        if not squeezed(bundle[-1].shape):
            near |= self.single
        # Combining parts takes no time to speak of: what there is of it at once is one kernel.
        alike = self.of_parts.get(squeezed(bundle[-1].shape), set())
        alike = alike if all(map(_is_of_parts, bundle)) else set()
        for k in sorted((k for k in near | alike if k >= least), reverse=True):
            kernel = self.kernels[k]
            if not self._may_join(kernel, bundle, reads):
                continue
            if k not in alike and not self._shares(kernel, reads):
                continue
            before = (list(kernel.statements), kernel.axes, kernel.split, set(kernel.rows))
            if all(self._join(kernel, s) for s in bundle):
                for number in made:
                    self.home[number] = k
                self._touch(k, bundle)
                return True
            kernel.statements, kernel.axes, kernel.split, kernel.rows = before
        return False

    def _own(self, statement: Pointwise | Reduce) -> Kernel:
        made = Kernel(squeezed(statement.shape), [statement])
        if isinstance(statement, Reduce):
            self._make_rows(made, statement)
        return made

    @staticmethod
    def _make_rows(kernel: Kernel, statement: Reduce) -> None:
        kernel.axes, kernel.split = _canonical(statement)
        kernel.rows.add(statement.target.storage)

    def _may_join(
        self, kernel: Kernel, bundle: Sequence[Pointwise | Reduce], reads: Sequence[View]
    ) -> bool:
        """Whether a kernel is one that statements could join, and should."""
        if kernel.check is not None or kernel.loop is not None:
            return False
        if kernel.call is not None and not kernel.call.shape:
            return False
        if len(kernel.statements) + len(bundle) > _MOST_STATEMENTS:
            return False
        if kernel.call is not None and self._is_better_later(kernel, bundle, reads):
            return False
        if kernel.axes is not None and self._is_for_others(kernel, bundle[-1]):
            return False
        return len(kernel.views | set(reads)) <= self.most_views

    def _is_better_later(
        self, kernel: Kernel, bundle: Sequence[Pointwise | Reduce], reads: Sequence[View]
    ) -> bool:
        """Whether what needs values can make them of what a contraction stores in any case.

        Then that is read instead of them, and they are never written.
        """
        last = bundle[-1]
        after = self.readers.get(last.target.storage, ())
        sizes = squeezed(last.shape)
        if last.target.storage in self.going_out or not after:
            return False
        if any(not isinstance(s, Pointwise | Reduce) or squeezed(s.shape) != sizes for s in after):
            return False
        made = kernel.writes
        here = made | {s.target.storage for s in bundle}
        return all(
            number in self.going_out
            or any(not here.issuperset(s.writes) for s in self.readers[number])
            for number in {v.storage for v in reads} & made
        )

    def _is_for_others(self, kernel: Kernel, last: Pointwise | Reduce) -> bool:
        """Whether values go to reductions along other axes alone, which then make them."""
        after = self.readers.get(last.target.storage, ())
        if isinstance(last, Reduce) or last.target.storage in self.going_out or not after:
            return False
        own = kernel.axes, kernel.split
        return all(isinstance(s, Reduce) and _canonical(s) != own for s in after)

    def _join(self, kernel: Kernel, statement: Pointwise | Reduce) -> bool:
        """Add a statement to a kernel if it fits there."""
        reads = views_of(statement.operands)
        if isinstance(statement, Reduce):
            return self._join_reduction(kernel, statement, reads)
        return self._join_map(kernel, statement, reads)

    def _shares(self, kernel: Kernel, reads: Sequence[View]) -> bool:
        """Whether it pays to be in one loop."""
        storages = {v.storage for v in reads}
        if kernel.call is not None:
            made = kernel.writes
            return bool(storages & made)
        if not kernel.shape:
            return True
        return bool(storages & ({v.storage for v in kernel.views} | kernel.writes))

    def _join_map(self, kernel: Kernel, statement: Pointwise, reads: Sequence[View]) -> bool:
        if kernel.call is not None:
            alike = regrouped(statement, kernel.shape)
            if alike is None:
                return False
            label = self.program.labels.get(id(statement), "")
            statement, reads = alike, views_of(alike.operands)
        sizes = squeezed(statement.shape)
        is_whole = self._fills(statement.target)
        if sizes == kernel.shape:
            if not self._available(kernel, statement.operands):
                return False
            if kernel.call is not None and not (
                is_whole and _is_matrix(kernel.call.shape) and _in_rows(statement.operands)
            ):
                return False
            if kernel.axes is not None and not kernel.is_along and self._uses_rows(kernel, reads):
                return False  # another pass over columns that are far apart
            kernel.statements.append(statement)
            if kernel.call is not None:
                self.program.labels[id(statement)] = label
            return True
        if kernel.axes is not None and kernel.split is None and sizes == kernel.kept and is_whole:
            kernel.rows.add(statement.target.storage)
            if self._available(kernel, statement.operands) and self._only_rows(kernel, reads):
                kernel.statements.append(statement)
                return True
            kernel.rows.discard(statement.target.storage)
        return False

    def _join_reduction(self, kernel: Kernel, statement: Reduce, reads: Sequence[View]) -> bool:
        axes, split = _canonical(statement)
        if kernel.call is not None or squeezed(statement.shape) != kernel.shape:
            return False
        if kernel.axes is not None and (kernel.axes, kernel.split) != (axes, split):
            return False
        if kernel.axes is None and not all(isinstance(s, Pointwise) for s in kernel.statements):
            return False
        if not self._available(kernel, statement.operands):
            return False
        if kernel.axes is not None and not kernel.is_along and self._uses_rows(kernel, reads):
            return False
        kernel.axes, kernel.split = axes, split
        kernel.rows.add(statement.target.storage)
        kernel.statements.append(statement)
        return True

    def _fills(self, target: View) -> bool:
        return fills(self.program, target)

    def _available(self, kernel: Kernel, operands: Sequence[Operand]) -> bool:
        """Whether what a statement reads of the kernel's own values is in registers."""
        made = kernel.writes
        partial = {
            s.target.storage
            for s in kernel.statements
            if isinstance(s, Pointwise) and not self._fills(s.target)
        }
        for operand in operands:
            inner = views_of(operand.indices) if isinstance(operand, IndirectLoad) else []
            for view in views_of([operand]):
                if view.storage not in made:
                    continue
                if isinstance(operand, IndirectLoad) and view not in inner:
                    return False  # some other element
                if view.storage in partial or not is_same_element(view, kernel):
                    return False
                if view.storage in kernel.rows and kernel.split is not None:
                    return False  # only a part
        return True

    @staticmethod
    def _uses_rows(kernel: Kernel, reads: Sequence[View]) -> bool:
        """Whether a statement needs what the reductions of the kernel give, directly or not."""
        needed = {v.storage for v in reads}
        for statement in reversed(kernel.statements):
            if statement.writes[0] in needed:
                if isinstance(statement, Reduce) or statement.writes[0] in kernel.rows:
                    return True
                needed |= {v.storage for v in views_of(statement.operands)}
        return False

    @staticmethod
    def _only_rows(kernel: Kernel, reads: Sequence[View]) -> bool:
        """Whether nothing that a statement reads of the kernel's own is of full size."""
        made = kernel.writes
        return all(v.storage in kernel.rows for v in reads if v.storage in made)


def _is_of_parts(statement: Statement) -> bool:
    return isinstance(statement, Reduce) and statement.is_of_parts


def _canonical(statement: Reduce) -> tuple[frozenset[int], tuple[int, int] | None]:
    """The reduced axes and the cut among the axes that are not of size 1."""
    place: dict[int, int] = {}
    for a, n in enumerate(statement.shape):
        if n != 1:
            place[a] = len(place)
    split = statement.split
    return (
        frozenset(place[a] for a in statement.axes if a in place),
        None if split is None else (place[split[0]], split[1]),
    )


def regrouped(statement: Pointwise, shape: Shape) -> Pointwise | None:
    """The same over neighbouring axes taken together, so that its sizes are `shape`.

    None if they do not become that, or an operand does not step over them as over one.
    """
    sizes = squeezed(statement.shape)
    if sizes == shape:
        return statement
    groups: list[int] = []  # how many axes make one of `shape`
    rest = iter(sizes)
    for wanted in shape:
        size, count = 1, 0
        while size != wanted:
            n = next(rest, None)
            if n is None or wanted % (size * n):
                return None
            size, count = size * n, count + 1
        groups.append(count)
    if next(rest, None) is not None:
        return None
    target = _together(statement.target, shape, groups)
    operands = [
        x if isinstance(x, Literal | Size) else _together(x, shape, groups)
        for x in statement.operands
    ]
    if not isinstance(target, View) or None in operands:
        return None
    return Pointwise(target, tuple(x for x in operands if x is not None), statement.expression)


def _together(x: Operand, shape: Shape, groups: Sequence[int]) -> View | Iota | None:
    """A view with groups of axes as one each; None where they are not evenly apart."""
    if not isinstance(x, View | Iota):
        return None
    pairs = [(n, s) for n, s in zip(x.shape, x.strides, strict=True) if n != 1]
    strides = []
    at = 0
    for count in groups:
        group = pairs[at : at + count]
        at += count
        if any(a[1] != b[1] * b[0] for a, b in zip(group, group[1:], strict=False)):
            return None
        strides.append(group[-1][1])
    return x._replace(shape=shape, strides=tuple(strides))


def _is_matrix(shape: Shape | None) -> bool:
    """Whether there are both rows and columns."""
    return (
        shape is not None and len(shape) > 1 and shape[-1] != 1 and any(n != 1 for n in shape[:-1])
    )


def _in_rows(operands: Sequence[Operand]) -> bool:
    """Whether operands step evenly from row to row: their outer axes are like one."""
    for x in operands:
        view = x.view if isinstance(x, IndirectLoad) else x
        if isinstance(view, Literal | Size):
            continue
        axes = [(n, s) for n, s in zip(view.shape, view.strides, strict=True) if n != 1]
        if any(axes[a][1] != axes[a + 1][1] * axes[a + 1][0] for a in range(len(axes) - 2)):
            return False
        if isinstance(x, IndirectLoad) and not _in_rows(x.indices):
            return False
    return True
