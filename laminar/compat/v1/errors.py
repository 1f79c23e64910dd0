"""`tf.errors`: one class per status."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "AbortedError": "engine.errors:AbortedError",
    "AlreadyExistsError": "engine.errors:AlreadyExistsError",
    "CancelledError": "engine.errors:CancelledError",
    "DataLossError": "engine.errors:DataLossError",
    "DeadlineExceededError": "engine.errors:DeadlineExceededError",
    "FailedPreconditionError": "engine.errors:FailedPreconditionError",
    "InternalError": "engine.errors:InternalError",
    "InvalidArgumentError": "engine.errors:InvalidArgumentError",
    "NotFoundError": "engine.errors:NotFoundError",
    "OpError": "engine.errors:LaminarError",
    "OutOfRangeError": "engine.errors:OutOfRangeError",
    "PermissionDeniedError": "engine.errors:PermissionDeniedError",
    "ResourceExhaustedError": "engine.errors:ResourceExhaustedError",
    "UnavailableError": "engine.errors:UnavailableError",
    "UnimplementedError": "engine.errors:UnimplementedError",
    "ABORTED": ".statuses:ABORTED",
    "ALREADY_EXISTS": ".statuses:ALREADY_EXISTS",
    "CANCELLED": ".statuses:CANCELLED",
    "DATA_LOSS": ".statuses:DATA_LOSS",
    "DEADLINE_EXCEEDED": ".statuses:DEADLINE_EXCEEDED",
    "FAILED_PRECONDITION": ".statuses:FAILED_PRECONDITION",
    "INTERNAL": ".statuses:INTERNAL",
    "INVALID_ARGUMENT": ".statuses:INVALID_ARGUMENT",
    "NOT_FOUND": ".statuses:NOT_FOUND",
    "OK": ".statuses:OK",
    "OUT_OF_RANGE": ".statuses:OUT_OF_RANGE",
    "PERMISSION_DENIED": ".statuses:PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED": ".statuses:RESOURCE_EXHAUSTED",
    "UNAUTHENTICATED": ".statuses:UNAUTHENTICATED",
    "UNAVAILABLE": ".statuses:UNAVAILABLE",
    "UNIMPLEMENTED": ".statuses:UNIMPLEMENTED",
    "UNKNOWN": ".statuses:UNKNOWN",
    "UnauthenticatedError": ".statuses:UnauthenticatedError",
    "UnknownError": ".statuses:UnknownError",
    "error_code_from_exception_type": ".statuses:error_code_from_exception_type",
    "exception_type_from_error_code": ".statuses:exception_type_from_error_code",
}

__getattr__, __dir__ = face(__name__, NAMES)
