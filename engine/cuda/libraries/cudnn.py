"""Convolutions by cuDNN, through the bindings of its frontend. No other file names them.

cuDNN describes tensors by dimensions (images, channels, *spatial) and strides. Images are given as
they lie, with the channels side by side; filters as (filters, channels, *window) with the channels
side by side, too. Filters of another order are put into this one before (`LibraryCall.before`):
cuDNN accepts other strides, but plans the same engines for them, which read the usual order.

Engines whose results differ from run to run, that round operands or sums to fewer bits than they
have, or that take too much memory, are left out; of the others cuDNN's heuristics take the first.
What a graph computes does not depend on addresses, so one is built for a form of a call.

Source: cuDNN frontend 1.28, operations of convolution; the classes of numerical notes in the cuDNN
    backend API, section "cudnnBackendNumericalNote_t".
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from ...cuda_program import Convolution, LibraryName
from ..interface import Gpu, Memory

_MOST_WORKSPACE_BYTES: Final = 1 << 30
_TYPES: Final = {"float32": "FLOAT", "float16": "HALF", "bfloat16": "BFLOAT16"}
_NOTES: Final = ("NONDETERMINISTIC", "REDUCED_PRECISION_REDUCTION")
_NOTES_OF_FLOATS: Final = ("TENSOR_CORE", "DOWN_CONVERT_INPUTS")  # TF32
_LEAST_SPATIAL_AXES: Final = 2  # cuDNN has no convolutions of sequences

# The names of a graph's tensors: two operands and the result, as in the buffers of a LibraryCall.
Tensors = tuple[Any, Any, Any]


def plan_convolution(
    gpu: Gpu, name: LibraryName, call: Convolution, addresses: Sequence[int]
) -> Callable[[int], None] | None:
    """What computes a convolution at addresses, on a stream; None where the library cannot."""
    if str(call.dtype) not in _TYPES or min(map(min, call.pads), default=0) < 0:
        return None
    library = _library(gpu)
    return None if library is None else library.plan(name, call, addresses)


class _Dnn:
    """The library on one GPU.

    State: `_built[form]` is the graph of a form of call, with its tensors and its workspace's
    bytes, or None where no engine is left; `_workspace` serves all calls, for they run one after
    the other, and a call keeps the memory that it was planned with.
    """

    def __init__(self, gpu: Gpu, dnn: Any) -> None:
        self._gpu, self._dnn = gpu, dnn
        with gpu:
            self._handle = dnn.create_handle()
        self._built: dict[tuple[LibraryName, Convolution], tuple[Any, Tensors, int] | None] = {}
        self._workspace: Memory | None = None
        self._workspace_bytes = 0

    def plan(
        self, name: LibraryName, call: Convolution, addresses: Sequence[int]
    ) -> Callable[[int], None] | None:
        """What computes it at addresses; None: no engine does."""
        key = name, call
        if key not in self._built:
            with self._gpu:
                self._built[key] = build(self._dnn, name, call, handle=self._handle)
        found = self._built[key]
        if found is None:
            return None
        graph, tensors, num_bytes = found
        space = self._space(num_bytes)
        places = dict(zip(tensors, addresses, strict=True))
        handle, dnn = self._handle, self._dnn

        def run(stream: int) -> None:
            dnn.set_stream(handle=handle, stream=stream)
            graph.execute(places, space.address, handle=handle)

        return run

    def _space(self, num_bytes: int) -> Memory:
        if self._workspace is None or num_bytes > self._workspace_bytes:
            self._workspace_bytes = max(num_bytes, 1)
            self._workspace = self._gpu.allocate(self._workspace_bytes)
        return self._workspace


def build(
    dnn: Any, name: LibraryName, call: Convolution, **options: Any
) -> tuple[Any, Tensors, int] | None:
    """A graph that computes a convolution, its tensors, and the bytes of its workspace.

    Args:
        dnn: the frontend.
        name: which convolution.
        call: its sizes.
        options: of the graph: `handle` of a GPU, or `device_property` of one that is not here.

    Returns:
        None where no engine is left.
    """
    types, of = dnn.data_type, getattr(dnn.data_type, _TYPES[str(call.dtype)])
    graph = dnn.pygraph(
        io_data_type=of,
        intermediate_data_type=types.FLOAT,
        compute_data_type=types.FLOAT,
        **options,
    )
    x, filters, y = _descriptions(call)
    before, behind = zip(*_with_units(call.pads, (0, 0)), strict=True)
    steps = {
        "pre_padding": list(before),
        "post_padding": list(behind),
        "stride": _with_units(call.strides, 1),
        "dilation": _with_units(call.dilations, 1),
    }

    def operand(label: str, description: dict[str, list[int]]) -> Any:
        return graph.tensor(name=label, data_type=of, **description)

    if name == "convolution":
        a, b, form = operand("x", x), operand("filters", filters), y
        result = graph.conv_fprop(image=a, weight=b, **steps)
    elif name == "convolution_input_gradient":
        a, b, form = operand("dy", y), operand("filters", filters), x
        result = graph.conv_dgrad(loss=a, filter=b, **steps)
    else:
        a, b, form = operand("x", x), operand("dy", y), filters
        result = graph.conv_wgrad(image=a, loss=b, **steps)
    result.set_output(True).set_data_type(of).set_dim(form["dim"]).set_stride(form["stride"])
    notes = _NOTES + (_NOTES_OF_FLOATS if str(call.dtype) == "float32" else ())
    try:
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([dnn.heur_mode.A, dnn.heur_mode.FALLBACK])
        graph.deselect_numeric_notes([getattr(dnn.numerical_note, note) for note in notes])
        graph.deselect_workspace_greater_than(_MOST_WORKSPACE_BYTES)
        if "handle" in options:  # this asks the GPU
            graph.check_support()
        graph.build_plans()
    except (dnn.cudnnGraphNotSupportedError, RuntimeError):  # no engine is left
        return None
    return graph, (a, b, result), graph.get_workspace_size()


def _descriptions(call: Convolution) -> list[dict[str, list[int]]]:
    """Dimensions and strides of the input, the filters and the output."""
    shapes = (
        (call.images, call.channels, call.dims),
        (call.filters, call.channels // call.groups, call.window),
        (call.images, call.filters, call.out),
    )
    return [_side_by_side(first, channels, sizes) for first, channels, sizes in shapes]


def _side_by_side(first: int, channels: int, sizes: tuple[int, ...]) -> dict[str, list[int]]:
    """(first, channels, *sizes) in memory as (first, *sizes, channels)."""
    spatial = _with_units(sizes, 1)
    strides: list[int] = []
    step = channels
    for size in reversed(spatial):
        strides.insert(0, step)
        step *= size
    return {"dim": [first, channels, *spatial], "stride": [step, 1, *strides]}


def _with_units(values: Sequence[Any], unit: Any) -> list[Any]:
    """The values by axis, with more axes of size 1 in front where there are too few."""
    return [unit] * (_LEAST_SPATIAL_AXES - len(values)) + list(values)


@functools.cache
def _library(gpu: Gpu) -> _Dnn | None:
    """The library on a GPU; None where it is not installed."""
    if not gpu.architecture:
        return None
    found = frontend_or_none()
    return None if found is None else _Dnn(gpu, found)


@functools.cache
def frontend_or_none() -> Any:
    """cuDNN's frontend, if it and the library are there."""
    try:
        found = importlib.import_module("cudnn")
        found.backend_version()
    except Exception:  # the library has errors of its own, which cannot be named without it
        return None
    return found
