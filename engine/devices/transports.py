"""How values take their way from one device of a process to another: one table, by both types.

`_transports[source type, target type]` is what somebody has registered, guarded by `_lock` where it
changes; anything else goes by the target's own `Device.receive`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from .. import forks
from ..errors import AlreadyExistsError, ArgumentTypeError, NotFoundError
from .device import Device

Transport: TypeAlias = Callable[[Any, Device, Device], Any]

_lock = forks.lock()
_transports: dict[tuple[str, str], Transport] = {}


def register_transport(source_type: str, target_type: str, transport: Transport) -> None:
    """Have values go from devices of one type to those of another by `transport`.

    Args:
        source_type: of the device that has the value, such as "cpu".
        target_type: of the device that gets it; it may be the same.
        transport: called with the value, an array of the source, and both devices; gives an array
            of the target. What it raises ends the step.

    Raises:
        AlreadyExistsError: there is one for these types.
        ArgumentTypeError: it cannot be called.

    Examples:
        >>> engine.register_transport("cpu", "mine", lambda value, source, target: value)
        >>> engine.unregister_transport("cpu", "mine")
    """
    if not callable(transport):
        raise ArgumentTypeError(
            f"register_transport: expected a function of a value and two devices, got {transport!r}"
        )
    key = source_type.lower(), target_type.lower()
    with _lock:
        if key in _transports:
            raise AlreadyExistsError(
                f"there is a transport from {key[0]!r} to {key[1]!r} already",
                remedy="unregister_transport takes it out",
            )
        _transports[key] = transport


def unregister_transport(source_type: str, target_type: str) -> None:
    """Take a transport out: values go by the target's own way again.

    Raises:
        NotFoundError: there is none for these types.

    Examples:
        >>> engine.unregister_transport("cpu", "nothing")
        Traceback (most recent call last):
            ...
        laminar.engine.errors.NotFoundError: there is no transport from 'cpu' to 'nothing'...
    """
    key = source_type.lower(), target_type.lower()
    with _lock:
        if _transports.pop(key, None) is None:
            raise NotFoundError(f"there is no transport from {key[0]!r} to {key[1]!r}")


def transferred(value: Any, source: Device, target: Device) -> Any:
    """A value that `source` holds as one of `target`."""
    transport = _transports.get((source.device_type, target.device_type))
    if transport is None or source is target or not hasattr(value, "dtype"):
        return target.receive(value, source)
    return transport(value, source, target)
