"""Errors for places that cannot be written to."""

from __future__ import annotations

import errno

from ..errors import LaminarError, PermissionDeniedError, ResourceExhaustedError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the disk, the user's share, a file


def no_place(what: str, cause: Exception) -> LaminarError:
    """The error for a place that is full, or that the system does not let us write to."""
    reason = getattr(cause, "strerror", None) or cause
    if getattr(cause, "errno", None) in _FULL:
        return ResourceExhaustedError(f"{what}: {reason}", remedy="free some room there")
    return PermissionDeniedError(f"{what}: {reason}", remedy="choose a place that you may write to")
