"""The pipeline: what becomes of the graph of a step on its way to what is run.

All passes stand here by name and in order: `_rewrites`, guarded by `_lock`, then `_lowering`. Every
step goes through them: those of `fit`, of functions and of sessions. The rewrites cost some 20 us
an operation, once, which is little where operations are compiled, or traced to be run many times:
they run for functions, for what is compiled, and where `SessionConfig(optimize=True)` asks for
them; not for the first runs of a session's signature, which may be the only ones. They keep every
bit. Those that a program registers run for every step.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from .. import forks
from ..devices import local_devices
from ..dumps import dump, folder
from ..errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from ..graph import Operation
from ..ops.control.dataflow import STEERING
from .bodies import rewrite_bodies
from .cluster import cluster
from .cse import merge_common
from .fold import fold_constants
from .initialized_values import initializes_and_asks, order_initializers
from .lower_control_flow import lower_control_flow, spans_devices, waits_inside
from .order import in_order
from .parallelism import is_expensive, iterations_overlap
from .partition import Part
from .simplify import simplify
from .step_graph import StepGraph
from .updates import updates_last
from .verify import verify

Pass = Callable[[StepGraph], None]


class Devices(Protocol):
    """The devices that a step may run on."""

    def have_choice(self, step: StepGraph) -> bool:
        """Whether an operation may run elsewhere than the others."""

    def place(self, step: StepGraph) -> bool:
        """Choose a device for each operation; whether the step is to be cut."""

    def partition(self, step: StepGraph) -> Mapping[str, Part]:
        """What each of the devices that were chosen runs."""

    def have_threads(self) -> bool:
        """Whether operations of one step may run side by side."""


class Preparation:
    """A step in the pipeline.

    Attributes:
        step: what it is now.
        optimize: whether laminar's own rewrites run.
        devices: what it may run on; None for the host alone.
        is_cut: whether it is to be cut into parts.
        parts: by the name of a device, what that runs; None where there is one.
        has_loops: whether loops or conditions were dataflow from the start. Which values are alive
            is part of what that means, so it is not rewritten.
    """

    def __init__(self, step: StepGraph, *, optimize: bool, devices: Devices | None) -> None:
        self.step = step
        self.optimize = optimize
        self.devices = devices
        self.is_cut = False
        self.parts: Mapping[str, Part] | None = None
        self.has_loops = any(op.definition in STEERING for op in step.operations)


def _prune(p: Preparation) -> None:
    """Leave out what neither a fetch nor a target needs, in a graph that passes may rewrite.

    Where none does, the step stays a view of the user's graph, which shows what is needed alone.
    """
    p.step = p.step.copy()


def _order_initializers(p: Preparation) -> None:
    """Have initial values that depend on variables see what the step initialises these to."""
    if not p.step.is_own:
        p.step = p.step.copy()
    order_initializers(p.step)


def _rewrite_bodies(p: Preparation) -> None:
    """Rewrite the graphs inside of conditions and loops as the one around them."""

    def rewritten(inner: StepGraph) -> StepGraph:
        return _through(_rewrites, Preparation(inner, optimize=p.optimize, devices=None)).step

    rewrite_bodies(p.step, rewritten)


def remove_dead(step: StepGraph) -> None:
    """Leave operations out that nothing needs.

    Control edges keep what they lead from; what is kept has all that it names.
    """
    step.trim()


def _lower_control_flow(p: Preparation) -> None:
    """Write conditions and loops out as dataflow."""
    p.step = lower_control_flow(p.step)
    p.step.is_own = False


def _place(p: Preparation) -> None:
    """Choose a device for each operation."""
    assert p.devices is not None, "there is a choice"
    p.is_cut = p.devices.place(p.step)


def _partition(p: Preparation) -> None:
    """Cut the graph into one for each device: the step of that device, which goes on alone."""
    assert p.devices is not None, "operations were placed"
    p.parts = p.devices.partition(p.step)


def _cluster(p: Preparation) -> None:
    """Join operations that have native code, and list what runs."""
    step = p.step
    device = local_devices().client if step.device is None else step.device
    given = step.operations, step.fetches, step.feeds
    operations, step.members = cluster(*given, device, apart=_has_threads(p))
    step.schedule = in_order(operations, {id(t) for t in step.feeds}, step.members)


def _schedule(p: Preparation) -> None:
    """List what runs, one by one: updates last, so that a step that fails changes nothing."""
    operations = p.step.operations
    p.step.schedule = updates_last(operations, {id(t) for t in p.step.feeds})


def _pays(p: Preparation) -> bool:
    return p.optimize and not p.has_loops


def _is_foreign(p: Preparation) -> bool:
    return not p.has_loops


def _is_rewritten(p: Preparation) -> bool:
    return (p.optimize or not all(e.own for e in _rewrites)) and not p.has_loops


def _initializes(p: Preparation) -> bool:
    return initializes_and_asks(p.step)


def _is_pruned(p: Preparation) -> bool:
    return _is_rewritten(p) or bool(p.step.fed_too)


def _must_be_dataflow(p: Preparation) -> bool:
    operations = p.step.operations
    if waits_inside(operations) or (_has_choice(p) and spans_devices(operations)):
        return True
    return _has_threads(p) and _gains_by_overlap(p)


def _gains_by_overlap(p: Preparation) -> bool:
    """Whether iterations can run side by side that would not be native code as a whole."""
    compiler = local_devices().client.compiler if p.step.compiled else None

    def is_worth(op: Operation) -> bool:
        return is_expensive(op) and (compiler is None or not compiler.accepts([op])[0])

    return iterations_overlap(p.step.operations, is_worth)


def _has_choice(p: Preparation) -> bool:
    return p.devices is not None and p.devices.have_choice(p.step)


def _has_threads(p: Preparation) -> bool:
    return p.devices is not None and p.devices.have_threads()


def _is_cut(p: Preparation) -> bool:
    return p.is_cut


def _is_compiled(p: Preparation) -> bool:
    return p.step.compiled and p.parts is None


def _is_interpreted(p: Preparation) -> bool:
    return not p.step.compiled and p.parts is None


class _Entry(NamedTuple):
    """A pass of the pipeline.

    Attributes:
        name: unique.
        applies: whether a step needs it.
        run: what it does; None for
        rewrite: what it does to the graph, where it does no more than that.
        own: whether it is one of laminar's.
        is_shown: whether it makes another graph, which dumps are to show.
    """

    name: str
    applies: Callable[[Preparation], bool]
    run: Callable[[Preparation], None] | None = None
    rewrite: Pass | None = None
    own: bool = True
    is_shown: bool = True


_lock = forks.lock()
# What rewrites the graph of a step. Those that a program registers come among them.
_rewrites = [
    _Entry("prune", _is_pruned, _prune),
    _Entry("order_initializers", _initializes, _order_initializers),
    _Entry("rewrite_bodies", _is_rewritten, _rewrite_bodies),
    _Entry("fold_constants", _pays, rewrite=fold_constants),
    _Entry("simplify", _pays, rewrite=simplify),
    _Entry("merge_common", _pays, rewrite=merge_common),
    _Entry("remove_dead", _pays, rewrite=remove_dead),
]
# What decides where and how it is run.
_lowering = (
    _Entry("lower_control_flow", _must_be_dataflow, _lower_control_flow),
    _Entry("place", _has_choice, _place, is_shown=False),
    _Entry("partition", _is_cut, _partition, is_shown=False),
    _Entry("cluster", _is_compiled, _cluster, is_shown=False),
    _Entry("schedule", _is_interpreted, _schedule, is_shown=False),
)


def prepare(
    step: StepGraph, *, optimize: bool = False, devices: Devices | None = None
) -> Preparation:
    """Take a step through the pipeline.

    Args:
        step: is left as it is.
        optimize: whether laminar's own rewrites run, and not only those of other people.
        devices: what it may run on; None for the host alone.
    """
    p = _through(_rewrites, Preparation(step, optimize=optimize, devices=devices))
    p.step.is_own = False  # it stays as it is from here
    return lower(p)


def lower(p: Preparation) -> Preparation:
    """Take a step that has been rewritten, as part of a whole or alone, through the rest."""
    return _through(_lowering, p)


def _through(entries: Sequence[_Entry], p: Preparation) -> Preparation:
    """Run those passes that a step needs."""
    dumps = _Dumps(p.step)
    for entry in list(entries):
        if entry.applies(p):
            dumps.before(entry, p.step)
            if entry.run is not None:
                entry.run(p)
            else:
                p.step = _rewritten(entry, p.step)
            dumps.after(entry, p.step)
    return p


def run_passes(
    step: StepGraph, names: Sequence[str] | None = None, *, check: bool = False
) -> StepGraph:
    """Rewrite a graph by passes, in the order given.

    Args:
        step: has a graph of its own (`StepGraph.of`), which is rewritten; passes that fail leave
            it as it is.
        names: by default all that rewrite a graph, in the order of the pipeline.
        check: whether to verify before the first pass and after each.

    Raises:
        NotFoundError: there is no pass of a name that rewrites a graph.
        InternalError: with `check`, a pass of laminar's left what cannot run.

    Examples:
        >>> with engine.Graph().as_default():
        ...     y = engine.constant(2.0) * 3.0
        >>> step = engine.run_passes(engine.StepGraph([y]))
        >>> step.fetches[0].op.type  # it has been computed
        'Const'
    """
    with _lock:
        if names is None:
            names = [e.name for e in _rewrites if e.rewrite is not None]
        entries = [_rewrites[_place_of(name)] for name in names]
    if check:
        verify(step)
    dumps = _Dumps(step)
    for entry in entries:
        dumps.before(entry, step)
        step = _rewritten(entry, step)
        dumps.after(entry, step)
        if check:
            verify(step)
    return step


def _rewritten(entry: _Entry, step: StepGraph) -> StepGraph:
    """A step after a pass that rewrites a graph."""
    rewrite = entry.rewrite
    assert rewrite is not None, "it rewrites a graph"
    if entry.own:
        rewrite(step)
        return step
    trial = step.copy()
    try:
        rewrite(trial)
        verify(trial)
    except Exception as error:  # of somebody else's pass: the step runs without it
        warnings.warn(
            f"the pass {entry.name!r} failed, and the graph runs without it: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return step
    return trial


class _Dumps:
    """Writes a step before the first pass and after each that changes it, if somebody asks for it.

    `_name` is that of the function that was traced, else of the operation at the end, where passes
    may leave another one; `_last` is what was written last.
    """

    def __init__(self, step: StepGraph) -> None:
        ends = [*(y.op for y in step.fetches), *step.targets]
        self._name = (ends[0].graph.name or ends[0].name) if ends else "nothing"
        self._last = ""

    def before(self, entry: _Entry, step: StepGraph) -> None:
        """A pass is about to run."""
        if entry.is_shown and not self._last:
            self._write("given", step, "the operations of a step, as they were traced")

    def after(self, entry: _Entry, step: StepGraph) -> None:
        """A pass has run."""
        if entry.is_shown:
            self._write(entry.name, step, f"the same after the pass {entry.name}")

    def _write(self, stage: str, step: StepGraph, what: str) -> None:
        if folder() is not None and (text := step.text()) != self._last:
            dump(f"{self._name}.{stage}.txt", text, what)
            self._last = text


def register_pass(name: str, run: Pass, *, before: str | None = None) -> None:
    """Add a pass to the pipeline.

    Args:
        name: of the pass, unique.
        run: rewrites the graph of a step, in place. It may use `StepGraph.add` and
            `StepGraph.replace`. If it raises, or leaves what cannot run, the graph stays as it was
            and a warning tells so.
        before: the name of the pass that it is to run before, one that rewrites a graph; by default
            it runs as the last of those.

    Raises:
        AlreadyExistsError: the name is taken.
        NotFoundError: no pass `before` rewrites a graph.

    Examples:
        >>> engine.register_pass("doc_nothing", lambda step: step)
        >>> "doc_nothing" in engine.pass_names()
        True
        >>> engine.unregister_pass("doc_nothing")
    """
    if not callable(run):
        raise InvalidArgumentError(
            f"the pass {name!r} must be a function of a StepGraph, got {run!r}"
        )
    with _lock:
        if name in pass_names():
            raise AlreadyExistsError(f"there is a pass {name!r} already", remedy="choose another")
        place = len(_rewrites) if before is None else _place_of(before)
        _rewrites.insert(place, _Entry(name, _is_foreign, rewrite=run, own=False))


def unregister_pass(name: str) -> None:
    """Take a pass that was registered out again.

    Raises:
        NotFoundError: there is none of that name.
        InvalidArgumentError: it is one of laminar's own.

    Examples:
        >>> engine.register_pass("doc_nothing", lambda step: step)
        >>> engine.unregister_pass("doc_nothing")
        >>> "doc_nothing" in engine.pass_names()
        False
    """
    with _lock:
        place = _place_of(name)
        if _rewrites[place].own:
            raise InvalidArgumentError(f"the pass {name!r} belongs to laminar")
        del _rewrites[place]


def _place_of(name: str) -> int:
    for i, entry in enumerate(_rewrites):
        if entry.name == name and entry.rewrite is not None:
            return i
    known = ", ".join(e.name for e in _rewrites if e.rewrite is not None)
    raise NotFoundError(f"no pass {name!r} rewrites a graph", remedy=f"there are {known}")


def pass_names() -> list[str]:
    """The names of all passes, in the order in which they run.

    Examples:
        >>> engine.pass_names()[:2]
        ['prune', 'order_initializers']
    """
    return [entry.name for entry in (*_rewrites, *_lowering)]
