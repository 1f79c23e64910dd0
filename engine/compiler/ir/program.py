"""The loop program of a cluster: what is computed on which memory, before loops are chosen.

A program is a list of statements in order. Sizes in it are numbers; those that are only known when
the program runs are symbolic sizes (see sizes.py), so that no decision can rest on them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...errors import InternalError
from ...graph import Array, DType
from ..target.fingerprint import digest, encoded
from .expression import Expression
from .kernel_target import Target
from .launch import Buffer, Epilogue, Launch
from .sizes import DerivedSize, shown, shown_size

Shape: TypeAlias = tuple[int, ...]


class View(NamedTuple):
    """How storage is read or written: element (i, j, ...) is at offset + i * strides[0] + ...

    What reads through a `fence` other than 0 is computed after that Fence, though the same may have
    been computed before.
    """

    storage: int
    shape: Shape
    strides: Shape
    offset: int = 0
    fence: int = 0

    @property
    def is_contiguous(self) -> bool:
        """Whether it is the storage as a whole, in order."""
        return self.offset == 0 and all(
            n == 1 or s == t
            for n, s, t in zip(self.shape, self.strides, contiguous(self.shape), strict=True)
        )

    def __repr__(self) -> str:
        return (
            f"View({self.storage}, {shown(self.shape)}, strides={shown(self.strides)}, "
            f"offset={shown_size(self.offset)}, fence={self.fence})"
        )


class Iota(NamedTuple):
    """Whole numbers made of the position: offset + i * strides[0] + ..."""

    shape: Shape
    strides: Shape
    dtype: DType
    offset: int = 0


class IndirectLoad(NamedTuple):
    """A view whose place also depends on data: index[k] * strides[k] elements further.

    Attributes:
        view: the place for index 0; it must not move along what the indices replace.
        indices: operands that give whole numbers.
        strides: elements for each step of an index.
        limits: the number of places for each index; one outside reads as 0.
    """

    view: View
    indices: tuple[Operand, ...]
    strides: Shape
    limits: Shape


class Literal(NamedTuple):
    """A number that is the same in every run."""

    value: Any
    dtype: DType


class Size(NamedTuple):
    """A size, or a product of sizes, as a number to compute with."""

    value: int
    dtype: DType


Operand: TypeAlias = View | Iota | IndirectLoad | Literal | Size


class Window(NamedTuple):
    """Where a storage is that moves through another one: in iteration t of its loop it begins at
    element `offset` + t * `step` of `base`.
    """

    base: int
    offset: int
    step: int


@dataclass(eq=False)
class Storage:
    """Memory of one array, in the usual order.

    Attributes:
        role: "input" (given in each run), "output" (given out), "variable" (read, and written in
            place), "constant", "window" (a part of another storage, which a loop moves on), or
            "temporary".
        value: for a constant, its array.
        window: for a window, where it is.
        name: of an input or a variable, for people.
    """

    dtype: DType
    shape: Shape
    role: str = "temporary"
    value: Array | None = None
    window: Window | None = None
    name: str = field(default="", compare=False)

    @property
    def num_elements(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)


@dataclass(eq=False)
class Pointwise:
    """target[i] = expression(operands at i), for each element."""

    target: View
    operands: tuple[Operand, ...]
    expression: Expression

    @property
    def shape(self) -> Shape:
        """The domain."""
        return self.target.shape

    @property
    def writes(self) -> tuple[int, ...]:
        """The storages it writes."""
        return (self.target.storage,)


@dataclass(eq=False)
class Reduce:
    """target[kept axes] = the elements of the operand along `axes`, combined.

    Attributes:
        kind: "sum", "prod", "max", "min", "any", "all", "argmax" or "argmin".
        target: its view has size 1 on the reduced axes.
        split: (axis, parts): the axis is cut into parts, and the target has one more axis in front,
            of that size, for what each of them gives.
        is_of_parts: whether it combines what such parts gave.
    """

    target: View
    operand: Operand
    shape: Shape
    axes: tuple[int, ...]
    kind: str
    split: tuple[int, int] | None = None
    is_of_parts: bool = False

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What it reads."""
        return (self.operand,)

    @property
    def writes(self) -> tuple[int, ...]:
        """The storages it writes."""
        return (self.target.storage,)


@dataclass(eq=False)
class KernelCall:
    """Kernels that are not loops of expressions: contractions, windows, scatters.

    Attributes:
        name: what it is, for reading.
        inputs: the views it reads.
        writes: the storages it fills.
        planner: gives the launches for real sizes.
        shape: of its one output, if an epilogue may go on with rows of it that are finished.
        work: how many multiplications there are; 0 where memory takes the time.
        early: whether it runs before all that it does not need, so that others can join kernels
            which come before the place where its result is first used.
        over: the input whose memory its one output may take.
    """

    name: str
    inputs: tuple[View, ...]
    writes: tuple[int, ...]
    planner: KernelPlanner
    shape: Shape | None = None
    work: int = 0
    hoisted: bool = False
    alias: Alias | None = None

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What it reads."""
        return self.inputs

    def launches(
        self, real: Callable[[int], int], target: Target, epilogue: Epilogue | None = None
    ) -> Sequence[Launch]:
        """What runs for real sizes; buffers are numbered as the storages are."""
        outputs = tuple(Buffer(number) for number in self.writes)
        return self.planner.plan(KernelArguments(self.inputs, outputs, real, target, epilogue))


class KernelArguments(NamedTuple):
    """What the launches of a kernel call are planned for.

    Attributes:
        views: what it reads.
        outputs: what it fills.
        real: turns numbers of the program into those of a run.
        target: what kernels are for.
        epilogue: what is done to rows that are finished.
    """

    views: tuple[View, ...]
    outputs: tuple[Buffer, ...]
    real: Callable[[int], int]
    target: Target
    epilogue: Epilogue | None = None

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """What it reads, of views that are whole storages."""
        return tuple(Buffer(view.storage) for view in self.views)


@dataclass(frozen=True)
class KernelPlanner(ABC):
    """Which kernels run for a call: a named rule and its parameters, the fields.

    Planners are data, as the program around them: equal ones plan alike. Those fields are printed
    that are no `field(repr=False)`.
    """

    @abstractmethod
    def plan(self, arguments: KernelArguments) -> Sequence[Launch]:
        """The launches for real sizes."""

    def parameters(self) -> dict[str, Any]:
        """The fields that tell more than the operands do."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.repr}


class Alias(NamedTuple):
    """What a kernel call may write over, as it changes but a part of it.

    Attributes:
        storage: the input.
        changed: how many elements are written; no other is touched where the memory is the same.
    """

    storage: int
    changed: int


@dataclass(eq=False)
class Check:
    """A run stops before anything is changed if the storage, a bool, is true."""

    view: View
    writes: tuple[int, ...] = ()

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What it reads."""
        return (self.view,)


@dataclass(eq=False)
class Fence:
    """What reads through views with this number joins no kernel before this place."""

    number: int
    operands: tuple[Operand, ...] = ()
    writes: tuple[int, ...] = ()


@dataclass(eq=False)
class Loop:
    """`count` times its body; it ends before that where `stop` is true after `test`.

    Attributes:
        count: how many iterations there are; None for any number, until it stops.
        test: what comes before `stop` is looked at, in each iteration.
        stop: a bool, if there is a test.
        body: what is repeated.
        windows: the storages that it moves on.
        carried: storage -> the view that it holds after an iteration.
        inputs: all that it reads of what was made before it, as storages.
        writes: the storages that others read, or that keep their values between iterations.
    """

    count: int | None
    test: list[Statement]
    stop: View | None
    body: list[Statement]
    windows: tuple[int, ...]
    carried: dict[int, View]
    inputs: tuple[View, ...]
    writes: tuple[int, ...]

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What it reads."""
        return self.inputs

    @property
    def has_checks(self) -> bool:
        """Whether something in it may stop the run; one without an end can be cancelled."""
        return self.count is None or any(
            isinstance(s, Check) or (isinstance(s, Loop) and s.has_checks)
            for s in (*self.test, *self.body)
        )


Statement: TypeAlias = Pointwise | Reduce | KernelCall | Check | Fence | Loop


@dataclass(eq=False)
class LoopProgram:
    """Statements on storages.

    Attributes:
        outputs: the views that go out.
        updates: variable storage -> the view that it holds at the end.
        labels: for a statement (by id), the operation or layer it came from.
        places: derived sizes that are within bounds by construction; views with them are not
            verified.
        removable: storages that need not be made if nobody reads them.
        halves: storage of float32 -> the halves that it is a copy of.
        derived: symbolic sizes made here, in order -> how they follow from others.
    """

    storages: list[Storage] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    outputs: list[View] = field(default_factory=list)
    updates: dict[int, View] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict, compare=False)
    places: set[int] = field(default_factory=set)
    removable: set[int] = field(default_factory=set)
    halves: dict[int, View] = field(default_factory=dict)
    derived: dict[int, DerivedSize] = field(default_factory=dict)

    def add(self, storage: Storage) -> int:
        """Number a storage."""
        self.storages.append(storage)
        return len(self.storages) - 1

    def whole(self, number: int) -> View:
        """A storage as it is."""
        shape = self.storages[number].shape
        return View(number, shape, contiguous(shape))

    @property
    def digest(self) -> str:
        """The digest of all that decides what is computed, and how; names are for people.

        Raises:
            NoDigestError: a planner is not of laminar's own code.
        """
        return digest(encoded(self))

    def dtype(self, x: Operand) -> DType:
        """The element type of an operand."""
        if isinstance(x, View):
            return self.storages[x.storage].dtype
        return self.dtype(x.view) if isinstance(x, IndirectLoad) else x.dtype

    def verify(self) -> None:
        """Check that every storage is written before it is read, and views stay within it.

        Raises:
            InternalError: it is not so.
        """
        written = {i for i, s in enumerate(self.storages) if s.role != "temporary"}
        self._verify(self.statements, written)
        for view in (*self.outputs, *self.updates.values()):
            self._check_view(view)
            if view.storage not in written:
                raise InternalError(f"storage {view.storage} goes out and is never written")

    def _verify(self, statements: Sequence[Statement], written: set[int]) -> None:
        for statement in statements:
            for view in views_of(statement.operands):
                self._check_view(view)
                if view.storage not in written:
                    raise InternalError(f"storage {view.storage} is read before it is written")
            if isinstance(statement, Loop):
                inside = set(written)
                self._verify([*statement.test, *statement.body], inside)
                for view in statement.carried.values():
                    if view.storage not in inside:
                        raise InternalError(f"a loop carries {view.storage}, never written")
            for number in statement.writes:
                if self.storages[number].role in ("input", "constant"):
                    raise InternalError(f"storage {number} is given, and written to")
                written.add(number)
            if isinstance(statement, Pointwise | Reduce):
                self._check_view(statement.target)

    def _check_view(self, view: View) -> None:
        size = self.storages[view.storage].num_elements
        if 0 in view.shape or not self.places.isdisjoint(view.shape):
            return
        ends = [s * (n - 1) for n, s in zip(view.shape, view.strides, strict=True)]
        low = view.offset + sum(e for e in ends if e < 0)
        high = view.offset + sum(e for e in ends if e > 0)
        if low < 0 or high >= size:
            raise InternalError(f"{view} reaches outside of {shown_size(size)} elements")


def contiguous(shape: Shape) -> Shape:
    """The strides of an array in the usual order."""
    strides = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def views_of(operands: Sequence[Operand]) -> list[View]:
    """The memory that operands read."""
    found: list[View] = []
    for operand in operands:
        if isinstance(operand, View):
            found.append(operand)
        elif isinstance(operand, IndirectLoad):
            found.append(operand.view)
            found.extend(views_of(operand.indices))
    return found


def array_literal(value: Any, dtype: DType) -> Literal:
    """A literal of one number."""
    return Literal(np.asarray(value).reshape(()).item(), dtype)
