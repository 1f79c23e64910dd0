"""The side that wants tensors: it asks the tasks that have them, over one link to each."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from laminar.engine.closing import Closing
from laminar.engine.errors import CancelledError, LaminarError
from laminar.engine.graph import TensorSpec
from laminar.engine.runtime.rendezvous import Arrival, Receiver

from .buffers import Budget, BufferPool
from .channels import Channels
from .deadlines import Deadlines
from .tensor_link import Peer
from .wanted import Surroundings, Transfer, Wanted, deliver

_FETCHERS = 4  # threads that fetch long tensors


class TensorClient(Closing):
    """Receives tensors from other tasks.

    Args:
        channels: what connects to them; links have connections of their own beside these.
        budget: of all that has come and is held; None for half of the machine's memory.
        on_transfer: told of each tensor that has come, in the thread that brings it.
        has_sockets: whether tensors come over sockets: those of processes of this host with memory
            that both share, else TCP. They come over gRPC alone otherwise.
    """

    def __init__(
        self,
        channels: Channels,
        *,
        budget: Budget | None = None,
        on_transfer: Callable[[Transfer], object] | None = None,
        has_sockets: bool = True,
    ) -> None:
        self._channels = channels.twin()
        self._pool = BufferPool(budget if budget is not None else Budget())
        self._around = Surroundings(
            self._channels,
            self._pool,
            has_sockets,
            self._fetch,
            on_transfer,
        )
        self._lock = threading.Lock()  # of the next three
        self._peers: dict[str, Peer] = {}
        self._fetchers: ThreadPoolExecutor | None = None
        self._is_closed = False
        self._deadlines = Deadlines(self._expire)

    def receive(
        self,
        address: str,
        step_id: int,
        key: str,
        incarnation: int,
        timeout_seconds: float,
        done: Receiver,
        *,
        spec: TensorSpec | None = None,
    ) -> None:
        """Have `done` called with a tensor of a step, or with an error; once, later.

        Args:
            address: of the task that has it.
            step_id: of the step.
            key: that it is sent under.
            incarnation: of the task; 0 for any.
            timeout_seconds: after which `done` gets a DeadlineExceededError.
            done: runs in a thread that others wait for, so it must be short.
            spec: what is expected; anything else is refused before there is memory for it.
        """
        now = time.monotonic()
        self._ask(
            address, [Wanted(step_id, key, incarnation, spec, done, now, now + timeout_seconds)]
        )

    def receive_all(
        self,
        address: str,
        step_id: int,
        tensors: Iterable[tuple[str, Receiver]],
        incarnation: int,
        timeout_seconds: float,
    ) -> None:
        """As `receive`, for several tensors of a task by their keys: one message asks for all."""
        now = time.monotonic()
        end = now + timeout_seconds
        self._ask(
            address, [Wanted(step_id, key, incarnation, None, d, now, end) for key, d in tensors]
        )

    def _ask(self, address: str, wanted: Sequence[Wanted]) -> None:
        with self._lock:
            peer = None if self._is_closed else self._peers.get(address)
            if peer is None and not self._is_closed:
                peer = self._peers[address] = Peer(self._around, address)
        if peer is None:
            for one in wanted:
                error = CancelledError(f"{one.key}: this task is being stopped")
                deliver(one, Arrival(error=error))
            return
        first = wanted[0]
        self._deadlines.add(min(first.end, first.start + self._channels.keepalive.time_seconds))
        peer.ask(wanted)

    def cancel_step(self, step_id: int, error: LaminarError | None = None) -> None:
        """Have all that waits for tensors of a step get an error, and the senders forget them."""
        if error is None:
            error = CancelledError(f"step {step_id} was cancelled")
        for peer in self._every_peer():
            peer.cancel_step(step_id, error)

    def close(self) -> None:
        """Break all links; what waits gets a CancelledError."""
        with self._lock:
            self._is_closed = True
            peers, self._peers = list(self._peers.values()), {}
            fetchers, self._fetchers = self._fetchers, None
        self._deadlines.close()
        for peer in peers:
            peer.close()
        self._channels.close()
        for peer in peers:
            peer.join()
        if fetchers is not None:
            fetchers.shutdown()
        self._pool.close()

    def _fetch(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._is_closed:
                return  # the peers have told all that wait
            if self._fetchers is None:
                self._fetchers = ThreadPoolExecutor(_FETCHERS, thread_name_prefix="laminar-fetch")
            self._fetchers.submit(work)

    def _every_peer(self) -> list[Peer]:
        with self._lock:
            return list(self._peers.values())

    def _expire(self) -> float:
        """Fail what has waited too long; gives when the next one has."""
        now = time.monotonic()
        return min((peer.expire(now) for peer in self._every_peer()), default=math.inf)
