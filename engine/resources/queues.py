"""Queues of elements, where to wait is to leave a function: first in first out, shuffled, by
priority.

An element is a tuple of arrays; the queue keeps the arrays themselves. State of a `Queue`, guarded
by `_lock`:
    the elements, as the kind of queue keeps them;
    _enqueues, _dequeues: those who wait, in order of arrival; the first is served first. The first
        dequeue keeps what it has got so far, and gives it back when it fails or is cancelled;
    _closed: nothing more is accepted. Enqueues that were waiting stay, until they are cancelled.
No lock is held while someone is notified.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np

from ..errors import (
    CancelledError,
    InvalidArgumentError,
    LaminarError,
    OutOfRangeError,
    ShapeError,
)
from .batches import Element, Shape, show_shape
from .contents import contents_bytes, damaged, read_contents
from .waiting import Done, Ready, tell

UNBOUNDED = 2**31 - 1


def check_room(who: str, capacity: int | None, min_after_dequeue: int = 0) -> None:
    """InvalidArgumentError for a queue that nothing could ever pass."""
    if capacity is not None and capacity < 1:
        raise InvalidArgumentError(
            f"{who}: the capacity must be at least 1, got {capacity}",
            remedy="give None for a queue without bounds",
        )
    most = (UNBOUNDED if capacity is None else capacity) - 1
    if not 0 <= min_after_dequeue <= most:
        raise InvalidArgumentError(
            f"{who}: min_after_dequeue must be from 0 to capacity - 1 = {most}, "
            f"got {min_after_dequeue}",
            remedy="give the queue room for it and some batches more",
        )


class Waiter:
    """An enqueue with elements left to store, or a dequeue that wants `wanted` elements."""

    __slots__ = ("_queue", "done", "elements", "up_to", "wanted")

    def __init__(
        self, queue: Queue, done: Done, elements: deque[Element], wanted: int, up_to: bool
    ) -> None:
        self._queue = queue
        self.done = done
        self.elements = elements
        self.wanted = wanted
        self.up_to = up_to

    def cancel(self, error: LaminarError) -> bool:
        """Give up waiting; False when it is over already."""
        return self._queue.cancel(self, error)


class Queue:
    """What all kinds share. Abstract: a kind says how elements are kept.

    Args:
        name: for errors.
        capacity: how many elements fit; None for any number.
        shapes: of the components, None for unknown dimensions; None where nothing is known.
    """

    # Whether a dequeue of many takes elements as they come; else it waits until all are there.
    takes_as_they_come = True

    def __init__(
        self,
        name: str,
        capacity: int | None = None,
        shapes: Sequence[Shape | None] | None = None,
    ) -> None:
        check_room(f"queue {name!r}", capacity)
        self.name = name
        self.capacity = UNBOUNDED if capacity is None else int(capacity)
        self.shapes = None if shapes is None else tuple(shapes)
        self.declared: Any = None  # what graphs say of it
        self._lock = threading.Lock()
        self._enqueues: deque[Waiter] = deque()
        self._dequeues: deque[Waiter] = deque()
        self._closed = False

    # How elements are kept; called under the lock

    def _put(self, element: Element) -> None:
        raise NotImplementedError

    def _take(self) -> Element:
        raise NotImplementedError

    def _give_back(self, elements: Iterable[Element]) -> None:
        raise NotImplementedError

    def _count(self) -> int:
        raise NotImplementedError

    def _available(self) -> int:
        """How many elements may be taken now."""
        return self._count()

    # What users do

    @property
    def size(self) -> int:
        """How many elements it holds."""
        with self._lock:
            return self._count()

    @property
    def is_closed(self) -> bool:
        """Whether it accepts nothing more."""
        return self._closed

    @property
    def waiting(self) -> tuple[int, int]:
        """How many enqueues and dequeues wait."""
        with self._lock:
            return len(self._enqueues), len(self._dequeues)

    def check(self, element: Element) -> None:
        """ShapeError when a component does not have its shape."""
        if self.shapes is None:
            return
        for i, (array, shape) in enumerate(zip(element, self.shapes, strict=True)):
            if shape is None or array.shape == shape:
                continue
            fits = len(shape) == len(array.shape) and all(
                n is None or n == m for n, m in zip(shape, array.shape, strict=True)
            )
            if not fits:
                raise ShapeError(
                    f"queue {self.name!r}: component {i} must have shape {show_shape(shape)}, "
                    f"got {show_shape(array.shape)}"
                )

    def enqueue(self, element: Element, done: Done) -> Waiter | None:
        """Store an element; waits while the queue is full.

        `done` gets None, or CancelledError when the queue is closed.
        """
        self.check(element)
        return self._enqueue((element,), done)

    def enqueue_many(self, elements: Sequence[Element], done: Done) -> Waiter | None:
        """Store elements in order, as room comes; waits until the last is stored."""
        for element in elements:
            self.check(element)
        return self._enqueue(elements, done)

    def _enqueue(self, elements: Sequence[Element], done: Done) -> Waiter | None:
        waiter: Waiter | None = None
        ready: Ready = ()
        error: LaminarError | None = None
        with self._lock:
            if self._closed:
                error = CancelledError(
                    f"queue {self.name!r} is closed: nothing more can be enqueued"
                )
            elif not self._enqueues and self._count() + len(elements) <= self.capacity:
                for element in elements:
                    self._put(element)
                if self._dequeues:
                    ready = self._serve()
            else:
                waiter = Waiter(self, done, deque(elements), 0, False)
                self._enqueues.append(waiter)
                ready = self._serve()
        if waiter is None:
            done(None, error)
        tell(ready)
        return waiter

    def dequeue(self, done: Done) -> Waiter | None:
        """Take an element; waits while there is none.

        `done` gets a list of it, or OutOfRangeError when the queue is closed and used up.
        """
        return self.dequeue_many(1, done)

    def dequeue_many(self, n: int, done: Done, up_to: bool = False) -> Waiter | None:
        """Take `n` elements; waits until they are there.

        `done` gets a list, or OutOfRangeError when the queue is closed with fewer; they stay in it.
        With `up_to`, a closed queue gives what is left, and the error when that is nothing.
        """
        if n < 0:
            raise InvalidArgumentError(f"queue {self.name!r}: cannot dequeue {n} elements")
        if not self.takes_as_they_come and n > self.capacity:
            raise InvalidArgumentError(
                f"queue {self.name!r}: {n} elements never fit into its {self.capacity} places",
                remedy="make the queue larger, or dequeue fewer",
            )
        waiter: Waiter | None = None
        elements: list[Element] = []
        ready: Ready = ()
        with self._lock:
            if not self._dequeues and self._available() >= n:
                elements = [self._take() for _ in range(n)]
                if self._enqueues:
                    ready = self._serve()
            else:
                waiter = Waiter(self, done, deque(), n, up_to)
                self._dequeues.append(waiter)
                ready = self._serve()
        if waiter is None:
            done(elements, None)
        tell(ready)
        return waiter

    def close(self, cancel_pending_enqueues: bool = False) -> None:
        """Accept nothing more. What is there can be taken; then dequeues fail at once.

        Args:
            cancel_pending_enqueues: whether enqueues that wait get CancelledError; otherwise they
                complete as room comes.
        """
        with self._lock:
            self._closed = True
            cancelled: list[Waiter] = []
            if cancel_pending_enqueues:
                cancelled.extend(self._enqueues)
                self._enqueues.clear()
            ready = [*self._serve()]
        message = f"queue {self.name!r} was closed: the enqueue that waited is cancelled"
        ready.extend((waiter.done, None, CancelledError(message)) for waiter in cancelled)
        tell(ready)

    def give_back(self, elements: Sequence[Element]) -> None:
        """Take back, where they came from, elements that a dequeue could not hand on."""
        with self._lock:
            self._give_back(elements)
            ready = self._serve()
        tell(ready)

    def cancel(self, waiter: Waiter, error: LaminarError) -> bool:
        """Have a waiter give up; False when it is served already."""
        with self._lock:
            for waiting in (self._enqueues, self._dequeues):
                if waiter in waiting:
                    waiting.remove(waiter)
                    if waiting is self._dequeues:
                        self._give_back(waiter.elements)
                    ready = [(waiter.done, None, error), *self._serve()]
                    break
            else:
                return False
        tell(ready)
        return True

    # Saving and restoring

    def state(self) -> bytes:
        """What it holds, without those who wait, and what the order of elements depends on."""
        with self._lock:
            return contents_bytes(self._held(), {"closed": self._closed, **self._order_state()})

    def set_state(self, data: bytes) -> None:
        """Hold what another queue of its kind held when it gave `data`.

        Raises:
            DataLossError: the data are damaged, or of another kind of queue; nothing changes then.
        """
        elements, extra = read_contents(data)
        if len(elements) > self.capacity or not isinstance(extra, dict):
            raise damaged(f"queue {self.name!r}")
        try:
            for element in elements:
                self.check(element)
            with self._lock:
                self._set_order_state(extra)
                self._clear()
                for element in elements:
                    self._put(element)
                self._closed = bool(extra.get("closed", False))
                ready = self._serve()
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as cause:
            raise damaged(f"queue {self.name!r}") from cause
        tell(ready)

    def _held(self) -> list[Element]:
        """The elements, so that putting them in again gives the same order."""
        raise NotImplementedError

    def _clear(self) -> None:
        raise NotImplementedError

    def _order_state(self) -> dict[str, Any]:
        """What else the order depends on, as JSON has it."""
        return {}

    def _set_order_state(self, state: dict[str, Any]) -> None:
        """Set that; an error changes nothing."""

    # Serving those who wait; called under the lock

    def _serve(self) -> list[tuple[Done, Any, LaminarError | None]]:
        """Move elements as far as they go; gives whom to notify that it is done."""
        ready: list[tuple[Done, Any, LaminarError | None]] = []
        while self._accept(ready) | self._hand_out(ready):
            pass
        return ready

    def _accept(self, ready: list[tuple[Done, Any, LaminarError | None]]) -> bool:
        moved = False
        while self._enqueues:
            waiter = self._enqueues[0]
            while waiter.elements and self._count() < self.capacity:
                self._put(waiter.elements.popleft())
                moved = True
            if waiter.elements:
                break
            self._enqueues.popleft()
            ready.append((waiter.done, None, None))
            moved = True
        return moved

    def _hand_out(self, ready: list[tuple[Done, Any, LaminarError | None]]) -> bool:
        moved = False
        while self._dequeues:
            waiter = self._dequeues[0]
            over = self._closed and not self._enqueues  # nothing more can come
            missing = waiter.wanted - len(waiter.elements)
            found = self._available()
            if found < missing and not self.takes_as_they_come and not over:
                break
            if found < missing and over and not waiter.up_to:
                found = 0
            for _ in range(min(missing, found)):
                waiter.elements.append(self._take())
                moved = True
            enough = len(waiter.elements) == waiter.wanted
            if not enough and not over:
                break
            self._dequeues.popleft()
            moved = True
            if enough or (waiter.up_to and waiter.elements):
                ready.append((waiter.done, list(waiter.elements), None))
            else:
                self._give_back(waiter.elements)
                ready.append((waiter.done, None, self._used_up(waiter.wanted)))
        return moved

    def _used_up(self, wanted: int) -> OutOfRangeError:
        return OutOfRangeError(
            f"queue {self.name!r} is closed and has too few elements "
            f"(asked for {wanted}, {self._count()} left)"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__.lower()} {self.name!r}"


class FIFO(Queue):
    """Elements come out in the order in which they went in."""

    def __init__(
        self,
        name: str,
        capacity: int | None = None,
        shapes: Sequence[Shape | None] | None = None,
    ) -> None:
        super().__init__(name, capacity, shapes)
        self._elements: deque[Element] = deque()

    def _put(self, element: Element) -> None:
        self._elements.append(element)

    def _take(self) -> Element:
        return self._elements.popleft()

    def _give_back(self, elements: Iterable[Element]) -> None:
        self._elements.extendleft(reversed([*elements]))

    def _count(self) -> int:
        return len(self._elements)

    def _held(self) -> list[Element]:
        return list(self._elements)

    def _clear(self) -> None:
        self._elements.clear()


class RandomShuffle(Queue):
    """Elements come out in random order, from at least `min_after_dequeue` + 1 of them.

    Args:
        min_after_dequeue: how many elements a dequeue leaves, until the queue is closed.
        seed: the same seed and the same order of calls give the same order of elements.
    """

    def __init__(
        self,
        name: str,
        capacity: int | None = None,
        shapes: Sequence[Shape | None] | None = None,
        *,
        min_after_dequeue: int = 0,
        seed: int | None = None,
    ) -> None:
        super().__init__(name, capacity, shapes)
        check_room(f"queue {name!r}", capacity, min_after_dequeue)
        self.min_after_dequeue = min_after_dequeue
        self._elements: list[Element] = []
        self._random = np.random.Generator(np.random.Philox(seed))
        self._draws: list[float] = []

    def _put(self, element: Element) -> None:
        self._elements.append(element)

    def _take(self) -> Element:
        if not self._draws:  # NumPy draws many at nearly the price of one
            self._draws = self._random.random(256).tolist()
        elements = self._elements
        chosen = int(self._draws.pop() * len(elements))
        elements[chosen], elements[-1] = elements[-1], elements[chosen]
        return elements.pop()

    def _give_back(self, elements: Iterable[Element]) -> None:
        self._elements.extend(elements)

    def _count(self) -> int:
        return len(self._elements)

    def _available(self) -> int:
        held = len(self._elements)
        return held if self._closed else max(held - self.min_after_dequeue, 0)

    def _held(self) -> list[Element]:
        return list(self._elements)

    def _clear(self) -> None:
        self._elements.clear()

    def _order_state(self) -> dict[str, Any]:
        state: Any = self._random.bit_generator.state
        numbers = {k: v.tolist() for k, v in state["state"].items()}
        kept = {**state, "state": numbers, "buffer": state["buffer"].tolist()}
        return {"random": kept, "draws": self._draws}

    def _set_order_state(self, state: dict[str, Any]) -> None:
        kept = state["random"]
        numbers = {k: np.array(v, np.uint64) for k, v in kept["state"].items()}
        draws = [float(x) for x in state["draws"]]
        if not all(0 <= x < 1 for x in draws):
            raise ValueError("draws are from 0 to 1")
        generator = np.random.Philox()
        buffer = np.array(kept["buffer"], np.uint64)
        restored: Any = {**kept, "state": numbers, "buffer": buffer}
        generator.state = restored
        self._random, self._draws = np.random.Generator(generator), draws


class Priority(Queue):
    """Elements come out by their first component, an integer, the least first.

    Equal ones come in the order in which they went in. A dequeue of many waits until all are there.
    """

    takes_as_they_come = False

    def __init__(
        self,
        name: str,
        capacity: int | None = None,
        shapes: Sequence[Shape | None] | None = None,
    ) -> None:
        super().__init__(name, capacity, shapes)
        self._heap: list[tuple[int, int, Element]] = []
        self._order = count()

    def _put(self, element: Element) -> None:
        heapq.heappush(self._heap, (int(element[0]), next(self._order), element))

    def _take(self) -> Element:
        return heapq.heappop(self._heap)[2]

    def _give_back(self, elements: Iterable[Element]) -> None:
        for element in elements:
            self._put(element)

    def _count(self) -> int:
        return len(self._heap)

    def _held(self) -> list[Element]:
        return [element for *_, element in sorted(self._heap, key=lambda entry: entry[:2])]

    def _clear(self) -> None:
        self._heap.clear()
