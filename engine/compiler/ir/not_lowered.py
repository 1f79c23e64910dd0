"""The error for what native code is not generated for."""

from __future__ import annotations

import re
from typing import Any

from ...errors import UnimplementedError
from ...late import later

_SYMBOLIC = re.compile(r"-?\d{15,}")  # a size that stands for an unknown one has more digits
_shown_size = later("laminar.engine.compiler.ir.sizes", "shown_size")  # which raises this error


class NotLoweredError(UnimplementedError):
    """Something that has no native form: it stays with the reference kernels.

    Symbolic sizes in the message are shown as n0, 4*n0, ...
    """

    def __init__(self, message: str, **options: Any) -> None:
        super().__init__(_SYMBOLIC.sub(lambda m: _shown_size(int(m[0])), message), **options)
