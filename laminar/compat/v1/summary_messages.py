"""`tf.Summary` as scripts fill it in and read it."""

from __future__ import annotations

from typing import Any

from laminar.engine.io import summaries


class _Values(list[summaries.SummaryValue]):
    """Values under tags."""

    def add(self, **fields: Any) -> summaries.SummaryValue:
        """Append one."""
        self.append(summaries.SummaryValue(**fields))
        return self[-1]


class Summary(summaries.Summary):
    """Values that belong to one step; see `laminar.engine.summary.Summary`."""

    Value = summaries.SummaryValue
    Image = summaries.Image
    Audio = summaries.Audio

    def __init__(self, value: Any = ()) -> None:
        super().__init__(_Values(value))

    def SerializeToString(self) -> bytes:  # noqa: N802  # a message's name for it
        """`to_bytes`."""
        return self.to_bytes()

    def ParseFromString(self, data: bytes) -> int:  # noqa: N802  # a message's name for it
        """Be the summary that was written so; gives the number of bytes."""
        self.value = _Values(summaries.Summary.from_bytes(data).value)
        return len(data)

    @classmethod
    def FromString(cls, data: bytes) -> Summary:  # noqa: N802  # a message's name for it
        """The summary that was written so."""
        return cls(summaries.Summary.from_bytes(data).value)
