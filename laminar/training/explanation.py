"""What the kernels of a model's steps compute, as a list that prints."""

from __future__ import annotations

from typing import Any


class Explanation(list[tuple[str, Any]]):
    """(step, table) for each part of a step that is compiled; see `Model.explain`."""

    def __repr__(self) -> str:
        if not self:
            return "nothing has been compiled"
        return "\n\n".join(f"{step}: {table}" for step, table in self)
