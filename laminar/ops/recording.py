"""Recording: what the public functions do with the symbolic tensors of the functional API.

A class whose instances stand for the tensors of a model that is being described has the attribute
`is_keras_tensor = True`. A public function that gets one computes nothing: it hands the call to the
recorder, which the room of layers sets.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from laminar.engine.errors import FailedPreconditionError, LaminarError
from laminar.engine.graph import EagerTensor, GraphTensor
from laminar.engine.ops.core.entries import known_value
from laminar.engine.ops.core.naming import call_named
from laminar.engine.ops.core.remembered_calls import remembering

from .argument_kinds import check_kinds

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

# The commonest types of arguments, which need no closer look.
_PLAIN = frozenset({EagerTensor, np.ndarray, int, float, bool, str, type(None)})
# What types are made of whose values are whole numbers, and parameters that hold such besides.
_WHOLE = frozenset(
    {"int", "None", "Axis", "Axes", "AxisLike", "Ints", "Pair", "SizeLike", "ShapeLike", "Sequence"}
    | {"Iterable", "tuple", "SupportsInt", "Tensor"}
)
_ALSO_WHOLE = frozenset({"pad_width", "repeats"})
_NOTHING, _GRAPH, _SYMBOL = range(3)

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


def _look(values: Iterable[Any]) -> int:
    """Whether one of `values`, or an item of a list or tuple among them, is symbolic (_SYMBOL), or
    else a tensor of a graph (_GRAPH).
    """
    found = _NOTHING
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            continue
        if kind is GraphTensor:
            found = _GRAPH
        elif kind is list or kind is tuple:
            for item in value:
                if type(item) is GraphTensor:
                    found = _GRAPH
                elif getattr(type(item), "is_keras_tensor", False):
                    return _SYMBOL
        elif getattr(kind, "is_keras_tensor", False):
            return _SYMBOL
    return found


@functools.cache
def _whole_numbers(fn: Callable[..., Any]) -> dict[str, int]:
    """The parameters of a function that are axes, sizes and the like, with their places."""
    return {
        name: place
        for place, (name, p) in enumerate(inspect.signature(fn).parameters.items())
        if name in _ALSO_WHOLE
        or (p.annotation and _WHOLE.issuperset(re.findall(r"\w+", str(p.annotation))))
    }


def _with_known(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments; axes, sizes and the like that are constant tensors, as numbers."""
    places = _whole_numbers(fn)
    whole = set(places.values())
    return (
        tuple([known_value(v) if i in whole else v for i, v in enumerate(args)]),
        {name: known_value(v) if name in places else v for name, v in kwargs.items()},
    )


def public(fn: Callable[P, R]) -> PublicOp[P, R]:
    """Make `fn` a public op.

    A call with symbolic tensors is recorded instead of computed. Axes, sizes and the like may be
    tensors of a graph whose values are known while it is built. Besides its own arguments it takes
    `name=`, in a graph the name of its operation (see `call_named`), in a model of its layer.
    """

    def looked_at(*args: Any, **kwargs: Any) -> Any:
        found = _look(args)
        if kwargs:
            found = max(found, _look(kwargs.values()))
        if found:
            if found == _SYMBOL:
                return _record(op, args, kwargs)
            args, kwargs = _with_known(fn, args, kwargs)
        try:
            if kwargs and "name" in kwargs:
                return call_named(kwargs.pop("name"), fn, *args, **kwargs)
            return fn(*args, **kwargs)
        except Exception as error:
            failed(error, args, kwargs)
            raise

    def failed(error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not isinstance(error, LaminarError):
            check_kinds(fn, args, kwargs)

    op = functools.wraps(fn)(remembering(fn, looked_at, failed))
    recorded_ops.add(op)
    return op


def _record(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if _Hook.recorder is None:
        raise FailedPreconditionError(
            f"{fn.__name__}: got a symbolic tensor, but nothing that records models is loaded",
            remedy="import laminar.layers before describing a model",
        )
    return _Hook.recorder(fn.__name__, fn, args, kwargs)
