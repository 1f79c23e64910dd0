"""The passes that rewrite a program, by name and in order.

`_passes` is the pipeline, guarded by `_lock`. Those of laminar run where a session is told to
(`SessionConfig(optimize=True)`); those that a program registers run on every plan that is made from
then on, of sessions and of functions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .. import forks
from ..dumps import dump, folder
from ..errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from ..graph import GraphTensor, Operation
from ..ops.control.dataflow import STEERING
from .cse import merge_common
from .fold import fold_constants
from .program import Program
from .prune import needed_operations
from .simplify import simplify
from .verify import verify

Pass = Callable[[Program], None]


class _Entry(NamedTuple):
    name: str
    run: Pass
    own: bool  # whether it is one of laminar's


def remove_dead(program: Program) -> None:
    """Leave operations out that nothing needs.

    Control edges keep what they lead from; what is kept has all that it names.
    """
    program.trim()


_lock = forks.lock()
_passes: list[_Entry] = [
    _Entry("fold_constants", fold_constants, True),
    _Entry("simplify", simplify, True),
    _Entry("merge_common", merge_common, True),
    _Entry("remove_dead", remove_dead, True),
]


def register_pass(name: str, run: Pass, *, before: str | None = None) -> None:
    """Add a pass to the pipeline.

    Args:
        name: of the pass, unique.
        run: rewrites the program it is given, in place. It may use `Program.add` and
            `Program.replace`. If it raises, or leaves what cannot run, the program stays as it was
            and a warning tells so.
        before: the name of the pass that it is to run before; by default it runs last.

    Raises:
        AlreadyExistsError: the name is taken.
        NotFoundError: there is no pass `before`.
    """
    if not callable(run):
        raise InvalidArgumentError(
            f"the pass {name!r} must be a function of a Program, got {run!r}"
        )
    with _lock:
        if any(p.name == name for p in _passes):
            raise AlreadyExistsError(f"there is a pass {name!r} already", remedy="choose another")
        place = len(_passes) if before is None else _place(before)
        _passes.insert(place, _Entry(name, run, own=False))


def unregister_pass(name: str) -> None:
    """Take a pass that was registered out again.

    Raises:
        NotFoundError: there is none of that name.
        InvalidArgumentError: it is one of laminar's own.
    """
    with _lock:
        place = _place(name)
        if _passes[place].own:
            raise InvalidArgumentError(f"the pass {name!r} belongs to laminar")
        del _passes[place]


def _place(name: str) -> int:
    for i, entry in enumerate(_passes):
        if entry.name == name:
            return i
    known = ", ".join(p.name for p in _passes)
    raise NotFoundError(f"there is no pass {name!r}", remedy=f"there are {known}")


def pass_names() -> list[str]:
    """The names of all passes, in the order in which they run."""
    return [p.name for p in _passes]


def run_passes(
    program: Program, names: Sequence[str] | None = None, *, check: bool = False
) -> Program:
    """Rewrite a program by passes, in the order given.

    Args:
        program: is left as it is by passes that fail.
        names: by default all, in the order of the pipeline.
        check: whether to verify before the first pass and after each.

    Raises:
        NotFoundError: there is no pass of a name.
        InternalError: with `check`, a pass of laminar's left what cannot run.
    """
    with _lock:
        entries = [_passes[_place(n)] for n in names] if names is not None else list(_passes)
    if check:
        verify(program)
    ends = [*(y.op for y in program.fetches), *program.targets]
    name = ends[0].name if ends else "nothing"  # passes may leave another one there
    _dump(program, f"{name}.passes_0_given")
    for number, entry in enumerate(entries, 1):
        program = _run(entry, program, check=check)
        _dump(program, f"{name}.passes_{number}_{entry.name}")
    return program


def _dump(program: Program, name: str) -> None:
    """Write what a program is now, where LAMINAR_DUMP says so."""
    if folder() is None:
        return
    operations = needed_operations(program.fetches, program.targets, program.feeds)
    dump(f"{name}.txt", "".join(f"{op!r}\n" for op in operations))


def _run(entry: _Entry, program: Program, *, check: bool) -> Program:
    if entry.own:
        entry.run(program)
        if check:
            verify(program)
        return program
    trial = program.copy()
    try:
        entry.run(trial)
        verify(trial)
    except Exception as error:  # of somebody else's pass: the program runs without it
        warnings.warn(
            f"the pass {entry.name!r} failed, and the graph runs without it: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return program
    return trial


class Rewritten(NamedTuple):
    """What stands for what a plan was asked to do."""

    fetches: Sequence[GraphTensor]
    feeds: Sequence[GraphTensor]
    targets: Sequence[Operation]


def rewritten(
    fetches: Sequence[GraphTensor],
    feeds: Sequence[GraphTensor],
    targets: Sequence[Operation],
    *,
    optimize: bool,
) -> Rewritten:
    """What a plan is to be made of: rewritten by laminar's passes if `optimize`, and by others.

    Where loops and conditions are written out as dataflow, which values are alive is part of what a
    graph means: such graphs stay as they are.
    """
    names = [p.name for p in _passes if optimize or not p.own]
    if not names:
        return Rewritten(fetches, feeds, targets)
    if any(op.definition in STEERING for op in needed_operations(fetches, targets, feeds)):
        return Rewritten(fetches, feeds, targets)
    program = run_passes(Program.of(fetches, feeds, targets), names)
    program.trim()
    return Rewritten(program.fetches, program.feeds, program.targets)
