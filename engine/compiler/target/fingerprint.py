"""Digests of what code is made from: equal digests, equal code.

What is digested is encoded piece by piece, each with its type, so that two values of one encoding
are the same to a compiler. A value of a kind that is not known here has no digest: what was made
from it is not looked up, but made anew.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import sys
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from ...graph import DType, TensorShape, TensorSpec

# The rooms of the engine whose code decides what is made of an operation.
_SOURCES = ("compiler", "ops", "graph")
_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = __name__.removesuffix(".compiler.target.fingerprint")


class NoDigestError(TypeError):
    """A value of a kind that has no digest."""


def digest(*parts: str) -> str:
    """The digest of some texts."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode()
        found.update(b"%d:" % len(data) + data)
    return found.hexdigest()


@functools.cache
def sources() -> str:
    """The digest of the source code that decides what is made of an operation."""
    found = hashlib.sha256()
    for name in _SOURCES:
        for path in sorted((_ROOT / name).rglob("*.py")):
            content = path.read_bytes()
            found.update(f"{path.relative_to(_ROOT)} {len(content)}\n".encode() + content)
    return found.hexdigest()


def encoded(value: Any) -> str:
    """A value as text.

    Raises:
        NoDigestError: it is, or holds, something of an unknown kind.
    """
    kind = type(value)
    encode = _ENCODERS.get(kind)
    if encode is not None:
        return encode(value)
    if isinstance(value, np.ndarray | np.generic):
        return _array(np.asarray(value))
    if isinstance(value, TensorShape):  # one of unknown rank is of a class of its own
        return _shape(value)
    if is_own(kind):
        name = f"{kind.__module__}.{kind.__qualname__}"
        if isinstance(value, tuple):  # a NamedTuple
            return name + _sequence(value)
        if isinstance(value, Enum):
            return f"{name}.{value.name}"
        if dataclasses.is_dataclass(value):
            fields = [f.name for f in dataclasses.fields(value) if f.compare]
            return name + _sequence(getattr(value, field) for field in fields)
    if callable(value) and is_own(value):
        return f"{value.__module__}.{value.__qualname__}"
    raise NoDigestError(f"{kind.__name__} has no digest")


def is_own(value: Callable[..., Any]) -> bool:
    """Whether a function or class is at the top of a module of those that `sources` covers."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if not isinstance(module, str) or not is_covered(module):
        return False
    return getattr(sys.modules.get(module), name, None) is value


def is_covered(module: str) -> bool:
    """Whether `sources` covers a module."""
    return any(module.startswith(f"{_PACKAGE}.{name}.") for name in _SOURCES)


def _sequence(values: Iterable[Any]) -> str:
    return "(" + "".join([encoded(v) + "," for v in values]) + ")"


def _shape(value: TensorShape) -> str:
    return "shape" + ("?" if value.rank is None else str(tuple(value)))


def _array(value: np.ndarray[Any, Any]) -> str:
    if value.dtype.hasobject:
        raise NoDigestError("an array of objects has no digest")
    held = np.ascontiguousarray(value)
    content = hashlib.sha256(held.view(np.uint8).data if held.ndim else held.tobytes()).hexdigest()
    return f"array {value.dtype.str} {value.dtype.name} {value.shape} {content}"


_ENCODERS: dict[type, Callable[[Any], str]] = {
    type(None): repr,
    bool: repr,
    int: repr,
    float: float.hex,
    str: repr,
    bytes: repr,
    DType: lambda x: f"dtype {x}",
    TensorShape: _shape,
    TensorSpec: lambda x: f"spec {x.dtype} {_shape(x.shape)}",
    tuple: _sequence,
    list: lambda x: "list" + _sequence(x),
    dict: lambda x: "dict" + _sequence(x.items()),
    set: lambda x: "set(" + ",".join(sorted(map(encoded, x))) + ")",
}
