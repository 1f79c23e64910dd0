"""The block in which a device is named, for graphs and for what computes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import NotFoundError
from ..graph import DeviceSpec, building, get_default_graph, stack
from ..graph.device import EagerPlace
from ..graph.scopes import DeviceRule
from .place import place_of
from .registry import local_devices


@contextmanager
def device(where: str | DeviceSpec | DeviceRule | None) -> Iterator[None]:
    """Put what is made inside on a device; inner blocks win part by part.

    In a graph, operations are constrained to it. Outside of any, ops are computed there, and
    tensors and variables made there; inputs from elsewhere are copied.

    Args:
        where: a device name or spec, a function `(operation) -> name` (for graphs alone), or None
            to hide the outer blocks. In a graph, "@node" is the place of that node.

    Raises:
        InvalidArgumentError: `where` is no device name.
        NotFoundError: there is no such node; outside of a graph, there is no such device. (In a
            graph that matters when it runs, and then by how its session or function places
            operations.)

    Examples:
        >>> with engine.device("cpu:0"):
        ...     x = engine.constant(1.0)
        >>> str(x.device)
        '/device:cpu:0'
    """
    graph, before = get_default_graph(), stack.place
    with graph.device(where):
        stack.place = _place_named(graph.scopes.device_name, softly=building() is not None)
        try:
            yield
        finally:
            stack.place = before


class _Elsewhere:
    """Finds the places of devices of other processes, where there are some."""

    find: Callable[[DeviceSpec], EagerPlace | None] | None = None


def set_places_elsewhere(find: Callable[[DeviceSpec], EagerPlace | None] | None) -> None:
    """Say who knows the devices of other processes; it gives None for what is none of these."""
    _Elsewhere.find = staticmethod(find) if find is not None else None


def _place_named(name: str, *, softly: bool) -> EagerPlace | None:
    """Where a device's name leads, None for no place of its own. A graph may name any device."""
    if not name:
        return None
    devices, spec = local_devices(), DeviceSpec.from_string(name)
    try:
        if _Elsewhere.find is not None and (elsewhere := _Elsewhere.find(spec)) is not None:
            return elsewhere
        found = devices.matching(spec)
    except NotFoundError:
        if softly:
            return None
        raise
    return place_of(devices.client if devices.client in found else found[0])
