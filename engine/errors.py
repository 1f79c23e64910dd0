"""What can go wrong: one class per status, each error with the user's line and a remedy.

The first line of a message says who, what was expected and what came; the lines after it name the
layer, the user's file and line, and what to do.
"""

from __future__ import annotations

import linecache
from typing import Any, ClassVar, NamedTuple

from .source import Location, layer_path, user_location


class Origin(NamedTuple):
    """Where in a cluster an error came up.

    Attributes:
        task: such as "/job:worker/task:1".
        device: full name of the device; empty where none has to do with it.
        step_id: of the step; None outside of one.
    """

    task: str
    device: str = ""
    step_id: int | None = None

    def __str__(self) -> str:
        step = () if self.step_id is None else (f"step {self.step_id}",)
        return ", ".join([self.device or self.task, *step])


class LaminarError(Exception):
    """Base of all errors that laminar raises.

    Args:
        message: who, what was expected, what came. As TensorFlow has it, a NodeDef and an operation
            may stand before it: OutOfRangeError(None, None, "message").
        remedy: what the user can do about it.
        location: the user's line; by default the one that is running now.
        layer: the path of the layer; by default the one that is running now.

    Attributes:
        operation: the name of the operation whose kernel failed, None for errors of other origin.
        origin: the task of a cluster, device and step; None for errors of this process.
        error_code: the number of the status, as gRPC and TensorFlow count.
        op, node_def: the operation that failed, and it as data, where the caller's graph has it.
    """

    error_code: ClassVar[int] = 2  # unknown
    operation: str | None = None
    origin: Origin | None = None
    op: Any = None
    node_def: Any = None

    def __init__(
        self,
        message: Any,
        *rest: Any,
        remedy: str | None = None,
        location: Location | None = None,
        layer: str | None = None,
    ) -> None:
        if rest:
            self.node_def, (self.op, message) = message, rest
        super().__init__(message)
        self.message: str = message
        self.remedy = remedy
        self.location = location if location is not None else user_location()
        self.layer = layer if layer is not None else layer_path()

    def __str__(self) -> str:
        lines = [self.message]
        if self.origin is not None:
            lines.append(f"  in: {self.origin}")
        if self.layer:
            lines.append(f"  layer: {self.layer}")
        if self.location is not None:
            source = linecache.getline(self.location.filename, self.location.line).strip()
            lines.append(f"  at: {self.location}" + (f": {source}" if source else ""))
        if self.remedy:
            lines.append(f"  try: {self.remedy}")
        return "\n".join(lines)

    def __reduce__(self) -> Any:
        # An error crosses process borders (input workers) with its text and place.
        return (_rebuild, (type(self), self.message, self.remedy, self.location, self.layer))


def _rebuild(
    kind: type[LaminarError],
    message: str,
    remedy: str | None,
    location: Location | None,
    layer: str,
) -> LaminarError:
    return kind(message, remedy=remedy, location=location, layer=layer)


class CancelledError(LaminarError):
    """The step was cancelled."""

    error_code = 1


class InvalidArgumentError(LaminarError, ValueError):
    """An argument has a value that the operation does not take."""

    error_code = 3


class UnknownSizeError(InvalidArgumentError, TypeError):
    """Python asks for the length of what has none before run time."""


class ShapeError(InvalidArgumentError):
    """A shape does not fit."""


class DTypeError(LaminarError, TypeError, ValueError):
    """An element type does not fit."""

    error_code = 3


class NotFoundError(LaminarError, KeyError, ValueError):
    """A name, key or file does not exist."""

    error_code = 5


class UnknownClassError(NotFoundError, TypeError):
    """A config names a class or function that nobody knows, or that no config makes."""


class MissingFileError(NotFoundError, FileNotFoundError):
    """A file does not exist."""


class OutOfRangeError(LaminarError):
    """An input has come to its end."""

    error_code = 11


class FailedPreconditionError(LaminarError, RuntimeError, ValueError):
    """The system is not in the state that the operation needs."""

    error_code = 9


class UnknownTruthError(FailedPreconditionError, TypeError):
    """Python asks for the truth of what has no value before run time."""


class AbortedError(LaminarError):
    """The operation was given up, most often because another one failed."""

    error_code = 10


class UnavailableError(LaminarError, ConnectionError):
    """A service, a network or another process cannot be reached."""

    error_code = 14


class UnimplementedError(LaminarError, NotImplementedError):
    """Not implemented for these arguments or on this device."""

    error_code = 12


class DeadlineExceededError(LaminarError, TimeoutError):
    """The time allowed has run out."""

    error_code = 4


class ResourceExhaustedError(LaminarError, MemoryError):
    """Memory, or a limit set by the user, has run out."""

    error_code = 8


class DataLossError(LaminarError, ValueError):
    """Stored data is damaged, truncated or not what it claims to be."""

    error_code = 15


class PermissionDeniedError(LaminarError, PermissionError):
    """Refused for want of a right or because it would not be safe."""

    error_code = 7


class AlreadyExistsError(LaminarError, ValueError):
    """The name is already taken."""

    error_code = 6


class InternalError(LaminarError, AssertionError):
    """A bug in laminar."""

    error_code = 13
