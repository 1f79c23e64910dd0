"""What of a file went into a model, and what did not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

LOADED = "loaded"
MISFIT = "does not fit"
ABSENT = "not in the file"
UNUSED = "not in the model"
UNMADE = "not made"


@dataclass(frozen=True)
class Entry:
    """One part of a model or file.

    Args:
        what: its path, or its name.
        status: "loaded", "does not fit", "not in the file", "not in the model" or "not made".
        why: the reason, empty for what was loaded.
    """

    what: str
    status: str
    why: str = ""


@dataclass
class LoadReport:
    """What of a file went into a model, and what did not; as text, a table.

    Args:
        file: the name of the file.
        entries: the parts of the model in its order, then what is left in the file.

    Examples:
        >>> model = laminar.Sequential([layers.Input((3,)), layers.Dense(2, name="head")])
        >>> model.save("model.keras")
        >>> report = model.load_weights("model.keras", partial=True)
        model.keras: 1 parts loaded, 0 left out
        >>> [entry.status for entry in report.entries]
        ['loaded']
    """

    file: str
    entries: list[Entry] = field(default_factory=list)

    @property
    def loaded(self) -> list[str]:
        """What was set from the file."""
        return [entry.what for entry in self.entries if entry.status == LOADED]

    @property
    def left_out(self) -> dict[str, str]:
        """What was not, and why."""
        return {
            entry.what: f"{entry.status}: {entry.why}" if entry.why else entry.status
            for entry in self.entries
            if entry.status != LOADED
        }

    @property
    def is_complete(self) -> bool:
        """Whether the file fitted the model exactly."""
        return not self.left_out

    def add(self, what: str, status: str, why: str = "") -> None:
        """Take note of a part."""
        self.entries.append(Entry(what, status, why))

    def extend(self, other: LoadReport) -> None:
        """Take over what another report says of parts that are not mentioned yet."""
        known = {entry.what for entry in self.entries}
        self.entries.extend(entry for entry in other.entries if entry.what not in known)

    def __str__(self) -> str:
        lines = [f"{self.file}: {len(self.loaded)} parts loaded, {len(self.left_out)} left out"]
        rest = [entry for entry in self.entries if entry.status != LOADED]
        wide = max((len(entry.what) for entry in rest), default=0)
        lines += [
            f"  {entry.what:<{wide}}  {entry.status:<{len(UNUSED)}}  {entry.why}".rstrip()
            for entry in rest
        ]
        return "\n".join(lines)


def listed(names: Sequence[str]) -> str:
    """The first names of many."""
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
