"""Errors as messages, and as statuses of gRPC: what was raised in one task is raised in another.

    Error {string class = 1, string message = 2, string remedy = 3, string filename = 4,
           uint64 line = 5, string function = 6, string layer = 7, string operation = 8,
           string task = 9, string device = 10, uint64 step_id = 11}

A class is looked up by its name in a closed table. A message of gRPC carries the whole error in its
trailing metadata; where there is none (nobody answered), the status is what there is.
"""

from __future__ import annotations

from typing import Any

from laminar.engine import errors
from laminar.engine.errors import DataLossError, InternalError, LaminarError, Origin
from laminar.engine.source import Location
from laminar.engine.wire import BYTES, VARINT, Kind, Message, integer, text

METADATA_KEY = "laminar-error-bin"

_KIND = Kind("an error of another task", "both tasks must run the same release of laminar")
# The longest that is sent of each text; metadata of more than 8 KB is not taken by all.
_MOST_MESSAGE, _MOST_REMEDY, _MOST_NAME = 3000, 800, 400

# The status of gRPC for each class; the first class of a status is what a bare status becomes.
_STATUSES: dict[type[LaminarError], str] = {
    errors.CancelledError: "CANCELLED",
    errors.InvalidArgumentError: "INVALID_ARGUMENT",
    errors.ShapeError: "INVALID_ARGUMENT",
    errors.DTypeError: "INVALID_ARGUMENT",
    errors.DeadlineExceededError: "DEADLINE_EXCEEDED",
    errors.NotFoundError: "NOT_FOUND",
    errors.MissingFileError: "NOT_FOUND",
    errors.AlreadyExistsError: "ALREADY_EXISTS",
    errors.PermissionDeniedError: "PERMISSION_DENIED",
    errors.ResourceExhaustedError: "RESOURCE_EXHAUSTED",
    errors.FailedPreconditionError: "FAILED_PRECONDITION",
    errors.AbortedError: "ABORTED",
    errors.OutOfRangeError: "OUT_OF_RANGE",
    errors.UnimplementedError: "UNIMPLEMENTED",
    errors.InternalError: "INTERNAL",
    errors.UnavailableError: "UNAVAILABLE",
    errors.DataLossError: "DATA_LOSS",
}
_BY_NAME = {kind.__name__: kind for kind in _STATUSES}
_BY_STATUS = {status: kind for kind, status in reversed(_STATUSES.items())} | {
    "UNAUTHENTICATED": errors.PermissionDeniedError,
    "UNKNOWN": InternalError,
}
_REMEDIES = {
    "UNAVAILABLE": "see whether the task runs, at this address, and whether both sides have "
    "credentials that fit; a run that is watched begins again by itself",
    "DEADLINE_EXCEEDED": "see whether the task hangs, or allow more time",
    "UNIMPLEMENTED": "see whether a task of this cluster serves there, of the same release",
    "UNAUTHENTICATED": "give this side the cluster's token, or a certificate of its authority",
}


def with_origin(error: LaminarError, origin: Origin) -> LaminarError:
    """The error, which came up there unless it says otherwise."""
    if error.origin is None:
        error.origin = origin
    return error


def _class_of(error: LaminarError) -> type[LaminarError]:
    return next((kind for kind in type(error).__mro__ if kind in _STATUSES), InternalError)


def status_of(error: LaminarError) -> str:
    """The name of gRPC's status for an error."""
    return _STATUSES[_class_of(error)]


def _short(value: str, most: int) -> str:
    return value if len(value) <= most else f"{value[: most - 3]}..."


def to_bytes(error: LaminarError) -> bytes:
    """An error as a message; long texts are cut."""
    parts = [
        text(1, _class_of(error).__name__),
        text(2, _short(error.message, _MOST_MESSAGE)),
    ]
    names: list[tuple[int, str | None]] = [
        (3, error.remedy and _short(error.remedy, _MOST_REMEDY)),
        (7, error.layer),
        (8, error.operation),
    ]
    if error.location is not None:
        names += [(4, error.location.filename), (6, error.location.function)]
        parts.append(integer(5, error.location.line))
    if error.origin is not None:
        names += [(9, error.origin.task), (10, error.origin.device)]
        if error.origin.step_id is not None:
            parts.append(integer(11, error.origin.step_id))
    parts += [text(number, _short(name, _MOST_REMEDY)) for number, name in names if name]
    return b"".join(parts)


def from_bytes(data: bytes) -> LaminarError:
    """The error that `to_bytes` wrote.

    Raises:
        DataLossError: the bytes are no such message.
    """
    texts: dict[int, str] = {}
    numbers: dict[int, int] = {}
    message = Message(data, _KIND)
    for number, wire in message.fields():
        if wire == BYTES and number in (1, 2, 3, 4, 6, 7, 8, 9, 10):
            texts[number] = message.text()
        elif wire == VARINT and number in (5, 11):
            numbers[number] = message.varint()
        else:
            message.skip(wire)
    if 1 not in texts:
        raise message.damage("no class")
    location = None
    if 4 in texts:
        line = min(numbers.get(5, 0), 1 << 31)
        location = Location(texts[4], line, texts.get(6, ""))
    error = _BY_NAME.get(texts[1], InternalError)(
        texts.get(2, ""), remedy=texts.get(3), location=location, layer=texts.get(7, "")
    )
    error.operation = texts.get(8)
    if 9 in texts:
        error.origin = Origin(texts[9], texts.get(10, ""), numbers.get(11))
    return error


def of_call(failure: Any, who: str) -> LaminarError:
    """What a failed call of gRPC (a `grpc.RpcError` that is a call) means.

    Args:
        failure: what was raised.
        who: the task and the method that were called, for the message.
    """
    for name, value in failure.trailing_metadata() or ():
        if name == METADATA_KEY:
            try:
                return from_bytes(value)
            except DataLossError:
                break
    details = _short(failure.details() or "no details", _MOST_NAME)
    return of_status(failure.code().name, details, who)


def of_status(status: str, details: str, who: str) -> LaminarError:
    """The error of a call that failed with a status of gRPC, of which no more is known."""
    return _BY_STATUS.get(status, InternalError)(
        f"{who}: {status}: {details}", remedy=_REMEDIES.get(status)
    )
