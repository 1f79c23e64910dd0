"""All scripts, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import (
    corners,
    fitting,
    following,
    functional,
    options,
    reuse,
    sequential,
    steps,
    subclassing,
    training,
)

Script = Callable[[Any], Any]

_ROOMS = (
    functional,
    sequential,
    subclassing,
    training,
    steps,
    reuse,
    following,
    options,
    corners,
    fitting,
)


def _named(scripts: list[Script], room: Any) -> dict[str, Script]:
    return {f"{room.__name__.rpartition('.')[2]}-{fn.__name__}": fn for fn in scripts}


# What runs on Keras too, and gives the same.
SHARED: dict[str, Script] = {
    name: fn for room in _ROOMS for name, fn in _named(room.SCRIPTS, room).items()
}
# What Keras writes another way, or fails at; these check themselves.
OWN: dict[str, Script] = {
    name: fn
    for room in _ROOMS
    for name, fn in _named(getattr(room, "OWN_SCRIPTS", []), room).items()
}
