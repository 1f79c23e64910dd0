"""The statuses of `tf.errors` by number."""

from __future__ import annotations

from laminar.engine import errors


class UnknownError(errors.LaminarError):
    """An error without a status of its own."""

    error_code = 2


class UnauthenticatedError(errors.LaminarError):
    """Who asks has not proved who it is."""

    error_code = 16


OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND = range(6)
ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION = range(6, 10)
ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS = range(10, 16)
UNAUTHENTICATED = 16

_CLASSES: tuple[type[errors.LaminarError], ...] = (
    errors.CancelledError,
    UnknownError,
    errors.InvalidArgumentError,
    errors.DeadlineExceededError,
    errors.NotFoundError,
    errors.AlreadyExistsError,
    errors.PermissionDeniedError,
    errors.ResourceExhaustedError,
    errors.FailedPreconditionError,
    errors.AbortedError,
    errors.OutOfRangeError,
    errors.UnimplementedError,
    errors.InternalError,
    errors.UnavailableError,
    errors.DataLossError,
    UnauthenticatedError,
)


def exception_type_from_error_code(error_code: int) -> type[errors.LaminarError]:
    """The class of a status; KeyError of a number that is none."""
    found = {kind.error_code: kind for kind in _CLASSES}
    return found[error_code]


def error_code_from_exception_type(cls: type[errors.LaminarError]) -> int:
    """The status of a class."""
    return cls.error_code
