"""What stands for the default of an argument that may be None."""

from __future__ import annotations

from typing import Any


class _Default:
    def __repr__(self) -> str:
        return "USE_DEFAULT"


USE_DEFAULT: Any = _Default()
