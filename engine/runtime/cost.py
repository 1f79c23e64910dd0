"""What operations cost: bytes and seconds, estimated from shapes or measured in earlier steps.

`CostModel._seconds[name]` is (sum, count) of the measured times of an operation on the device type
it ran on, `_bytes[name]` the bytes it gave; guarded by `_lock`.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, section 3.2.1.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..devices import Device
from ..graph import DeviceSpec, GraphTensor, Operation, string
from ..ops.core.op_def import OpDef
from ..ops.core.registry import definition_of
from ..ops.core.traits import Work
from ..ops.linalg.einsum import einsum_op
from ..ops.linalg.matmul import matmul
from ..ops.nn.conv_transpose import conv_transpose_op
from ..ops.nn.convolution import conv_input_grad, conv_kernel_grad, conv_op
from ..ops.nn.depthwise import depthwise_conv_op, depthwise_input_grad, depthwise_kernel_grad
from .options import CostNode

_UNKNOWN_DIM = 32  # what an unknown dimension counts: most often it is the batch
_STRING_BYTES = 16
# Between memories: what a transfer takes to begin, and its rate.
_HOST_LATENCY_SECONDS = 2e-5  # two threads of one process: a value changes hands
_BUS_LATENCY_SECONDS = 3e-5
_BUS_BYTES_PER_SECOND = 1.2e10
# Between the tasks of a cluster.
_NETWORK_LATENCY_SECONDS = 2.5e-4
_NETWORK_BYTES_PER_SECOND = 1e9

_Flops = Callable[[Operation], float]


@dataclass(frozen=True)
class Cost:
    """What one operation costs on one type of device.

    Attributes:
        seconds: how long it takes.
        input_bytes, output_bytes: of what it takes and gives.
        source: "static" for an estimate from shapes, "measured" for the mean of traced steps.
    """

    seconds: float
    input_bytes: int
    output_bytes: int
    source: str


class Costs(Protocol):
    """What placement and scheduling ask."""

    def compute_seconds(self, op: Operation, device: Device) -> float:
        """How long an operation takes on a device."""

    def transfer_seconds(self, nbytes: int, source: Device, target: Device) -> float:
        """How long bytes take from one device to another."""


class CostModel:
    """Estimates from shapes; for operations that have been measured, the mean of their times."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: dict[tuple[str, str], tuple[float, int]] = {}
        self._bytes: dict[str, int] = {}

    def cost(self, op: Operation, device: Device) -> Cost:
        """What an operation costs on a device."""
        measured = self._seconds.get((op.name, device.device_type))
        nbytes = self._bytes.get(op.name)
        known = nbytes if nbytes is not None else output_bytes(op)
        if measured is not None:
            total, count = measured
            return Cost(total / count, input_bytes(op), known, "measured")
        return Cost(_static_seconds(op, device), input_bytes(op), known, "static")

    def compute_seconds(self, op: Operation, device: Device) -> float:
        """How long an operation takes on a device."""
        return self.cost(op, device).seconds

    def transfer_seconds(self, nbytes: int, source: Device, target: Device) -> float:
        """How long bytes take from one device to another."""
        if source is target:
            return 0.0
        if (source.spec.job, source.spec.task) != (target.spec.job, target.spec.task):
            return _NETWORK_LATENCY_SECONDS + nbytes / _NETWORK_BYTES_PER_SECOND
        if source.is_host and target.is_host:
            return _HOST_LATENCY_SECONDS  # by reference
        return _BUS_LATENCY_SECONDS + nbytes / _BUS_BYTES_PER_SECOND

    def take(self, node: CostNode) -> None:
        """Add what a run recorded of an operation."""
        kind = DeviceSpec.from_string(node.device).kind or ""
        self.record(node.name, kind, node.seconds / node.executions, node.output_bytes)

    def record(
        self, name: str, device_type: str, seconds: float, nbytes: int | None = None
    ) -> None:
        """Add a measurement of the operation `name`."""
        with self._lock:
            total, count = self._seconds.get((name, device_type), (0.0, 0))
            self._seconds[name, device_type] = total + seconds, count + 1
            if nbytes is not None:
                self._bytes[name] = nbytes


def tensor_bytes(tensor: GraphTensor) -> int:
    """The bytes of a tensor, with a guess for what is unknown of its shape."""
    return _elements(tensor) * _itemsize(tensor)


def known_bytes(tensor: GraphTensor) -> int:
    """The bytes of a tensor whose shape is known, else 0."""
    return tensor_bytes(tensor) if tensor.shape.is_fully_defined else 0


def output_bytes(op: Operation) -> int:
    """The bytes that an operation gives."""
    return sum(map(tensor_bytes, op.outputs))


def input_bytes(op: Operation) -> int:
    """The bytes that an operation takes."""
    return sum(map(tensor_bytes, op.inputs))


def _itemsize(tensor: GraphTensor) -> int:
    return _STRING_BYTES if tensor.dtype == string else tensor.dtype.size


def _elements(tensor: GraphTensor) -> int:
    if tensor.shape.rank is None:
        return _UNKNOWN_DIM
    return math.prod(_UNKNOWN_DIM if d is None else d for d in tensor.shape)


def _static_seconds(op: Operation, device: Device) -> float:
    """The larger of the time for arithmetic and the time for memory traffic."""
    definition = definition_of(op)
    is_free = definition.traits.work is Work.NONE
    flops = 0.0 if is_free else _FLOPS.get(definition, _elementwise)(op)
    traffic = input_bytes(op) + output_bytes(op)
    return device.launch_seconds + max(
        flops / device.flops_per_second, traffic / device.bytes_per_second
    )


def _elementwise(op: Operation) -> float:
    return float(sum(map(_elements, (*op.inputs, *op.outputs))))


def _matmul(op: Operation) -> float:
    a, b, out = (_elements(x) for x in (*op.inputs[:2], op.outputs[0]))
    shape = op.outputs[0].shape
    batch = 1 if shape.rank is None else math.prod(d or _UNKNOWN_DIM for d in shape[:-2])
    # a is m k, b is k n, the result m n: a b / result is k squared, times the batch.
    return 2.0 * out * math.sqrt(float(a) * b / max(1, out * batch))


def _contraction(op: Operation) -> float:
    return _matmul(op) if len(op.inputs) == 2 else _elementwise(op)


def _convolution(op: Operation) -> float:
    return 2.0 * _taps(op.inputs[1]) * _elements(op.outputs[0])


def _convolution_kernel(op: Operation) -> float:
    return 2.0 * _taps(op.outputs[0]) * _elements(op.inputs[1])


def _taps(kernel: GraphTensor) -> int:
    """The products that one output of a convolution sums up."""
    return 1 if kernel.shape.rank is None else math.prod(d or 1 for d in kernel.shape[:-1])


_FLOPS: Mapping[OpDef, _Flops] = {
    matmul: _matmul,
    einsum_op: _contraction,
    conv_op: _convolution,
    conv_input_grad: _convolution,
    conv_kernel_grad: _convolution_kernel,
    conv_transpose_op: _convolution,
    depthwise_conv_op: _convolution,
    depthwise_input_grad: _convolution,
    depthwise_kernel_grad: _convolution_kernel,
}
