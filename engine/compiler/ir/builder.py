"""Building loop programs: what a lowering writes with.

Values are operands: views of storages, and numbers. Shaping (reshape, transpose, slices,
broadcasting) makes another view and computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...graph import Array, DType, bool_, float32, int32
from .element_types import HALVES
from .machine import HOST, Machine
from .not_lowered import NotLoweredError
from .program import (
    Alias,
    Check,
    Fence,
    IndirectLoad,
    Iota,
    KernelCall,
    KernelPlanner,
    Literal,
    Loop,
    LoopProgram,
    Operand,
    Pointwise,
    Reduce,
    Shape,
    Size,
    Statement,
    Storage,
    View,
    contiguous,
)
from .recording_scalars import record, same
from .sizes import DerivedSize, is_known, shown, symbolic_size

# A reduction over more is made of several parts, which can run at once.
_PART_ROWS = 4096  # of columns that are added up
_PART_ELEMENTS = 32768  # of everything into one number
_PER_UNKNOWN = 256  # elements for each step of an unknown size


class Builder:
    """Adds statements to a program.

    Args:
        num_sizes: how many symbolic sizes there are.
        machine: what the program is for.

    Attributes:
        program: what has been built.
    """

    def __init__(self, num_sizes: int = 0, machine: Machine = HOST) -> None:
        self.program = LoopProgram()
        self.machine = machine
        self._num_sizes = num_sizes
        self._derived: dict[DerivedSize, int] = {}
        self._shared: dict[Any, View] = {}
        self._loop_begins = 0  # the first storage of the innermost loop
        self._num_fences = 0
        self.label = ""

    # What is known of an operand

    def dtype(self, x: Operand) -> DType:
        """The element type."""
        return self.program.dtype(x)

    def shape(self, x: Operand) -> Shape:
        """The shape; () for a number."""
        if isinstance(x, View | Iota):
            return x.shape
        return x.view.shape if isinstance(x, IndirectLoad) else ()

    # Storages

    def storage(self, shape: Shape, dtype: DType, role: str = "temporary") -> View:
        """New memory, as a view of all of it."""
        return self.program.whole(self.program.add(Storage(dtype, tuple(shape), role)))

    def array(self, value: Array, dtype: DType) -> View:
        """A constant array."""
        held = np.ascontiguousarray(value)
        number = self.program.add(Storage(dtype, value.shape, "constant", held))
        return self.program.whole(number)

    # Statements

    @contextmanager
    def inside_loop(self, first: int) -> Iterator[list[Statement]]:
        """A block whose statements are the body of a loop: they go to the list that it gives.

        Args:
            first: the first storage that the loop changes.
        """
        program = self.program
        outer = program.statements, self._loop_begins, dict(self._shared)
        program.statements, self._loop_begins = [], first
        try:
            yield program.statements
        finally:
            program.statements, self._loop_begins, self._shared = outer

    def is_fixed(self, x: View) -> bool:
        """Whether what is built now is repeated, with the same memory each time."""
        return x.storage < self._loop_begins

    def loop(self, statement: Loop) -> None:
        """Add a loop whose statements have been built."""
        self._add(statement)

    def _add(self, statement: Any) -> None:
        self.program.statements.append(statement)
        self.program.labels[id(statement)] = self.label

    def map(
        self,
        scalar: Callable[..., Any],
        operands: Sequence[Operand],
        dtype: DType,
        shape: Shape | None = None,
        **attributes: Any,
    ) -> View:
        """A scalar expression (see engine/ops/core/scalars.py) on each element of the operands."""
        if shape is None:
            shape = broadcast([self.shape(x) for x in operands])
        target = self.storage(shape, dtype)
        self.map_into(target, scalar, operands, **attributes)
        return target

    def map_into(
        self, target: View, scalar: Callable[..., Any], operands: Sequence[Operand], **attrs: Any
    ) -> None:
        """A scalar expression on each element of `target`."""
        spread = tuple(self.broadcast(x, target.shape) for x in operands)
        expression = record(scalar, tuple(map(self.dtype, operands)), self.dtype(target), attrs)
        self._add(Pointwise(target, spread, expression))

    def compute(
        self,
        scalar: Callable[..., Any],
        *operands: Operand,
        dtype: DType | None = None,
        **attrs: Any,
    ) -> View:
        """As `map`; the result has the type of the first operand if no other is named."""
        return self.map(scalar, operands, dtype or self.dtype(operands[0]), **attrs)

    def cast(self, x: Operand, dtype: DType) -> Operand:
        """As another element type."""
        if self.dtype(x) == dtype:
            return x
        if isinstance(x, Size) and dtype.is_integer:
            return Size(x.value, dtype)
        found = self.map(lambda s, x: s.cast(x, dtype), [x], dtype)
        if dtype == float32 and isinstance(x, View) and self.dtype(x) in HALVES:
            self.program.halves[found.storage] = x
        return found

    def halves_of(self, x: View) -> View | None:
        """The halves that have the values of a view; None where there are none in this order."""
        if self.dtype(x) in HALVES:
            return x
        source = self.program.halves.get(x.storage)
        if source is None or not source.is_contiguous:
            return None
        self.program.removable.add(x.storage)
        return x._replace(storage=source.storage, fence=x.fence or source.fence)

    def widened(self, x: Operand) -> Any:
        """A half as float32; in a loop what stays the same is made so once."""
        if self.dtype(x) not in HALVES:
            return x
        if isinstance(x, View) and self.is_fixed(x):
            return self.once(("float32", x), lambda: self.map(as_it_is, [x], float32))
        return self.cast(x, float32)

    def copy(self, x: Operand) -> View:
        """In new memory."""
        found = self.storage(self.shape(x), self.dtype(x))
        self._add(Pointwise(found, (x,), same(self.dtype(x))))
        return found

    def whole(self, x: Operand) -> View:
        """As memory in the usual order; a copy where it is not."""
        return x if isinstance(x, View) and x.is_contiguous and self._fills(x) else self.copy(x)

    def _fills(self, x: View) -> bool:
        return math.prod(x.shape) == self.program.storages[x.storage].num_elements

    def reduce(
        self,
        kind: str,
        x: Operand,
        axes: Sequence[int],
        *,
        keepdims: bool = False,
    ) -> View:
        """The elements along `axes`, combined; "argmax" and "argmin" give int32 places."""
        shape = self.shape(x)
        wanted = tuple(sorted(a % len(shape) for a in axes)) if shape else ()
        kept = tuple(1 if a in wanted else n for a, n in enumerate(shape))
        reduced = tuple(a for a in wanted if shape[a] != 1)
        dtype = int32 if kind.startswith("arg") else self.dtype(x)
        found: View
        if not reduced:
            if kind.startswith("arg"):
                found = self.map(as_it_is, [Literal(0, int32)], int32, kept)
            else:
                found = self.copy(self.broadcast(x, kept))
        else:
            if len(reduced) > 1 and kind.startswith("arg"):
                raise NotLoweredError("places along several axes")
            found = self._reduce(kind, x, shape, reduced, kept, dtype)
        if keepdims:
            return found
        rest = tuple(n for a, n in enumerate(kept) if a not in wanted)
        return self.reshape(found, rest)

    def total(self, x: Operand, axes: Sequence[int]) -> View:
        """The sum over `axes`, which stay with size 1; made once for each x."""
        wanted = tuple(sorted(a % len(self.shape(x)) for a in axes))
        return self.once(("sum", x, wanted), lambda: self.reduce("sum", x, wanted, keepdims=True))

    def _reduce(
        self, kind: str, x: Operand, shape: Shape, axes: tuple[int, ...], kept: Shape, dtype: DType
    ) -> View:
        target = self.storage(kept, dtype)
        if kind.startswith("arg") or not _in_parts(shape, axes):
            self._add(Reduce(target, x, shape, axes, kind))
            return target
        split = axes[0]
        parts = self._parts(shape[split], math.prod(shape) // shape[split] * dtype.size)
        partial = self.storage((parts, *kept), dtype)
        self._add(Reduce(partial, x, shape, axes, kind, (split, parts)))
        whole = self.reshape(target, (1, *kept))
        self._add(Reduce(whole, partial, (parts, *kept), (0,), kind, is_of_parts=True))
        return target

    def _parts(self, size: int, row_bytes: int) -> int:
        """A symbolic size for the number of parts of `size` rows."""
        machine = self.machine
        return self.derive(NumParts(size, row_bytes, machine.part_bytes, machine.most_parts))

    def derive(self, size: DerivedSize) -> int:
        """A symbolic size for a number that follows from others; one for equal ones."""
        found = self._derived.get(size)
        if found is None:
            found = self._derived[size] = symbolic_size(self._num_sizes + len(self._derived))
            self.program.derived[found] = size
        return found

    def kernel_call(
        self,
        name: str,
        inputs: Sequence[Operand],
        outputs: Sequence[tuple[Shape, DType]],
        planner: KernelPlanner,
        *,
        hoisted: bool = False,
        work: int = 0,
        alias: Alias | None = None,
    ) -> list[View]:
        """Kernels that are planned with real sizes.

        Args:
            name: what it is.
            inputs: made contiguous.
            outputs: shapes and types.
            planner: gives the launches.
            early: whether they run before all others that they do not need.
            work: the number of multiplications, if they take the time.
            over: the input whose memory the one output may take.
        """
        views = tuple(self.whole(x) for x in inputs)
        made = [self.storage(shape, dtype) for shape, dtype in outputs]
        writes = tuple(v.storage for v in made)
        self._add(KernelCall(name, views, writes, planner, hoisted=hoisted, work=work, alias=alias))
        return made

    def once(self, key: Any, make: Callable[[], View]) -> View:
        """What `make` gives, made once for equal keys, which say all that it depends on."""
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = make()
        return found

    def kernel_call_on(
        self,
        name: str,
        views: Sequence[View],
        shape: Shape,
        dtype: DType,
        planner: KernelPlanner,
        *,
        work: int = 0,
        epilogue: bool = True,
    ) -> View:
        """As `kernel_call`, with one output, whose rows an `epilogue` may go on with."""
        made = self.storage(shape, dtype)
        rows = made.shape if epilogue else None
        self._add(KernelCall(name, tuple(views), (made.storage,), planner, rows, work))
        return made

    def check(self, fails: Operand) -> None:
        """Stop the run, before anything is changed, if some element of a bool is true."""
        shape = self.shape(fails)
        self._add(Check(self.reduce("any", fails, range(len(shape)))))

    def fenced(self, operands: Sequence[Operand]) -> list[Operand]:
        """The operands for what is to run after all statements so far, and not with them."""
        self._num_fences += 1
        number = self._num_fences
        self._add(Fence(number))
        return [x._replace(fence=number) if isinstance(x, View) else x for x in operands]

    # Shaping

    def broadcast(self, x: Operand, shape: Shape) -> Operand:
        """Repeated along new axes and those of size 1."""
        own = self.shape(x)
        if own == shape or isinstance(x, Literal | Size):
            return x
        if isinstance(x, IndirectLoad):
            return self.broadcast(self.copy(x), shape)
        assert isinstance(x, View | Iota)
        extra = len(shape) - len(own)
        strides = [0] * extra
        for n, s, wanted in zip(own, x.strides, shape[extra:], strict=True):
            if n != wanted and n != 1:
                raise ShapeError(f"{shown(own)} does not broadcast to {shown(shape)}")
            strides.append(s if n == wanted else 0)
        return x._replace(shape=tuple(shape), strides=tuple(strides))

    def reshape(self, x: Operand, shape: Shape) -> View:
        """The elements in the same order, in another shape."""
        view = x if isinstance(x, View) else self.copy(x)
        if view.shape == shape:
            return view
        if math.prod(view.shape) != math.prod(shape):
            raise NotLoweredError(f"{shown(view.shape)} in the shape {shown(shape)}")
        ones = [(n, s) for n, s in zip(view.shape, view.strides, strict=True) if n != 1]
        if [n for n, _ in ones] == [n for n in shape if n != 1]:
            rest = iter(ones)
            strides = tuple(next(rest)[1] if n != 1 else 0 for n in shape)
            return view._replace(shape=tuple(shape), strides=strides)
        if not view.is_contiguous:
            view = self.copy(view)
        return view._replace(shape=tuple(shape), strides=contiguous(shape))

    def transpose(self, x: Operand, order: Sequence[int]) -> View:
        """The axes in another order."""
        view = x if isinstance(x, View) else self.copy(x)
        return view._replace(
            shape=tuple(view.shape[a] for a in order),
            strides=tuple(view.strides[a] for a in order),
        )

    def narrow(self, x: Operand, starts: Sequence[int], sizes: Shape, steps: Sequence[int]) -> View:
        """Every steps[a]-th element from starts[a] on, along each axis."""
        view = x if isinstance(x, View) else self.copy(x)
        offset = view.offset + sum(b * s for b, s in zip(starts, view.strides, strict=True))
        strides = tuple(s * t for s, t in zip(view.strides, steps, strict=True))
        return view._replace(shape=tuple(sizes), strides=strides, offset=offset)

    def iota(self, shape: Shape, axis: int, dtype: DType) -> Iota:
        """The position along an axis."""
        return Iota(tuple(shape), tuple(int(a == axis) for a in range(len(shape))), dtype)

    def full(self, shape: Shape, value: Any, dtype: DType) -> View:
        """A number repeated."""
        return self.map(as_it_is, [Literal(value, dtype)], dtype, tuple(shape))


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape that all broadcast to.

    Raises:
        ShapeError: there is none.
    """
    rank = max((len(s) for s in shapes), default=0)
    found = [1] * rank
    for shape in shapes:
        for a, n in enumerate(shape, rank - len(shape)):
            if n != 1:
                if found[a] not in (1, n):
                    raise ShapeError(f"{' and '.join(map(shown, shapes))} do not broadcast")
                found[a] = n
    return tuple(found)


@dataclass(frozen=True)
class NumParts(DerivedSize):
    """In how many parts `size` rows of so many bytes are reduced.

    Attributes:
        size: see above.
        row_bytes: see above.
        part_bytes: a part is at least so large.
        most: there are at most so many.
    """

    size: int
    row_bytes: int
    part_bytes: int = field(repr=False)
    most: int = field(repr=False)

    def value(self, real: Callable[[int], int]) -> int:
        """The number of parts."""
        rows = real(self.size)
        wanted = rows * real(self.row_bytes) // self.part_bytes
        return max(1, min(self.most, wanted, rows))


def _in_parts(shape: Shape, axes: tuple[int, ...]) -> bool:
    """Whether a reduction is cut into parts; decided on what is known before the run."""
    unknown = any(not is_known(shape[a]) for a in axes)
    known = math.prod(shape[a] for a in axes if is_known(shape[a]))
    if len(shape) - 1 in axes:
        kept = [n for a, n in enumerate(shape) if a not in axes and n != 1]
        return not kept and (known >= _PART_ELEMENTS or (unknown and known >= _PER_UNKNOWN))
    return unknown or known >= _PART_ROWS


def as_it_is(s: Any, x: Any) -> Any:
    """The scalar expression that changes nothing, but for the type of a half."""
    return x


def truth(s: Any, x: Any) -> Any:
    """Whether a number is not 0."""
    return s.cast(x, bool_)
