"""ProcessMesh: the processes of a group as a grid whose axes have names."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from laminar.engine.errors import InvalidArgumentError

from ..collectives.group import Group


class ProcessMesh:
    """The processes of a group, numbered along the axes of a grid, the last one fastest.

    All processes of the group make it, with the same arguments.

    Args:
        group: the processes.
        shape: of the grid.
        names: of its axes.

    Attributes:
        sizes: by the name of an axis, its length, in the order of the axes.
        place: by the name of an axis, where this process stands along it.

    Raises:
        InvalidArgumentError: the grid takes another number of processes than the group has.
    """

    def __init__(self, group: Group, shape: Sequence[int], names: Sequence[str]) -> None:
        needed = math.prod(shape)
        if needed != group.size:
            raise InvalidArgumentError(
                f"ModelParallel: a mesh of shape {tuple(shape)} takes {needed} processes, and "
                f"{group.size} of them {'was' if group.size == 1 else 'were'} started",
                remedy=f"start as many: laminar launch -n {needed} train.py",
            )
        self.sizes = dict(zip(names, map(int, shape), strict=True))
        numbers = np.arange(needed).reshape(tuple(shape))
        found = np.unravel_index(group.rank, tuple(shape))
        self.place = {name: int(i) for name, i in zip(names, found, strict=True)}
        self._along: dict[str, Group] = {}
        for axis, name in enumerate(names):
            lines = np.moveaxis(numbers, axis, -1).reshape(-1, shape[axis])
            (own,) = (line for line in lines.tolist() if group.rank in line)
            self._along[name] = group.part(own)

    def along(self, name: str) -> Group:
        """The processes that differ from this one along an axis alone, in the order of that."""
        return self._along[name]
