"""What a file that is read may ask for, and how a file that asks for more is refused."""

from __future__ import annotations

from dataclasses import dataclass

from laminar.engine.errors import DataLossError

_REMEDY = "take the file from its source again, or from a backup; do not load it if it is not yours"


@dataclass(frozen=True)
class Limits:
    """How much a model file may ask for; a file that asks for more is refused before it is read.

    Args:
        max_bytes: the sum of all entries of an archive, and of all arrays of a weights file.
        max_expansion: how many times its stored size a compressed entry or array may grow.
        max_entries: the entries of an archive.
        max_objects: the groups, arrays, attributes and other records of a weights file.
        max_text_bytes: one JSON document, and all attributes and strings of a weights file.
        max_json_values: the values of one JSON document.
        max_depth: how deep groups, and the lists and objects of JSON, may stand in one another.

    Examples:
        >>> laminar.Sequential([layers.Input((3,)), layers.Dense(2)]).save("model.keras")
        >>> limits = laminar.saving.Limits(max_bytes=10)
        >>> laminar.saving.load_model("model.keras", limits=limits)
        Traceback (most recent call last):
            ...
        laminar.engine.errors.DataLossError: model.keras: its entries have ...
    """

    max_bytes: int = 1 << 36
    max_expansion: int = 200
    max_entries: int = 10_000
    max_objects: int = 250_000
    max_text_bytes: int = 1 << 26
    max_json_values: int = 4_000_000
    max_depth: int = 200


def refused(message: str) -> DataLossError:
    """The error for a file that is damaged or hostile."""
    return DataLossError(message, remedy=_REMEDY)


def beyond(message: str, limit: str) -> DataLossError:
    """The error for a file that asks for more than `Limits.<limit>`."""
    return DataLossError(
        message, remedy=f"if the file is yours and really this big, give Limits({limit}=...)"
    )
