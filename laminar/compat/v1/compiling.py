"""What asks for compiled code: all graphs are compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .adapting import in_graph
from .values import symbol


def compile(computation: Callable[..., Any], inputs: Any = None) -> Any:
    """What a function gives of tensors; one tensor as a list of it."""
    with in_graph():
        found = computation(*(symbol(x) for x in inputs or ()))
    return found if isinstance(found, list | tuple) else [found]


@contextmanager
def jit_scope(compile_ops: Any = True, separate_compiled_gradients: bool = False) -> Iterator[None]:
    """A block of operations; its arguments are accepted."""
    yield
