"""The error of a kernel that fails: its operation, what it was given, their line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import (
    InvalidArgumentError,
    LaminarError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
)
from ...graph import Operation

# What becomes of the exceptions of kernels and of the user's own functions; others say that an
# argument is wrong. A function that has nothing more to give ends a loop over steps.
_KINDS: tuple[tuple[type[Exception], type[LaminarError]], ...] = (
    (MemoryError, ResourceExhaustedError),
    (StopIteration, OutOfRangeError),
    (NotImplementedError, UnimplementedError),
)


def located(op: Operation, arguments: Sequence[Any], cause: BaseException) -> LaminarError:
    """The error of a kernel, with the operation's name and the user's line that made it."""
    kind: type[LaminarError]
    if isinstance(cause, LaminarError):
        kind, message, remedy = type(cause), cause.message, cause.remedy
    else:
        assert isinstance(cause, Exception)
        kind, message = kernel_failure(op.type, arguments, cause)
        remedy = None
    error = kind(
        f"{message} [operation {op.name!r}{f' on {op.device}' if op.device else ''}]",
        remedy=remedy,
        location=op.location,
        layer=op.layer,
    )
    error.operation = op.name
    return error


def kernel_failure(
    who: str, arrays: Sequence[Any], cause: Exception
) -> tuple[type[LaminarError], str]:
    """The class and the message of the error for a kernel's exception."""
    got = ", ".join(describe(a) for a in arrays)
    kind = next((k for of, k in _KINDS if isinstance(cause, of)), InvalidArgumentError)
    return kind, f"{who}({got}): {cause}"


def describe(array: Any) -> str:
    """How an error shows an argument of a kernel."""
    if hasattr(array, "dtype") and hasattr(array, "shape"):  # of whatever device
        return f"{array.dtype}[{', '.join(map(str, array.shape))}]"
    return str(array)
