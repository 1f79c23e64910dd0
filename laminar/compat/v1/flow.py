"""Control flow under the arguments of TensorFlow 1."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from laminar import engine
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Operation, building, get_default_graph, resource
from laminar.engine.ops.core import basic, checks, host
from laminar.engine.tree import flatten, map_structure

from .adapting import in_graph, v1
from .ragged_tensors import map_rows
from .values import as_kind, symbol, tensor


def _one(found: Any, strict: bool) -> Any:
    """A list of one result as that result, unless it is asked for as it is."""
    return (
        found[0]
        if not strict and isinstance(found, list | builtins.tuple) and len(found) == 1
        else found
    )


@v1(fn1="true_fn", fn2="false_fn")
def cond(
    pred: Any, true_fn: Any = None, false_fn: Any = None, strict: bool = False, name: Any = None
) -> Any:
    """What one of two functions gives."""
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("cond: true_fn and false_fn must be functions")
    if isinstance(pred, bool):
        raise TypeError("cond: pred is a Python bool; an `if` does this")
    return _one(engine.cond(pred, true_fn, false_fn, name=name), strict)


@v1()
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: Any = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """The variables after the body has run while the condition holds."""
    found = engine.while_loop(
        cond,
        body,
        loop_vars,
        shape_invariants=shape_invariants,
        maximum_iterations=maximum_iterations,
        parallel_iterations=parallel_iterations,
        name=name,
    )
    if not back_prop:
        found = map_structure(engine.stop_gradient, found)
    return _one(found, return_same_structure)


@v1()
def case(
    pred_fn_pairs: Any,
    default: Any = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """What the function of the first condition that holds gives."""
    pairs = pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs
    return _one(engine.case(list(pairs), default, exclusive=exclusive, name=name), strict)


@v1()
def switch_case(
    branch_index: Any, branch_fns: Any, default: Any = None, name: str = "switch_case"
) -> Any:
    """What the function of a number gives."""
    if isinstance(branch_fns, list | builtins.tuple) and all(
        isinstance(b, builtins.tuple) for b in branch_fns
    ):
        branch_fns = dict(branch_fns)
    return engine.switch_case(branch_index, branch_fns, default, name=name)


@v1()
def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that has run when all of these have."""
    return basic.group(*flatten(inputs), name=name)


@v1()
def tuple(tensors: Any, name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """The tensors, once all of them are there."""
    waits = [t for t in (*tensors, *(control_inputs or ())) if t is not None]
    with engine.name_scope(name or "tuple"), engine.control_dependencies(waits):
        return [None if t is None else basic.identity(symbol(t)) for t in tensors]


@v1()
def scan(
    fn: Any,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All results of a = fn(a, x) over the entries x of `elems`."""
    first, rest = _first_and_rest(elems, initializer, reverse)

    def step(carry: Any, x: Any) -> Any:
        y = fn(carry, x)
        return y, y

    found = engine.scan(step, first, rest, reverse=reverse, name=name)[1]
    if initializer is not None:
        return found

    def with_first(begin: Any, following: Any) -> Any:
        parts = [following, begin[None]] if reverse else [begin[None], following]
        return engine.lookup("Concat")(*parts, axis=0)

    return map_structure(with_first, first, found)


def _first_and_rest(elems: Any, initializer: Any, reverse: bool) -> Any:
    """Where a fold begins, and what it goes over."""
    xs = map_structure(symbol, elems)
    if initializer is not None:
        return map_structure(symbol, initializer), xs
    if reverse:
        return map_structure(lambda x: x[-1], xs), map_structure(lambda x: x[:-1], xs)
    return map_structure(lambda x: x[0], xs), map_structure(lambda x: x[1:], xs)


def _fold(reverse: bool) -> Callable[..., Any]:
    @v1()
    def fold(
        fn: Any,
        elems: Any,
        initializer: Any = None,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str | None = None,
    ) -> Any:
        first, rest = _first_and_rest(elems, initializer, reverse)
        return engine.scan(lambda a, x: (fn(a, x), None), first, rest, reverse=reverse, name=name)[
            0
        ]

    return fold


foldl = _fold(False)
foldr = _fold(True)


@v1()
def map_fn(
    fn: Any,
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """fn(x) for the entries x of `elems`, side by side; of a ragged tensor, for its rows."""
    if isinstance(elems, engine.RaggedTensor):
        return map_rows(fn, elems, name)
    return engine.map_slices(fn, map_structure(symbol, elems), name=name)


@v1()
def py_func(
    func: Any,
    inp: Any,
    Tout: Any,  # noqa: N803  # its name there
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """What a Python function makes of arrays, each time it runs."""
    several = isinstance(Tout, list | builtins.tuple)
    specs = [engine.TensorSpec(None, as_kind(t)) for t in (Tout if several else [Tout])]

    def call(*arrays: Any) -> Any:
        found = func(*arrays)
        return list(found) if several and isinstance(found, list | builtins.tuple) else [found]

    made = host.host_function(call, [tensor(x) for x in inp], specs, name)
    return list(made) if several else made[0]


@v1()
def Assert(  # noqa: N802  # its name there
    condition: Any, data: Any, summarize: int | None = None, name: str | None = None
) -> Any:
    """An operation that fails where the condition does not hold, and shows the data."""
    found = checks.check(
        tensor(condition),
        "expected the condition to hold",
        [tensor(d) for d in data],
        summarize=summarize or 3,
    )
    return getattr(found, "op", None)


class CriticalSection:
    """Code that one step, or one thread, runs at a time.

    Args:
        name: of the section.
        shared_name: the name under which sessions share it.
        critical_section_def: not supported.
        import_scope: not supported.

    Raises:
        NotImplementedError: it is to be made of a message.
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if critical_section_def is not None or import_scope is not None:
            raise NotImplementedError("CriticalSection: sections are not made of messages")
        with in_graph():
            self._mutex = engine.Mutex(shared_name, name or "critical_section")
            self._sections = _Sections.of(get_default_graph())

    @property
    def name(self) -> str:
        """What it is called."""
        return self._mutex.name

    def execute(
        self, fn: Any, exclusive_resource_access: bool = True, name: str | None = None
    ) -> Any:
        """What `fn()` gives, computed while nobody else is in the section.

        Args:
            fn: a function of no arguments, which gives tensors.
            exclusive_resource_access: whether what has state in `fn` (variables, queues, ...) must
                not be used in other sections of the graph.
            name: of the scope.

        Raises:
            ValueError: another section uses the same, and this one or that has it for itself.
        """
        with in_graph():
            graph = building()
            before = 0 if graph is None else len(graph.operations)
            found = self._mutex.execute(fn, name or "critical_section_execute")
            if graph is not None:
                made = graph.operations[before:]
                used = {x.name for op in made for x in op.inputs if x.dtype == resource}
                mine = {op.outputs[0].name for op in graph.operations if op.type == "Mutex"}
                self._sections.enter(self, used - mine, exclusive_resource_access)
            return found


class _Sections:
    """The critical sections of a graph: which handles each uses, and whether for itself alone."""

    KEY = "_critical_sections"

    def __init__(self) -> None:
        self.entries: list[builtins.tuple[CriticalSection, set[str], bool]] = []

    @staticmethod
    def of(graph: Any) -> _Sections:
        """That of a graph."""
        if not graph.get_collection(_Sections.KEY):
            graph.add_to_collection(_Sections.KEY, _Sections())
        found: _Sections = graph.get_collection(_Sections.KEY)[0]
        return found

    def enter(self, section: CriticalSection, used: set[str], exclusive: bool) -> None:
        """Add an execution, or refuse it."""
        for other, names, alone in self.entries:
            if other is not section and (exclusive or alone) and names & used:
                raise InvalidArgumentError(
                    f"CriticalSection {section.name!r}: exclusive access was asked for to "
                    f"{', '.join(sorted(names & used))}, which {other.name!r} uses too",
                    remedy="use one section, or exclusive_resource_access=False in both",
                )
        self.entries.append((section, used, exclusive))
