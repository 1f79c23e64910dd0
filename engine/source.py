"""Where in the user's program something happened: file and line, and the path of layers.

`_path` holds, per thread, the names of the layers whose `call` is running, outermost first.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple

_ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_FOLDERS = ("laminar", "engine", "layers", "optimizers", "datasets", "distribute")
# Frames of these folders are laminar's own: in a checkout they stand side by side, and the links
# inside laminar/ lead there; an installed package is one folder.
_OWN = (
    (_ROOT + os.sep,)
    if os.path.exists(os.path.join(_ROOT, "__init__.py"))
    else tuple(os.path.join(_ROOT, folder) + os.sep for folder in _FOLDERS)
)
# Library files between the user and us (context managers, functools, threads) are not theirs.
_LIBRARY = os.path.dirname(os.path.realpath(threading.__file__)) + os.sep
_SITE = os.sep + "site-packages" + os.sep
# Nor are those of the libraries that call us: of arrays that a user hands a tensor to, of servers.
_CALLERS = tuple(f"{_SITE}{name}{os.sep}" for name in ("numpy", "scipy", "grpc"))

_is_own: dict[str, bool] = {}
# Why autograph leaves functions as they are, by the identity of their code.
unconverted: dict[int, str] = {}


class Location(NamedTuple):
    """A line of a source file, and the function it stands in."""

    filename: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


class _Path(threading.local):
    def __init__(self) -> None:
        self.names: list[str] = []


_path = _Path()


def is_own_file(filename: str) -> bool:
    """Whether a file is laminar's own, of Python's library, or of NumPy."""
    known = _is_own.get(filename)
    if known is None:
        path = os.path.realpath(filename)
        known = (
            path.startswith(_OWN)
            or (path.startswith(_LIBRARY) and _SITE not in path)
            or any(library in path for library in _CALLERS)
            or filename.startswith("<frozen")
        )
        _is_own[filename] = known
    return known


def _is_generated(frame: FrameType) -> bool:
    """Whether it is code that a dataclass of laminar has written: it belongs to no file."""
    return frame.f_code.co_filename == "<string>" and str(
        frame.f_globals.get("__name__")
    ).startswith("laminar.")


def user_frame(start: FrameType | None = None) -> FrameType | None:
    """The innermost frame that is not laminar's own."""
    frame: FrameType | None = start if start is not None else sys._getframe(1)
    known = _is_own.get  # asked once for each frame of each operation
    while frame is not None:
        filename = frame.f_code.co_filename
        is_own = known(filename)
        if not (is_own_file(filename) if is_own is None else is_own) and not _is_generated(frame):
            break
        frame = frame.f_back
    return frame


def user_location() -> Location | None:
    """The user's line that led here, or None when laminar runs by itself (a thread of its own)."""
    frame = user_frame(sys._getframe(1))
    if frame is None:
        return None
    return Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def why_not_converted() -> str:
    """Why autograph has left the user's function that is running as it is; "" if it has not."""
    frame = user_frame(sys._getframe(1))
    reason = None if frame is None else unconverted.get(id(frame.f_code))
    return "" if reason is None else f"; autograph leaves {reason}"


def warn(message: str) -> None:
    """Warn at the user's line, however deep inside it is noticed."""
    place = user_location()
    if place is None:
        warnings.warn(message, stacklevel=2)
    else:
        warnings.warn_explicit(message, UserWarning, place.filename, place.line)


def layer_path() -> str:
    """The layers whose `call` is running in this thread, as "model/block/dense".

    Examples:
        >>> engine.errors.layer_path()
        ''
    """
    return "/".join(_path.names)


@contextmanager
def inside_scope(name: str | None) -> Iterator[None]:
    """Put the paths of this block under `name`; one that ends in "/" and "" begin at the root."""
    before = _path.names[:]
    if not name or name.endswith("/"):
        _path.names.clear()
    _path.names += [part for part in (name or "").split("/") if part]
    try:
        yield
    finally:
        _path.names[:] = before


@contextmanager
def inside_layer(name: str) -> Iterator[None]:
    """Name the layer that the operations and errors of this block belong to."""
    _path.names.append(name)
    try:
        yield
    finally:
        _path.names.pop()
