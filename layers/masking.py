"""Masks: which time steps of a tensor count. The mask is an attribute of its tensor."""

from __future__ import annotations

from typing import Any


def get_mask(tensor: Any) -> Any:
    """The mask of a tensor, or None."""
    return getattr(tensor, "_keras_mask", None)


def set_mask(tensor: Any, mask: Any) -> None:
    """Give a tensor a mask; None takes it away."""
    tensor._keras_mask = mask
