"""What was compiled for a model, as a list that prints."""

from __future__ import annotations

from typing import Any


class CompileReport(list[tuple[str, Any]]):
    """(step, event) for each compile: the name of the step, and what was made and why."""

    def __repr__(self) -> str:
        if not self:
            return "nothing has been compiled"
        return "\n".join(f"{step}: {event}" for step, event in self)
