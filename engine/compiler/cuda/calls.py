"""Kernel calls as launches: what libraries may compute, and all that has a kernel of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ...cuda_program import (
    Argument,
    Buffer,
    Convolution,
    Kernel,
    Launch,
    LibraryCall,
    LibraryName,
    Product,
    Strides,
)
from ...graph import DType
from ..ir.not_lowered import NotLoweredError
from ..ir.program import KernelCall
from ..lower.rules.contractions import ProductPlanner
from ..lower.rules.convolution import (
    ConvolutionPlanner,
    FilterGradientPlanner,
    InputGradientPlanner,
)
from ..lower.rules.cumulative import ScanPlanner
from ..lower.rules.random import BoolsPlanner, WordsPlanner
from ..lower.rules.scattering import FirstPlanner, ScatterPlanner
from ..lower.rules.sorting import TopKPlanner
from . import lines, products
from .lines import THREADS

_MOST_GRID = 65535  # blocks along y and z
_MOST_BLOCKS = 4096
_SCATTER_BLOCKS = 256  # that all rows of a table are shared among
_LINE = 256  # bytes that memory of scratch begins at multiples of


class Operand(NamedTuple):
    """What a call reads or writes, with real sizes.

    Attributes:
        buffer: where it begins.
        shape: its sizes.
        strides: in elements.
        dtype: of the elements.
    """

    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType


class Scratch:
    """Memory behind the arena for what a call of a library needs: calls use it in turns.

    Args:
        begin: where it begins, in bytes.

    Attributes:
        num_bytes: as much as the call takes that takes most.
    """

    def __init__(self, begin: int) -> None:
        self._begin = begin
        self._taken = 0
        self.num_bytes = 0

    def next_call(self) -> Scratch:
        """Give back all that was taken."""
        self._taken = 0
        return self

    def take(self, num_bytes: int) -> Buffer:
        """So much of it, from a multiple of 256 bytes on."""
        found = Buffer("arena", 0, self._begin + self._taken)
        self._taken += -(-num_bytes // _LINE) * _LINE
        self.num_bytes = max(self.num_bytes, self._taken)
        return found


def plan_call(
    call: KernelCall,
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
    real: Callable[[int], int],
    failed: Buffer | None,
    label: str,
    scratch: Scratch,
) -> Iterator[Launch | LibraryCall]:
    """The launches of a kernel call.

    Args:
        call: what is computed.
        inputs: in order.
        outputs: in order.
        real: gives the real size of a symbolic size.
        failed: where it says that a check has failed, if nothing is to be done then.
        label: what it is for.
        scratch: memory that it may use meanwhile.

    Raises:
        NotLoweredError: there is no CUDA kernel for it.
    """
    planner = call.planner
    if isinstance(planner, ProductPlanner):
        yield from _product(planner, inputs, outputs[0], real, failed, label)
    elif isinstance(planner, ConvolutionPlanner):
        yield _convolution(planner, inputs, outputs[0], real, failed, label, scratch)
    else:
        made = _own(call, inputs, outputs, real)
        if made is not None:
            yield made._replace(arguments=(*made.arguments, failed or 0), label=label)


def _product(
    planner: ProductPlanner,
    inputs: Sequence[Operand],
    output: Operand,
    real: Callable[[int], int],
    failed: Buffer | None,
    label: str,
) -> Iterator[Launch | LibraryCall]:
    a, b = inputs
    *leading, rows, inner, columns = map(real, planner.sizes)
    batch = tuple(leading)
    *steps, row, column = map(real, planner.steps)
    if not rows * columns * math.prod(batch):
        return
    of_a, of_b = (Strides(x.strides[:-2], *x.strides[-2:]) for x in (a, b))
    made = Product(
        batch,
        rows,
        columns,
        inner,
        a.dtype,
        output.dtype,
        of_a,
        of_b,
        Strides(tuple(steps), row, column),
    )
    buffers = a.buffer, b.buffer, output.buffer
    sizes = (1,) * (2 - len(batch)) + batch
    strides: list[int] = []
    for s in (made.a, made.b, made.c):
        strides += [*[0] * (2 - len(s.batch)), *s.batch, s.row, s.column]
    kernel = products.product_kernel(
        a.dtype, output.dtype, is_turned=made.a.row == 1 and made.a.column != 1
    )
    more = (*buffers, *strides, sizes[1], rows, columns, inner, failed or 0)
    launch = Launch(kernel, _tiles(rows, columns, math.prod(sizes)), (THREADS, 1, 1), more, label)
    yield launch if failed else LibraryCall("matmul", made, buffers, (launch,), label)


def _convolution(
    planner: ConvolutionPlanner,
    inputs: Sequence[Operand],
    output: Operand,
    real: Callable[[int], int],
    failed: Buffer | None,
    label: str,
    scratch: Scratch,
) -> Launch | LibraryCall:
    """The call of a library, where one may compute it, else the launch of its own kernel."""
    a, b = inputs
    name: LibraryName = "convolution"
    if isinstance(planner, InputGradientPlanner):
        name = "convolution_input_gradient"
    elif isinstance(planner, FilterGradientPlanner):
        name = "convolution_filter_gradient"
    found = planner.sized(real)
    made = Convolution(
        found.images,
        found.size,
        found.channels,
        found.filters,
        found.window,
        found.strides,
        found.dilation,
        found.padding,
        found.groups,
        found.output,
        a.dtype,
    )
    buffers = a.buffer, b.buffer, output.buffer
    sizes = products.convolution_sizes(name, made)
    kernel = products.convolution_kernel(name, made._replace(images=0), output.dtype)
    grid = _tiles(*sizes[:2], made.groups)
    more = (*buffers, *sizes, failed or 0)
    launch = Launch(kernel, grid, (THREADS, 1, 1), more, label)
    if failed:
        return launch
    return _library_convolution(name, made, a, b, output, launch, scratch.next_call())


def _library_convolution(
    name: LibraryName,
    made: Convolution,
    a: Operand,
    b: Operand,
    output: Operand,
    own: Launch,
    scratch: Scratch,
) -> LibraryCall:
    """A convolution by a library: it has filters in another order, and sums in the operands' type.

    Ours are (*window, channels, filters), and the sums of halves are float32.
    """
    taps = math.prod(made.window) * (made.channels // made.groups)
    before: tuple[Launch, ...] = ()
    after: tuple[Launch, ...] = ()
    filters, result = b.buffer, output.buffer
    dtype, size = made.dtype, made.dtype.size
    if name != "convolution_filter_gradient":
        filters = scratch.take(taps * made.filters * size)
        before = _transpose(b.buffer, filters, dtype, dtype, taps, made.filters, own.label)
        count = math.prod(output.shape)
        if output.dtype != dtype:
            result = scratch.take(count * size)
            after = _transpose(result, output.buffer, dtype, output.dtype, 1, count, own.label)
    else:
        result = scratch.take(taps * made.filters * size)
        after = _transpose(
            result, output.buffer, dtype, output.dtype, made.filters, taps, own.label
        )
    return LibraryCall(name, made, (a.buffer, filters, result), (own,), own.label, before, after)


def _transpose(
    source: Buffer, target: Buffer, dtype: DType, out: DType, rows: int, columns: int, label: str
) -> tuple[Launch, ...]:
    """The launch that writes the transpose of a matrix, as another element type."""
    kernel = lines.transpose_kernel(dtype, out)
    launch = _flat(kernel, rows * columns, (source, target, rows, columns, 0))
    return () if launch is None else (launch._replace(label=label),)


def _tiles(rows: int, columns: int, count: int) -> tuple[int, int, int]:
    grid = -(-rows // products.TILE), -(-columns // products.TILE), count  # rows may be many
    if max(grid[1:]) > _MOST_GRID:
        raise NotLoweredError(f"{count} products of {columns} columns")
    return grid


def _own(
    call: KernelCall,
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
    real: Callable[[int], int],
) -> Launch | None:
    """The launch of what no library computes, but for its last argument; None for no work."""
    planner = call.planner
    given: list[Argument] = [x.buffer for x in inputs]
    made = [x.buffer for x in outputs]
    dtype = inputs[0].dtype
    if isinstance(planner, ScanPlanner):
        outer, size, inner = map(real, planner.sizes)
        kernel = lines.scan_kernel(planner.kind, dtype)
        if len(given) == 1:
            given.append(0)
        numbers = outer, size, inner, int(planner.reverse)
        return _flat(kernel, outer * inner, (*given, made[0], *numbers))
    if isinstance(planner, WordsPlanner | BoolsPlanner):
        count, is_bools = real(planner.count), isinstance(planner, BoolsPlanner)
        least = planner.least if isinstance(planner, BoolsPlanner) else 0
        threads = min(-(-count // 4), _MOST_BLOCKS * THREADS)
        return _flat(lines.random_kernel(is_bools), threads, (given[0], made[0], count, least))
    if isinstance(planner, ScatterPlanner):
        return _scatter(planner, inputs, made[0], real)
    if isinstance(planner, FirstPlanner):
        count = real(planner.count)
        return _flat(lines.first_kernel(dtype), count, (given[0], made[0], count))
    if isinstance(planner, TopKPlanner):
        count = real(planner.lines)
        arguments = (given[0], made[1], planner.size, planner.count)
        kernel = lines.top_k_kernel(dtype)
        return Launch(kernel, (count, 1, 1), (THREADS, 1, 1), arguments) if count else None
    raise NotLoweredError(f"no CUDA kernel computes {call.name}")


def _flat(kernel: Kernel, threads: int, arguments: tuple[Argument, ...]) -> Launch | None:
    """One thread for each of some numbers."""
    blocks = -(-threads // THREADS)
    return Launch(kernel, (blocks, 1, 1), (THREADS, 1, 1), arguments) if blocks else None


def _scatter(
    planner: ScatterPlanner, inputs: Sequence[Operand], out: Buffer, real: Callable[[int], int]
) -> Launch | None:
    rows, indices, *start = inputs
    tables, count, size, width = map(real, planner.sizes)
    if not tables * size * width:
        return None
    across = 1
    while across < min(width, THREADS):
        across *= 2
    groups = THREADS // across
    each = max(1, -(-size // (_SCATTER_BLOCKS * groups)))
    blocks = -(-size // (each * groups))
    kernel = lines.scatter_kernel(planner.mode, rows.dtype, indices.dtype)
    arguments = (
        *(rows.buffer, indices.buffer, start[0].buffer if start else 0, out),
        *(len(start), count, size, width, int(planner.own_places), each, blocks),
    )
    return Launch(kernel, (tables * blocks, 1, 1), (across, groups, 1), arguments)
