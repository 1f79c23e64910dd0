"""A function of each element: map, also in several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

from laminar.engine.graph import TensorSpec
from laminar.tree import flatten, map_structure

from .elements import as_element, spec_of
from .epochs import Epoch, State
from .picking import apply
from .pool import Pool
from .replay import Trail
from .stage import Cursor, Passing, Stage, call_user


class Mapped(Stage):
    """A function of each element.

    Args:
        source: of the elements.
        fn: what is applied; a tuple is passed as several arguments.
        threads: how many elements are worked on at once; 0 for none but the consumer's.
        is_ordered: whether the results keep the order of the elements.
    """

    def __init__(
        self, source: Stage, fn: Callable[..., Any], threads: int = 0, is_ordered: bool = True
    ) -> None:
        super().__init__("Dataset.map", source)
        self._fn = fn
        self._threads = threads
        self.is_ordered = is_ordered

    def compute(self, element: Any) -> Any:
        """The result for an element."""
        return call_user(self, self._compute, element)

    def _compute(self, element: Any) -> Any:
        return as_element(apply(self._fn, element))

    def spec(self) -> Any:
        """That of the result for the first element; what varies in it may vary in the result."""
        before = self.sources[0].spec()
        cursor = self.sources[0].open((0,))
        try:
            element = next(cursor)
        finally:
            cursor.close()
        open_sizes = {
            size
            for spec, found in zip(flatten(before), flatten(spec_of(element)), strict=True)
            if isinstance(spec, TensorSpec) and spec.shape.rank is not None
            for known, size in zip(spec.shape, found.shape, strict=True)
            if known is None
        }

        def opened(spec: Any) -> Any:
            if not isinstance(spec, TensorSpec):
                return spec
            return TensorSpec([None if n in open_sizes else n for n in spec.shape], spec.dtype)

        return map_structure(opened, spec_of(self.compute(element)))

    def open(self, walk: Epoch) -> Cursor:
        source = self.sources[0].open(walk)
        if not self._threads:
            return _Mapping(source, self)
        return _ParallelMapping(source, self, self._threads, self.is_ordered)


class _Mapping(Passing):
    def __init__(self, source: Cursor, stage: Mapped) -> None:
        super().__init__(source)
        self._compute = stage.compute

    def __next__(self) -> Any:
        return self._compute(next(self.source))

    def skip(self, count: int) -> int:
        return self.source.skip(count)


class _ParallelMapping(Cursor):
    """Works on the next elements while the consumer is busy; the consumer's thread takes them.

    `_running` maps the number of each element taken and not yet handed out to its result.
    """

    def __init__(self, source: Cursor, stage: Mapped, threads: int, is_ordered: bool) -> None:
        self._trail = Trail(source, lambda: self._running)
        self._stage = stage
        self._threads = threads
        self.is_ordered = is_ordered
        self._running: dict[int, Future[Any]] = {}
        self._has_ended = False
        self._pool: Pool | None = None

    def _submit(self, number: int, element: Any) -> None:
        if self._pool is None:
            self._pool = Pool(self._threads, "laminar-map")
        self._running[number] = self._pool.submit(self._stage.compute, element)

    def __next__(self) -> Any:
        while not self._has_ended and len(self._running) < 2 * self._threads:
            try:
                self._submit(*self._trail.pull())
            except StopIteration:
                self._has_ended = True
        if not self._running:
            self._end_threads()
            raise StopIteration
        number = next(iter(self._running))
        if not self.is_ordered:
            wait(self._running.values(), return_when=FIRST_COMPLETED)
            number = next(n for n, result in self._running.items() if result.done())
        try:
            return self._running.pop(number).result()
        except BaseException:
            # Whoever gets the error holds on to this cursor by its traceback; it may go on, too.
            if self._pool is not None:
                self._pool.finish()
                self._pool = None
            raise

    def state(self) -> State:
        return {
            "trail": self._trail.state(),
            "waiting": list(self._running),
            "has_ended": self._has_ended,
        }

    def restore(self, state: State) -> None:
        self._end_threads()
        found = self._trail.restore(state["trail"], set(state["waiting"]))
        for number, element in found.items():
            self._submit(number, element)
        self._has_ended = bool(state["has_ended"])

    def _end_threads(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        self._running.clear()

    def close(self) -> None:
        self._end_threads()
        self._trail.source.close()
