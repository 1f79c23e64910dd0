"""The servers of this process: who is a client of one need not go through the network.

`_masters[address]` is the service of a master that has started; guarded by `_lock`.
"""

from __future__ import annotations

import socket

from laminar.engine import forks

from .peers import Service

_lock = forks.lock()
_masters: dict[str, Service] = {}


def add_master(address: str, service: Service) -> None:
    """A server has started."""
    with _lock:
        _masters[address] = service


def remove_master(address: str) -> None:
    """It has stopped."""
    with _lock:
        _masters.pop(address, None)


def master_here(address: str) -> Service | None:
    """The master of this process that answers at an address, None if it is another process's."""
    found = _masters.get(address)
    if found is not None:
        return found
    host, _, port = address.rpartition(":")
    names = {"127.0.0.1", "localhost", "[::1]", socket.gethostname()}
    if host not in names:
        return None
    return next((_masters[a] for n in names if (a := f"{n}:{port}") in _masters), None)
