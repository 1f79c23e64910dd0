"""A GPU of NumPy that enforces CUDA's rules: memory, order, capture, late errors.

What is asked of a stream waits in a queue until the host waits for it, or another stream that does
so waits for its event. So whatever is not ordered by events or waits is seen to be missing: a
buffer that is read too early still holds what was there before, and freed memory holds 0xFF.
Besides, accesses that are known (copies, fills, kernels with `accesses`) are compared by vector
clocks: two that overlap, one of which writes, and that nothing orders, are a race.

State:
    _blocks[address]: the bytes of each block that is allocated;
    _queues[stream]: what it has not done yet, `_done[stream]` how many items it has;
    _clocks[stream]: how many items of each stream come before its next; `_host` alike;
    _events[event]: the stream, the item and the clock that it stands for;
    _capture: the streams that take part in a capture, and what was asked of them;
    _fault: why all calls fail from now on;
    lock guards all of it, for all GPUs of a machine.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from laminar.engine.cuda.interface import (
    CaptureError,
    GpuFaultError,
    GpuProperties,
    OutOfGpuMemoryError,
)
from laminar.engine.cuda_program import Dims, Kernel
from laminar.engine.graph import Array

POISON = 0xFF  # NaN in every floating type
_LINE = 256

KernelFunction = Callable[[Dims, Dims, int, Sequence[int]], None]


_F = TypeVar("_F", bound=Callable[..., Any])


def _locked(method: _F) -> _F:
    """One thread at a time, as a driver lets them."""

    @functools.wraps(method)
    def run(self: FakeGpu, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            return method(self, *args, **kwargs)

    return run  # type: ignore[return-value]  # the same signature


class Access(NamedTuple):
    """Bytes that an item reads or writes."""

    start: int
    end: int
    is_write: bool


class _Past(NamedTuple):
    access: Access
    stream: int
    item: int
    what: str


class _Item(NamedTuple):
    run: Callable[[], None]
    accesses: tuple[Access, ...]
    what: str


class _Moment(NamedTuple):
    """What an event stands for."""

    stream: int
    item: int
    clock: dict[int, int]


class Block:
    """Memory of the GPU; freed with this object."""

    def __init__(self, address: int) -> None:
        self.address = address


class FakeGpu:
    """One GPU.

    Args:
        index: which one.
        total_bytes: of its memory.
        compile: makes a function of a kernel: for those that `kernels` does not name.
        kernels: functions by the names of kernels.
        accesses: by name, what a kernel reads and writes, of its arguments.
        fail_allocation: the number of the allocation that finds no room, from 0.
        beside: another GPU of the machine.

    Attributes:
        log: what was asked of it, in order: "allocate", "launch", "synchronize", ...
    """

    def __init__(
        self,
        index: int = 0,
        *,
        total_bytes: int = 64 << 20,
        compile: Callable[[Kernel], KernelFunction] | None = None,
        kernels: Mapping[str, KernelFunction] | None = None,
        accesses: Mapping[str, Callable[[Sequence[int]], Sequence[Access]]] | None = None,
        fail_allocation: int | None = None,
        beside: FakeGpu | None = None,
    ) -> None:
        self.lock: Any = threading.RLock() if beside is None else beside.lock
        self.index = index
        self.total_bytes = total_bytes
        self.fail_allocation = fail_allocation
        self.log: list[str] = []
        self.peers: dict[int, FakeGpu] = {} if beside is None else beside.peers
        self.peers[index] = self
        self.peak = 0
        self.limit: int | None = None
        self.reserved = 0
        self._compile = compile
        self._kernels = dict(kernels or {})
        self._accesses = dict(accesses or {})
        self._blocks: dict[int, Array] = {}
        self._used = 0
        self._allocations = 0
        self._pinned: dict[int, int] = {}
        self._numbers = itertools.count(1)
        self._queues: dict[int, deque[_Item | _Moment]] = {}
        self._done: dict[int, int] = {}
        self._clocks: dict[int, dict[int, int]] = {}
        self._host: dict[int, int] = {}
        self._events: dict[int, _Moment | None] = {}
        self._past: list[_Past] = []
        self._functions: dict[int, tuple[str, KernelFunction]] = {}
        self._graphs: dict[int, list[_Item]] = {}
        self._capture: dict[int, list[_Item]] | None = None
        self._captured_events: set[int] = set()
        self._origin = 0
        self._unjoined: set[int] = set()
        self._broken: str | None = None
        self._fault: GpuFaultError | None = None
        if beside is not None:  # events order the streams of all
            self._numbers, self._queues, self._done = beside._numbers, beside._queues, beside._done
            self._clocks, self._host, self._events = beside._clocks, beside._host, beside._events
        self.stream = self.make_stream()
        self.xp: Any = None  # FakeCupy sets it

    architecture = ""  # of none: it compiles the sources of kernels itself

    def __enter__(self) -> FakeGpu:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def properties(self) -> GpuProperties:
        return GpuProperties("Fake GPU", (9, 0), self.total_bytes, 13000)

    # Memory

    @_locked
    def allocate(self, num_bytes: int) -> Block:
        self._enter("allocate", in_capture=False)
        number, self._allocations = self._allocations, self._allocations + 1
        size = -(-max(num_bytes, 1) // _LINE) * _LINE
        most = self.total_bytes if self.limit is None else min(self.limit, self.total_bytes)
        if number == self.fail_allocation or self._used + size > most:
            raise OutOfGpuMemoryError(
                f"out of memory: {num_bytes} bytes are needed, {self._used} of {most} are in use"
            )
        memory = np.full(size + _LINE, POISON, np.uint8)
        start = -memory.ctypes.data % _LINE
        memory = memory[start : start + size]
        block = Block(memory.ctypes.data)
        self._blocks[block.address] = memory
        self._used += size
        self.peak = max(self.peak, self._used)
        weakref.finalize(block, self._free, block.address).atexit = False
        return block

    @_locked
    def _free(self, address: int) -> None:
        """Memory goes in the order of the stream, as in a pool; what comes later is a fault."""
        memory = self._blocks[address]
        self._used -= memory.size

        def run() -> None:
            del self._blocks[address]
            memory[...] = POISON
            # The next block may be there, and knows nothing of what was.
            end = address + memory.size
            self._past = [p for p in self._past if p.access.end <= address or p.access.start >= end]

        clock = self._clocks[self.stream]
        self._merge(clock, self._host)
        clock[self.stream] = clock.get(self.stream, 0) + 1
        self._queues[self.stream].append(_Item(run, (), "free"))

    @_locked
    def allocate_pinned(self, num_bytes: int) -> Array:
        memory = np.full(max(num_bytes, 1), POISON, np.uint8)
        address = memory.ctypes.data
        self._pinned[address] = address + memory.size
        weakref.finalize(memory, self._pinned.pop, address).atexit = False
        return memory[:num_bytes] if num_bytes else memory

    def used_bytes(self) -> int:
        return self._used

    def free_bytes(self) -> int:
        return self.total_bytes - self._used

    def set_limit(self, num_bytes: int) -> None:
        self.limit = num_bytes

    def reserve(self, num_bytes: int) -> None:
        self.reserved = num_bytes

    def address_of(self, array: Any) -> int:
        return int(array._host.ctypes.data)

    @_locked
    def bytes_at(self, address: int, num_bytes: int) -> Array:
        """Memory of the GPU, as the host must not see it but in tests."""
        for start, memory in self._blocks.items():
            if start <= address and address + num_bytes <= start + memory.size:
                return memory[address - start : address - start + num_bytes]
        raise GpuFaultError(f"an illegal memory access: {num_bytes} bytes at {address:#x}")

    # Copies

    @_locked
    def copy_in(self, address: int, host: Array, stream: int) -> None:
        source = self._bytes_of(host)
        if not self._is_pinned(host):
            self._refuse_in_capture("a copy from pageable memory")
            source = source.copy()  # it is staged before the call returns
        self._copy(address, lambda: source, host.nbytes, (), stream, "copy_in")

    @_locked
    def copy_out(self, host: Array, address: int, stream: int) -> None:
        target, num_bytes = self._bytes_of(host), host.nbytes
        if not self._is_pinned(host):
            self._refuse_in_capture("a copy to pageable memory")

        def run() -> None:
            target[...] = self.bytes_at(address, num_bytes)

        self._ask(stream, _Item(run, (Access(address, address + num_bytes, False),), "copy_out"))
        if not self._is_pinned(host):
            self.synchronize(stream)

    @_locked
    def copy(self, target: int, source: int, num_bytes: int, stream: int) -> None:
        reads = (Access(source, source + num_bytes, False),)
        self._copy(target, lambda: self.bytes_at(source, num_bytes), num_bytes, reads, stream)

    @_locked
    def copy_from_peer(
        self, target: int, source: int, source_index: int, num_bytes: int, stream: int
    ) -> None:
        peer = self.peers[source_index]
        self._copy(target, lambda: peer.bytes_at(source, num_bytes), num_bytes, (), stream, "peer")

    def _copy(
        self,
        target: int,
        source: Callable[[], Array],
        num_bytes: int,
        reads: tuple[Access, ...],
        stream: int,
        what: str = "copy",
    ) -> None:
        def run() -> None:
            self.bytes_at(target, num_bytes)[...] = source()

        writes = Access(target, target + num_bytes, True)
        self._ask(stream, _Item(run, (*reads, writes), what))

    def _is_pinned(self, host: Array) -> bool:
        start = host.ctypes.data
        return any(a <= start and start + host.nbytes <= b for a, b in self._pinned.items())

    def _bytes_of(self, host: Array) -> Array:
        assert host.flags.c_contiguous
        return host.reshape(-1).view(np.uint8)

    # Order

    @_locked
    def make_stream(self) -> int:
        stream = next(self._numbers)
        self._queues[stream], self._done[stream] = deque(), 0
        self._clocks[stream] = {}
        return stream

    @_locked
    def make_event(self) -> int:
        self._enter("make_event", in_capture=False)
        event = next(self._numbers)
        self._events[event] = None
        return event

    @_locked
    def record(self, event: int, stream: int) -> None:
        self._enter("record")
        if self._capture is not None and stream in self._capture:
            self._captured_events.add(event)
            self._unjoined.discard(stream) if stream == self._origin else None
            self._events[event] = _Moment(stream, -1, {})
            return
        self._captured_events.discard(event)
        self._merge(self._clocks[stream], self._host)
        item = self._clocks[stream].get(stream, 0)
        self._events[event] = _Moment(stream, item, dict(self._clocks[stream]))

    @_locked
    def wait(self, stream: int, event: int) -> None:
        self._enter("wait")
        moment = self._events[event]
        if moment is None:
            return
        if event in self._captured_events:
            assert self._capture is not None, "an event of a capture is waited for outside of it"
            if stream not in self._capture:
                self._capture[stream] = self._capture[self._origin]  # one order serves all
                self._unjoined.add(stream)
            elif stream == self._origin:
                self._unjoined.discard(moment.stream)
            return
        self._refuse_in_capture("waiting for an event from before", stream)
        self._merge(self._clocks[stream], moment.clock)
        self._queues[stream].append(moment)

    @_locked
    def synchronize_event(self, event: int) -> None:
        self._enter("synchronize_event", in_capture=False)
        moment = self._events[event]
        if moment is not None:
            self._drain(moment.stream, moment.item)
            self._merge(self._host, moment.clock)
        self._raise_fault()

    @_locked
    def synchronize(self, stream: int) -> None:
        self._enter("synchronize", in_capture=False)
        self.settle(stream)
        self._raise_fault()

    @_locked
    def settle(self, stream: int) -> None:
        """Let a stream do what it was asked."""
        self._drain(stream, self._clocks[stream].get(stream, 0))
        self._merge(self._host, self._clocks[stream])

    @staticmethod
    def _merge(clock: dict[int, int], other: Mapping[int, int]) -> None:
        for stream, item in other.items():
            clock[stream] = max(clock.get(stream, 0), item)

    def _drain(self, stream: int, item: int) -> None:
        queue = self._queues[stream]
        while self._done[stream] < item:
            found = queue.popleft()
            if isinstance(found, _Moment):
                self._drain(found.stream, found.item)
                continue
            self._done[stream] += 1
            if self._fault is None:
                try:
                    found.run()
                except Exception as error:
                    self._fault = GpuFaultError(f"{found.what}: {error}")
                    self._fault.__cause__ = error

    def _ask(self, stream: int, item: _Item) -> None:
        self._enter(item.what)
        if self._capture is not None and stream in self._capture:
            self._capture[stream].append(item)
            return
        clock = self._clocks[stream]
        self._merge(clock, self._host)
        for access in item.accesses:
            self._note(access, stream, clock, item.what)
        clock[stream] = clock.get(stream, 0) + 1
        self._queues[stream].append(item)

    def _note(self, access: Access, stream: int, clock: Mapping[int, int], what: str) -> None:
        kept = []
        for past in self._past:
            other = past.access
            overlaps = other.start < access.end and access.start < other.end
            conflicts = overlaps and (other.is_write or access.is_write)
            is_before = past.stream == stream or past.item <= clock.get(past.stream, 0)
            if conflicts and not is_before:
                raise AssertionError(
                    f"a race: {what} on stream {stream} and {past.what} on stream {past.stream} "
                    f"reach the same memory, and nothing orders them"
                )
            covers = access.start <= other.start and other.end <= access.end
            if not (access.is_write and covers):
                kept.append(past)
        kept.append(_Past(access, stream, clock.get(stream, 0) + 1, what))
        self._past = kept

    # Code

    @_locked
    def load(self, kernels: Sequence[Kernel], images: Mapping[str, bytes]) -> dict[str, int]:
        self._enter("load", in_capture=False)
        missing = [kernel for kernel in kernels if kernel.name not in self._kernels]
        if missing:
            assert self._compile is not None, f"nobody knows the kernel {missing[0].name}"
            self._kernels.update((kernel.name, self._compile(kernel)) for kernel in missing)
        found = {}
        for kernel in kernels:
            function = self._kernels[kernel.name]
            found[kernel.name] = next(self._numbers)
            self._functions[found[kernel.name]] = kernel.name, function
        return found

    @_locked
    def launch(
        self,
        function: int,
        grid: Dims,
        block: Dims,
        shared_bytes: int,
        arguments: Sequence[int],
        stream: int,
    ) -> None:
        name, run = self._functions[function]
        given = tuple(arguments)  # by value, as they are now
        assert all(isinstance(x, int) for x in given), "an argument is 8 bytes, by value"
        assert 0 < block[0] * block[1] * block[2] <= 1024, f"{name}: a block of {block} threads"
        accesses = tuple(self._accesses[name](given)) if name in self._accesses else ()
        self._ask(stream, _Item(lambda: run(grid, block, shared_bytes, given), accesses, name))

    # Graphs

    @_locked
    def begin_capture(self, stream: int) -> None:
        self._enter("begin_capture", in_capture=False)
        self._capture, self._origin, self._broken = {stream: []}, stream, None
        self._unjoined = set()

    @_locked
    def end_capture(self, stream: int) -> int:
        self.log.append("end_capture")
        assert self._capture is not None
        assert stream == self._origin, "a capture ends on the stream that it began on"
        items, broken, unjoined = self._capture[stream], self._broken, self._unjoined
        self._capture = None
        if broken is not None:
            raise CaptureError(f"the capture was broken off by {broken}")
        if unjoined:
            raise CaptureError(f"the streams {sorted(unjoined)} have not joined the capture")
        graph = next(self._numbers)
        self._graphs[graph] = items
        return graph

    @_locked
    def launch_graph(self, graph: int, stream: int) -> None:
        items = self._graphs[graph]

        def run() -> None:
            for item in items:
                item.run()

        accesses = tuple(dict.fromkeys(a for item in items for a in item.accesses))
        self._ask(stream, _Item(run, _merged(accesses), "graph"))

    @_locked
    def release_graph(self, graph: int) -> None:
        del self._graphs[graph]

    # Several GPUs

    def reach(self, index: int) -> bool:
        return index in self.peers and index != self.index

    # Rules

    def _enter(self, what: str, *, in_capture: bool = True) -> None:
        self.log.append(what)
        self._raise_fault()
        if not in_capture:
            self._refuse_in_capture(what)

    def _refuse_in_capture(self, what: str, stream: int | None = None) -> None:
        if self._capture is not None and (stream is None or stream in self._capture):
            self._broken = what
            raise CaptureError(f"{what} is not allowed while a graph is captured")

    def _raise_fault(self) -> None:
        if self._fault is not None:
            raise self._fault


def _merged(accesses: Sequence[Access]) -> tuple[Access, ...]:
    """Of a graph, each range once, as a write where anything in it writes there."""
    writes = {(a.start, a.end) for a in accesses if a.is_write}
    reads = [a for a in accesses if not a.is_write and (a.start, a.end) not in writes]
    return (*reads, *(Access(start, end, True) for start, end in writes))


def array_at(address: int, shape: Sequence[int], dtype: Any) -> Array:
    """Memory at an address as an array, for kernels of tests."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    buffer = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(buffer, dtype).reshape(tuple(shape))
