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
}

__getattr__, __dir__ = face(__name__, NAMES)
