"""ModelParallel: processes that train one model together, each with pieces of its variables."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from laminar.engine.errors import UnavailableError
from laminar.engine.state import Variable

from ..collectives.group import Group
from ..multi_worker import MultiWorker, agreed_error, apart
from .cut_graph import with_pieces
from .held import HeldPieces
from .mesh import ProcessMesh


class ModelParallel(MultiWorker):
    """A mesh of processes: batches are shared along one axis, variables cut along any.

    All have the same data. A step is traced as that of one process, and run with pieces
    (`cut_graph.py`). Whole values are gathered by all processes at once where a program reads them,
    and when files are written.

    Args:
        layout: gives for the path of a variable the axis of the mesh that each of its axes is cut
            along, or None where it is whole; None for a variable that no process has a piece of.
            What an optimizer keeps for a variable, in its shape, is cut as that is.
        shape: of the mesh, which takes all processes.
        names: of its axes.
        rows: the axis that batches are shared along.
        timeout_seconds: see `MultiWorker`.

    Attributes:
        mesh: the processes.

    Raises:
        InvalidArgumentError: the mesh does not fit the processes; when a step is traced, a layout
            does not fit its variable.
        FailedPreconditionError: the processes differ in their layouts; and see `MultiWorker`.
    """

    keeps_pieces = True

    def __init__(
        self,
        layout: Callable[[str], Sequence[str | None] | None],
        shape: Sequence[int],
        names: Sequence[str],
        rows: str,
        *,
        timeout_seconds: float = 600.0,
    ) -> None:
        super().__init__(timeout_seconds=timeout_seconds)
        self.mesh = ProcessMesh(self.group, shape, names)
        self.check_same("the mesh", f"{self.mesh.sizes}, batches along {rows!r}")
        self._rows = rows
        self._layout = layout
        self._pieces = HeldPieces(self.mesh, self._layout_of)

    def __repr__(self) -> str:
        return f"ModelParallel(worker {self.rank} of {self.group.size}, mesh {self.mesh.sizes})"

    @property
    def rows_group(self) -> Group:
        return self.mesh.along(self._rows)

    def _layout_of(self, variable: Variable) -> Sequence[str | None] | None:
        found = self._layout(variable.path)
        kept_for = variable.store.kept_for
        other = None if kept_for is None else kept_for()
        if found is None and other is not None and other.shape == variable.shape:
            return self._layout_of(other)
        return found

    # A step

    def shared(self, step: Callable[[Any], Any], *, is_own: bool) -> Callable[[Any], Any]:
        return self.alone(super().shared(step, is_own=is_own))

    def alone(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return with_pieces(step, self.mesh, self._pieces, self._rows)

    def step_begins(self) -> None:
        self._pieces.drop_wholes()

    # Values

    def gather(self, variables: Iterable[Variable]) -> None:
        for v in variables:
            v.store.read()

    @contextmanager
    def writing(self, variables: Iterable[Variable]) -> Iterator[bool]:
        self.gather(variables)
        try:
            yield self.is_first
        except BaseException:
            self.agree(True)
            raise
        if self.agree(False):
            raise UnavailableError(
                "worker 0, which writes files for all, failed to write this one",
                remedy="see the log of that worker",
            )

    def align(self, variables: Sequence[Variable]) -> None:
        kept = {id(store) for store, _ in self._pieces if store.value is None}
        super().align([v for v in variables if id(v.store) not in kept])

    def check_equal(self, variables: Iterable[Variable]) -> None:
        every = {id(store): held for store, held in self._pieces}
        have = [(v, every.get(id(v.store))) for v in variables]
        # What the program has set is looked at whole, for the last time.
        news = [v for v, h in have if h is None or h.is_news(v.store.value)]
        super().check_equal(news)
        self._pieces.drop_wholes()
        said = b"".join(
            zlib.crc32(held.piece().tobytes()).to_bytes(4, "little")
            for _, held in have
            if held is not None
        )
        found = self.group.exchange(said)
        places = self.group.exchange(bytes(self.mesh.place.values()))
        cuts = [held.cut for _, held in have if held is not None]
        for i, cut in enumerate(cuts):
            seen: dict[tuple[int, ...], bytes] = {}
            for crcs, place in zip(found, places, strict=True):
                at = tuple(n for n, name in zip(place, self.mesh.sizes, strict=True) if name in cut)
                if seen.setdefault(at, crcs[4 * i : 4 * i + 4]) != crcs[4 * i : 4 * i + 4]:
                    raise agreed_error(*apart)
