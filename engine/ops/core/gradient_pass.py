"""Which pass of differentiation a gradient function is called in.

One pass gives all its gradients of one tensor array to one array, and another pass to another.
A pass that is begun by a gradient function (of a loop, for its body) belongs to the pass around it.
"""

from __future__ import annotations

import itertools
import threading

_numbers = itertools.count()


class _State(threading.local):
    depth = 0
    name = ""


_state = _State()


class GradientPass:
    """A block in which one pass of differentiation calls gradient functions."""

    __slots__ = ()

    def __enter__(self) -> None:
        if not _state.depth:
            _state.name = ""
        _state.depth += 1

    def __exit__(self, *error: object) -> None:
        _state.depth -= 1


def pass_name() -> str:
    """A name for the pass of this thread, which no other has."""
    if not _state.name:
        _state.name = f"gradients_{next(_numbers)}"
    return _state.name
