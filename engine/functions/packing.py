"""Flat results in the structure that a call gives: what puts them there is made once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from operator import itemgetter
from typing import Any, TypeAlias

from ..graph import GraphTensor
from ..tree import children, is_nested, rebuild

Pack: TypeAlias = "Callable[[Sequence[Any]], Any]"


def packer(structure: Any) -> Pack:
    """What puts values where the tensors of `structure` are, in the order of `tree.flatten`.

    Everything else in it stays, and containers are new in each call.
    """
    leaves = [leaf for _, leaf in children(structure)] if is_nested(structure) else []
    if leaves and all(isinstance(leaf, GraphTensor) for leaf in leaves):
        if type(structure) is list:  # the commonest forms take no step for each value
            return list
        if type(structure) is tuple:
            return tuple
    return _packer(structure, count())


def _packer(structure: Any, places: count[int]) -> Pack:
    """The same for a part; `places` counts the tensors so far."""
    if isinstance(structure, GraphTensor):
        return itemgetter(next(places))
    if not is_nested(structure):
        return lambda _: structure
    parts = {key: _packer(child, places) for key, child in children(structure)}
    makers = list(parts.values())
    if type(structure) is list:
        return lambda flat: [make(flat) for make in makers]
    if type(structure) is tuple:
        return lambda flat: tuple([make(flat) for make in makers])
    if type(structure) is dict:
        items = [(key, parts[key]) for key in structure]
        return lambda flat: {key: make(flat) for key, make in items}
    return lambda flat: rebuild(structure, [make(flat) for make in makers])
