"""In which mode a file has the weights of a layer whose config does not say it.

A layer made of others, such as attention, has a config without those of its parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from .main_weight import MainWeight
from .weight_float8 import Float8Mode


class StoredArray(Protocol):
    """What is known of an array in a file before it is read."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...


def quantize_as_stored(
    layer: MainWeight, stored: Sequence[StoredArray], read: Callable[[int], Any]
) -> None:
    """Give a layer that is not quantized the variables of the mode that a file has.

    Args:
        layer: the layer, which is built.
        stored: its variables in the file, in order.
        read: the array of one.
    """
    mode = _mode(layer, stored, read)
    if mode is not None:
        layer._laminar_take_policy(f"{mode}_from_{layer._laminar_own_policy.name}")


def _mode(
    layer: MainWeight, stored: Sequence[StoredArray], read: Callable[[int], Any]
) -> str | None:
    """The mode, as the name of a policy has it."""
    kinds = [array.dtype for array in stored]
    if len(stored) == len(Float8Mode.saved) - (layer.bias is None):
        return "float8"
    if kinds and kinds[0] == np.int8:
        if stored[0].shape == layer._laminar_main_shape:
            return "int8"
        ids = [i for i, kind in enumerate(kinds) if kind == np.int8][1:]
        if not ids:
            return "int4/-1"
        groups = read(ids[0] + 1)
        return f"int4/{_size(groups)}"
    first = 0 if layer.bias is None else 1
    if len(kinds) > first + 3 and kinds[first] == np.uint8:
        rows, inputs = stored[first].shape
        bits = 4 if rows < math.prod(layer._laminar_main_shape) // inputs else 8
        num_groups = stored[first + 1].shape[1]
        mode = "awq" if len(stored) == first + 5 else "gptq"
        return f"{mode}/{bits}/{math.ceil(inputs / num_groups) if num_groups > 1 else -1}"
    return None


def _size(groups: Any) -> int:
    """How many inputs the first group has."""
    return int(np.count_nonzero(np.asarray(groups) == 0))
