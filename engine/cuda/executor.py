"""A compiled step on a GPU: planned memory, captured as one graph, replayed.

A program runs at addresses: those of its variables, which are where their stores have them, and of
memory of its own for all else. The first run at some addresses launches its kernels one by one,
which loads their code; the second one captures them, and from then on a step is one launch.

Inputs have two slots. What the host gives is copied to one of them on a stream of its own, while
the step before still reads the other one. Outputs are copied out of the memory of the graph, which
the next step overwrites; nothing waits for them before somebody reads them on the host.

State of a `ProgramExecutor`, guarded by the lock of its `Lane`:
    _bindings[addresses of variables, slot]: the least recently used first;
    _slots: the memory of inputs; `_next` is the one that the next run takes.
"""

from __future__ import annotations

import functools
import logging
import math
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import forks
from ..cuda_program import Argument, Buffer, CudaProgram, Launch, LibraryCall, Table
from ..graph import Array, TensorSpec
from ..ops.state.variable import VariableStore, one_lock
from .interface import CaptureError, Gpu, Memory

_log = logging.getLogger(__name__)

_LINE = 256  # bytes that what is planned begins at multiples of
_MOST_BINDINGS = 8  # of one program: addresses times slots, each with a graph
_WORD = 8

# Makes what runs a library call at addresses, on a stream; None where there is no library for it.
PlanCall = Callable[[LibraryCall, Sequence[int]], "Callable[[int], None] | None"]


class Lane:
    """What the programs of a GPU share, for its one stream runs them one after the other.

    Attributes:
        lock: who asks the stream for a run holds it.
        copies: the stream of copies from the host.

    State, guarded by the lock: `_homes[store]` is the array of a variable that programs update, the
    same from step to step, so that graphs have its address. What somebody stores there is copied
    to it; when somebody holds the array itself, the variable moves to another one.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.lock = forks.recursive_lock()
        self.copies = gpu.make_stream()
        self._homes = weakref.WeakKeyDictionary[VariableStore, Any]()
        self._arena: Memory | None = None
        self._arena_bytes = 0

    def arena(self, num_bytes: int) -> Memory:
        """Memory for intermediate values; programs that were made before keep a smaller one."""
        if self._arena is None or num_bytes > self._arena_bytes:
            self._arena, self._arena_bytes = self.gpu.allocate(num_bytes), num_bytes
        return self._arena

    def placed(self, store: VariableStore, *, is_written: bool) -> Any:
        """The array of a variable, on the GPU; its lock is held.

        Nobody else has the array in hand, if it is written.
        """
        value, home = store.value, self._homes.get(store)
        if not is_written:
            if not isinstance(value, self.gpu.xp.ndarray) or not value.flags.c_contiguous:
                store.value = value = self.gpu.xp.ascontiguousarray(self.gpu.xp.asarray(value))
            return value
        if home is not None and value is home:
            # Held by the store, as a home, by two names here, and by the call itself.
            if sys.getrefcount(home) <= 5:
                return home
            home = value.copy(order="C")
        elif home is not None and sys.getrefcount(home) <= 3 and _alike(home, value):
            given = self.gpu.xp.ascontiguousarray(self.gpu.xp.asarray(value))
            to, source = self.gpu.address_of(home), self.gpu.address_of(given)
            self.gpu.copy(to, source, given.nbytes, self.gpu.stream)
        else:  # an array that nobody has
            home = self.gpu.xp.array(value, copy=True, order="C")
        store.value = self._homes[store] = home
        return home


def _alike(a: Any, b: Any) -> bool:
    return bool(a.shape == b.shape and a.dtype == b.dtype)


class ProgramExecutor:
    """A program on a GPU.

    Args:
        lane: of the GPU.
        program: what runs.
        images: machine code of its kernels, by name.
        plan_call: makes what runs a library call.
        is_captured: whether steps become graphs.
    """

    def __init__(
        self,
        lane: Lane,
        program: CudaProgram,
        images: Mapping[str, bytes],
        plan_call: PlanCall = lambda call, addresses: None,
        *,
        is_captured: bool = True,
    ) -> None:
        self._lane, self._gpu, self._program = lane, lane.gpu, program
        self._plan_call = plan_call
        self._captures = is_captured
        self._functions = lane.gpu.load(program.kernels, images)
        self._arena = lane.arena(max(program.arena_bytes, 1))
        self._constants = [self._constant(array) for array in program.constants]
        self._input_offsets, input_bytes = _arranged(program.inputs)
        self._output_offsets, output_bytes = _arranged(program.outputs)
        self._outputs = lane.gpu.allocate(output_bytes)
        self._slots = [_Slot(lane.gpu, input_bytes) for _ in range(2 if program.inputs else 1)]
        self._next = 0
        self._bindings: OrderedDict[Any, _Binding] = OrderedDict()
        self._flag = None if program.failed is None else lane.gpu.allocate_pinned(4).view(np.int32)

    @property
    def num_graphs(self) -> int:
        """How many graphs there are of it."""
        return sum(binding.graph is not None for binding in self._bindings.values())

    def run(self, inputs: Sequence[Any], variables: Sequence[VariableStore]) -> list[Any] | None:
        """The outputs, as arrays of the GPU; None where a check has failed. See LoadedProgram."""
        gpu, stream = self._gpu, self._gpu.stream
        with self._lane.lock, one_lock(variables):
            written = self._program.written
            held = [self._lane.placed(v, is_written=i in written) for i, v in enumerate(variables)]
            slot = self._slots[self._next]
            self._next = (self._next + 1) % len(self._slots)
            self._bring(inputs, slot)
            binding = self._binding(tuple(map(gpu.address_of, held)), slot)
            # All that may find no room comes before what changes variables.
            made = [gpu.xp.empty(tuple(s.shape), s.dtype.numpy) for s in self._program.outputs]
            binding.run()
            gpu.record(slot.computed, stream)
            if self._flag is not None:
                gpu.synchronize(stream)
                if self._flag[0]:
                    return None
            for array, offset in zip(made, self._output_offsets, strict=True):
                if array.nbytes:
                    source = self._outputs.address + offset
                    gpu.copy(gpu.address_of(array), source, array.nbytes, stream)
            return made

    # Values

    def _bring(self, inputs: Sequence[Any], slot: _Slot) -> None:
        """Copy inputs to a slot: the host's on the stream of copies, others in order."""
        gpu, lane = self._gpu, self._lane
        hosts = []
        for i, (x, spec) in enumerate(zip(inputs, self._program.inputs, strict=True)):
            if isinstance(x, gpu.xp.ndarray):
                x = x if x.flags.c_contiguous else x.copy(order="C")
                target = slot.memory.address + self._input_offsets[i]
                gpu.copy(target, gpu.address_of(x), x.nbytes, gpu.stream)
            else:
                hosts.append((self._input_offsets[i], np.asarray(x, spec.dtype.numpy)))
        if not hosts:
            return
        gpu.synchronize_event(slot.copied)  # the bytes of the host that this slot had before
        gpu.wait(lane.copies, slot.computed)
        for offset, array in hosts:
            staged = slot.staging()[offset : offset + array.nbytes]
            staged[...] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            gpu.copy_in(slot.memory.address + offset, staged, lane.copies)
        gpu.record(slot.copied, lane.copies)
        gpu.wait(gpu.stream, slot.copied)

    def _constant(self, array: Array) -> Memory:
        gpu = self._gpu
        memory = gpu.allocate(array.nbytes)
        gpu.copy_in(memory.address, np.ascontiguousarray(array), gpu.stream)
        return memory

    # Addresses

    def _binding(self, variables: tuple[int, ...], slot: _Slot) -> _Binding:
        key = variables, slot.memory.address
        found = self._bindings.get(key)
        if found is None:
            found = self._bindings[key] = self._bound(variables, slot)
            while len(self._bindings) > _MOST_BINDINGS:
                self._bindings.popitem(last=False)
        self._bindings.move_to_end(key)
        return found

    def _bound(self, variables: tuple[int, ...], slot: _Slot) -> _Binding:
        gpu = self._gpu

        def address(buffer: Buffer) -> int:
            match buffer.base:
                case "arena":
                    start = self._arena.address
                case "input":
                    start = slot.memory.address + self._input_offsets[buffer.number]
                case "variable":
                    start = variables[buffer.number]
                case "output":
                    start = self._outputs.address + self._output_offsets[buffer.number]
                case "constant":
                    start = self._constants[buffer.number].address
            return start + buffer.offset

        tables = _Tables(gpu, self._program, address)

        def argument(x: Argument) -> int:
            match x:
                case Buffer():
                    return address(x)
                case Table():
                    return tables.address(x)
                case _:
                    return int(x)

        def launched(launch: Launch) -> Callable[[], None]:
            function = self._functions[launch.kernel.name]
            arguments = tuple(map(argument, launch.arguments))
            grid, block, shared = launch.grid, launch.block, launch.shared_bytes
            return lambda: gpu.launch(function, grid, block, shared, arguments, gpu.stream)

        steps: list[Callable[[], None]] = []
        for x in self._program.launches:
            if isinstance(x, LibraryCall):
                call = self._plan_call(x, tuple(map(address, x.buffers)))
                if call is not None:
                    steps.extend(map(launched, x.before))
                    steps.append(functools.partial(call, gpu.stream))
                    steps.extend(map(launched, x.after))
                    continue
                steps.extend(map(launched, x.fallback))
            else:
                steps.append(launched(x))
        if self._program.failed is not None:
            flag, place = self._flag, address(self._program.failed)
            assert flag is not None
            steps.append(lambda: gpu.copy_out(flag, place, gpu.stream))
        return _Binding(gpu, steps, tables, captures=self._captures)


class _Slot:
    """Memory of the inputs of a step.

    Attributes:
        copied: recorded when the host's arrays are there.
        computed: recorded when a step has read them.
    """

    def __init__(self, gpu: Gpu, num_bytes: int) -> None:
        self._gpu, self._num_bytes = gpu, num_bytes
        self.memory = gpu.allocate(num_bytes)
        self.copied, self.computed = gpu.make_event(), gpu.make_event()
        self._staging: Array | None = None

    def staging(self) -> Array:
        """Pinned memory of the host for as much; made for the first array that comes from there."""
        if self._staging is None:
            self._staging = self._gpu.allocate_pinned(self._num_bytes)
        return self._staging


class _Tables:
    """The tables of a program in device memory, at known addresses."""

    def __init__(self, gpu: Gpu, program: CudaProgram, address: Callable[[Buffer], int]) -> None:
        self._places: dict[Table, int] = {}
        words: list[int] = []
        for x in program.launches:
            for launch in x.launches if isinstance(x, LibraryCall) else (x,):
                for table in launch.arguments:
                    if isinstance(table, Table) and table not in self._places:
                        self._places[table] = len(words)
                        words += [address(w) if isinstance(w, Buffer) else w for w in table.words]
        self._memory = gpu.allocate(_WORD * len(words)) if words else None
        if self._memory is not None:
            gpu.copy_in(self._memory.address, np.array(words, np.int64), gpu.stream)

    def address(self, table: Table) -> int:
        """Where its words are."""
        assert self._memory is not None
        return self._memory.address + _WORD * self._places[table]


class _Binding:
    """A program at addresses."""

    def __init__(
        self, gpu: Gpu, steps: Sequence[Callable[[], None]], tables: _Tables, *, captures: bool
    ) -> None:
        self._gpu, self._steps, self._tables = gpu, steps, tables  # tables live as long as graphs
        self._captures = captures
        self._has_run = False
        self.graph: int | None = None

    def run(self) -> None:
        gpu = self._gpu
        if self._captures and self._has_run and self.graph is None:
            self._capture()
        if self.graph is not None:
            gpu.launch_graph(self.graph, gpu.stream)
            return
        for step in self._steps:
            step()
        self._has_run = True  # what loads code or takes workspaces at its first call has done so

    def _capture(self) -> None:
        gpu = self._gpu
        gpu.begin_capture(gpu.stream)
        try:
            for step in self._steps:
                step()
        except BaseException as error:
            self._captures = False
            try:
                graph = gpu.end_capture(gpu.stream)
            except CaptureError:
                pass
            else:
                gpu.release_graph(graph)
            if not isinstance(error, CaptureError):
                raise
            _log.debug("a step is not captured: %s", error)
            return
        try:
            self.graph = graph = gpu.end_capture(gpu.stream)
            weakref.finalize(self, gpu.release_graph, graph).atexit = False
        except CaptureError as error:
            self._captures = False
            _log.debug("a step is not captured: %s", error)


def _arranged(specs: Sequence[TensorSpec]) -> tuple[list[int], int]:
    """Where each array begins, and how long all are."""
    offsets, end = [], 0
    for spec in specs:
        offsets.append(end)
        num_bytes = spec.dtype.size * math.prod(int(n or 0) for n in spec.shape)
        end += -(-num_bytes // _LINE) * _LINE
    return offsets, max(end, 1)
