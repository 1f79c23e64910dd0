"""`raise` in a branch that a tensor chooses: an operation that raises when the branch is taken.

The exception travels through the user's code as it does in Python, up to the branch that is being
traced. There it becomes a Raise, and what the variables have after the condition is what they have
where the other branch was taken.
"""

from __future__ import annotations

import threading
import traceback
from typing import Any

from ..functions.func_graph import FuncGraph
from ..graph import GraphTensor, TensorShape, bool_
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.core.raising import raise_op, raised_attrs
from ..ops.core.recording import paused
from ..source import Location
from ..tree import map_structure

# What the `raise` of rewritten code raises says so; the second, that the graph raises it already.
_MARK, _STAGED = "_laminar_raised", "_laminar_staged"


class _Branches(threading.local):
    """How many branches this thread is tracing, one in another."""

    depth = 0


_branches = _Branches()


class in_branch:  # noqa: N801  # used as a function is
    """A block in which a branch is traced; it leaves an error that goes through as it is."""

    def __enter__(self) -> None:
        _branches.depth += 1

    def __exit__(self, *error: object) -> None:
        _branches.depth -= 1


def raised(error: Any) -> Any:
    """What a `raise` statement raises, marked as the program's own."""
    if isinstance(error, type) and issubclass(error, Exception):
        error = error()
    if isinstance(error, Exception):
        BaseException.__setattr__(error, _MARK, True)  # also of a frozen dataclass
    return error


def is_raised(error: Exception) -> bool:
    """Whether a `raise` of the program raised it, rather than what traces it."""
    return hasattr(error, _MARK)


def put_raise(error: Exception) -> None:
    """Have the graph that is being built raise it."""
    if hasattr(error, _STAGED):
        BaseException.__delattr__(error, _STAGED)  # it may be raised again, in another place
    else:
        _never(error, TensorShape([]), bool_)


def end_here(error: Exception) -> None:
    """Leave the branch around a condition that raises in any case, if there is one."""
    if _branches.depth:
        BaseException.__setattr__(error, _STAGED, True)
        raise error


def never(graph: FuncGraph, like: Any, error: Exception) -> Any:
    """What stands in a branch that raises for a value that the other one has."""

    def leaf(value: Any) -> Any:
        if value is None:
            return None
        spec = convert_to_tensor(value).spec
        return _never(error, spec.shape, spec.dtype)

    with graph.as_default(), paused():
        return map_structure(leaf, like)


def _never(error: Exception, shape: TensorShape, dtype: Any) -> GraphTensor:
    attrs = {**raised_attrs(error), "shape": shape, "dtype": dtype}
    (found,) = apply(raise_op, [], attrs)
    assert isinstance(found, GraphTensor)
    found.op.location = _place_of(error)
    return found


def _place_of(error: Exception) -> Location:
    """The line of the `raise` statement."""
    (*_, (frame, line)) = traceback.walk_tb(error.__traceback__)
    return Location(frame.f_code.co_filename, line, frame.f_code.co_name)
