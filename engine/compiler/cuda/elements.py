"""The statements of a kernel at one place of its loops, or at a vector of neighbouring ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...graph import bool_, int64
from ..ir.kernel import Kernel
from ..ir.program import IndirectLoad, Iota, Literal, Operand, Pointwise, Reduce, Size, View
from ..schedule.buffer_assignment import BufferAssignment
from ..schedule.kernel_accesses import Access, KernelAccesses
from .scalars import CudaScalars, Term, literal, memory_type, register_type, write
from .source import Failed, Pointer, Source


class ElementWriter(KernelAccesses):
    """A kernel whose code is being written.

    Args:
        layout: the program where it belongs.
        kernel: the statements.
        index: the C type of places in memory, "int" or "long long".
        lanes: how many neighbouring elements are loaded and stored at once.
        is_guarded: whether it does nothing after a check has failed.

    Attributes:
        source: its text.
        groups: the axes, those that all accesses step over as over one put together.
        reduced: for each group, whether it is reduced.
        numbers: the size of each group.
        row_terms: what there is one of for each row, by storage.
    """

    def __init__(
        self,
        layout: BufferAssignment,
        kernel: Kernel,
        index: str,
        lanes: int = 1,
        is_guarded: bool = False,
    ) -> None:
        super().__init__(layout, kernel)
        self.layout = layout
        self.source = Source(index)
        self.scalars = CudaScalars(self.source.lines, self.source.name)
        self.lanes = lanes
        self.is_guarded = is_guarded
        axes = kernel.axes or frozenset()
        self.groups = self.joined()
        self.reduced = [g[0] in axes for g in self.groups]
        self.numbers = []
        for group in self.groups:
            number = 1
            for a in group:
                number *= kernel.shape[a]
            self.numbers.append(number)
        self.row_terms: dict[int, Term] = {}
        self._written = {layout.place[n] for n in kernel.writes}
        for access in self.accesses.values():
            if access.storage is not None:
                access.pointer = self._pointer(access)
            access.steps = [access.strides[g[-1]] for g in self.groups]

    def _pointer(self, access: Access) -> str:
        assert access.storage is not None
        kind = memory_type(access.dtype)
        if self.layout.place[access.storage] in self._written:
            kind = f"{kind}*"
        else:
            kind = f"const {kind}* __restrict__"
        return self.source.argument(Pointer(access.storage, access.offset), kind)

    def guard(self) -> None:
        """Return where a check has failed."""
        if self.is_guarded:
            self.source.add(f"if (*{self.source.argument(Failed(), 'const int*')}) return;")

    # Places

    def coordinates(self, place: str, groups: Sequence[int], first: str = "") -> dict[int, str]:
        """Names for the position along each of some groups, at a place that counts through them.

        Args:
            place: the number of the place, the last group fastest; a name.
            groups: in order.
            first: where the first group begins.
        """
        source, found = self.source, dict[int, str]()
        rest = place
        for g in reversed(groups):
            name = source.name()
            if g == groups[0]:
                text = f"{first} + {rest}" if first else rest
                source.add(f"const {source.index} {name} = {text};")
            else:
                size, left = source.number(self.numbers[g]), source.name()
                source.add(f"const {source.index} {left} = {rest} / {size};")
                source.add(f"const {source.index} {name} = {rest} - {left} * {size};")
                rest = left
            found[g] = name
        return found

    def offset(self, access: Access, at: Mapping[int, str], extra: Sequence[str] = ()) -> str:
        """How far from its first element an access is, at positions along groups."""
        parts = list(extra)
        for g, step in enumerate(access.steps):
            if step and g in at:
                parts.append(at[g] if step == 1 else f"{at[g]} * {self.source.number(step)}")
        return " + ".join(parts) or "0"

    def is_vector(self, access: Access) -> bool:
        """Whether its neighbouring elements are loaded at once."""
        return self.lanes > 1 and access.storage is not None and access.steps[-1] == 1

    # Reductions

    def is_row(self, s: Pointwise | Reduce) -> bool:
        """Whether a statement makes one value for a row."""
        return isinstance(s, Pointwise) and s.target.storage in self.kernel.rows

    def row_statements(self, at: Mapping[int, str], ready: int | None, condition: str) -> None:
        """The statements on rows that can run after `ready` phases; all of them for None.

        Args:
            at: the row.
            ready: see above.
            condition: which threads store what they give.
        """
        for s in self.kernel.statements:
            if not self.is_row(s) or (ready is not None and self.phases.of[id(s)] != ready):
                continue
            assert isinstance(s, Pointwise)
            spot = Spot(self, at)
            values = [spot.operand(x, {}) for x in s.operands]
            self.row_terms[s.target.storage] = write(self.scalars, s.expression, values)
            self.store_row(s, at, condition)

    def store_row(self, s: Pointwise | Reduce, at: Mapping[int, str], condition: str) -> None:
        """Store what there is one of for a row, if it is to be in memory."""
        if s.target.storage in self.stored:
            access = self.target_access(s)
            value = self.row_terms[s.target.storage].text
            place = f"{access.pointer}[{self.offset(access, at)}]"
            self.source.add(f"if ({condition}) lm_put({place}, {value});")

    def phase(self, number: int) -> list[Pointwise | Reduce]:
        """The statements of full size that run in a phase."""
        return [
            s
            for s in self.kernel.statements
            if not self.is_row(s) and self.phases.of[id(s)] == number
        ]


class Spot:
    """A place in the loops: one element, or one of a vector.

    Args:
        kernel: what is written.
        at: the position along each group that matters.
        phase: which one is written; None for those without.
        lane: the name of the number of the element in its vector, if there is one.
        loaded: for each access that has been loaded, the C text of its element here.
    """

    def __init__(
        self,
        kernel: ElementWriter,
        at: Mapping[int, str],
        phase: int | None = None,
        lane: str = "",
        loaded: Mapping[int, str] | None = None,
    ) -> None:
        self._kernel = kernel
        self._at = at
        self._phase = phase
        self._lane = lane
        self._texts = loaded or {}
        self._loaded: dict[object, Term] = {}

    def operand(self, x: Operand, env: dict[int, Term]) -> Term:
        """The value of an operand; `env` has what is known here, by statement."""
        kernel, scalars = self._kernel, self._kernel.scalars
        if isinstance(x, Literal):
            return scalars.term(literal(x.value, x.dtype), x.dtype)
        if isinstance(x, Size):
            text = f"({register_type(x.dtype)}){kernel.source.number(x.value)}"
            return scalars.term(f"({text})", x.dtype)
        if isinstance(x, View) and kernel.is_here(x):
            return self._made(x, env)
        found = self._loaded.get(x)
        if found is None:
            found = self._loaded[x] = self._read(x, env)
        return found

    def _made(self, view: View, env: dict[int, Term]) -> Term:
        kernel, storage = self._kernel, view.storage
        if storage in kernel.kernel.rows:
            return kernel.row_terms[storage]
        s = kernel.made[storage]
        assert isinstance(s, Pointwise)
        is_now = self._phase is None or kernel.phases.of[id(s)] == self._phase
        if id(s) not in env and storage in kernel.reloaded and not is_now:
            return self._load(kernel.accesses[kernel.program.whole(storage)])
        return self.value(s, env)

    def value(self, s: Pointwise, env: dict[int, Term]) -> Term:
        """What a statement gives here."""
        found = env.get(id(s))
        if found is None:
            values = [self.operand(x, env) for x in s.operands]
            found = env[id(s)] = write(self._kernel.scalars, s.expression, values)
        return found

    def _read(self, x: Operand, env: dict[int, Term]) -> Term:
        kernel = self._kernel
        if isinstance(x, IndirectLoad):
            return self._indirect(x, env)
        assert isinstance(x, View | Iota)
        access = kernel.accesses[x]
        if isinstance(x, Iota):
            place = f"(lm_int64)({self.place(access)})"
            text = f"({register_type(x.dtype)})({place} + {kernel.source.number(x.offset)})"
            if x.dtype == bool_:
                text = f"({text}) != 0"
            return kernel.scalars.named(text, x.dtype)
        return self._load(access)

    def place(self, access: Access) -> str:
        """How far from the first element of an access this one is."""
        step = access.steps[-1] if access.steps else 0
        extra = []
        if self._lane and step:
            by = "" if step == 1 else f" * {self._kernel.source.number(step)}"
            extra.append(f"{self._lane}{by}")
        return self._kernel.offset(access, self._at, extra)

    def _load(self, access: Access) -> Term:
        kernel = self._kernel
        text = self._texts.get(id(access)) or f"{access.pointer}[{self.place(access)}]"
        text = f"lm_get({text})"
        return kernel.scalars.named(text, access.dtype)

    def _indirect(self, x: IndirectLoad, env: dict[int, Term]) -> Term:
        kernel, source = self._kernel, self._kernel.source
        access = kernel.accesses[x.view]
        tests, parts = [], [self.place(access)]
        for index, stride, limit in zip(x.indices, x.strides, x.limits, strict=True):
            place = kernel.scalars.named(f"(lm_int64){self.operand(index, env).text}", int64)
            tests.append(f"{place.text} >= 0 && {place.text} < {source.number(limit)}")
            parts.append(f"{place.text} * {source.number(stride)}")
        read = f"lm_get({access.pointer}[{' + '.join(parts)}])"
        text = f"{' && '.join(tests)} ? {read} : {literal(0, access.dtype)}"
        return kernel.scalars.named(text, access.dtype)


def write_elements(
    kernel: ElementWriter,
    at: Mapping[int, str],
    statements: Sequence[Pointwise | Reduce],
    phase: int | None,
    combine: dict[int, list[str]],
    loaded: Mapping[int, str] | None = None,
) -> None:
    """Compute statements at a place, or at `lanes` neighbouring ones, and store what they make.

    Args:
        kernel: what is written.
        at: the positions along the groups; the last one is that of the first of the neighbours.
        statements: in order.
        phase: which one it is.
        combine: for a reduction, by id(), lines with `@` for its operand; filled for argmax with
            `#` for the number of the neighbour.
        loaded: see `Spot`; where there is one at a time.
    """
    source = kernel.source
    if kernel.lanes == 1:
        spot = Spot(kernel, at, phase, loaded=loaded)
        _write_one(kernel, spot, statements, combine, {}, "0")
        return
    vectors, stores = dict[int, str](), list[str]()
    targets = dict[int, str]()
    for access in _read_accesses(kernel, statements, phase):
        if kernel.is_vector(access):
            name, kind = source.name(), f"lm_vector<{memory_type(access.dtype)}, {kernel.lanes}>"
            place = f"{access.pointer} + {kernel.offset(access, at)}"
            source.add(f"const {kind} {name} = *(const {kind}*)({place});")
            vectors[id(access)] = name
    for s in statements:
        if isinstance(s, Pointwise) and s.target.storage in kernel.stored:
            access = kernel.target_access(s)
            if not kernel.is_vector(access):
                continue
            name, kind = source.name(), f"lm_vector<{memory_type(access.dtype)}, {kernel.lanes}>"
            source.add(f"{kind} {name};")
            targets[id(s)] = name
            stores.append(f"*({kind}*)({access.pointer} + {kernel.offset(access, at)}) = {name};")
    lane = source.name()
    source.add("#pragma unroll")
    with source.block(f"for (int {lane} = 0; {lane} < {kernel.lanes}; {lane}++)"):
        texts = {key: f"{name}.at[{lane}]" for key, name in vectors.items()}
        spot = Spot(kernel, at, phase, lane, texts)
        _write_one(kernel, spot, statements, combine, targets, lane)
    source.add(*stores)


def _write_one(
    kernel: ElementWriter,
    spot: Spot,
    statements: Sequence[Pointwise | Reduce],
    combine: dict[int, list[str]],
    targets: Mapping[int, str],
    lane: str,
) -> None:
    source, env = kernel.source, dict[int, Term]()
    made: list[tuple[Pointwise, Term]] = []
    for s in statements:
        if isinstance(s, Reduce):
            given = spot.operand(s.operand, env).text
            source.add(*(x.replace("@", given).replace("#", lane) for x in combine[id(s)]))
        else:
            made.append((s, spot.value(s, env)))
    for s, value in made:  # a variable is written over once everything has been read
        if id(s) in targets:
            source.add(f"lm_put({targets[id(s)]}.at[{lane}], {value.text});")
        elif s.target.storage in kernel.stored:
            access = kernel.target_access(s)
            source.add(f"lm_put({access.pointer}[{spot.place(access)}], {value.text});")


def _read_accesses(
    kernel: ElementWriter, statements: Sequence[Pointwise | Reduce], phase: int | None
) -> list[Access]:
    """The places in memory that statements read."""
    found = dict[int, Access]()
    needed = _needed(kernel, statements, phase)
    for operand, access in kernel.accesses.items():
        if isinstance(operand, View) and operand in needed:
            found[id(access)] = access
    return list(found.values())


def _needed(
    kernel: ElementWriter, statements: Sequence[Pointwise | Reduce], phase: int | None
) -> set[View]:
    """The views that statements read from memory here, with what they compute again."""
    found: set[View] = set()
    todo: list[Operand] = [x for s in statements for x in s.operands]
    seen: set[Operand] = set()
    while todo:
        x = todo.pop()
        if x in seen:
            continue
        seen.add(x)
        if isinstance(x, IndirectLoad):
            todo.extend(x.indices)
        elif isinstance(x, View):
            if not kernel.is_here(x):
                found.add(x)
            elif x.storage not in kernel.kernel.rows:
                s = kernel.made[x.storage]
                is_now = phase is None or kernel.phases.of[id(s)] == phase
                if x.storage in kernel.reloaded and not is_now:
                    found.add(kernel.program.whole(x.storage))
                else:
                    todo.extend(s.operands)
    return found
