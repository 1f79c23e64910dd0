"""A device as eager code uses it: tensors that lie there, and ops that are computed there at once.

`apply` (engine/ops/core/dispatch.py) asks the place of the thread's scope, else that of the first
input that lies on a device. Inputs from elsewhere are copied, the results stay. What a device has
no kernel for, and state that lies on the host, is computed by the host, as graphs are placed
softly.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..graph import DeviceTensor, DType, EagerTensor, Tensor, TensorSpec, resource
from ..ops.core.dispatch import EagerContext, as_array, compute_on_host, run_bound
from ..ops.core.op_def import OpDef, PlanOptions
from .device import Device


class Place:
    """Where eager code computes. `place_of` gives the one of a device.

    Attributes:
        device: the device.
        spec: its name.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.spec = device.spec
        self._context = EagerContext()
        self._context.xp = device.xp
        self._kernels: dict[OpDef, Callable[..., Any]] = {}

    def get(self, value: Any) -> np.ndarray[Any, Any]:
        """An array of the device, copied out to the host."""
        return self.device.get(value)

    def tensor(self, array: np.ndarray[Any, Any], dtype: DType) -> EagerTensor:
        """A host array as a tensor that lies here, if the device can hold it."""
        found = EagerTensor(array, dtype)
        return found if self.device.refuses(found) else self._wrapped(self.device.put(array), dtype)

    def compute(
        self, op: OpDef, tensors: Sequence[Any], attrs: Mapping[str, Any]
    ) -> tuple[tuple[Tensor, ...], Mapping[str, Any]]:
        """The outputs of an op, computed here, and its attributes with defaults.

        Raises:
            LaminarError: what the op's rule or kernel refuses.
        """
        specs, full = op.infer([x.spec for x in tensors], attrs)
        if not self._can_run(op, tensors, specs):
            return compute_on_host(op, [_on_host(x) for x in tensors], attrs)
        device = self.device
        with device.running():
            arrays = [self._brought(x) for x in tensors]
            result = run_bound(op, self._kernel(op, full, len(specs)), arrays, full)
        results = [result] if len(specs) == 1 else result
        found = [self._wrapped(as_array(y), s.dtype) for y, s in zip(results, specs, strict=True)]
        return tuple(found), full

    def _can_run(
        self, op: OpDef, tensors: Sequence[EagerTensor], specs: Sequence[TensorSpec]
    ) -> bool:
        if op.async_kernel is not None or not self.device.has_kernel(op, [x.spec for x in tensors]):
            return False
        if any(s.dtype == resource for s in specs):  # state that is no variable lies on the host
            return False
        handles = [x for x in tensors if x.dtype == resource]
        if not all(isinstance(x, DeviceTensor) and x.place.spec == self.spec for x in handles):
            return False
        refuses = self.device.refuses
        return not (any(refuses(x) for x in tensors) or any(refuses(s) for s in specs))

    def _brought(self, x: EagerTensor) -> Any:
        """The value of an input, on this device; the resource of a handle."""
        if not isinstance(x, DeviceTensor):
            return self.device.put(x.value)
        if x.place is self or x.dtype == resource:
            return x._value
        assert isinstance(x.place, Place)
        return self.device.receive(x._value, x.place.device)

    def _kernel(self, op: OpDef, attrs: Mapping[str, Any], num_outputs: int) -> Callable[..., Any]:
        """The device's kernel, as a function of arrays and attributes."""
        if op.prepared is not None:  # the graphs inside of it run here too
            options = PlanOptions(device=self.device)
            run = op.prepared(attrs, [True] * num_outputs, options)
            return lambda *arrays, **_: run(self._context, *arrays)
        kernel = self._kernels.get(op)
        if kernel is None:
            kernel = self.device.bind(op)
            if op.context_kernel is not None:
                kernel = functools.partial(kernel, self._context)
            self._kernels[op] = kernel
        return kernel

    def _wrapped(self, value: Any, dtype: DType) -> EagerTensor:
        if self.device.is_client:
            return EagerTensor(value, dtype)
        return DeviceTensor(value, dtype, self)

    def __repr__(self) -> str:
        return f"<place {self.device.name}>"


@functools.cache
def place_of(device: Device) -> Place:
    """The one place of a device."""
    return Place(device)


def _on_host(x: Tensor) -> Tensor:
    """A tensor, or a handle, as one of the host."""
    return EagerTensor(x.value, x.dtype) if isinstance(x, DeviceTensor) else x
