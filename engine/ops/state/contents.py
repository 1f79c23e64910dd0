"""What queues and tables hold, as data: for checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InvalidArgumentError
from ...graph import STRING, Array, TensorSpec, string
from ...resources.queues import Queue
from ...resources.tables import Table
from ..core.effects import HANDLE
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient


@define("ResourceState", dtypes={"handle": HANDLE}, read_only=True)
def resource_state(handle: TensorSpec) -> TensorSpec:
    """What a queue or a table holds, as one string."""
    return TensorSpec((), string)


@resource_state.effect
def _state_kernel(context: KernelContext, handle: Any) -> Array:
    return np.array(_checked(handle).state(), object)


resource_state.grad(no_gradient)


@define("SetResourceState", dtypes={"handle": HANDLE, "state": STRING}, same_dtype=False)
def set_resource_state(handle: TensorSpec, state: TensorSpec) -> tuple[TensorSpec, ...]:
    """Have a queue or a table hold what one like it held."""
    return ()


@set_resource_state.effect
def _set_state_kernel(context: KernelContext, handle: Any, state: Array) -> tuple[Array, ...]:
    _checked(handle).set_state(state.item())
    return ()


set_resource_state.grad(no_gradient)


def _checked(handle: Any) -> Queue | Table:
    if not isinstance(handle, Queue | Table):
        raise InvalidArgumentError(f"{handle!r} has no contents that can be kept in a checkpoint")
    return handle
