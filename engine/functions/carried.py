"""Tensor arrays in the structures that loops and conditions carry: there, each is its flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..state.tensor_array import TensorArray
from ..tree import flatten, map_structure, pack_sequence_as

Rebuild = Callable[[Any], Any]


def flows_of(structure: Any) -> Any:
    """`structure` with the flow of each tensor array in its place."""
    if not any(isinstance(leaf, TensorArray) for leaf in flatten(structure)):
        return structure
    return map_structure(
        lambda leaf: leaf.flow if isinstance(leaf, TensorArray) else leaf, structure
    )


def with_arrays(like: Any) -> Rebuild | None:
    """What makes tensor arrays, where `like` has some, of their flows; None if it has none."""
    arrays = flatten(like)
    if not any(isinstance(leaf, TensorArray) for leaf in arrays):
        return None

    def rebuild(structure: Any) -> Any:
        leaves = [
            own.after(leaf) if isinstance(own, TensorArray) else leaf
            for own, leaf in zip(arrays, flatten(structure), strict=True)
        ]
        return pack_sequence_as(structure, leaves)

    return rebuild
