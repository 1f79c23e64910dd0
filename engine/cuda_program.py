"""A step for a GPU as data: what a compiler makes (engine/compiler/cuda) and a device runs.

A program is a list of launches on one stream. It allocates nothing and waits for nothing, so a
device can capture it as one graph: values that change from step to step (learning rates, counters,
states of random numbers) are in device memory, as variables and inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from .graph import Array, DType, TensorSpec

Base: TypeAlias = Literal["arena", "input", "variable", "output", "constant"]
Dims: TypeAlias = tuple[int, int, int]


class Buffer(NamedTuple):
    """An address.

    Attributes:
        base: what it is in.
        number: which input, variable, output or constant; 0 for the arena.
        offset: bytes from its beginning.
    """

    base: Base
    number: int
    offset: int = 0


class Table(NamedTuple):
    """The address of words of 8 bytes in device memory: addresses, and whole numbers."""

    words: tuple[Buffer | int, ...]


# A pointer, or a whole number that is passed as `long long`.
Argument: TypeAlias = Buffer | Table | int


class Kernel(NamedTuple):
    """CUDA C of one function, which includes nothing.

    Attributes:
        name: of the function, `extern "C" __global__`; it has a digest of the source.
        source: a whole translation unit.
    """

    name: str
    source: str


class Launch(NamedTuple):
    """A kernel on a grid of blocks of threads.

    Attributes:
        kernel: what runs.
        grid: the number of blocks along x, y, z.
        block: the number of threads of a block.
        arguments: of the kernel, in order.
        label: the operations that it is for.
        shared_bytes: shared memory besides that which the source declares.
    """

    kernel: Kernel
    grid: Dims
    block: Dims
    arguments: tuple[Argument, ...]
    label: str = ""
    shared_bytes: int = 0


class Strides(NamedTuple):
    """How far apart elements of a batch of matrices are, in elements; 0 repeats."""

    batch: tuple[int, ...]
    row: int
    column: int


class Product(NamedTuple):
    """C[i, m, n] = sum over k of A[i, m, k] * B[i, k, n].

    Attributes:
        batch: sizes of the axes of a batch, at most two.
        rows: of A and C.
        columns: of B and C.
        inner: columns of A, rows of B.
        dtype: of A and B.
        out_dtype: of C, in which sums are made: float32 where `dtype` is a half, else `dtype`.
        a: where elements of A are.
        b: the same of B.
        c: the same of C.
    """

    batch: tuple[int, ...]
    rows: int
    columns: int
    inner: int
    dtype: DType
    out_dtype: DType
    a: Strides
    b: Strides
    c: Strides


class Convolution(NamedTuple):
    """A cross-correlation of (images, *dims, channels) with (*window, channels/groups, filters).

    Attributes:
        images: the size of the batch.
        dims: sizes of the spatial axes.
        channels: of the input.
        filters: channels of the output.
        window: sizes of the filter.
        strides: by axis.
        dilations: by axis.
        pads: zeros before and behind each axis.
        groups: into which channels and filters are cut.
        out: sizes of the spatial axes of the output.
        dtype: of all three arrays.
    """

    images: int
    dims: tuple[int, ...]
    channels: int
    filters: int
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    groups: int
    out: tuple[int, ...]
    dtype: DType


LibraryName: TypeAlias = Literal[
    "matmul", "convolution", "convolution_input_gradient", "convolution_filter_gradient"
]


class LibraryCall(NamedTuple):
    """What a library computes, where the device has it.

    It writes to no variable.

    Attributes:
        name: what is computed.
        parameters: its sizes.
        buffers: two operands, then the result. Of a convolution: input and filters; of its gradient
            with respect to the input: that of the output, and filters; with respect to the filters:
            input, and the gradient of the output. There filters lie as the library has them, as
            (filters, *window, channels/groups), and the result has the element type of operands.
        fallback: generated kernels that compute the same.
        label: the operations that it is for.
        before: kernels that put operands into the form that the library takes.
        after: kernels that put its result into the form that it has elsewhere.
    """

    name: LibraryName
    parameters: Product | Convolution
    buffers: tuple[Buffer, Buffer, Buffer]
    fallback: tuple[Launch, ...]
    label: str = ""
    before: tuple[Launch, ...] = ()
    after: tuple[Launch, ...] = ()

    @property
    def launches(self) -> tuple[Launch, ...]:
        """All launches that it may take."""
        return (*self.before, *self.after, *self.fallback)


@dataclass(frozen=True)
class CudaProgram:
    """A step on arrays of known sizes.

    Attributes:
        launches: in order; each sees what those before it have written.
        arena_bytes: memory for intermediate values; it begins at a multiple of 256 bytes.
        constants: arrays to be in device memory, put there once.
        inputs: what comes from outside; each array is contiguous, and begins at a multiple of 16
            bytes, as all other memory does.
        variables: what is read, and updated in place.
        outputs: what goes out.
        written: the variables that are updated, by number.
        failed: an int32 in the arena, 0 unless a check has failed: then the outputs mean nothing,
            and no variable was changed. None where nothing is checked.
    """

    launches: tuple[Launch | LibraryCall, ...]
    arena_bytes: int
    constants: tuple[Array, ...]
    inputs: tuple[TensorSpec, ...]
    variables: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    written: frozenset[int] = frozenset()
    failed: Buffer | None = None

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All that it may launch, each once."""
        found: dict[str, Kernel] = {}
        for x in self.launches:
            for launch in x.launches if isinstance(x, LibraryCall) else (x,):
                found[launch.kernel.name] = launch.kernel
        return tuple(found.values())


class LoadedProgram(Protocol):
    """A program on a device."""

    def run(self, inputs: Sequence[Any], variables: Sequence[Any]) -> list[Any] | None:
        """The outputs, as arrays of the device; None where a check has failed.

        Args:
            inputs: arrays.
            variables: their stores, whose values are updated in place; a value that somebody else
                holds is copied before that.
        """


class ProgramDevice(Protocol):
    """A device that runs programs."""

    @property
    def architecture(self) -> str:
        """What machine code is for, as "sm_90"; "" where it takes none."""

    def load_program(self, program: CudaProgram, images: Mapping[str, bytes]) -> LoadedProgram:
        """Make a program ready to run.

        Args:
            program: what is to run.
            images: machine code (cubin) of each kernel, by its name.
        """
