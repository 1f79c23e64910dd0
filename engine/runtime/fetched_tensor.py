"""What a step computed on a device, as a tensor that is copied to the host when it is read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..devices import Device, place_of
from ..errors import InternalError
from ..graph import DeviceTensor, DType, EagerTensor, Operation
from ..ops.state.variable import fetched
from ..source import Location


class Source(NamedTuple):
    """What an error tells of an operation, for the graph may live shorter; and where it ran."""

    name: str
    location: Location | None
    layer: str
    device: Device

    @classmethod
    def of(cls, op: Operation, device: Device) -> Source:
        """That of an operation."""
        return cls(op.name, op.location, op.layer, device)


class FetchedTensor(DeviceTensor):
    """A result of a step. A device that computes behind the host fails when it is read.

    Args:
        value, dtype: as of a `DeviceTensor`.
        source: the operation that made it.
    """

    __slots__ = ("_source",)

    def __init__(self, value: Any, dtype: DType, source: Source) -> None:
        super().__init__(value, dtype, place_of(source.device))
        self._source = source

    def _host(self) -> np.ndarray[Any, Any]:
        source = self._source
        try:
            return super()._host()
        except InternalError as cause:
            error = type(cause)(
                f"{cause.message} [seen when the result of operation {source.name!r} was read, "
                f"which was computed before that on {self.device}]",
                remedy=cause.remedy,
                location=source.location,
                layer=source.layer,
            )
            error.operation = source.name
            raise error from cause


def tensor_from(source: Source | None, value: Any, dtype: DType) -> EagerTensor:
    """A value that an operation made, or (with None) that was given to the step, as a tensor."""
    if source is None:
        return EagerTensor(fetched(value), dtype)
    if source.device.is_host or not source.device.holds(value):
        return EagerTensor(value, dtype)
    return FetchedTensor(value, dtype, source)
