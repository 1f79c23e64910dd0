"""Tensors that stay in the session between its steps."""

from __future__ import annotations

from typing import Any

from laminar import engine
from laminar.engine.graph import GraphTensor, Tensor, resource
from laminar.engine.ops.core.effects import perform
from laminar.engine.ops.core.registry import lookup

from .adapting import v1
from .values import as_kind, tensor


@v1()
def get_session_handle(data: Any) -> Tensor:
    """The handle of a tensor of one step, for later ones; fetched, it is a `TensorHandle`."""
    return lookup("GetSessionHandle")(tensor(data))


@v1()
def get_session_tensor(handle: Any, dtype: Any) -> tuple[GraphTensor, Tensor]:
    """A placeholder for handles, and the tensor that the handle fed for it stands for.

    Args:
        handle: one of those; which one counts is what is fed.
        dtype: of the tensor.
    """
    holder = engine.placeholder(resource, [])
    return holder, lookup("GetSessionTensor")(holder, dtype=str(as_kind(dtype)))


@v1()
def delete_session_tensor(handle: Any) -> tuple[GraphTensor, Any]:
    """A placeholder for handles, and the operation that drops the tensor of what is fed."""
    holder = engine.placeholder(resource, [])
    return holder, perform(lookup("DeleteSessionTensor"), [holder], {})
