"""Vocabularies as text files: a token on each line."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from laminar.engine.errors import (
    DataLossError,
    InvalidArgumentError,
    LaminarError,
    MissingFileError,
)

_NAME = "vocabulary.txt"  # among the assets of a layer


def _tokens(lines: Sequence[bytes], error: type[LaminarError], who: str, is_text: bool) -> Any:
    if is_text:
        return list(lines)
    try:
        return [int(line) for line in lines]
    except ValueError as cause:
        raise error(f"{who}: a line of the vocabulary is no whole number: {cause}") from cause


def read_vocabulary(path: str, *, is_text: bool) -> Any:
    """The tokens of a text file: bytes objects, or ints.

    Raises:
        MissingFileError: there is no such file.
        InvalidArgumentError: a line is no whole number, where they are wanted.
    """
    if not Path(path).is_file():
        raise MissingFileError(f"there is no vocabulary file {path!r}")
    lines = [line.removesuffix(b"\r") for line in Path(path).read_bytes().split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return _tokens(lines, InvalidArgumentError, path, is_text)


def write_asset(store: MutableMapping[str, bytes], tokens: Sequence[Any], who: str) -> None:
    """Put tokens into a mapping of files.

    Raises:
        InvalidArgumentError: a token has a line break.
    """
    lines = [token if isinstance(token, bytes) else str(token).encode() for token in tokens]
    for line in lines:
        if b"\n" in line or b"\r" in line:
            raise InvalidArgumentError(
                f"{who}: the token {line!r} has a line break, and cannot be saved",
                remedy="strip line breaks before adapt(), or pass vocabulary= to the constructor",
            )
    store[_NAME] = b"\n".join(lines)


def vocabulary_of_asset(
    store: Mapping[str, bytes], size: int, who: str, *, is_text: bool
) -> list[Any]:
    """The tokens in a mapping of files: bytes objects, or ints.

    Args:
        store: the files.
        size: so many tokens at least are kept, though the last may be empty.
        who: the layer, for errors.
        is_text: whether tokens are strings.

    Raises:
        DataLossError: the vocabulary is missing or damaged.
    """
    if _NAME not in store:
        raise DataLossError(
            f"{who}: the file has no {_NAME} for it", remedy="save the whole model again"
        )
    lines = [line.removesuffix(b"\r") for line in store[_NAME].split(b"\n")]
    while len(lines) > size and not lines[-1]:
        lines.pop()
    found: list[Any] = _tokens(lines, DataLossError, who, is_text)
    return found


def refuse_path(who: str, config: Mapping[str, Any]) -> None:
    """Refuse a config that names a vocabulary file: InvalidArgumentError."""
    if isinstance(config.get("vocabulary"), str):
        raise InvalidArgumentError(
            f"{who}: the config names the vocabulary file {config['vocabulary']!r}, and files that "
            "a config names are not read",
            remedy="call set_vocabulary(path) yourself if you trust it",
        )
