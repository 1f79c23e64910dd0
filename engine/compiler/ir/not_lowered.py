"""The error for what native code is not generated for."""

from __future__ import annotations

from ...errors import UnimplementedError


class NotLoweredError(UnimplementedError):
    """Something that has no native form: it stays with the reference kernels."""
