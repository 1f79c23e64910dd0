"""All that laminar asks of a GPU, besides the array library that reference kernels run on.

Streams, events, functions and graphs are whole numbers, as in CUDA. Work on a stream runs in
order, and when the host does not wait for it, later: what another stream is to see is ordered by an
event, what the host is to see by `synchronize`. Between `begin_capture` and `end_capture` of a
stream nothing runs: what is asked of the stream becomes a graph, in which addresses and arguments
stay as they are. Meanwhile nothing may be allocated, waited for, or copied from pageable memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ..cuda_program import Dims, Kernel
from ..errors import InternalError, ResourceExhaustedError
from ..graph import Array


class OutOfGpuMemoryError(ResourceExhaustedError):
    """The GPU, or the limit of what may be taken of it, has no room."""


class GpuFaultError(InternalError):
    """A kernel has failed. CUDA reports it at any later call, and refuses all work from then on."""


class CaptureError(InternalError):
    """Something was asked of a stream that cannot become part of a graph."""


class GpuProperties(NamedTuple):
    """What a GPU is.

    Attributes:
        name: of the product.
        capability: (major, minor) of its machine code.
        total_bytes: of its memory.
        driver: the version of CUDA that the driver is for, as 13020 for 13.2.
    """

    name: str
    capability: tuple[int, int]
    total_bytes: int
    driver: int


class Memory(Protocol):
    """Some memory of a GPU. It is given back when nobody refers to this object."""

    @property
    def address(self) -> int:
        """Where it begins: at a multiple of 256 bytes."""


class Gpu(Protocol):
    """One GPU.

    Attributes:
        index: which one.
        xp: the library of arrays that lie in its memory, with cupy's face.
        stream: the one on which all computes that laminar starts.
    """

    index: int
    xp: Any
    stream: int

    @property
    def architecture(self) -> str:
        """What machine code is for, as "sm_90"; "" where it takes none."""

    def __hash__(self) -> int: ...

    def __enter__(self) -> Any:
        """From here on what this thread asks of `xp` is computed on `stream`. Blocks may nest."""

    def __exit__(self, *error: object) -> None: ...

    def properties(self) -> GpuProperties:
        """What it is."""

    # Memory

    def allocate(self, num_bytes: int) -> Memory:
        """Memory whose contents are undefined.

        Raises:
            OutOfGpuMemoryError: there is no room.
        """

    def allocate_pinned(self, num_bytes: int) -> Array:
        """Bytes of the host that copies need no staging of; given back with the array."""

    def used_bytes(self) -> int:
        """What arrays and `allocate` hold now."""

    def free_bytes(self) -> int:
        """What nobody holds, of any process."""

    def set_limit(self, num_bytes: int) -> None:
        """Let no more than that be held."""

    def reserve(self, num_bytes: int) -> None:
        """Take memory from the driver now, of which arrays are made later."""

    def address_of(self, array: Any) -> int:
        """Where an array of `xp` begins."""

    # Copies

    def copy_in(self, address: int, host: Array, stream: int) -> None:
        """Copy a contiguous host array to the GPU. From pinned memory it is read later."""

    def copy_out(self, host: Array, address: int, stream: int) -> None:
        """Copy to a contiguous host array; into pinned memory later, else the host waits."""

    def copy(self, target: int, source: int, num_bytes: int, stream: int) -> None:
        """Copy inside of the GPU."""

    def copy_from_peer(
        self, target: int, source: int, source_index: int, num_bytes: int, stream: int
    ) -> None:
        """Copy from another GPU, directly where that is possible."""

    # Order

    def make_stream(self) -> int:
        """Another stream, which waits for no other."""

    def make_event(self) -> int:
        """An event, not yet recorded: whoever waits for it goes on at once."""

    def record(self, event: int, stream: int) -> None:
        """Let the event stand for all that the stream was asked so far."""

    def wait(self, stream: int, event: int) -> None:
        """Let what the stream is asked from now on run after the event."""

    def synchronize_event(self, event: int) -> None:
        """Wait until what the event stands for is done.

        Raises:
            GpuFaultError: a kernel has failed.
        """

    def synchronize(self, stream: int) -> None:
        """Wait until a stream has done all.

        Raises:
            GpuFaultError: a kernel has failed.
        """

    # Code

    def load(self, kernels: Sequence[Kernel], images: Mapping[str, bytes]) -> dict[str, int]:
        """The functions of kernels, by name, from machine code by name."""

    def launch(
        self,
        function: int,
        grid: Dims,
        block: Dims,
        shared_bytes: int,
        arguments: Sequence[int],
        stream: int,
    ) -> None:
        """Run a kernel; each argument is 8 bytes, an address or a whole number."""

    # Graphs

    def begin_capture(self, stream: int) -> None:
        """From now on make a graph of what the stream is asked."""

    def end_capture(self, stream: int) -> int:
        """The graph.

        Raises:
            CaptureError: something was asked that cannot be part of one. The stream is usable.
        """

    def launch_graph(self, graph: int, stream: int) -> None:
        """Run a graph, at the addresses and with the arguments that it was made with."""

    def release_graph(self, graph: int) -> None:
        """Forget a graph; one that runs goes on to its end."""

    # Several GPUs

    def reach(self, index: int) -> bool:
        """Let it read the memory of another GPU directly; whether it can."""
