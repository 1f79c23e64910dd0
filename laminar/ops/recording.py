"""Recording: what the public functions do with the symbolic tensors of the functional API.

A class whose instances stand for the tensors of a model that is being described has the attribute
`is_keras_tensor = True`. A public function that gets one computes nothing: it hands the call to the
recorder, which the room of layers sets.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from laminar.engine.errors import FailedPreconditionError
from laminar.engine.graph import EagerTensor, GraphTensor
from laminar.engine.ops.core.naming import call_named

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

# The commonest types of arguments, which need no closer look.
_PLAIN = frozenset({EagerTensor, GraphTensor, np.ndarray, int, float, bool, str, type(None)})

# The functions that `public` made.
recorded_ops: set[Callable[..., Any]] = set()


class PublicOp(Protocol[P, R_co]):
    """A public op: what `fn` takes, and `name=`, the name of its operation in a graph."""

    __name__: str

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *args: Any, name: str | None, **kwargs: Any) -> R_co: ...


class Recorder(Protocol):
    """Takes note of a call in a model's description, and gives the symbols of its results."""

    def __call__(
        self, name: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Record `fn(*args, **kwargs)`, where `fn` is the public function called `name`.

        `kwargs` may have `name`, what the user calls the operation.
        """


class _Hook:
    recorder: Recorder | None = None


def set_recorder(recorder: Recorder) -> None:
    """Say who records the calls with symbolic arguments."""
    _Hook.recorder = recorder


def has_symbol(values: Iterable[Any]) -> bool:
    """Whether one of `values`, or an item of a list or tuple among them, is symbolic."""
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            continue
        if kind is list or kind is tuple:
            for item in value:
                if getattr(type(item), "is_keras_tensor", False):
                    return True
        elif getattr(kind, "is_keras_tensor", False):
            return True
    return False


def public(fn: Callable[P, R]) -> PublicOp[P, R]:
    """Make `fn` a public op.

    A call with symbolic tensors is recorded instead of computed. Besides its own arguments it takes
    `name=`, in a graph the name of its operation (see `call_named`), in a model of its layer.
    """

    @functools.wraps(fn)
    def op(*args: Any, **kwargs: Any) -> Any:
        if has_symbol(args) or (kwargs and has_symbol(kwargs.values())):
            return _record(op, args, kwargs)
        if kwargs and "name" in kwargs:
            return call_named(kwargs.pop("name"), fn, *args, **kwargs)
        return fn(*args, **kwargs)

    recorded_ops.add(op)
    return op


def _record(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if _Hook.recorder is None:
        raise FailedPreconditionError(
            f"{fn.__name__}: got a symbolic tensor, but nothing that records models is loaded",
            remedy="import laminar.layers before describing a model",
        )
    return _Hook.recorder(fn.__name__, fn, args, kwargs)
