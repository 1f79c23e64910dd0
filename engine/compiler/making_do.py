"""What kernels are planned for now: anything that can be compiled, or what is at hand.

Where nobody could say beforehand which sizes come, those of a new batch are planned with the code
that is loaded: nothing is compiled in the middle of an epoch.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from . import codes, llvm, threads
from .kernels.launch import Code
from .kernels.tiles import Target


class _Loaded:
    """The codes that are loaded."""

    def has(self, code: Code) -> bool:
        found = codes.is_loaded(code)
        _state.misses |= not found
        return found

    def __len__(self) -> int:
        return codes.num_loaded()


class _State(threading.local):
    """How this thread plans; `misses`: whether it has looked for code that is not loaded."""

    has_sizes = False
    makes_do = False
    misses = False


_loaded = _Loaded()
_state = _State()


def target() -> Target:
    """What kernels are planned for now."""
    stock = _loaded if _state.makes_do else None
    return Target(llvm.vector_bytes(), threads.num_threads(), _state.has_sizes, stock)


@contextlib.contextmanager
def planning(*, has_sizes: bool, makes_do: bool) -> Iterator[Callable[[], bool]]:
    """Set what this thread plans for; gives what tells whether it had to make do with other code.

    Args:
        has_sizes: whether the same is going to be planned for other sizes.
        makes_do: whether to plan with the code that is loaded, where other code can do the same.
    """
    before = _state.has_sizes, _state.makes_do
    _state.has_sizes, _state.makes_do, _state.misses = has_sizes, makes_do, False
    try:
        yield lambda: _state.misses
    finally:
        _state.has_sizes, _state.makes_do = before
