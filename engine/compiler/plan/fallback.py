"""What becomes of an error that the compiler itself makes.

Nobody's work ends by a mistake in the compiler: what it cannot compile runs on the reference
kernels, and a debug note says why. Tests must see such mistakes: where the environment variable
LAMINAR_FALLBACK is `never`, they are raised.
"""

from __future__ import annotations

import logging
import os

from ...errors import ShapeError, UnimplementedError

_log = logging.getLogger(__name__)

# An operation has no native form, or none for these sizes: no mistake.
NOT_COMPILABLE = (UnimplementedError, ShapeError)


def fall_back(what: str, error: Exception) -> None:
    """Note that something is not compiled.

    Args:
        what: is not compiled.
        error: why.

    Raises:
        Exception: `error`, if it is a mistake and mistakes are to be seen.
    """
    if os.environ.get("LAMINAR_FALLBACK") == "never" and not isinstance(error, NOT_COMPILABLE):
        raise error
    _log.debug("%s is not compiled: %s: %s", what, type(error).__name__, error)
